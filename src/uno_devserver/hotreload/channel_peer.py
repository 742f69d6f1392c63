"""One peer of the control channel, and where it stands between two restarts.

A restart waits for peers that have calls to finish: those that ask for changes. One that lets an announcement pass, as
an IDE may that only asks, is not waited for again before it has said readyToRestart once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from . import wire
from .line_rpc import LineRpc


class ChannelPeer:
    def __init__(self, connection: LineRpc) -> None:
        self.connection = connection
        self.readiness: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # for the restart announced
        self._is_waited_for: bool | None = None  # None: it has neither asked for changes nor let a restart pass
        self._ready = 0  # its readyToRestart requests under way

    # --- its part in restarts

    def takes_part(self) -> None:
        """It has asked for changes."""
        if self._is_waited_for is None:
            self._is_waited_for = True

    def told_of_restart(self, reason: str) -> bool:
        """Whether it is to be waited for; one that waits for the restart itself needs not be told."""
        if self._ready:
            return False
        self.readiness = asyncio.get_running_loop().create_future()
        self.connection.notify(wire.RESTARTING, {"reason": reason})
        return self._is_waited_for is True and not self.connection.ended

    def let_pass(self) -> bool:
        """Whether it has not said anything to the announcement."""
        late = not self.readiness.done()
        if late:
            self._is_waited_for = False
        return late

    @contextlib.contextmanager
    def being_ready(self) -> Iterator[None]:
        """While a readyToRestart of it is under way."""
        self._is_waited_for = True
        self._settle()
        self._ready += 1
        try:
            yield
        finally:
            self._ready -= 1

    def left(self) -> None:
        self._settle()

    def _settle(self) -> None:
        if not self.readiness.done():
            self.readiness.set_result(None)

    # --- what it hears

    @contextlib.contextmanager
    def kept_informed(self, message: str, seconds: float) -> Iterator[Callable[[str], None]]:
        """While something of it is under way it hears what, again and again, so that it does not give up."""
        informing = _Informing(self.connection, message, seconds)
        try:
            yield informing.say
        finally:
            informing.stop()


class _Informing:
    def __init__(self, connection: LineRpc, message: str, seconds: float) -> None:
        self._connection = connection
        self._message = message
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(seconds, self._repeat)

    def say(self, message: str) -> None:
        self._message = message
        if self._timer is not None:  # else it has its answer
            self._connection.notify(wire.PROGRESS, {"message": message})

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _repeat(self) -> None:
        self._timer = self._loop.call_later(self._seconds, self._repeat)
        self.say(self._message)
