"""Progress notifications for a call that waits, if its client asked for progress.

Progress must only grow, and the upstream may report its own later, so the steps are small. They are smallest in the
queue, because a call waits there before it waits for the upstream.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.service import Call


QUEUE_STEP = 0.000_001  # at one a second, it takes a quarter of an hour to reach the next
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
    """Send a message now and every `seconds`, until cancelled; none if the client did not ask for progress."""
    progress = Progress(call, UPSTREAM_STEP)
    while progress.wanted:
        progress.tell(message())
        await asyncio.sleep(seconds)
