"""One upstream's time: from when it runs until it ends, or has to. It is watched, and the proxy speaks to it.

Whoever keeps it hears what happens, and nothing any more once it has been let go. A defect of ours counts as the
upstream's end, because nobody should wait for ever.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from ...protocol.client.connection import Lost, Refusal
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.running import Tasks
from ...system.log import ERROR, log
from ...system.values import Value
from ..upstream.upstream import Ending
from .own_conversation import OwnConversation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...protocol.client.connection import Peer, Server
    from ...protocol.parties import ClientInfo
    from ..lists import Entries
    from ..upstream.upstream import Running


class Listed(Value):
    """Its lists were read, as far as they could be."""

    lists: dict[str, Entries]
    server: Server


class Connected(Value):
    """It can be spoken to, and its lists were read; again, when only the conversation was begun anew."""

    server: Server


class Refused(Value):
    """It speaks no MCP, and says so."""

    refusal: Refusal


Event = Listed | Connected | Refused | Ending


class Tenure:
    def __init__(
        self,
        running: Running,
        tell: Callable[[Tenure, Event], None],
        *,
        client: Callable[[], Awaitable[ClientInfo]],
        shared_peer: Peer | None,
        end_seconds: float,
    ) -> None:
        """`client` is whom the upstream sees. `end_seconds`: a connection breaks a moment before the end of its process
        is told, which tells more.
        """
        self.running = running
        self.tell = tell
        self.attempt = 0  # by which the lifecycle knows it
        self.server: Server | None = None  # what it says of itself, while it can be spoken to
        self._client = client
        self._shared_peer = shared_peer
        self._end_seconds = end_seconds
        self._tasks = Tasks()
        self._conversation: OwnConversation | None = None
        self._over = False

    def watch(self) -> None:
        """Tell of its end from now on."""
        self._tasks.start(self._guarded(self._watch))

    def converse(self) -> None:
        """Speak to it from now on."""
        self._tasks.start(self._guarded(self._converse))

    def outdated(self) -> None:
        """Its lists have changed, or may have."""
        if self._conversation is not None:
            self._conversation.outdated()

    def listed(self) -> None:
        """A client has read a list."""
        if self._conversation is not None:
            self._conversation.listed()

    def end(self) -> None:
        """Nothing is told of it any more; what clients have asked it is still answered."""
        self._over = True
        self._tasks.cancel()
        if self._conversation is not None:
            self._tasks.start(self._conversation.close())

    def _tell(self, event: Event) -> None:
        if not self._over:
            self.tell(self, event)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Not an awaitable that exists already: a task that ends before its first step would never await it."""
        try:
            await work()
        except Exception as error:
            log.write(ERROR, f"keeping the server failed:\n{traceback.format_exc()}")
            self._tell(Ending(f"something went wrong inside uno-devserver: {type(error).__name__}: {error}"))

    async def _watch(self) -> None:
        self._tell(await self.running.ended())

    async def _converse(self) -> None:
        client = await self._client()
        peer = self._shared_peer if self.running.endpoint is None else None
        modern = client.protocol_version in MODERN_VERSIONS
        self._conversation = OwnConversation(self.running, peer, client, modern_first=modern, take=self._took)
        try:
            await self._conversation.run(self._connected)
        except Refusal as refusal:
            self._tell(Refused(refusal))
        except (Lost, TimeoutError) as error:
            await asyncio.sleep(self._end_seconds)
            self._tell(Ending(f"it cannot be spoken to: {str(error).rstrip('.') or 'it does not answer'}"))

    def _took(self, lists: dict[str, Entries], server: Server) -> None:
        self._tell(Listed(lists, server))

    def _connected(self, server: Server) -> None:
        self.server = server
        self._tell(Connected(server))
