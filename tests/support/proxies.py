"""A client that runs the installed `uno-devserver` command over pipes, as AI clients do, on a machine in a folder.

    with Proxies(machine) as proxies:
        client = proxies.start()
        client.initialize()
        assert client.call("greet", name="you") == "Hello, you!"

Every answer must be the only one to its request, every line one JSON object. At the end of the block all proxies have
ended, and with them everything that they started: a process that is left is a failure, and is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pytest

from support.hosts import is_running
from support.machine import COMMAND, DATA_HOME, SLOWNESS, WINDOWS, Machine
from support.waiting import wait_for
from uno_devserver.system.folders import folders

PATIENCE = 60.0 * SLOWNESS  # seconds for what takes milliseconds on an idle machine
END_SECONDS = 6.0 * SLOWNESS  # for everything to be gone when a proxy has ended; idle machines take one at most
NEWEST_HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])

Message = dict[str, Any]
Reply = Callable[[Message], Any]


class Proxies:
    """All proxies that a test starts on a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._temp = tempfile.TemporaryDirectory(prefix="u")  # sockets have short paths, the folders of tests long ones
        self.machine.environment["TMPDIR"] = self._temp.name
        self._clients: list[ProxyClient] = []

    def __enter__(self) -> Proxies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close_stdin()
        ended = [client.ends() for client in self._clients]
        left = self._left_over()
        self._temp.cleanup()
        if error is None:
            assert all(ended), "a proxy did not end with its input"
            assert not left, f"left running: {left}"
            for client in self._clients:
                client.check()

    def start(
        self,
        *options: str,
        command: Sequence[str] = ("mcp", "start"),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> ProxyClient:
        """`uno-devserver mcp start <options>`, in the machine's workspace unless told otherwise."""
        client = ProxyClient(
            [*prefix, COMMAND, *command, *options],
            cwd or self.machine.workspace,
            {**self.machine.variables(), **(env or {})},
            self.machine.root / f"proxy-{len(self._clients)}.stderr",
        )
        self._clients.append(client)
        return client

    def connected(self, *options: str, modern: bool = False, **how: Any) -> ProxyClient:
        """A proxy whose client has said hello, and whose upstream is connected."""
        client = self.start(*options, **how)
        client.initialize(modern=modern)
        client.wait_connected()
        return client

    def processes(self) -> list[int]:
        """The ids of all processes whose environment names the folder of this machine, but for consoles of Windows."""
        data = str(self.machine.data)
        others = [pid for pid in psutil.pids() if pid != os.getpid()]
        return [pid for pid in others if _environ(pid).get(DATA_HOME) == data and is_running(pid)]

    def _left_over(self) -> list[str]:
        deadline = time.monotonic() + END_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.01)
        named = [f"{pid}: {_command_line(pid)}" for pid in left]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return named


class ProxyClient:
    """One client: it sends requests, records notifications, and answers requests of the server."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stderr: Path) -> None:
        self._stderr = stderr
        self._is_launcher = argv[0] == COMMAND  # a program in front of it runs Python itself
        self.state = Path(folders(env).state)
        with stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                argv, cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self.modern = False
        self.capabilities: Message = {}
        self.replies: dict[str, Reply | None] = {}  # to what the server asks; None: never, absent: "no such method"
        self.asked: list[Message] = []  # the server's requests
        self.notifications: list[Message] = []
        self.problems: list[str] = []  # what no server may do
        self.transcript: list[bytes] | None = None  # every line as it came, where a test wants them: make it a list
        self._answers: dict[int | str, Message] = {}
        self._sent: set[int | str] = set()
        self._last_id = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @cached_property
    def pid(self) -> int:
        """The id of the proxy. On Windows a launcher starts the Python of a command, and waits for it."""
        if not (WINDOWS and self._is_launcher):
            return self.process.pid
        python: psutil.Process = wait_for(psutil.Process(self.process.pid).children)[0]
        return python.pid

    # --- the conversation

    def initialize(
        self,
        version: str = NEWEST_HANDSHAKE,
        capabilities: Message | None = None,
        *,
        modern: bool = False,
        name: str = "test-client",
    ) -> Message:
        """Begin in either era; return the result of `initialize` or `server/discover`."""
        self.modern = modern
        self.capabilities = capabilities or {}
        if modern:
            return self.result("server/discover")
        info = {"name": name, "version": "1"}
        result = self.result(
            "initialize", {"protocolVersion": version, "capabilities": self.capabilities, "clientInfo": info}
        )
        self.notify("notifications/initialized")
        _ = self.pid  # while it runs
        return result

    def begin(self, method: str, params: Message | None = None, request_id: int | str | None = None) -> int | str:
        """Send a request without waiting, and return its id."""
        if request_id is None:
            self._last_id += 1
            request_id = self._last_id
        if self.modern:
            params = {**(params or {}), "_meta": {**self._envelope(), **(params or {}).get("_meta", {})}}
        self._sent.add(request_id)
        self.send(
            {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}
        )
        return request_id

    def answer(self, request_id: int | str, seconds: float = PATIENCE) -> Message:
        """The whole answer to a request that was begun."""
        answer: Message = self.wait(lambda: self._answers.get(request_id), f"an answer to {request_id!r}", seconds)
        return answer

    def forget(self, request_id: int | str) -> None:
        """Keep nothing of a request that was answered: in an hour there are many. A second answer stays a problem."""
        with self._changed:
            del self._answers[request_id]
            self._sent.discard(request_id)

    def has_answer(self, request_id: int | str) -> bool:
        return request_id in self._answers

    def request(self, method: str, params: Message | None = None, request_id: int | str | None = None) -> Message:
        return self.answer(self.begin(method, params, request_id))

    def result(self, method: str, params: Message | None = None) -> Message:
        answer = self.request(method, params)
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    def error(self, method: str, params: Message | None = None) -> Message:
        answer = self.request(method, params)
        assert "error" in answer, answer
        error: Message = answer["error"]
        return error

    def notify(self, method: str, params: Message | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def expect(self, *request_ids: int | str) -> None:
        """Accept answers to requests with these ids, which the test sends itself."""
        self._sent.update(request_ids)

    def send(self, message: Any) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin
        with self._writing:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def heard(self, method: str) -> list[Message]:
        """The params of all notifications of that name, so far."""
        return [each.get("params", {}) for each in list(self.notifications) if each.get("method") == method]

    def hear(
        self, method: str, *, after: int = 0, matching: Callable[[Message], bool] = bool, seconds: float = PATIENCE
    ) -> Message:
        """Wait for a notification, the `after`+1st that matches; its params."""

        def matches() -> list[Message]:
            accept_all = matching is bool
            return [params for params in self.heard(method) if accept_all or matching(params)][after:]

        params: Message = self.wait(matches, f"{method} (number {after + 1})", seconds)[0]
        return params

    # --- what most tests ask

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.result("tools/list")["tools"]]

    def call_result(self, tool: str, **arguments: Any) -> Message:
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's result, which is no error."""
        result = self.call_result(tool, **arguments)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def health(self) -> Message:
        """The whole report, also where there is no Uno workspace."""
        report: Message = json.loads(self.call("uno_health", details=True))
        return report

    def issue_codes(self) -> list[str]:
        return [issue["code"] for issue in self.health()["issues"]]

    def wait_health(self, accept: Callable[[Message], object], what: str, seconds: float = PATIENCE) -> Message:
        """Wait for a health report that the condition accepts."""
        deadline = time.monotonic() + seconds
        while not accept(report := self.health()):
            assert time.monotonic() < deadline, self._told(f"health is never {what}: {json.dumps(report, indent=1)}")
            time.sleep(0.01)
        return report

    def wait_state(self, *states: str, seconds: float = PATIENCE) -> Message:
        return self.wait_health(lambda report: report["connectionState"] in states, f"one of {states}", seconds)

    def wait_connected(self, generation: int = 1, seconds: float = PATIENCE) -> Message:
        """Wait until the upstream of that generation, or a later one, is connected and its lists were read."""
        return self.wait_health(
            lambda report: (
                report["connectionState"] == "Connected"
                and report["proxy"]["generation"] >= generation
                and report["proxy"]["listsFresh"]
            ),
            f"connected (generation {generation})",
            seconds,
        )

    # --- its end

    def close_stdin(self) -> None:
        assert self.process.stdin
        with self._writing:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass  # it has ended

    def exit_code(self, seconds: float = PATIENCE) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._told(f"the proxy did not end within {seconds:g} s")) from None

    def ends(self) -> bool:
        """Whether the process ended by itself in time; if not, it is killed."""
        try:
            self.process.wait(END_SECONDS)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            return False
        finally:
            self._reader.join(END_SECONDS)
            if not self._reader.is_alive() and self.process.stdout:
                self.process.stdout.close()

    def check(self) -> None:
        """Assert that the proxy kept to the protocol, and printed no traceback."""
        assert not self.problems, self.problems
        assert "Traceback" not in self.stderr, self.stderr

    @property
    def stderr(self) -> str:
        return self._stderr.read_text("utf-8", "replace")

    # --- inside

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
        """Return the first true value of `condition`, which is called after each message."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or not self._reader.is_alive(), seconds)
            value = condition()
            assert value, self._told(f"waited in vain for {what}")
            return value

    def _envelope(self) -> Message:
        return {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            with self._changed:
                if self.transcript is not None:
                    self.transcript.append(line)
                for each in message if isinstance(message, list) else [message]:  # a list answers a batch
                    if isinstance(each, dict) and each.get("jsonrpc") == "2.0":
                        self._take(each)
                    else:
                        self.problems.append(f"no message: {line[:200]!r}")
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _take(self, message: Message) -> None:
        if "method" not in message:
            answered = message.get("id")
            if answered in self._answers:
                self.problems.append(f"a second answer to {answered!r}: {message}")
            elif answered not in self._sent and answered is not None:
                self.problems.append(f"an answer to no pending request: {message}")
            elif answered is not None:
                self._answers[answered] = message
        elif "id" in message:
            self.asked.append(message)
            self._reply(message)
        else:
            self.notifications.append(message)

    def _reply(self, request: Message) -> None:
        answer: Message = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] not in self.replies:
            self.send(answer | {"error": {"code": -32601, "message": "no such method"}})
        elif reply := self.replies[request["method"]]:
            self.send(answer | {"result": reply(request.get("params", {}))})

    def _told(self, what: str) -> str:
        state = "runs" if self.process.poll() is None else f"has ended with {self.process.returncode}"
        return f"{what}\nThe proxy {state}.\nnotifications: {self.notifications[-5:]}\nstderr: {self.stderr[-3000:]}"


def _environ(pid: int) -> dict[str, str]:
    try:
        process = psutil.Process(pid)
        return {} if WINDOWS and process.name() == "conhost.exe" else process.environ()
    except (psutil.Error, OSError):  # gone, or another user's
        return {}


def _command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return ""
