"""The upstream as everybody else sees it: the relay, whose `Link` it is, and the rest of the proxy.

How it is kept is `upkeep`'s business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...instances.health_report import ConnectionState
from ..relay.link import Unavailable
from .upkeep import CONNECTED, STUCK, Upkeep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...hotreload.authority import Restarted
    from ...protocol.client.connection import Connection, Peer
    from ..upstream.upstream import Upstream
    from .replacing import Replacing


class Keeper(Upkeep):
    _replacing: Replacing | None = None

    # What the relay wants of it.

    @property
    def fallback(self) -> bool:
        return self.placement is not None and self.placement.fallback

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return self._offering.tool(name)

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        if self._tenure is None or self.state is not CONNECTED:
            raise Unavailable("The dev server is not connected.", "Wait a moment, then try again.")
        return await self._tenure.running.connect(peer, modern_first=modern_first)

    async def until_connected(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while self.state is not CONNECTED:
                    if self.state in STUCK or self.fallback:
                        return False
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def reconsider(self) -> None:
        if self.placement is not None:
            await self.placement.reconsider()

    def worked(self, generation: int) -> None:
        if generation == self._generation:
            self._lifecycle.worked()

    def lost(self, generation: int) -> None:
        if generation == self._generation and self._tenure is not None:
            self._tenure.running.doubt()

    def lists_changed(self) -> None:
        if self._tenure is not None:
            self._tenure.outdated()

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        assert self.placement is not None  # the tool is only offered then
        return await self.placement.initialize(directory, solution)

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        assert self.placement is not None
        return await self.placement.select(solution, force_restart=force_restart)

    # What the proxy wants of it.

    @property
    def started(self) -> bool:
        """Whether there is an upstream, or one is being started."""
        return self.state not in STUCK and self.state is not ConnectionState.INITIALIZING

    def rest(self) -> float:
        """How many seconds it is until another attempt is due."""
        return self._lifecycle.rest(self._loop.time())

    def begin(self, upstream: Upstream) -> None:
        """This is to be kept from now on; what was before is ended."""
        self._drop_spare()
        self._knowledge.forget_upstream()
        self.upstream = upstream
        self.do(self._lifecycle.begin(self._loop.time()))

    def halt(self, reason: str) -> None:
        """There is nothing to keep."""
        self._drop_spare()
        self._knowledge.forget_upstream()
        self.upstream = None
        self.do(self._lifecycle.halt(reason))

    async def renew(self, delay_seconds: float = 0.0) -> Restarted:
        """Stop the upstream, if it is ours, and start it again after a pause, because its code is newer than what runs.

        Returns when that is connected, or has failed for good.
        """
        return await self._replacements().renew(delay_seconds)

    async def swap(self) -> Restarted:
        """Start the newer code beside what runs, and let it take its place when it answers, so that no call waits.

        Where that is not possible, what runs stays.
        """
        return await self._replacements().swap()

    def _replacements(self) -> Replacing:
        if self._replacing is None:
            from .replacing import Replacing  # few proxies ever need it, and none when it starts

            parts = (self._lifecycle, self._knowledge, self._offering, self._timeline)
            self._replacing = Replacing(self, *parts, self._policy)
        return self._replacing

    def listed(self) -> None:
        """A client has read a list."""
        if self._tenure is not None:
            self._tenure.listed()

    async def close(self) -> None:
        """End the upstream, if it is ours, and what is just being started."""
        self.do(self._lifecycle.shut_down())
        self._drop_spare()
        self._departures.hurry()
        while self._pending:
            await self._moved.wait()
        await self.alone.wait()
        await self._departures.close()

    def _drop_spare(self) -> None:
        if self._replacing is not None:
            self._replacing.give_up()
