"""An HTTP/1.1 server for the programs of this machine: strict in what it accepts, with limits for everything.

`stop` is bounded in time, and leaves no task, timer or socket behind, except for a handler that ignores its
cancellation, which is logged.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ...system.log import log
from ...system.ports import BACKLOG, PortTaken, listen_on, loopback_addresses
from ...system.tcp_peers import is_loopback
from .guard import Guard, refusal
from .headers import check_headers, header_lines
from .messages import Handler, Headers
from .server_connection import DEFAULT_HTTP_LIMITS, HttpLimits, ServerConnection, ServerSettings
from .transport import MemoryBudget

if TYPE_CHECKING:
    from ...system.ports import Address

GRACE_SECONDS = 2.0
ACCEPTS = 128  # connections that asyncio accepts before anything else gets its turn
ACCEPT_TURNS = 4  # turns of the event loop until asyncio has reported each connection that it accepted
CANCEL_SECONDS = 1.0  # for a handler to clean up when it is cancelled
CLOSE_SECONDS = 1.0  # for clients to read the rest of an answer, and to answer the close of a WebSocket


class HttpServer:
    """Answers on the given listening sockets, which it owns from then on."""

    def __init__(
        self,
        handler: Handler,
        sockets: Sequence[socket.socket],
        *,
        guard: Guard = refusal,
        limits: HttpLimits = DEFAULT_HTTP_LIMITS,
        extra_headers: Headers = (),
        any_user: bool = False,
    ) -> None:
        """`any_user`: whether programs of other users of this machine are served too."""
        check_headers(extra_headers)
        self._sockets = list(sockets)
        # Fewer connections where the system allows fewer open files.
        share = open_files() / USUAL_OPEN_FILES
        scaled = limits.replace(
            max_connections=int(limits.max_connections * share), max_websockets=int(limits.max_websockets * share)
        )
        incoming, outgoing = MemoryBudget(limits.max_incoming), MemoryBudget(limits.max_outgoing)
        self._settings = ServerSettings(
            handler, guard, scaled, header_lines(extra_headers), any_user, incoming, outgoing
        )
        self._listeners: list[asyncio.Server] = []
        self._connections: set[ServerConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.port: int = self._sockets[0].getsockname()[1]

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            self._listeners.append(await loop.create_server(self._connection, sock=each, backlog=ACCEPTS))
            each.listen(BACKLOG)  # asyncio has set it to ACCEPTS

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop accepting, end streams and WebSockets, wait for handlers and cancel them, then close all connections."""
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

    def _connection(self) -> ServerConnection:
        connection = ServerConnection(self._settings, self._connections, self._tasks)
        if self._stopping:  # it was accepted just before the stop
            connection.stop()
        return connection

    async def _end_tasks(self, grace_seconds: float) -> None:
        """Wait for the tasks, then cancel them. Ending connections would not do: a handler can outlive its client."""
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


# The default limit of Linux. More may be allowed, but a process that needs more has a leak.
USUAL_OPEN_FILES = 1024


def open_files() -> int:
    """How many files, pipes and sockets may be open at once; at most USUAL_OPEN_FILES."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return USUAL_OPEN_FILES
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return USUAL_OPEN_FILES if allowed == resource.RLIM_INFINITY else min(allowed, USUAL_OPEN_FILES)


HIGHEST_PORT = 65535


class ListenProblem(OSError):
    """The server cannot listen, for another reason than a taken port; the text is for the user."""


def open_sockets(port: int, bind: str | None = None) -> list[socket.socket]:
    """Open listening sockets on the loopback addresses, or on those of `bind`; port 0 picks a free port.

    If `bind` is a loopback address, the usual ones listen too: another user could answer there for `localhost`.

    Raises PortTaken or ListenProblem.
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise ListenProblem(f"{port} is no port: ports go from 1 to {HIGHEST_PORT}, and 0 picks a free one")
    addresses = loopback_addresses(port) if bind is None else _addresses_of(bind, port)
    try:
        return listen_on(addresses)
    except PortTaken:
        raise
    except OSError as error:
        raise ListenProblem(_reason(error, port, bind)) from error


def are_open(sockets: Sequence[socket.socket]) -> bool:
    """Whether other machines may reach one of these listening sockets."""
    return not all(is_loopback(each.getsockname()) for each in sockets)


def _addresses_of(bind: str, port: int) -> list[Address]:
    host = bind[1:-1] if bind.startswith("[") and bind.endswith("]") else bind
    if not host.strip():
        raise ListenProblem("the address to listen on is empty; name one, like 0.0.0.0, or leave it out for loopback")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # UnicodeError: the name is too long
        raise ListenProblem(f"'{bind}' is no address of this machine: {_text(error)}") from error
    # In typeshed, an address has a third form, for Python without IPv6.
    named = {where[0]: (int(family), cast("tuple[str | int, ...]", where)) for family, _, _, _, where in found}
    if any(is_loopback(where) for _, where in named.values()):
        named = {where[0]: (family, where) for family, where in loopback_addresses(port)} | named
    return list(named.values())


def _reason(error: OSError, port: int, bind: str | None) -> str:
    where = bind if bind is not None else "the loopback addresses"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to listen on port {port} of {where}; choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL and bind is not None:
        return f"'{bind}' is no address of this machine; use one of its own, or 0.0.0.0 for all"
    return f"cannot listen on port {port} of {where}: {_text(error)}"


def _text(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
