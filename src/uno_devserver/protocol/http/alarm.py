"""One timer that is set again and again, for next to nothing.

A connection moves its deadline with every request. Moving it later only notes the new time; the event loop's timer
is touched when it fires too early, or when the deadline moves nearer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring in that many seconds, and not at the time that was set before."""
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._fired)

    def clear(self) -> None:
        """Do not ring."""
        self._deadline = None

    def stop(self) -> None:
        """Do not ring, and leave nothing behind in the event loop."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._fired)
            return
        self._deadline = None
        self._ring()
