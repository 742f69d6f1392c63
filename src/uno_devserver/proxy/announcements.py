"""Announcements to clients about the life of the server: that it is connected, has ended, or is started again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.log import ERROR, INFORMATION, WARNING, log

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = {"info": INFORMATION, "warning": WARNING, "error": ERROR}  # of our own log


class Announcements:
    """Log messages of MCP about the life of the server. The same text is not said twice in a row."""

    def __init__(self, broadcast: Callable[[str, dict[str, Any]], None]) -> None:
        self._broadcast = broadcast
        self._said: dict[str, str] = {}  # the last text of each level

    def say(self, level: str, text: str) -> None:
        """`level` is one of MCP's; a client that wants only graver ones does not hear it."""
        if self._said.get(level) == text:
            return
        self._said[level] = text
        log.write(_LEVELS[level], text)
        self._broadcast("notifications/message", {"level": level, "logger": "uno-devserver", "data": text})

    def recovered(self) -> None:
        """All is well: what is said from now on is news, also if it was said before."""
        self._said.clear()
