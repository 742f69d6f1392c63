"""The pauses between attempts to open a broken stream again, in both eras."""

from __future__ import annotations

import asyncio

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 5.0  # an attempt that lasts this long has worked, so the next pause is short again


class Backoff:
    """Growing pauses between attempts; the first one is used again after an attempt that lasted for a few seconds."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE_SECONDS
        self._attempted = 0.0  # when the last attempt began, at the end of its pause

    def next(self) -> float:
        now = asyncio.get_running_loop().time()
        if now - self._attempted >= STEADY_SECONDS:
            self._next = FIRST_PAUSE_SECONDS
        pause, self._next = self._next, min(2 * self._next, LONGEST_PAUSE_SECONDS)
        self._attempted = now + pause
        return pause
