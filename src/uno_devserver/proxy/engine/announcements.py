"""What the clients are told about their server's life, as log messages of MCP. The same is not said again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...system.log import ERROR, INFORMATION, WARNING, log

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD = "notifications/message"
LOGGER = "uno-devserver"
_LEVELS = {"info": INFORMATION, "warning": WARNING, "error": ERROR}  # of our own log


class Announcements:
    def __init__(self, broadcast: Callable[[str, dict[str, Any]], None]) -> None:
        self._broadcast = broadcast
        self._said: dict[str, str] = {}  # the last text of each level

    def say(self, level: str, text: str) -> None:
        """`level` is one of MCP's; whoever wants only graver ones does not hear it."""
        if self._said.get(level) == text:
            return
        self._said[level] = text
        log.write(_LEVELS[level], text)
        self._broadcast(METHOD, {"level": level, "logger": LOGGER, "data": text})

    def recovered(self) -> None:
        """All is well: what is said from now on is news, also if it was said before."""
        self._said.clear()
