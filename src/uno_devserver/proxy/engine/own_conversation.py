"""The proxy's own conversation with its upstream: it reads the lists, and again whenever they may have changed.

Where clients have to share one conversation, this is theirs, too; else it is one that no client has a part in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...protocol.client.connection import Lost
from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...system.log import log
from ...system.values import Value
from .lists_reader import read_lists

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.client.connection import Connection, Peer, Server
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Params, Result
    from ..lists import Entries
    from ..upstream.upstream import Running

ATTEMPTS = 2  # to begin: a server may close a connection that it has kept just when it is used again


class Policy(Value):
    pause_seconds: float = 0.3  # before it is begun anew: where the server has ended, that is known by then
    connect_seconds: float = 30.0  # to shake hands; starting has taken its time before
    quiet_seconds: float = 0.05  # a server that changes its lists says so several times
    reread_seconds: float = 5.0  # who lists has them read again, for servers that do not tell of changes; not each time


DEFAULT_POLICY = Policy()


class OwnConversation:
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
