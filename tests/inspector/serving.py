"""A real inspector in the test's own loop, and requests to it over real sockets."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from uno_devserver.inspector.feed import Feed
from uno_devserver.inspector.server import Inspector, open_inspector
from uno_devserver.protocol.http.messages import Answer, Request, Response
from uno_devserver.protocol.http.sse import EventReader, SseEvent

TOKEN = "t" * 32
PATIENCE = 10.0


class Answered:
    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


async def mcp(request: Request) -> Answer:
    return Response(200, b"mcp got " + request.body)


def feed(on_watched: Callable[[bool], None] = lambda _: None, **facts: object) -> Feed:
    async def snapshot() -> dict[str, object]:
        return facts

    return Feed(snapshot, on_watched, linger_seconds=0.05)


@asynccontextmanager
async def inspecting(told: Feed | None = None, *, port: int = 0, status: str = "Healthy") -> AsyncIterator[Inspector]:
    opened = await open_inspector(
        port, TOKEN, mcp=mcp, health=lambda: {"status": status}, feed=told if told is not None else feed()
    )
    assert isinstance(opened, Inspector), opened
    try:
        yield opened
    finally:
        await opened.close()


async def ask(inspector: Inspector, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> Answered:
    def run() -> Answered:
        connection = http.client.HTTPConnection("127.0.0.1", inspector.port, timeout=PATIENCE)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body or None, {"Host": f"localhost:{inspector.port}", **sent})
            answer = connection.getresponse()
            return Answered(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    return await asyncio.to_thread(run)


class Viewer:
    """A page that reads events as they come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._events: list[SseEvent] = []
        self._decoder = EventReader()

    async def event(self) -> SseEvent:
        async with asyncio.timeout(PATIENCE):
            while not self._events:
                size = int(await self._reader.readline(), 16)  # of a chunk
                if size == 0:
                    raise EOFError
                chunk = await self._reader.readexactly(size)
                await self._reader.readexactly(2)
                self._events += self._decoder.feed(chunk)
        return self._events.pop(0)

    def leave(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def viewing(inspector: Inspector, **options: Any) -> AsyncIterator[Viewer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", inspector.port, **options)
    writer.write(f"GET /events?token={TOKEN} HTTP/1.1\r\nHost: localhost:{inspector.port}\r\n\r\n".encode())
    try:
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        yield Viewer(reader, writer)
    finally:
        writer.transport.abort()
