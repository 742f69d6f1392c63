"""A client's session with a proxy that it has just started, over pipes or over HTTP. Every wait is bounded, and
what the proxy has started is gone when the session ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import psutil

from benchmarks.conversations import INITIALIZE, INITIALIZED, LIMIT_SECONDS, NoAnswer, Pipes, request
from benchmarks.peers.installed import Command, environment

AGAIN_SECONDS = 0.25  # a call that is not answered may have got lost with the server; another one is made beside it
PAUSE_SECONDS = 0.005  # after a refusal: a client that asks at once takes the processor from the one that it waits for
KNOCK_SECONDS = 0.005  # between attempts to connect to a port that is not open yet
LAST_LINES, LAST_BYTES = 5, 2000  # of the stderr of one that failed
QUIT_SECONDS = 0.3  # then it is killed: some do not end with their input

Message = dict[str, Any]


class Session(Protocol):
    started: float
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    def shake_hands(self) -> None: ...
    def ask(self, method: str, params: Mapping[str, Any]) -> Message: ...
    def until(self, good: Callable[[Message], bool], call: Mapping[str, Any], seconds: float) -> None: ...


class OnPipes(Pipes):
    def __init__(self, command: Command, folder: Path) -> None:
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        super().__init__(command, environment(), folder, self.stderr)

    def until(self, good: Callable[[Message], bool], call: Mapping[str, Any], seconds: float) -> None:
        """Call until it works: again after a refusal, and beside those that are not answered. After an error, as new
        servers give that were put in without a word, it greets again."""
        ends, asked = time.perf_counter() + seconds, {self._call(call)}
        while time.perf_counter() < ends:
            try:
                message = json.loads(self.line(AGAIN_SECONDS))
            except NoAnswer:
                if self.process.poll() is not None:
                    raise
            except ValueError:  # `node --watch` tells of its restart where messages are expected
                continue
            else:
                if message.get("id") not in asked or "method" in message:
                    continue
                if good(message):
                    return
                time.sleep(PAUSE_SECONDS)
                if "error" in message:
                    self.send(request(self.next_id(), "initialize", INITIALIZE) + INITIALIZED)
            asked.add(self._call(call))
        raise NoAnswer(f"nothing good within {seconds:g} s")

    def _call(self, params: Mapping[str, Any]) -> int:
        request_id = self.next_id()
        try:
            self.send(request(request_id, "tools/call", params))
        except BrokenPipeError:
            raise NoAnswer("it ended") from None
        return request_id


class OnHttp:
    """Streamable HTTP, with a new session where the old one is not known any more."""

    def __init__(self, command: Command, folder: Path, port: int) -> None:
        self._port = port
        self._session: dict[str, str] = {}
        self._connection: http.client.HTTPConnection | None = None
        self._last_id = 0
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self.stderr,
        )

    def shake_hands(self) -> None:
        ends = time.perf_counter() + LIMIT_SECONDS
        while True:
            try:
                self._greet()
                return
            except NoAnswer:
                if self.process.poll() is not None or time.perf_counter() > ends:
                    raise
                time.sleep(KNOCK_SECONDS)

    def ask(self, method: str, params: Mapping[str, Any]) -> Message:
        self._last_id += 1
        return self._post(request(self._last_id, method, params))

    def until(self, good: Callable[[Message], bool], call: Mapping[str, Any], seconds: float) -> None:
        """Call until it works; a session that is lost is opened again, as the specification asks of clients."""
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            try:
                message = self.ask("tools/call", call)
                if good(message):
                    return
                if "error" in message:  # also how a server says that it has lost its session
                    self._greet()
                    continue
            except NoAnswer:
                if self.process.poll() is not None:
                    raise
            time.sleep(PAUSE_SECONDS)
        raise NoAnswer(f"nothing good within {seconds:g} s")

    def _greet(self) -> None:
        self._session = {}
        answer = self.ask("initialize", INITIALIZE)
        if "serverInfo" not in answer.get("result", {}):
            raise NoAnswer(f"wrong answer to initialize: {answer}")
        self._post(INITIALIZED)

    def _post(self, body: bytes) -> Message:
        """Over the connection of the last time, if the server has not closed it meanwhile."""
        if self._connection is not None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self._exchange(self._connection, body)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_SECONDS)
        try:
            return self._exchange(self._connection, body)
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"it cannot be reached: {error}") from None

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes) -> Message:
        head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", "/mcp", body, head | self._session)
        response = connection.getresponse()
        text = response.read().decode()
        session = response.getheader("Mcp-Session-Id")
        if session:
            self._session = {"Mcp-Session-Id": session}
        return _message(text)


def _message(text: str) -> Message:
    """The last one of a stream of events, or the one that is the body; some fail in plain words."""
    events = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    body = events[-1] if events else text or "{}"
    try:
        return dict(json.loads(body))
    except ValueError:
        return {"error": body}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


Opened = TypeVar("Opened", bound=Session)


@contextlib.contextmanager
def opened(session: Opened) -> Iterator[Opened]:
    """A session that ends here, well or not; why not is told with what its proxy said last."""
    try:
        yield session
    except (Exception, SystemExit) as error:
        raise NoAnswer(why(error) + last_words(session)) from error
    finally:
        end(session)


def why(error: BaseException) -> str:
    return str(error) if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"


def last_words(session: Session) -> str:
    """The end of its stderr, if it has said anything there."""
    size = os.fstat(session.stderr.fileno()).st_size
    text = os.pread(session.stderr.fileno(), LAST_BYTES, max(0, size - LAST_BYTES)).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; its stderr ends with: {' / '.join(lines[-LAST_LINES:])}" if lines else ""


def end(session: Session) -> None:
    """With all that it started."""
    session.stderr.close()
    process = session.process
    started = _below(process.pid)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(QUIT_SECONDS)
    except subprocess.TimeoutExpired:
        started += _below(process.pid)
        process.kill()
        process.wait()
    for child in psutil.wait_procs(started, timeout=QUIT_SECONDS)[1]:
        child.kill()
    psutil.wait_procs(started, timeout=QUIT_SECONDS)


def memory(session: Session) -> int:
    return sum(each.memory_info().rss for each in _processes(session))


def processor_time(session: Session) -> float:
    """Seconds that its processes have worked."""
    times = [each.cpu_times() for each in _processes(session)]
    return float(sum(each.user + each.system for each in times))


def started_server(session: Session, server: Command) -> psutil.Process:
    """The oldest process of that very command: its proxy, or a shell between them, has it as a part of its own, and
    one that stands by is younger.
    """
    found = []
    for process in _processes(session):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.cmdline() == server:
                found.append(process)
    if not found:
        raise NoAnswer("its server does not run")
    return min(found, key=psutil.Process.create_time)


def _processes(session: Session) -> list[psutil.Process]:
    itself = psutil.Process(session.process.pid)
    return [itself, *itself.children(recursive=True)]


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
