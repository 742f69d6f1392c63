"""An HTTP/1.1 server for the programs of this machine: small, strict in what it takes, bounded in everything.

`stop` ends within its bounds whatever handlers and clients do, and leaves no task, timer or socket behind, unless a
handler refuses to be cancelled; that is logged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from ...system.limits import USUAL_OPEN_FILES, open_files
from ...system.log import log
from ...system.ports import BACKLOG
from .connection import Connection
from .guard import Guard, refusal
from .heads import check, encoded
from .messages import Handler, Headers
from .settings import Settings

# Of the usual limit of open files, with room for a second server; fewer where fewer may be open.
MAX_CONNECTIONS = 512
BUFFER_BYTES = 64 * 1024
MAX_BODY = 16 * 1024 * 1024
MAX_HEADERS = 64 * 1024
HEADER_TIMEOUT_SECONDS = 10.0  # a program of this machine sends its headers at once
IDLE_TIMEOUT_SECONDS = 120.0  # clients keep a connection for their next request about that long
GRACE_SECONDS = 2.0
ACCEPT_TURNS = 4  # of the event loop, from the accepting of a connection until asyncio tells us of it
CANCEL_SECONDS = 1.0  # for a handler to clean up when it is cancelled
CLOSE_SECONDS = 1.0  # for clients to take what was sent, and to answer the close of a WebSocket


class HttpServer:
    """Answers on the given listening sockets, which it owns from then on."""

    def __init__(
        self,
        handler: Handler,
        sockets: Sequence[socket.socket],
        *,
        guard: Guard = refusal,
        max_connections: int = MAX_CONNECTIONS,
        max_body: int = MAX_BODY,
        max_headers: int = MAX_HEADERS,
        header_timeout: float = HEADER_TIMEOUT_SECONDS,
        idle_timeout: float = IDLE_TIMEOUT_SECONDS,
        extra_headers: Headers = (),
        everybody: bool = False,
    ) -> None:
        """`everybody`: also programs of other users of this machine, which are refused otherwise."""
        check(extra_headers)
        self._sockets = list(sockets)
        self._settings = Settings(
            handler,
            guard,
            max_body,
            max_headers,
            header_timeout,
            idle_timeout,
            max_connections * open_files() // USUAL_OPEN_FILES,
            memoryview(bytearray(BUFFER_BYTES)),
            encoded(extra_headers),
            everybody,
        )
        self._listeners: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.port: int = self._sockets[0].getsockname()[1]

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            self._listeners.append(await loop.create_server(self._connection, sock=each, backlog=BACKLOG))

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Accept nothing more, end streams and WebSockets, give handlers at work the grace, then close everything."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        for each in self._sockets:  # closed with their listeners, unless the server was never started
            each.close()
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        for connection in list(self._connections):
            connection.stop()
        await self._end_tasks(grace_seconds)
        await self._end_connections()

    def _connection(self) -> Connection:
        connection = Connection(self._settings, self._connections, self._tasks)
        if self._stopping:  # it was accepted just before
            connection.stop()
        return connection

    async def _end_tasks(self, grace_seconds: float) -> None:
        """Handlers whose client left are at work without a connection, so tasks are what counts."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace_seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=CANCEL_SECONDS)
        if self._tasks:
            log.warn(f"requests that go on although they were cancelled: {len(self._tasks)}")

    async def _end_connections(self) -> None:
        if self._connections:
            await asyncio.wait([each.closed for each in self._connections], timeout=CLOSE_SECONDS)
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            await asyncio.wait([each.closed for each in self._connections], timeout=CLOSE_SECONDS)
