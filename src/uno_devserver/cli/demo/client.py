"""A minimal AI client: it starts the proxy and speaks MCP over the proxy's pipes.

Every wait is bounded and ends at an interrupt. `quit` ends the proxy as clients do; `end` kills it if necessary.
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

ANSWER_SECONDS = 20.0  # the slowest answer takes half a second; the rest is for busy machines
POLL_SECONDS = 0.05  # the longest delay before an interrupt is noticed
QUIT_SECONDS = 5.0  # a proxy ends its Host and itself within about 50 ms after its client has gone
KILL_SECONDS = 2.0
LAST_LINES = 8  # lines of the proxy's standard error that are shown after a failure


class Received(Value):
    """A message from the proxy (None at the end of its output), and the time at which it was received."""

    message: dict[str, Any] | None
    at: float  # seconds since 1970, to compare with times that other processes recorded
    clock: float  # monotonic, to compare with other times of this process


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
            start_new_session=True,  # so that Ctrl+C reaches only the demo, which then ends the proxy
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self.pid = self._process.pid
        self._interrupted = interrupted
        self._received: queue.SimpleQueue[Received] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=200)
        self._last_id = 0
        self._threads = [
            threading.Thread(target=target, args=(stream,), daemon=True)
            for target, stream in ((self._read, self._process.stdout), (self._read_stderr, self._process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def initialize(self) -> tuple[list[str], Received]:
        """Send the first two requests of every client at once; returns the names of the tools, and the answer."""
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
        """Call a tool; returns its structured content and the milliseconds that it took."""
        began = time.perf_counter()
        answer = self._answer(self._send("tools/call", name=tool, arguments={}), tool)
        result = _result(answer)
        content = result.get("structuredContent")
        expect(isinstance(content, dict) and not result.get("isError"), f"{tool} to answer", f"it said {result}")
        return result["structuredContent"], (answer.clock - began) * 1000

    def notified(self, method: str) -> Received:
        """Wait for the notification of this method."""
        return self._await(lambda message: message.get("method") == method, method)

    def quit(self) -> float:
        """End the proxy as clients do, by closing the pipe; returns the milliseconds that it took."""
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
        """End the proxy and its children, whatever state they are in."""
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

    def last_lines(self) -> list[str]:
        return list(self._stderr)[-LAST_LINES:]

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
            pass  # the proxy has ended; waiting for the answer reports that, with the exit code

    def _answer(self, number: int, what: str) -> Received:
        return self._await(
            lambda message: message.get("id") == number and "method" not in message, f"an answer to {what}"
        )

    def _await(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> Received:
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            if self._interrupted():
                raise KeyboardInterrupt
            try:
                received = self._received.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if received.message is None:
                raise DemoFailed(what, f"the proxy ended, with exit code {self._exit_code()}")
            if wanted(received.message):
                return received
        raise DemoFailed(what, f"there was none within {ANSWER_SECONDS:g} s")

    def _exit_code(self) -> int | None:
        for thread in self._threads:  # read the last output, which is part of the report
            thread.join(KILL_SECONDS)
        try:
            return self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            return None  # the proxy has closed its output, but still runs

    def _close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # the proxy has not read all of its input

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                at, after = time.time(), time.perf_counter()
                try:
                    message = json.loads(line)
                except ValueError:
                    message = {"method": line.decode(errors="replace")}  # matches no request
                self._received.put(Received(message, at, after))
        self._received.put(Received(None, time.time(), time.perf_counter()))

    def _read_stderr(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._stderr.append(line.decode(errors="replace").rstrip())


def _names(answer: Received) -> list[str]:
    return [tool["name"] for tool in _result(answer)["tools"]]


def _result(answer: Received) -> dict[str, Any]:
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
