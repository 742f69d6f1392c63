"""HTTP servers that send exactly the bytes that a test chooses."""

from __future__ import annotations

import asyncio
import errno
import json
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

WAIT_SECONDS = 10  # longer than any step takes on a busy machine
# Below those that systems choose by themselves: at such a port, a proxy of another test may still look for its Host.
PORTS = range(20_000, 32_000)


class Asked:
    """A request as it came."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.target = target
        self.headers = headers  # names in lower case
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Visitor:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.left = asyncio.Event()  # the client closed it

    async def asked(self) -> Asked:
        """The next request; without one, `left` is set and the script ends."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip().split("\r\n")
            method, target, _ = first.split(" ")
            fields = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in fields}
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
            raise Gone from None
        return Asked(method, target, headers, body)

    async def gone(self) -> None:
        """Wait until the client closes the connection."""
        try:
            assert await self._reader.read() == b""
        except ConnectionError:
            pass
        self.left.set()

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    def answer(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.say(f"HTTP/1.1 {status} Whatever\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def answer_json(self, message: Mapping[str, Any], status: int = 200, **headers: str) -> None:
        self.answer(json.dumps(message).encode(), status, Content_Type="application/json", **headers)

    def begin_events(self, **headers: str) -> None:
        """The head of an event stream; `event` goes on."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.say(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n{lines}\r\n".encode()
        )

    def event(self, message: Mapping[str, Any] | None, name: str | None = None) -> None:
        data = b"" if message is None else json.dumps(message).encode()
        self.chunk((b"" if name is None else b"id: %s\n" % name.encode()) + b"data: %s\n\n" % data)

    def chunk(self, data: bytes) -> None:
        self.say(b"%x\r\n%s\r\n" % (len(data), data))

    def end_events(self) -> None:
        self.say(b"0\r\n\r\n")

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        """Close the connection so that the client sees a reset."""
        self.writer.transport.abort()


class Gone(Exception):
    """The client hung up; the script is over."""


Script = Callable[[Visitor], Awaitable[None]]


class RawServer:
    """`async with RawServer(script) as server:`; `script` runs for each connection, which is closed behind it."""

    def __init__(self, script: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.visitors: list[Visitor] = []
        self.port = 0
        self._script = script
        self._host = host
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for self.port in random.sample(PORTS, len(PORTS)):
            try:
                self._server = await asyncio.start_server(self._visited, self._host, self.port, ssl=self._tls)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return self
        raise AssertionError("all ports are taken")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=WAIT_SECONDS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        visitor = Visitor(reader, writer)
        self.visitors.append(visitor)
        try:
            await self._script(visitor)
        except (Gone, ConnectionError):
            visitor.left.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self._tasks.discard(task)
            writer.close()
