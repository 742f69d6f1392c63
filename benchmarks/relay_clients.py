"""The clients of the relay's benchmark: one on pipes, one over HTTP. Both call the lean server's tool, one call at a
time or many in flight, in either era, and check every answer: it must come once, and be the one to its own call."""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from benchmarks.conversations import INITIALIZE, INITIALIZED, LIMIT_SECONDS, NoAnswer, Pipes, request, whole_body
from benchmarks.lean_server import MODERN as MODERN_VERSION
from benchmarks.lean_server import READ_BYTES, VERSION_KEY

META = {
    VERSION_KEY: MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": INITIALIZE["clientInfo"],
}


@dataclass(frozen=True, eq=False)
class Era:
    name: str
    first_method: str
    first_params: Mapping[str, Any]
    then: bytes  # what follows the first answer
    call_meta: bytes  # what each call carries

    def call(self, number: int) -> bytes:
        """A call whose id is its argument, so that each answer tells to which call it belongs."""
        return CALL % (number, number, self.call_meta)


CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"double","arguments":{"number":%d}%s}}\n'
HANDSHAKE = Era("handshake era", "initialize", INITIALIZE, INITIALIZED, b"")
MODERN = Era("2026-07-28", "server/discover", {"_meta": META}, b"", b',"_meta":' + json.dumps(META).encode())


class Client(Protocol):
    def call(self) -> float:
        """The seconds that one call takes."""

    def burst(self, calls: int, at_once: int) -> float:
        """The seconds that so many calls take, with `at_once` of them in flight."""

    def quit(self) -> None: ...


class PipesClient(Pipes):
    """A server or a relay that was just started. What is in flight has to fit into a pipe, so that no write waits."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], folder: Path, era: Era) -> None:
        super().__init__(command, environ, folder)
        self._command = " ".join(command)
        self._era = era

    def open(self) -> None:
        """Say hello, and make the first call, for which a relay may have to start the server."""
        _check_first(self._era, self.ask(self._era.first_method, self._era.first_params))
        self.send(self._era.then)
        self.call()

    def call(self) -> float:
        number = self.next_id()
        message, waiting = self._era.call(number), {number}
        begun = time.perf_counter()
        self.send(message)
        while waiting:
            line = self.line()
            seconds = time.perf_counter() - begun
            check([line], waiting)
        return seconds

    def burst(self, calls: int, at_once: int) -> float:
        numbers = [self.next_id() for _ in range(calls)]
        messages = [self._era.call(number) for number in numbers]
        waiting: set[int] = set()
        sent = 0
        begun = time.perf_counter()
        while waiting or sent < calls:
            more = sent + at_once - len(waiting)
            if sent < calls:
                self.send(b"".join(messages[sent:more]))
                waiting.update(numbers[sent:more])
                sent = min(more, calls)
            check(self.lines(), waiting)
        return time.perf_counter() - begun

    def line(self, seconds: float = LIMIT_SECONDS) -> bytes:
        try:
            return super().line(seconds)
        except NoAnswer as reason:
            raise NoAnswer(f"'{self._command}': {reason}") from None

    def quit(self) -> None:
        try:
            super().quit()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit(f"'{self._command}' did not end when its standard input was closed") from None


class HttpClient:
    """The lean server at a port, asked directly; each call in flight has a connection of its own."""

    def __init__(self, port: int, era: Era) -> None:
        self._port = port
        self._era = era
        self._last_id = 0
        self._connections = [self._connect()]

    def open(self) -> None:
        _check_first(self._era, json.loads(self._exchange(request(0, self._era.first_method, self._era.first_params))))
        if self._era.then:
            self._exchange(self._era.then)
        self.call()

    def call(self) -> float:
        number, post = self._next()
        waiting = {number}
        begun = time.perf_counter()
        self._connections[0].sendall(post)
        answer = self._answer(self._connections[0])
        seconds = time.perf_counter() - begun
        check([answer], waiting)
        return seconds

    def burst(self, calls: int, at_once: int) -> float:
        while len(self._connections) < at_once:
            self._connections.append(self._connect())
        posts = [self._next() for _ in range(calls)]
        waiting = {number for number, _ in posts}
        posts.reverse()  # taken from the end
        begun = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for connection in self._connections[: min(at_once, calls)]:
                selector.register(connection, selectors.EVENT_READ)
                connection.sendall(posts.pop()[1])
            while waiting:
                events = selector.select(LIMIT_SECONDS)
                if not events:
                    raise NoAnswer(f"no answer within {LIMIT_SECONDS:g} s")
                for key, _ in events:
                    ready: Any = key.fileobj
                    check([self._answer(ready)], waiting)
                    if posts:
                        ready.sendall(posts.pop()[1])
        return time.perf_counter() - begun

    def quit(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), LIMIT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _next(self) -> tuple[int, bytes]:
        self._last_id += 1
        return self._last_id, self._post(self._era.call(self._last_id))

    def _exchange(self, message: bytes) -> bytes:
        self._connections[0].sendall(self._post(message))
        return self._answer(self._connections[0])

    def _post(self, body: bytes) -> bytes:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _answer(self, connection: socket.socket) -> bytes:
        got = b""
        while (body := whole_body(got)) is None:
            more = connection.recv(READ_BYTES)
            if not more:
                raise SystemExit("the lean server closed the connection")
            got += more
        return body


class _Content(msgspec.Struct):
    text: str


class _Result(msgspec.Struct):
    content: list[_Content]


class _Answer(msgspec.Struct):
    id: int | None = None
    method: str | None = None
    result: _Result | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def check(lines: Iterable[bytes], waiting: set[int]) -> None:
    """Take the calls that these lines answer from those that wait; SystemExit for an answer that is wrong."""
    for line in lines:
        try:
            answer = _decode(line)
        except msgspec.MsgspecError as error:
            raise SystemExit(f"wrong answer to a call ({error}): {line!r}") from None
        if answer.method is not None:  # a notification
            continue
        texts = [content.text for content in answer.result.content] if answer.result else None
        if answer.id not in waiting or texts != [str(2 * answer.id)]:
            raise SystemExit(f"wrong answer to a call: {line!r}")
        waiting.remove(answer.id)


def _check_first(era: Era, answer: Mapping[str, Any]) -> None:
    expected = "supportedVersions" if era is MODERN else "serverInfo"
    if expected not in answer.get("result", {}):
        raise SystemExit(f"wrong answer to {era.first_method}: {answer}")
