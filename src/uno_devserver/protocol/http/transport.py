"""What plain answers, streams and WebSockets share: writing with flow control, deadlines, and the incoming budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class ServerTransport:
    """The transport of one connection, for plain answers, streams and WebSockets."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ended = False
        self.aborted = False
        self.gone = False

    @property
    def stalled(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return not self._flowing.is_set()

    @property
    def closing(self) -> bool:
        return self._transport.is_closing()

    @property
    def backlog(self) -> int:
        """The number of bytes that were written and are not sent yet."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send data; it is dropped if the connection is closing or `end` was called."""
        # asyncio would warn on standard error about each write to a transport that is closing.
        if data and not self.closing and not self._ended:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has read most of what was written; ConnectionError if it is gone."""
        if not self._flowing.is_set():
            await self._flowing.wait()
        elif self.closing:
            # Let the event loop report a lost connection: a writer that never waits would not notice it.
            await asyncio.sleep(0)
        if self.gone:
            raise ConnectionResetError("the client is gone")

    def stop_reading(self) -> None:
        self._transport.pause_reading()

    def go_on_reading(self) -> None:
        self._transport.resume_reading()

    def end(self) -> None:
        """Close our side; what was written is still delivered."""
        if not self.gone and not self.closing:
            self._ended = True
            try:
                self._transport.write_eof()
            except OSError:  # the client has reset the connection, and the event loop has not reported it yet
                self._transport.abort()

    def close(self) -> None:
        """Close the connection when what was written is delivered."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self.aborted = True
        self._transport.abort()

    # --- called by the event loop

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def lost(self) -> None:
        self.gone = True
        self._flowing.set()


class DeadlineTimer:
    """A deadline that is moved often: the timer of the event loop is replaced only if it would fire too late."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> float:
        """Call `ring` in so many seconds instead of at the former deadline. Returns the present time."""
        now = self._loop.time()
        self._deadline = now + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._fired)
        return now

    def clear(self) -> None:
        self._deadline = None

    def stop(self) -> None:
        """Cancel the deadline, and remove the timer from the event loop."""
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


SMALL_BYTES = 64 * 1024  # data up to this size is not counted, so that large messages never displace small ones


class IncomingData(Protocol):
    def give_up(self) -> None:
        """Drop the received data, and tell the client so."""


class IncomingBudget:
    """Limits the memory for large data that clients have sent and no handler has taken yet.

    Beyond `most` bytes, the data that has not grown for longest is dropped: clients of this machine send a message at
    once, so this is usually an abandoned upload, not an active one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._sizes: dict[IncomingData, int] = {}  # in the order of their last growth, oldest first

    def keep(self, data: IncomingData, size: int) -> None:
        """Count `size` bytes for this data, instead of those that were counted before."""
        self._total -= self._sizes.pop(data, 0)
        if size <= SMALL_BYTES:
            return
        self._sizes[data] = size
        self._total += size
        while self._total > self._most:
            oldest = next(iter(self._sizes))
            self._total -= self._sizes.pop(oldest)
            oldest.give_up()
