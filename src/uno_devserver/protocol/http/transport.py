"""What plain answers, streams and WebSockets share: memory budgets, writing with flow control, and deadlines."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ...system.log import log

# The most that is given to the event loop at once: on Windows it tells of a write only when all of it was sent, and a
# client that reads a long answer slowly would look like one that does not read.
PIECE_BYTES = 256 * 1024
SMALL_BYTES = 64 * 1024  # data up to this size is not counted, so that large messages never displace small ones


class BudgetedData(Protocol):
    @property
    def size(self) -> int:
        """How many bytes it has now."""

    def give_up(self) -> None:
        """Drop the data, and tell the client so if that is possible."""


class MemoryBudget:
    """Limits the memory for large data of all clients in one direction: until it is handled, or delivered.

    Beyond `most` bytes, the data without progress for longest is given up: clients of this machine send a message, or
    read an answer, at once, so this is usually abandoned data. Messages in use count, but are never given up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._in_use = 0  # the part of the total that cannot be given up
        self._sizes: dict[BudgetedData, int] = {}  # in the order of their last progress, oldest first

    def keep(self, data: BudgetedData) -> None:
        """Count the present size of this data, instead of the one that was counted before."""
        self._count(data)
        # Data that alone exceeds the budget, as a very long answer may, stays: there is nothing else to give up.
        while self._total > self._most and len(self._sizes) > (0 if self._in_use else 1):
            oldest, before = next(iter(self._sizes.items()))
            self._count(oldest)
            if self._sizes.get(oldest, 0) >= before:  # its client has read nothing since
                self._total -= self._sizes.pop(oldest)
                oldest.give_up()

    def use(self, size: int) -> None:
        """Count a message that a handler has taken; a negative size when it is not used any more."""
        self._in_use += size
        self._total += size

    def _count(self, data: BudgetedData) -> None:
        self._total -= self._sizes.pop(data, 0)
        if (size := data.size) > SMALL_BYTES:
            self._sizes[data] = size
            self._total += size


class UsedMessage:
    """A large message that a handler has taken. It counts until the handler and the tasks that use it have ended."""

    def __init__(self, budget: MemoryBudget, size: int) -> None:
        self._budget = budget
        self._size = size
        self._users = 1
        budget.use(size)

    def keep_until(self, done: asyncio.Future[Any]) -> None:
        self._users += 1
        done.add_done_callback(lambda _: self.release())

    def release(self) -> None:
        self._users -= 1
        if not self._users:
            self._budget.use(-self._size)


class ServerTransport:
    """The transport of one connection, for plain answers, streams and WebSockets. Unread output is in a budget."""

    def __init__(self, transport: asyncio.Transport, outgoing: MemoryBudget) -> None:
        self._transport = transport
        self._outgoing = outgoing
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._taking = True  # whether the event loop takes more
        self._rest: deque[memoryview] = deque()  # what it is given later, piece by piece
        self._rest_size = 0
        self._at_end: Callable[[], None] | None = None  # called when the rest was given to it
        self._ended = False
        self._closing = False
        self.aborted = False
        self.gone = False

    @property
    def stalled(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return not self._flowing.is_set()

    @property
    def closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    @property
    def backlog(self) -> int:
        """The number of bytes that were written and are not sent yet."""
        return self._transport.get_write_buffer_size() + self._rest_size

    @property
    def size(self) -> int:
        return 0 if self.gone else self.backlog

    def write(self, data: bytes) -> None:
        """Send data; it is dropped if the connection is closing or `end` was called."""
        # asyncio would warn on standard error about each write to a transport that is closing.
        if data and not self.closing and not self._ended:
            if self._rest or len(data) > PIECE_BYTES:
                self._rest_size += len(data)
                self._rest.append(memoryview(data))
                self._write_rest()
            else:
                self._transport.write(data)
            if self.backlog > SMALL_BYTES:
                self._outgoing.keep(self)

    def _write_rest(self) -> None:
        while self._rest and self._taking and not self._transport.is_closing():
            first = self._rest.popleft()
            if len(first) > PIECE_BYTES:
                self._rest.appendleft(first[PIECE_BYTES:])
                first = first[:PIECE_BYTES]
            self._rest_size -= len(first)
            self._transport.write(first)
        if not self._rest and self._at_end is not None:
            at_end, self._at_end = self._at_end, None
            at_end()

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
            self._do_after_rest(self._end_now)

    def _end_now(self) -> None:
        try:
            self._transport.write_eof()
        except OSError:  # the client has reset the connection, and the event loop has not reported it yet
            self._transport.abort()

    def close(self) -> None:
        """Close the connection when what was written is delivered."""
        self._closing = True
        self._do_after_rest(self._transport.close)

    def _do_after_rest(self, action: Callable[[], None]) -> None:
        self._at_end = action
        self._write_rest()

    def abort(self) -> None:
        """Close the connection now."""
        self.aborted = True
        self._transport.abort()

    def give_up(self) -> None:
        log.warn(f"a client did not read its answer ({self.backlog:,} bytes wait), and others need the memory")
        self.abort()

    # --- called by the event loop

    def pause(self) -> None:
        self._taking = False
        self._flowing.clear()

    def resume(self) -> None:
        self._taking = True
        self._write_rest()
        if self._taking:
            self._flowing.set()
        self._outgoing.keep(self)

    def lost(self) -> None:
        self.gone = True
        self._rest.clear()
        self._rest_size = 0
        self._at_end = None
        self._flowing.set()
        self._outgoing.keep(self)


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
