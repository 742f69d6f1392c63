"""The least that is an AI client: it starts the proxy, and speaks MCP over its pipes.

Every wait is bounded and ends at an interrupt. `quit` is how a client leaves; `end` leaves nothing behind, whatever
state things are in, within a bound.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections import deque

from ...system.processes import process_started, stop_process
from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any

ANSWER_SECONDS = 20.0  # the slowest answer takes half a second; the rest is for machines that are busy
POLL_SECONDS = 0.05  # how late an interrupt is noticed
QUIT_SECONDS = 5.0  # a proxy that lost its client needs some 50 ms, and ends its Host meanwhile
KILL_SECONDS = 2.0
LAST_LINES = 8  # of what the proxy said on standard error: the reason is among the last


class Heard(Value):
    """A message of the proxy, or None at the end of its output, and when it came."""

    message: dict[str, Any] | None
    at: float  # seconds since 1970, to be compared with what others recorded
    after: float  # by a clock that does not jump, to be compared with other moments here


class DemoClient:
    def __init__(
        self, command: Sequence[str], folder: str, environ: Mapping[str, str], interrupted: Callable[[], bool]
    ) -> None:
        self.launched = time.perf_counter()
        self._process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl+C is for us: a client decides itself when its servers end
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self.pid = self._process.pid
        self._interrupted = interrupted
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._said: deque[str] = deque(maxlen=200)
        self._last_id = 0
        self._threads = [
            threading.Thread(target=target, args=(stream,), daemon=True)
            for target, stream in ((self._read, self._process.stdout), (self._listen, self._process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def introduce(self) -> tuple[list[str], Heard]:
        """The first two requests of every client, at once: the names of the tools, and when they came."""
        client = {"name": "demo", "version": "1"}
        first = self._send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        second = self._send("tools/list")
        self._answer(first, "initialize")
        answer = self._answer(second, "tools/list")
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return _names(answer), answer

    def tools(self) -> list[str]:
        return _names(self._answer(self._send("tools/list"), "tools/list"))

    def call(self, tool: str) -> tuple[dict[str, Any], float]:
        """What the tool answered, as structured content, and after how many milliseconds."""
        began = time.perf_counter()
        answer = self._answer(self._send("tools/call", name=tool, arguments={}), tool)
        result = _result(answer)
        content = result.get("structuredContent")
        expect(isinstance(content, dict) and not result.get("isError"), f"{tool} to answer", f"it said {result}")
        return result["structuredContent"], (answer.after - began) * 1000

    def hear(self, method: str) -> Heard:
        """Wait for a notification."""
        return self._await(lambda message: message.get("method") == method, method)

    def said(self, what: str) -> str:
        """Wait until the proxy has written this on standard error; what stands behind it in the line."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline and self.is_running:
            for line in tuple(self._said):
                if what in line:
                    return line.partition(what)[2].strip()
            if self._interrupted():
                raise KeyboardInterrupt
            time.sleep(POLL_SECONDS / 10)
        raise DemoFailed(f"the proxy to say '{what}'", f"it did not within {ANSWER_SECONDS:g} s")

    def quit(self) -> float:
        """Leave as clients do, by closing the pipe; how many milliseconds until the proxy had gone."""
        began = time.perf_counter()
        self._close()
        try:
            code = self._process.wait(QUIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoFailed("the proxy to end with its client", f"it still ran {QUIT_SECONDS:g} s later") from None
        milliseconds = (time.perf_counter() - began) * 1000
        expect(code == 0, "the proxy to end with exit code 0", f"that was {code}")
        return milliseconds

    def end(self) -> None:
        """Whatever state it is in, it and its children are gone afterwards."""
        self._close()
        try:
            self._process.wait(QUIT_SECONDS)
        except subprocess.TimeoutExpired:
            started = process_started(self.pid)
            if started is not None:
                stop_process(self.pid, started, grace_seconds=KILL_SECONDS, kill_seconds=KILL_SECONDS)
            self._process.poll()
        for thread in self._threads:
            thread.join(KILL_SECONDS)

    def last_words(self) -> list[str]:
        return list(self._said)[-LAST_LINES:]

    def _send(self, method: str, **params: object) -> int:
        self._last_id += 1
        self._write({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def _write(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended; the wait for the answer says so, with its exit code

    def _answer(self, number: int, what: str) -> Heard:
        return self._await(
            lambda message: message.get("id") == number and "method" not in message, f"an answer to {what}"
        )

    def _await(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> Heard:
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            if self._interrupted():
                raise KeyboardInterrupt
            try:
                heard = self._heard.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if heard.message is None:
                raise DemoFailed(what, f"the proxy ended, with exit code {self._exit_code()}")
            if wanted(heard.message):
                return heard
        raise DemoFailed(what, f"there was none within {ANSWER_SECONDS:g} s")

    def _exit_code(self) -> int | None:
        for thread in self._threads:  # its last words count
            thread.join(KILL_SECONDS)
        try:
            return self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            return None  # it has only closed its output

    def _close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # what it did not read any more

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                at, after = time.time(), time.perf_counter()
                try:
                    message = json.loads(line)
                except ValueError:
                    message = {"method": line.decode(errors="replace")}  # no answer to anything
                self._heard.put(Heard(message, at, after))
        self._heard.put(Heard(None, time.time(), time.perf_counter()))

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._said.append(line.decode(errors="replace").rstrip())


def _names(answer: Heard) -> list[str]:
    return [tool["name"] for tool in _result(answer)["tools"]]


def _result(answer: Heard) -> dict[str, Any]:
    assert answer.message is not None
    result = answer.message.get("result")
    if not isinstance(result, dict):
        raise DemoFailed("a result", f"the proxy answered {json.dumps(answer.message)}")
    return result


class DemoFailed(Exception):
    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(f"Expected {expected}, but {seen}.")


def expect(truth: bool, expected: str, seen: str) -> None:
    if not truth:
        raise DemoFailed(expected, seen)
