"""What is done when a start has come to its end, behind the first calls: keeping the catalogue, asking the Host how it
is, and looking at the disk. Nobody waits for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...protocol.running import Tasks
from ...system.threads import apart
from ...workspace.globaljson import read_global_json

if TYPE_CHECKING:
    from .keeper import Keeper
    from .knowledge import Knowledge
    from .offering import Offering

KEEP_SECONDS = 0.02  # calls that waited for the upstream go first; and whoever else asks meanwhile needs no other one
BEHIND_SECONDS = 0.2  # the first calls come as soon as there is an upstream, and this can wait


class Chores:
    def __init__(self, keeper: Keeper, knowledge: Knowledge, offering: Offering) -> None:
        self._keeper = keeper
        self._knowledge = knowledge
        self._offering = offering
        self._tasks = Tasks()
        self._keeps = False
        self._due = False

    def listed_anew(self) -> None:
        if not self._keeps:
            self._keeps = True
            self._tasks.start(self._keep_behind())

    def settled(self) -> None:
        """A start has come to its end."""
        self.listed_anew()
        if not self._due:
            self._due = True
            self._tasks.start(self._look())

    async def close(self) -> None:
        """What is to be kept is kept."""
        if self._keeps:
            await self.keep()

    async def keep(self) -> None:
        """Write the catalogue."""
        server = self._keeper.server
        if server is not None:
            write, global_json = self._offering.keep(server), self._global_json()

            def write_for_sdk() -> tuple[float, str | None]:
                sdk = _sdk_version(global_json)
                return write(sdk), sdk

            written, sdk = await apart(write_for_sdk)
            self._knowledge.learn(catalogue_written=written, catalogue_sdk=sdk)

    async def _keep_behind(self) -> None:
        await asyncio.sleep(KEEP_SECONDS)
        self._keeps = False
        await self.keep()

    async def _look(self) -> None:
        await asyncio.sleep(BEHIND_SECONDS)
        self._due = False
        placement = self._keeper.placement
        if placement is not None:
            placement.look()
            await placement.ask_host()

    def _global_json(self) -> str | None:
        placement = self._keeper.placement
        return placement.workspace.global_json if placement else None


def _sdk_version(global_json: str | None) -> str | None:
    sdk = read_global_json(global_json).uno_sdk if global_json else None
    return sdk.version if sdk else None
