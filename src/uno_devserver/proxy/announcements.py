"""Announces to clients, as MCP log messages, that the server is connected, has ended, or is started again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.log import ERROR, INFORMATION, WARNING, log

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = {"info": INFORMATION, "warning": WARNING, "error": ERROR}  # from levels of MCP to those of our own log


class Announcements:
    """Sends log messages to all clients, except one that repeats the last text of its level."""

    def __init__(self, broadcast: Callable[[str, dict[str, Any]], None]) -> None:
        self._broadcast = broadcast
        self._said: dict[str, str] = {}  # the last text of each level

    def say(self, level: str, text: str) -> None:
        """Log the text and send it to the clients; `level` is one of MCP."""
        if self._said.get(level) == text:
            return
        self._said[level] = text
        log.write(_LEVELS[level], text)
        self._broadcast("notifications/message", {"level": level, "logger": "uno-devserver", "data": text})

    def recovered(self) -> None:
        """Allow every text again, because the server works."""
        self._said.clear()
