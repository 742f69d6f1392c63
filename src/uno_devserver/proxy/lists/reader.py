"""Reads the upstream's lists over the proxy's own connection, and again whenever they may have changed.

All lists are read at the same time, within limits; entries are not changed. A list that cannot be read is left out of
the result, not taken as empty. If all clients have to share one connection, they share this one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.client.connection import ConnectionLost
from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...protocol.versions import MODERN_VERSIONS
from ...system.log import log
from ...system.values import Value
from ..state import LISTS
from .merge import entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.client.connection import Connection, Peer, ServerDescription
    from ...protocol.peer_info import ClientInfo
    from ...protocol.service import Params, Result
    from ..upstream.base import RunningUpstream
    from .merge import Entries


class ReaderLimits(Value):
    connect_seconds: float = 30.0  # for the handshake; the start of the server is over by then
    attempts: int = 2  # to connect: a server may close a kept connection just when it is used again
    pause_seconds: float = 0.3  # before another attempt: if the server has ended, that is known by then
    list_seconds: float = 30.0  # for one list; a Host answers when its add-ins are loaded, which may take this long
    pages: int = 1000  # of one list: some servers always name a next page
    entries: int = 10_000  # of one list; no client can use more
    quiet_seconds: float = 0.05  # a server that changes its lists sends several notifications
    reread_seconds: float = 5.0  # between reads because a client lists: some servers do not announce changes


DEFAULT_LIMITS = ReaderLimits()

_page = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)


# The member that names an entry of each list.
KEYS = {
    "tools/list": "name",
    "resources/list": "uri",
    "resources/templates/list": "uriTemplate",
    "prompts/list": "name",
}


class ListReader:
    """Calls `take` with the lists that could be read, after each read."""

    def __init__(
        self,
        running: RunningUpstream,
        peer: Peer | None,
        client: ClientInfo,
        *,
        take: Callable[[dict[str, Entries], ServerDescription], None],
        limits: ReaderLimits = DEFAULT_LIMITS,
    ) -> None:
        """`peer`: represents all clients, if they share the connection; else the upstream sees the name of `client`."""
        self._running = running
        self._peer = peer or _ProxyPeer(client, self.outdated)
        self._modern_first = client.protocol_version in MODERN_VERSIONS
        self._take = take
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._following: asyncio.Future[None] | None = None
        self._outdated = asyncio.Event()
        self._read_at = 0.0

    async def run(self, connected: Callable[[ServerDescription], None]) -> None:
        """Keep the lists up to date; raise ConnectionLost, UnusableServer or TimeoutError if the server is not reached.

        `connected` is called after the first read of each connection. A broken connection is opened again.
        """
        attempts = 0
        while True:
            try:
                attempts += 1
                connection = await self._connect()
                connected(connection.server)
                attempts = 0
                while True:
                    await self._outdated.wait()
                    await asyncio.sleep(self._limits.quiet_seconds)
                    self._outdated.clear()
                    await self._read(connection)
            except ConnectionLost as loss:
                if attempts == self._limits.attempts:
                    raise
                log.debug(f"The connection for the lists broke and is opened again: {loss}")
            await self.close()
            await asyncio.sleep(self._limits.pause_seconds)

    def outdated(self) -> None:
        """Have the lists read again, because they may have changed."""
        self._outdated.set()

    def listed(self) -> None:
        """Have the lists read again after a client has read one, unless they are recent."""
        if self._loop.time() - self._read_at >= self._limits.reread_seconds:
            self._outdated.set()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> Connection:
        async with asyncio.timeout(self._limits.connect_seconds):
            self._connection = await self._running.connect(self._peer, modern_first=self._modern_first)
        # Started before reading, so that no change is missed.
        self._following = asyncio.ensure_future(_follow_changes(self._connection))
        await self._read(self._connection)
        return self._connection

    async def _read(self, connection: Connection) -> None:
        """Read all lists; raise ConnectionLost if the server has gone."""
        reading = {field: asyncio.ensure_future(self._list(method, connection)) for method, (_, field) in LISTS.items()}
        try:
            await asyncio.gather(*reading.values())
        finally:
            for task in reading.values():
                task.cancel()
        self._read_at = self._loop.time()
        lists = {field: read for field, task in reading.items() if (read := task.result()) is not None}
        self._take(lists, connection.server)

    async def _list(self, method: str, connection: Connection) -> Entries | None:
        """Read one list; return None and log it if it cannot be read."""
        capability = method.partition("/")[0]
        if capability != "tools" and capability not in connection.server.capabilities:  # some do not declare tools
            return ()
        seconds = self._limits.list_seconds
        try:
            async with asyncio.timeout(seconds):
                return entries(await self._pages(method, connection))
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                return ()
            log.warn(f"'{method}' of the server was answered with an error: {error.message}")
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warn(f"The server's answer to '{method}' cannot be read: {error}.")
        except TimeoutError:
            log.warn(f"'{method}' of the server was not answered within {seconds:g} s.")
        return None

    async def _pages(self, method: str, connection: Connection) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        params: dict[str, Any] = {}
        for _ in range(self._limits.pages):
            page = _page.decode(await connection.request(method, params, self._peer))
            items = _items.decode(page.get(LISTS[method][0], b"[]"))
            found += [entry for raw in items if (entry := _entry(method, raw))]
            next_cursor = page.get("nextCursor")
            if next_cursor is None or bytes(next_cursor) == b"null":
                return found
            cursor = _text.decode(next_cursor)
            if params.get("cursor") == cursor or len(found) >= self._limits.entries:
                break
            params = {"cursor": cursor}
        found = found[: self._limits.entries]
        log.warn(f"The server's list '{method}' does not end; the first {len(found)} entries are used.")
        return found


def _entry(method: str, raw: msgspec.Raw) -> tuple[str, bytes] | None:
    """Return the name and the bytes of an entry; None, with a line in the log, if it has no name."""
    key = KEYS[method]
    try:
        return _text.decode(_page.decode(raw)[key]), bytes(raw)
    except (msgspec.MsgspecError, KeyError):
        log.warn(f"An entry of the server's '{method}' has no {key} and is left out.")
        return None


async def _follow_changes(connection: Connection) -> None:
    try:
        await connection.watch(frozenset())
    except (ConnectionLost, TimeoutError) as error:
        log.debug(f"The server does not announce changes of its lists: {error}")


class _ProxyPeer:
    """The proxy as a client of its own, which follows changes and answers no questions. Implements `Peer`."""

    log_level = None

    def __init__(self, client: ClientInfo, lists_changed: Callable[[], None]) -> None:
        """The upstream sees the client's name without its capabilities: they belong to the client's own connection."""
        self.client = client.replace(capabilities={})
        self._lists_changed = lists_changed

    def notify(self, method: str, params: Params) -> None:  # noqa: ARG002
        if method.endswith("/list_changed"):
            self._lists_changed()

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"This connection cannot be asked for '{method}'.")
