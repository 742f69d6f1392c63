"""A real server in a thread, and a client that speaks bytes: what the tests of this folder talk with."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from uno_devserver.protocol.http.messages import Answer, Handler, Request, Response, Sink, Streaming, Upgrade, WebSocket
from uno_devserver.protocol.http.server import HttpServer, open_sockets
from uno_devserver.protocol.http.server_connection import HttpLimits

T = TypeVar("T")
PATIENCE = 60.0  # seconds after which a test gives up waiting


class Reply:
    """An answer as it came over the wire."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def error(self) -> str:
        text = json.loads(self.body)["error"]
        assert isinstance(text, str)
        return text


class Client:
    """A connection on which a test sends whatever it likes."""

    def __init__(self, port: int, host: str = "127.0.0.1", receive_buffer: int | None = None) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect((host, port))
        self._unread = bytearray()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> Reply:
        self.request(method, path, body, **headers)
        return self.reply(method)

    def request(self, method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> None:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {headers.pop('Host', 'localhost')}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def reply(self, method: str = "GET") -> Reply:
        """Read one answer to its end."""
        status, headers = self.head()
        if method == "HEAD" or status in (101, 204, 304) or status < 200:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(self.chunks())
        elif "content-length" in headers:
            body = self.exactly(int(headers["content-length"]))
        else:
            body = self.rest()
        return Reply(status, headers, body)

    def head(self) -> tuple[int, dict[str, str]]:
        start, *lines = self.until(b"\r\n\r\n").decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        version, status, _ = start.split(" ", 2)
        assert version == "HTTP/1.1"
        headers: dict[str, str] = {}
        for line in lines:
            name, value = line.split(": ", 1)
            assert name.lower() not in headers or name.lower() == "vary", f"{name} came twice"
            headers[name.lower()] = value
        return int(status), headers

    def chunks(self) -> Iterator[bytes]:
        while (chunk := self.chunk()) != b"":
            yield chunk

    def chunk(self) -> bytes:
        """The next chunk; b"" is the last one."""
        size = int(self.until(b"\r\n"), 16)
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data

    def until(self, mark: bytes) -> bytes:
        while mark not in self._unread:
            self._receive()
        return self.exactly(self._unread.index(mark) + len(mark))

    def exactly(self, count: int) -> bytes:
        while len(self._unread) < count:
            self._receive()
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def rest(self) -> bytes:
        """Everything until the server closes."""
        while data := self.socket.recv(65536):
            self._unread += data
        return self.exactly(len(self._unread))

    def end(self) -> None:
        """Send no more; go on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Leave with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def _receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"closed by the server, after {bytes(self._unread[:1000])!r}")
        self._unread += data


class Signal:
    """An event that handlers and tests can both set and wait for."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        self._event.set()
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self) -> None:
        assert self._event.wait(PATIENCE), "it did not happen"

    async def passed(self) -> None:
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        if not self._event.is_set():
            await event.wait()


class Paused:
    """A handler that says when it was asked, waits until it may go on, and answers then."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.asked, self.go_on, self.done, self.cancelled = Signal(), Signal(), Signal(), Signal()
        self._answer = answer or Response(200)

    async def __call__(self, _: Request) -> Answer:
        self.asked.set()
        try:
            await self.go_on.passed()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        self.done.set()
        return self._answer


class Running:
    """A server in its own thread; the test talks to it from outside."""

    def __init__(self, handler: Handler, bind: str | None = None, **options: Any) -> None:
        self.trouble: list[str] = []  # what the event loop complained about
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.trouble.append(repr(context)))
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._clients: list[Client] = []
        self._stopped = False
        others = {name: options.pop(name) for name in ("guard", "extra_headers", "any_user") if name in options}
        self.server = HttpServer(handler, open_sockets(0, bind), limits=HttpLimits(**options), **others)
        self.port = self.server.port
        self.do(self.server.start())

    def client(self, host: str = "127.0.0.1", receive_buffer: int | None = None) -> Client:
        client = Client(self.port, host, receive_buffer)
        self._clients.append(client)
        return client

    def asking(self, data: bytes, paused: Paused) -> Client:
        """A client whose request is being handled."""
        client = self.client()
        client.send(data)
        paused.asked.wait()
        return client

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def stop(self, grace_seconds: float = 0.0) -> float:
        """Stop the server; how long that took."""
        self._stopped = True
        began = self.loop.time()
        self.do(self.server.stop(grace_seconds))
        return self.loop.time() - began

    def tasks(self) -> set[str]:
        """The tasks that are alive, beside the one that looks."""

        async def look() -> set[str]:
            return {repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()}

        return self.do(look())

    def end(self) -> None:
        try:
            if not self._stopped:
                self._leave()
                self.stop()
            assert self.tasks() == set(), "a stopped server leaves no tasks"
            assert self.trouble == []
        finally:
            self._leave()
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(PATIENCE)
            self.loop.close()

    def _leave(self) -> None:
        for client in self._clients:
            client.close()


Serve = Callable[..., Running]


@contextmanager
def running(handler: Handler, **options: Any) -> Iterator[Running]:
    server = Running(handler, **options)
    try:
        yield server
    finally:
        server.end()


async def echo(request: Request) -> Answer:
    """Says what it was asked."""
    said = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "body": request.body.decode("latin-1"),
    }
    return Response(200, json.dumps(said).encode(), (("Content-Type", "application/json"),))


def answering(body: bytes) -> Callable[[Request], Awaitable[Answer]]:
    async def handler(_: Request) -> Answer:
        return Response(200, body)

    return handler


EVENTS = (("Content-Type", "text/event-stream"),)


def streaming(run: Callable[[Sink], Awaitable[None]]) -> Handler:
    """Streams, except below /plain."""

    async def handler(request: Request) -> Answer:
        return Response(200, b"plain") if request.path == "/plain" else Streaming(200, EVENTS, run)

    return handler


def upgrading(run: Callable[[WebSocket], Awaitable[None]]) -> Handler:
    async def handler(_: Request) -> Answer:
        return Upgrade(run)

    return handler
