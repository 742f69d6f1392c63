"""Cancels requests that have been silent for longer than the limit: nothing was heard of them, not even progress.

Progress, log messages and questions of the upstream are signs of life. `relay.py` looks after relayed calls itself, by
the same limit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...protocol.parties import ClientInfo
    from ...protocol.service import Call, Params, Result

SILENCE_CHECKS = 10  # within the time that a request may be silent, which is exceeded by a tenth at most


class Caller:
    """The peer of one request: passes on what the upstream says, and notes when it said something last."""

    __slots__ = ("_call", "_cancelling", "_expired", "_loop", "_questions", "_seconds", "_task", "_until", "client")

    def __init__(self, call: Call) -> None:
        self.client: ClientInfo = call.session.client
        self._call = call
        self._questions = 0
        self._seconds = 0.0
        self._until: float | None = None  # when it has been silent for too long; None: that cannot be
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0  # how often others had cancelled it before
        self._expired = False

    @property
    def log_level(self) -> str | None:
        return self._call.log_level

    def notify(self, method: str, params: Params) -> None:
        self._heard()
        self._call.notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self._questions += 1
        self._heard()
        try:
            return await self._call.ask(method, params, name)
        finally:
            self._questions -= 1
            self._heard()

    # How long nothing may be heard.

    def begin(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """A try, of which something is to be heard within so many seconds, again and again."""
        self._seconds, self._loop = seconds, loop
        self._task = asyncio.current_task(loop)
        assert self._task is not None
        self._cancelling, self._expired = self._task.cancelling(), False
        self._heard()

    def look(self, now: float) -> None:
        if self._until is not None and self._until <= now and not self._expired:
            assert self._task is not None
            self._expired = True
            self._task.cancel()

    def gave_up(self) -> bool:
        """Whether it was cancelled for its silence, and for nothing else."""
        return self._expired and self._task is not None and self._task.uncancel() <= self._cancelling

    def _heard(self) -> None:
        if self._loop is not None:
            # A question may take its time: a person may have to decide.
            self._until = None if self._questions else self._loop.time() + self._seconds


class SilenceWatch:
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
            self._timer = loop.call_later(self._seconds / SILENCE_CHECKS, self._look, loop)

    def forget(self, caller: Caller) -> None:
        del self._watched[caller]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for caller in self._watched:
            caller.look(now)
        self._timer = loop.call_later(self._seconds / SILENCE_CHECKS, self._look, loop) if self._watched else None
