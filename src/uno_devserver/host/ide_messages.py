"""What the IDE says, brought to whom it concerns: the launch monitor, or an add-in that asked for it.

An add-in gets its messages in order; one that hangs delays the messages behind its own for a moment, and no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..system.log import log
from .addins.collection import AddIns
from .ide.channel import IdeChannel
from .launches import LaunchMonitor, register_message
from .rc.messages import Members

if TYPE_CHECKING:  # the add-ins' interface costs time to import, and only its types are needed
    from .addins.peers import IdeHandler

APP_LAUNCH = "AppLaunchRegisterIdeMessage"
HANDLER_SECONDS = 5.0  # a handler that takes longer goes on beside the next message


class IdeMessages:
    ide: IdeChannel  # given after both are made: each needs the other

    def __init__(self, launches: LaunchMonitor, addins: AddIns) -> None:
        self._launches = launches
        self._addins = addins
        self._work: set[asyncio.Future[None]] = set()  # held here, or it could be collected before it has run

    async def handle(self, type_name: str, body: dict[str, Any]) -> None:
        if type_name == APP_LAUNCH and not register_message(Members(body), self._launches):
            log.warn(f"The IDE announced an app without saying which: {APP_LAUNCH} needs Mvid, Ide and Plugin.")
        for handler in self._addins.ide_handlers:
            if handler.type_name == type_name:
                await self._hand_over(body, handler)

    def send(self, type_name: str, body: Mapping[str, Any]) -> bool:
        """Whether somebody was there to hear it."""
        self.ide.send(type_name, body)
        return self.ide.connected

    async def _hand_over(self, body: dict[str, Any], handler: IdeHandler) -> None:
        work = asyncio.ensure_future(handler.handler(body, self.ide))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        _, unfinished = await asyncio.wait([work], timeout=HANDLER_SECONDS)
        if unfinished:
            log.warn(f"[{handler.addin}] {handler.type_name} of the IDE is in work for {HANDLER_SECONDS:g} s and more.")
