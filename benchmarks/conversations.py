"""The two clients of the proxy's benchmark: one on pipes, one on HTTP. As lean as a client can be, so that what is
measured is the server."""

from __future__ import annotations

import json
import os
import select
import selectors
import socket
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

LIMIT_SECONDS = 20.0
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class NoAnswer(SystemExit):
    """The server has ended, or is silent: for most benchmarks the end, for some a thing to be measured."""


def request(request_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode() + b"\n"


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class Pipes:
    """A proxy that was just started, and its client."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._rest: list[bytes] = []  # pieces of a line that has not ended; one of 50 MB comes in hundreds
        self._lines: deque[bytes] = deque()
        self._last_id = 0

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._in, data) :]

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def line(self, seconds: float = LIMIT_SECONDS) -> bytes:
        while not self._lines:
            if not select.select([self._out], [], [], max(0.0, seconds))[0]:
                raise NoAnswer(f"no answer within {seconds:.2g} s")
            got = os.read(self._out, 1 << 16)
            if not got:
                raise NoAnswer("it ended")
            piece, *begun = got.split(b"\n")
            self._rest.append(piece)
            for next_line in begun:
                self._lines.append(b"".join(self._rest))
                self._rest = [next_line]
        return self._lines.popleft()

    def lines(self) -> list[bytes]:
        """All lines that have come, at least one."""
        lines = [self.line(), *self._lines]
        self._lines.clear()
        return lines

    def answer(self, request_id: int, seconds: float = LIMIT_SECONDS) -> dict[str, Any]:
        """The answer to that request; what else comes is passed over."""
        marks = b'"id":%d' % request_id, b'"id": %d' % request_id
        while True:
            line = self.line(seconds)
            if any(mark in line for mark in marks):
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == request_id and "method" not in message:
                    return message

    def send_request(self, method: str, params: Mapping[str, Any]) -> int:
        request_id = self.next_id()
        self.send(request(request_id, method, params))
        return request_id

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return self.answer(self.send_request(method, params))

    def shake_hands(self) -> None:
        answer = self.ask("initialize", INITIALIZE)
        if "serverInfo" not in answer.get("result", {}):
            raise SystemExit(f"wrong answer to initialize: {answer}")
        self.send(INITIALIZED)

    def in_flight(self, method: str, params: Mapping[str, Any], at_once: int, seconds: float) -> float:
        """Answers per second with that many requests under way all the time."""
        ends = time.perf_counter() + seconds
        begun, done = time.perf_counter(), 0
        waiting: set[int] = set()
        while waiting or time.perf_counter() < ends:
            while len(waiting) < at_once and time.perf_counter() < ends:
                request_id = self.next_id()
                waiting.add(request_id)
                self.send(request(request_id, method, params))
            message = json.loads(self.line())
            if message.get("id") in waiting and "result" in message:
                waiting.discard(message["id"])
                done += 1
        return done / (time.perf_counter() - begun)

    def quit(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(LIMIT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Direct:
    """The same requests, straight to the Host."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""
        self._last_id = 0
        self._idle = [self._connect()]
        head, answer = self._exchange(self._idle[0], "initialize", INITIALIZE)
        if "serverInfo" not in answer.get("result", {}):
            raise SystemExit(f"wrong answer to initialize: {answer}")
        line = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id:"))
        self._session = "Mcp-Session-Id: " + line.partition(b":")[2].strip().decode() + "\r\n"

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._exchange(self._idle[0], method, params)[1]

    def in_flight(self, method: str, params: Mapping[str, Any], at_once: int, seconds: float) -> float:
        """Answers per second with that many requests under way all the time, each on its own connection."""
        connections = [*self._idle, *(self._connect() for _ in range(at_once - len(self._idle)))]
        buffers = dict.fromkeys(connections, b"")
        ends = time.perf_counter() + seconds
        begun, done = time.perf_counter(), 0
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                selector.register(connection, selectors.EVENT_READ, connection)
                connection.sendall(self._message(method, params))
            while selector.get_map():
                for key, _ in selector.select():
                    ready: socket.socket = key.data
                    buffers[ready] += ready.recv(1 << 16)
                    body = whole_body(buffers[ready])
                    if body is None:
                        continue
                    json.loads(body)
                    buffers[ready] = b""
                    done += 1
                    if time.perf_counter() < ends:
                        ready.sendall(self._message(method, params))
                    else:
                        selector.unregister(ready)
        seconds = time.perf_counter() - begun
        for connection in connections[1:]:
            connection.close()
        return done / seconds

    def close(self) -> None:
        self._idle[0].close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), LIMIT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _exchange(
        self, connection: socket.socket, method: str, params: Mapping[str, Any]
    ) -> tuple[bytes, dict[str, Any]]:
        connection.sendall(self._message(method, params))
        got = b""
        while (body := whole_body(got)) is None:
            more = connection.recv(1 << 16)
            if not more:
                raise SystemExit("the Host closed the connection")
            got += more
        return got.partition(b"\r\n\r\n")[0], json.loads(body)

    def _message(self, method: str, params: Mapping[str, Any]) -> bytes:
        self._last_id += 1
        body = request(self._last_id, method, params)
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\n{self._session}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def whole_body(got: bytes) -> bytes | None:
    """The body, when all of it is there."""
    head, end, body = got.partition(b"\r\n\r\n")
    if not end:
        return None
    at = head.lower().find(b"content-length:")
    length = int(head[at + 15 :].split(b"\r\n", 1)[0])
    return body if len(body) >= length else None
