"""A real inspector in the test's own loop, and requests to it over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from uno_devserver.inspector.access import PageKeys
from uno_devserver.inspector.feed import Feed
from uno_devserver.inspector.server import Inspector, open_inspector
from uno_devserver.issues import Issue
from uno_devserver.protocol.http.messages import Answer, Request, Response
from uno_devserver.protocol.http.sse import EventReader, SseEvent

PATIENCE = 60.0
OTHER_PROXY = 4711  # the process id of one that has a page
OTHER_URL = "http://localhost:6275/?code=other"


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


async def opened_inspector(
    folder: Path, told: Feed | None = None, port: int = 0, status: str = ""
) -> Inspector | Issue:
    return await open_inspector(
        port,
        PageKeys(str(folder / "state"), str(folder)),
        mcp=mcp,
        health=lambda: {"status": status},
        feed=told if told is not None else feed(),
        other_page=lambda pid: OTHER_URL if pid == OTHER_PROXY else None,
    )


@asynccontextmanager
async def inspecting(
    told: Feed | None = None, *, folder: Path | None = None, port: int = 0, status: str = "Healthy"
) -> AsyncIterator[Inspector]:
    """`folder`: the workspace, and the state in it."""
    with TemporaryDirectory() as temporary:
        opened = await opened_inspector(folder or Path(temporary), told, port, status)
        assert isinstance(opened, Inspector), opened
        try:
            yield opened
        finally:
            await opened.close()


async def opened_page(inspector: Inspector) -> dict[str, str]:
    """What the requests of a page have, once it has exchanged its code."""
    url = inspector.new_url()
    key = json.loads((await exchange(inspector, url)).body)["key"]
    return {"Host": urlsplit(url).netloc, "Authorization": f"Bearer {key}"}


async def exchange(inspector: Inspector, url: str, host: str = "") -> Answered:
    """As a page exchanges the code of its URL for a key, at the URL's host or at this one."""
    code = url.rpartition("?code=")[2]
    return await ask(inspector, "/key", "POST", code.encode(), Host=host or urlsplit(url).netloc)


async def ask(
    inspector: Inspector,
    path: str,
    method: str = "GET",
    body: bytes = b"",
    *,
    bearer: str = "",
    page: Mapping[str, str] | None = None,
    **headers: str,
) -> Answered:
    """`bearer`: the token, or the key of a page; `page`: the headers of one that was opened."""
    headers |= page or {}
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"

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
async def viewing(inspector: Inspector, page: Mapping[str, str] | None = None, **options: Any) -> AsyncIterator[Viewer]:
    """`page`: the headers of one that was opened; a program that has the token, without."""
    reader, writer = await asyncio.open_connection("127.0.0.1", inspector.port, **options)
    headers = page or {"Host": f"localhost:{inspector.port}", "Authorization": f"Bearer {inspector.token}"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET /events HTTP/1.1\r\n{lines}\r\n".encode())
    try:
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        yield Viewer(reader, writer)
    finally:
        writer.transport.abort()
