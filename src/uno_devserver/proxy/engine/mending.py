"""Starting a Host again when somebody has saved what may mend it: one that does not work, or that lacks an add-in.

A Host that has all its add-ins is left alone, whatever is edited: newer code comes with the next call. One save is one
restart, because whoever watches the code is asked for it. Attempts are no closer to each other than others are; what is
saved too early is remembered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...instances.health_report import ConnectionState
from ...system.threads import apart
from ...workspace.addins import sources_key
from ..upstream.host import HostUpstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...workspace.resolver import Workspace
    from .keeper import Keeper
    from .knowledge import Knowledge


class Mending:
    """`look_again` comes back to `saved` after a look at the disk; `restart` replaces the Host that runs."""

    def __init__(
        self, keeper: Keeper, knowledge: Knowledge, look_again: Callable[[], None], restart: Callable[[], None]
    ) -> None:
        self._keeper = keeper
        self._knowledge = knowledge
        self._look_again = look_again
        self._restart = restart
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None

    def saved(self, sources: int) -> None:
        """Some file of the workspace has changed; `sources` is the key of its add-ins' files now."""
        keeper = self._keeper
        connected = keeper.state is ConnectionState.CONNECTED
        if connected and not (self._lacks_addins() and self._are_new(sources)):
            return
        if rest := keeper.rest():
            self.close()
            self._due = self._loop.call_later(rest, self._look_again)
        elif connected:
            if not keeper.reload():
                self._restart()
        else:
            keeper.wanted()

    async def catch_up(self, workspace: Workspace) -> None:
        """A start is through: something may have been saved meanwhile, and nobody knew yet that it would matter."""
        sources = await apart(lambda: sources_key(workspace.working_directory))
        if self._are_new(sources):
            self.saved(sources)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _lacks_addins(self) -> bool:
        """Whether the Host is ours, and has add-ins that did not load."""
        facts = self._knowledge.facts
        failed = facts.host is not None and any(addin.error is not None for addin in facts.host.add_ins)
        return facts.upstream is not None and facts.upstream.owned and bool(failed or facts.left_out)

    def _are_new(self, sources: int) -> bool:
        """Whether the files are others than at the last launch."""
        upstream = self._keeper.upstream
        return isinstance(upstream, HostUpstream) and upstream.sources not in (None, sources)
