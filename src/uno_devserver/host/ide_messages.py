"""What the IDE says, brought to whom it concerns: the launch monitor, or an add-in that asked for it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from ..system.log import log
from .addins.collection import AddIns
from .addins.workers import invoke
from .ide.channel import IdeChannel
from .launches import LaunchMonitor, register_message
from .rc.messages import Members

APP_LAUNCH = "AppLaunchRegisterIdeMessage"


class IdeMessages:
    ide: IdeChannel  # given after both are made: each needs the other

    def __init__(self, launches: LaunchMonitor, addins: AddIns) -> None:
        self._launches = launches
        self._addins = addins

    async def handle(self, type_name: str, body: dict[str, Any]) -> None:
        if type_name == APP_LAUNCH and not register_message(Members(body), self._launches):
            log.warn(f"The IDE announced an app without saying which: {APP_LAUNCH} needs Mvid, Ide and Plugin.")
        for handler in self._addins.ide_handlers:
            if handler.type_name == type_name:
                try:
                    await invoke(handler.handler, body, self.ide)
                except Exception as error:
                    log.debug(traceback.format_exc())
                    log.warn(f"Add-in {handler.addin} failed on {type_name} of the IDE: {error!r}")

    def send(self, type_name: str, body: Mapping[str, Any]) -> bool:
        """Whether somebody was there to hear it."""
        self.ide.send(type_name, body)
        return self.ide.connected
