"""Supervises one running upstream: its conversation, its lists and its end, which are reported as events."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...protocol.client.connection import ConnectionLost, ServerDescription, UnusableServer
from ...system.event_loop import Tasks
from ...system.log import ERROR, log
from ...system.values import Value
from ..lists.reader import ListReader
from .base import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ...protocol.client.connection import Peer
    from ..lists.merge import Entries
    from .base import RunningUpstream
    from .keeper import Keeper


class UpstreamLists(Value):
    """The lists of an upstream that could be read. `cut`: those that are too long, with the number of entries used."""

    lists: dict[str, Entries]
    server: ServerDescription
    cut: Mapping[str, int] = {}


# ServerDescription: a conversation was opened, or opened again, and the lists were read. UnusableServer: the upstream
# answers, but does not speak MCP.
Event = UpstreamLists | ServerDescription | UnusableServer | Ending
ReportEvent = Callable[["SupervisedUpstream", Event], None]


class SupervisedUpstream:
    """Supervises one running upstream: reports its events until `release` is called."""

    def __init__(
        self,
        keeper: Keeper,
        running: RunningUpstream,
        report: ReportEvent,
        attempt: int = 0,
        *,
        peer: Peer | None = None,
    ) -> None:
        """`attempt`: its number in the lifecycle. `peer`: represents all clients to it, if they share a conversation
        and the keeper's owner does not.
        """
        self.running = running
        self.report = report
        self.attempt = attempt
        self.server: ServerDescription | None = None
        self.reader: ListReader | None = None  # None until a conversation has begun
        self._keeper = keeper
        self._peer = peer or keeper.owner.shared_peer
        self._tasks = Tasks()

    def start(self) -> None:
        """Watch for its end, and open a conversation."""
        self._tasks.start(self._guarded(self._watch))
        self._tasks.start(self._guarded(self._converse))

    def release(self) -> None:
        """Stop reporting. The upstream goes on running and answers its open requests."""
        self.report = lambda *_: None
        self._tasks.cancel()
        if self.reader is not None:
            self._tasks.start(self.reader.close())

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Report a bug in the proxy as the end of the upstream."""
        try:
            await work()
        except Exception as error:
            log.write(ERROR, f"supervising the server failed:\n{traceback.format_exc()}")
            self.report(self, Ending(f"something went wrong inside uno-devserver: {type(error).__name__}: {error}"))

    async def _watch(self) -> None:
        ending = await self.running.ended()
        self.report(self, ending)  # read after the wait: `promote` replaces it

    async def _converse(self) -> None:
        client = await self._keeper.client_info()
        peer = self._peer if self.running.endpoint is None else None
        self.reader = ListReader(self.running, peer, client, take=self._on_lists)
        try:
            await self.reader.run(self._on_connected)
        except UnusableServer as refusal:
            self.report(self, refusal)
        except (ConnectionLost, TimeoutError) as error:
            await asyncio.sleep(self._keeper.limits.end_seconds)
            reason = str(error).rstrip(".") or "it does not answer"
            self.report(self, Ending(f"the connection to it failed: {reason}"))

    def _on_lists(self, lists: dict[str, Entries], server: ServerDescription) -> None:
        self.report(self, UpstreamLists(lists, server, dict(self.reader.cut) if self.reader else {}))

    def _on_connected(self, server: ServerDescription) -> None:
        self.server = server
        self.report(self, server)
