"""Telling a client that its call waits, and for what: progress notifications, if the client asked for some.

Progress only grows, and the upstream may report its own later. So steps are small, and smaller before the upstream is
waited for: a call stands in the queue first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.service import Call


QUEUE_STEP = 0.000_001  # at one a second it takes a quarter of an hour to come to the next
UPSTREAM_STEP = 0.001


class Progress:
    def __init__(self, call: Call, step: float) -> None:
        meta = call.params.get("_meta")
        self._token = meta.get("progressToken") if isinstance(meta, dict) else None
        self._call = call
        self._step = step
        self._steps = 0

    @property
    def wanted(self) -> bool:
        return self._token is not None

    def tell(self, message: str) -> None:
        if self.wanted:
            self._steps += 1
            progress = self._steps * self._step
            params = {"progressToken": self._token, "progress": progress, "message": message}
            self._call.notify("notifications/progress", params)


async def report(call: Call, message: Callable[[], str], seconds: float) -> None:
    """Tell it now and again every so many seconds, until cancelled; nothing where the client does not ask for it."""
    progress = Progress(call, UPSTREAM_STEP)
    while progress.wanted:
        progress.tell(message())
        await asyncio.sleep(seconds)
