"""Reading what an upstream offers: all pages of all its lists, at the same time, each entry as the bytes that came.

A list that cannot be read is not an empty list: nothing is said of it. Only a server that says that it has no such
method has none. Pages, entries and times are bounded.

The proxy's own conversation with its upstream: it reads the lists, and again whenever they may have changed.

Where clients have to share one conversation, this is theirs, too; else it is one that no client has a part in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.client.connection import Lost
from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...system.log import log
from ...system.values import Value
from .merge import entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.client.connection import Connection, Peer, Server
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Params, Result
    from ..upstream.base import Running
    from .merge import Entries


LIST_SECONDS = 30.0  # of one list; a Host answers when its add-ins are loaded, and gives them as long
MAX_PAGES = 1000  # a server that always names a next page would not end otherwise
MAX_ENTRIES = 10_000  # of one list; no model and no client wants as many

_page = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)


class Kind(Value):
    """One of the lists: its field in `Offered`, how it is asked for, and what an entry is called by."""

    field: str
    capability: str
    method: str
    member: str
    key: str
    always: bool = False  # asked for also of a server that does not declare it: some forget to


KINDS = (
    Kind("tools", "tools", "tools/list", "tools", "name", always=True),
    Kind("resources", "resources", "resources/list", "resources", "uri"),
    Kind("templates", "resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    Kind("prompts", "prompts", "prompts/list", "prompts", "name"),
)


async def read_lists(connection: Connection, peer: Peer) -> dict[str, Entries]:
    """What the server offers now, by the fields of `Offered`, as far as it can be read; Lost when it has gone."""
    reading = [asyncio.ensure_future(_read(kind, connection, peer)) for kind in KINDS]
    try:
        found = await asyncio.gather(*reading)
    finally:
        for task in reading:
            task.cancel()
    return {kind.field: read for kind, read in zip(KINDS, found, strict=True) if read is not None}


async def _read(kind: Kind, connection: Connection, peer: Peer) -> Entries | None:
    if not kind.always and kind.capability not in connection.server.capabilities:
        return ()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            return entries(await _pages(kind, connection, peer))
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:
            return ()
        log.warn(f"'{kind.method}' of the server was answered with an error: {error.message}")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        log.warn(f"The server's answer to '{kind.method}' cannot be read: {error}.")
    except TimeoutError:
        log.warn(f"'{kind.method}' of the server was not answered within {LIST_SECONDS:g} s.")
    return None


async def _pages(kind: Kind, connection: Connection, peer: Peer) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = _page.decode(await connection.request(kind.method, params, peer))
        found += [entry for raw in _items.decode(page.get(kind.member, b"[]")) if (entry := _entry(kind, raw))]
        cursor = _cursor(page)
        if cursor is None:
            return found
        if params.get("cursor") == cursor or len(found) >= MAX_ENTRIES:
            break
        params = {"cursor": cursor}
    log.warn(f"The server's list '{kind.method}' does not end; the first {min(len(found), MAX_ENTRIES)} entries count.")
    return found[:MAX_ENTRIES]


def _cursor(page: dict[str, msgspec.Raw]) -> str | None:
    raw = page.get("nextCursor")
    return None if raw is None or bytes(raw) == b"null" else _text.decode(raw)


def _entry(kind: Kind, raw: msgspec.Raw) -> tuple[str, bytes] | None:
    """Its name and itself; None, and a line in the log, for what has no name."""
    try:
        return _text.decode(_page.decode(raw)[kind.key]), bytes(raw)
    except (msgspec.MsgspecError, KeyError):
        log.warn(f"An entry of the server's '{kind.method}' has no {kind.key} and is left out.")
        return None


ATTEMPTS = 2  # to begin: a server may close a connection that it has kept just when it is used again


class Policy(Value):
    pause_seconds: float = 0.3  # before it is begun anew: where the server has ended, that is known by then
    connect_seconds: float = 30.0  # to shake hands; starting has taken its time before
    quiet_seconds: float = 0.05  # a server that changes its lists says so several times
    reread_seconds: float = 5.0  # who lists has them read again, for servers that do not tell of changes; not each time


DEFAULT_POLICY = Policy()


class ListReader:
    """`take` gets the lists each time that they were read, as far as they could be."""

    def __init__(
        self,
        running: Running,
        peer: Peer | None,
        client: ClientInfo,
        *,
        modern_first: bool,
        take: Callable[[dict[str, Entries], Server], None],
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """`peer`: the clients, where they share it. `client` is whom the upstream sees otherwise."""
        self._running = running
        self._peer = peer or _Reader(client, self.outdated)
        self._modern_first = modern_first
        self._take = take
        self._policy = policy
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._following: asyncio.Future[None] | None = None
        self._outdated = asyncio.Event()
        self._read_at = 0.0

    async def run(self, connected: Callable[[Server], None]) -> None:
        """For as long as it can be spoken to; `connected` is called when the lists have been read.

        Ends with Lost, Refusal or TimeoutError. A conversation that breaks off is begun anew: it need not be the end.
        """
        attempts = 0
        while True:
            try:
                attempts += 1
                connected(await self._begin())
                attempts = 0
                await self._tend()
            except Lost as loss:
                if attempts == ATTEMPTS:
                    raise
                log.debug(f"the conversation with the server broke off, and is begun anew: {loss}")
            await self.close()
            await asyncio.sleep(self._policy.pause_seconds)

    async def _begin(self) -> Server:
        async with asyncio.timeout(self._policy.connect_seconds):
            connection = await self._running.connect(self._peer, modern_first=self._modern_first)
        self._connection = connection
        # Beside reading, so that no change comes between the two unheard.
        self._following = asyncio.ensure_future(_follow(connection))
        await self._read(connection)
        return connection.server

    async def _tend(self) -> None:
        """Read the lists when they may have changed."""
        assert self._connection is not None
        while True:
            await self._outdated.wait()
            await asyncio.sleep(self._policy.quiet_seconds)
            self._outdated.clear()
            await self._read(self._connection)

    def outdated(self) -> None:
        """The lists have changed, or may have."""
        self._outdated.set()

    def listed(self) -> None:
        """A client has read a list."""
        if self._loop.time() - self._read_at >= self._policy.reread_seconds:
            self._outdated.set()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _read(self, connection: Connection) -> None:
        lists = await read_lists(connection, self._peer)
        self._read_at = self._loop.time()
        self._take(lists, connection.server)


async def _follow(connection: Connection) -> None:
    try:
        await connection.follow(frozenset())
    except (Lost, TimeoutError) as error:
        log.debug(f"the server does not tell of changes: {error}")


class _Reader:
    """The proxy itself as a client: it is told of changes, and asked nothing. Implements `Peer`."""

    log_level = None

    def __init__(self, client: ClientInfo, lists_changed: Callable[[], None]) -> None:
        """The upstream sees the client's name, but none of its capabilities: those belong to its own conversation."""
        self.client = client.replace(capabilities={})
        self._lists_changed = lists_changed

    def notify(self, method: str, params: Params) -> None:  # noqa: ARG002
        if method.endswith("/list_changed"):
            self._lists_changed()

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        if method == "ping":
            return {}
        raise RpcError(METHOD_NOT_FOUND, f"Nobody can be asked for '{method}' here.")
