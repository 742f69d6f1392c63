"""Reads the upstream's lists over the proxy's own connection, and again whenever they may have changed.

All lists are read at the same time; entries are not changed, and those over the limits are left out. A list that cannot
be read is left out of the result, not taken as empty. If all clients have to share one connection, they share this one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from typing import TYPE_CHECKING

import msgspec

from ...protocol.client.connection import ConnectionLost, UnusableServer
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
    connect_seconds: float = 30.0  # for the handshake, after the start of the server
    attempts: int = 2  # to connect: a server may close a kept connection just when it is used again
    pause_seconds: float = 0.3  # before another attempt: if the server has ended, that is known by then
    list_seconds: float = 30.0  # for one list; a Host answers when its add-ins are loaded, which may take this long
    pages: int = 1000  # of one list: some servers always name a next page
    # Of one list. Clients cannot use more: models choose between some hundred tools, and 1,000 tools with long
    # descriptions have 2 MB. A server with millions of tools would take gigabytes here.
    entries: int = 10_000
    entry_bytes: int = 8 * 1024 * 1024
    quiet_seconds: float = 0.05  # a server that changes its lists sends several notifications
    reread_seconds: float = 5.0  # between reads because a client lists: some servers do not announce changes


DEFAULT_LIMITS = ReaderLimits()

MOST_COMMAS = 200_000  # of a page that is split in one go: it has one entry more at most, each with an object


# Structs, because other members of a page or an entry are skipped without taking memory.


class _Page(msgspec.Struct, rename={"templates": "resourceTemplates", "next": "nextCursor"}):
    tools: msgspec.Raw = msgspec.Raw(b"[]")
    resources: msgspec.Raw = msgspec.Raw(b"[]")
    templates: msgspec.Raw = msgspec.Raw(b"[]")
    prompts: msgspec.Raw = msgspec.Raw(b"[]")
    next: str | None = None


class _Entry(msgspec.Struct):
    name: str


class _Resource(msgspec.Struct, rename={"name": "uri"}):
    name: str


class _Template(msgspec.Struct, rename={"name": "uriTemplate"}):
    name: str


_page = msgspec.json.Decoder(_Page)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_SEPARATOR = re.compile(r"[\s,]*")
_JSON = json.JSONDecoder()

# The member that names an entry of each list, and its decoder.
KEYS: dict[str, tuple[str, msgspec.json.Decoder[_Entry | _Resource | _Template]]] = {
    "tools/list": ("name", msgspec.json.Decoder(_Entry)),
    "resources/list": ("uri", msgspec.json.Decoder(_Resource)),
    "resources/templates/list": ("uriTemplate", msgspec.json.Decoder(_Template)),
    "prompts/list": ("name", msgspec.json.Decoder(_Entry)),
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
        self.cut: dict[str, int] = {}  # lists that are longer than the limits: how many entries of each were read

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
        async with asyncio.timeout(self._running.startup_seconds + self._limits.connect_seconds):
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
        except UnusableServer as refusal:
            if refusal.status != 403:
                raise
            log.warn(f"'{method}' of the server cannot be read: {refusal}")
        except TimeoutError:
            log.warn(f"'{method}' of the server was not answered within {seconds:g} s.")
        return None

    async def _pages(self, method: str, connection: Connection) -> list[tuple[str, bytes]]:
        """Read the pages of a list up to the limits; `cut` says whether there was more."""
        self.cut.pop(method, None)
        limits, (key, decoder) = self._limits, KEYS[method]
        found: list[tuple[str, bytes]] = []
        count, size, nameless = limits.entries, limits.entry_bytes, 0  # what may still come
        cursor: str | None = None
        whole = False
        for _ in range(limits.pages):
            params = {} if cursor is None else {"cursor": cursor}
            page = _page.decode(await connection.request(method, params, self._peer))
            items, fits = _first_entries(bytes(getattr(page, LISTS[method][1])), count, size)
            count, size = count - len(items), size - sum(map(len, items))
            for item in items:
                try:
                    found.append((decoder.decode(item).name, item))
                except msgspec.MsgspecError:
                    nameless += 1
            last, cursor = cursor, page.next
            whole = fits and cursor is None
            if not fits or cursor is None or cursor == last:
                break
        if nameless:
            log.warn(f"Entries of the server's '{method}' that have no {key} are left out: {nameless}.")
        if not whole:
            self.cut[method] = len(found)
            log.warn(f"The server's list '{method}' does not end; the first {len(found)} entries are used.")
        return found


def _first_entries(array: bytes, count: int, size: int) -> tuple[list[bytes], bool]:
    """The first entries of a JSON array, at most so many and of so many bytes; and whether these are all."""
    if array.count(b",") < MOST_COMMAS:
        entries = _items.decode(array)
        room = list(itertools.takewhile(lambda total: total <= size, itertools.accumulate(map(_length, entries))))
        fitting = min(count, len(room))
        return [bytes(entry) for entry in entries[:fitting]], fitting == len(entries)
    # One after the other: objects for millions of entries would take gigabytes. The array is known to be valid.
    text = array[:size].decode("utf-8", "ignore")
    found: list[bytes] = []
    at = text.index("[") + 1
    while True:
        at = _SEPARATOR.match(text, at).end()  # type: ignore[union-attr]  # it matches everywhere
        try:
            _, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):  # the end of the array, or of the text; or it is nested too deeply
            return found, text[at : at + 1] == "]"
        if len(found) == count:
            return found, False
        found.append(text[at:end].encode())
        at = end


def _length(raw: msgspec.Raw) -> int:
    return memoryview(raw).nbytes


async def _follow_changes(connection: Connection) -> None:
    try:
        await connection.watch(frozenset())
    except (ConnectionLost, UnusableServer, TimeoutError) as error:
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
