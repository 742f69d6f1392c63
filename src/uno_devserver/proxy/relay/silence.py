"""Noticing requests of which nothing is heard for too long.

One timer looks at all of them. A timer for each would cost a quarter of what relaying a request costs, because the
event loop keeps those that were cancelled until their time has come.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .caller import Caller

LOOKS = 10  # within the time that a request may be silent, which is exceeded by a tenth at most


class Silence:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._watched: dict[Caller, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, caller: Caller) -> None:
        """From the caller's task, which is cancelled when nothing was heard for that long."""
        loop = asyncio.get_running_loop()
        caller.begin(self._seconds, loop)
        self._watched[caller] = None
        if self._timer is None:
            self._timer = loop.call_later(self._seconds / LOOKS, self._look, loop)

    def forget(self, caller: Caller) -> None:
        del self._watched[caller]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for caller in self._watched:
            caller.look(now)
        self._timer = loop.call_later(self._seconds / LOOKS, self._look, loop) if self._watched else None
