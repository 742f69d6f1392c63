"""The log as pages show it: this process's own lines from its beginning, and what its server prints while it is shown.

Lines come from any thread, and nobody who writes one waits. They have numbers, and each is told once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from ...system.log import DEBUG, LEVELS, NONE, log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .output_tail import Printed

REMEMBERED = 1000  # lines
TELL_SECONDS = 0.1  # a build prints hundreds of lines in that time; pages get them at once

Line = dict[str, Any]


class Journal:
    def __init__(self, tell: Callable[[list[Line]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._heard: deque[tuple[float, int, str]] = deque(maxlen=REMEMBERED)  # not in the journal yet
        self._lines: deque[Line] = deque(maxlen=REMEMBERED)
        self._last = 0
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard.extend(log.recent.copy())
        log.tap = self._hear

    @property
    def live(self) -> bool:
        """Whether somebody looks: then lines are told as they come, also those that are too detailed for the log."""
        return self._live

    @live.setter
    def live(self, wanted: bool) -> None:
        self._live = wanted
        log.tap_level = DEBUG if wanted else NONE
        if wanted:
            self._take()
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._woken = False

    def lines(self) -> list[Line]:
        """Those that were told, newest last. What comes after them will be."""
        return list(self._lines)

    def printed(self, lines: Iterable[Printed]) -> None:
        """By the server."""
        told = [self._put(line.at, line.level, line.text, "server") for line in lines]
        if told:
            self._tell(told)

    def close(self) -> None:
        self.live = False
        log.tap = None

    def _hear(self, at: float, level: int, text: str) -> None:
        """From any thread."""
        self._heard.append((at, level, text))
        if self._live and not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop is closed, and nobody looks any more

    def _wake(self) -> None:
        if self._live and self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_news)

    def _tell_news(self) -> None:
        self._timer = None
        self._woken = False  # before they are taken: what comes meanwhile wakes us again
        news = self._take()
        if news:
            self._tell(news)

    def _take(self) -> list[Line]:
        news = []
        while self._heard:
            news.append(self._put(*self._heard.popleft()))
        return news

    def _put(self, at: float, level: int, text: str, source: str = "proxy") -> Line:
        self._last += 1
        line = {"n": self._last, "at": at, "level": LEVELS[level], "source": source, "text": text}
        self._lines.append(line)
        return line
