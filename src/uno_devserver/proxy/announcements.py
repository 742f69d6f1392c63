"""What the clients are told about their server's life, as log messages of MCP. The same is said once in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..system.log import ERROR, INFORMATION, WARNING, log

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD = "notifications/message"
LOGGER = "uno-devserver"
_LEVELS = {"info": INFORMATION, "warning": WARNING, "error": ERROR}  # of our own log


class Announcements:
    def __init__(self, broadcast: Callable[[str, dict[str, Any]], None]) -> None:
        self._broadcast = broadcast
        self._last: tuple[str, str] | None = None

    def say(self, level: str, text: str) -> None:
        """`level` is one of MCP's; whoever wants only graver ones does not hear it."""
        if (level, text) == self._last:
            return
        self._last = (level, text)
        log.write(_LEVELS[level], text)
        self._broadcast(METHOD, {"level": level, "logger": LOGGER, "data": text})
