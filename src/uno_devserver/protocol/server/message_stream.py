"""The messages to one client: `Channel` as calls and sessions use it, and `MessageStream` as HTTP delivers it.

Sending never waits. A stream keeps its last events, so that a client can resume it after the last event that it got.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from typing import Protocol

from ...system.values import Value
from ..http import sse
from ..http.messages import Sink
from .limits import EndpointLimits


class MessageKind(enum.Enum):
    NOTIFICATION = 0  # dropped first when a client reads too slowly
    REQUEST = 1
    ANSWER = 2


class Channel(Protocol):
    """Messages to one client, in order. Used in the event loop."""

    @property
    def ended(self) -> bool: ...

    def send(self, data: bytes, kind: MessageKind = MessageKind.NOTIFICATION) -> None:
        """Send a message; it is dropped after the end."""

    def send_once(self, data: bytes) -> None:
        """Send a notification of a change, unless the same one still waits to be written."""

    def end(self) -> None:
        """End the channel."""

    def hang_up(self) -> None:
        """End the connection but not the channel, if the client can resume with another connection."""


class StreamOpening(enum.Enum):
    """What is written to a connection first; it depends on what the client understands."""

    COMMENT = 0
    RETRY = 1
    PRIMING = 2  # an event without data


class QueuedMessage(Value):
    number: int
    kind: MessageKind
    data: bytes


class MessageStream:
    """Implements `Channel`."""

    def __init__(self, limits: EndpointLimits, name: str | None = None, needs_connection: bool = False) -> None:
        self.name = name  # None if it cannot be resumed; then its events have no ids
        self.needs_connection = needs_connection  # False while a plain answer may be enough
        self.ended = False
        self._limits = limits
        self._events: deque[QueuedMessage] = deque()
        self._bytes = 0
        self._next = 1  # 0 is the position before the first event
        self._sent = 0
        self._connected_once = False
        self._hang_up = False
        self._reader: object = None
        self._waiters: set[asyncio.Future[bool]] = set()

    @property
    def connected(self) -> bool:
        return self._reader is not None

    @property
    def answered(self) -> bool:
        return any(event.kind is MessageKind.ANSWER for event in self._events)

    @property
    def size(self) -> int:
        return self._bytes

    def send(self, data: bytes, kind: MessageKind = MessageKind.NOTIFICATION) -> None:
        if self.ended:
            return
        self._events.append(QueuedMessage(self._next, kind, data))
        self._next += 1
        self._bytes += len(data)
        if kind is not MessageKind.ANSWER:
            self.needs_connection = True
        self._trim()
        self._wake()

    def send_once(self, data: bytes) -> None:
        if all(event.data != data for event in self._after(self._sent)):
            self.send(data)

    def end(self) -> None:
        """End the stream; connections end when they have delivered all events."""
        self.ended = True
        self._wake()

    def hang_up(self) -> None:
        """End the present connection, or the first one as soon as it is made, but not the stream."""
        if self.connected or not self._connected_once:
            self.needs_connection = True
            self._hang_up = True
            self._wake()

    def pour_into(self, channel: Channel) -> None:
        """Send all events of this stream to a channel."""
        for event in self._events:
            channel.send(event.data, event.kind)

    async def plain_answers(self, seconds: float | None) -> list[bytes] | None:
        """Wait for the end and return the answers; None as soon as other messages come, or after `seconds`."""
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        while not self.ended and not self.needs_connection:
            left = None if deadline is None else deadline - asyncio.get_running_loop().time()
            if not await self._changed(left):
                self.needs_connection = True
        if self.needs_connection:
            return None
        return [event.data for event in self._events if event.kind is MessageKind.ANSWER]

    async def deliver(
        self, sink: Sink, after: int | None = None, opening: StreamOpening = StreamOpening.COMMENT
    ) -> None:
        """Write the events after number `after` (default: those never written) until stream or connection ends."""
        place = self._sent if after is None else min(after, self._next - 1)
        me = self._reader = object()
        self._connected_once = True
        self._wake()  # ends a former connection, which this one replaces
        try:
            await sink.write(self._opening(opening, place))
            while self._reader is me:
                if fresh := self._after(place):
                    place = fresh[-1].number
                    await sink.write(b"".join(self._wire(event) for event in fresh))
                    self._sent = max(self._sent, place)
                elif self._hang_up:
                    self._hang_up = False
                    return
                elif self.ended:
                    return
                elif not await self._changed(self._limits.keep_alive_seconds):
                    await sink.write(sse.KEEP_ALIVE)
        except ConnectionError:
            return  # the client is gone; the events that it did not get stay for the next connection
        finally:
            if self._reader is me:
                self._reader = None

    def _opening(self, opening: StreamOpening, place: int) -> bytes:
        """The bytes to write at once, from which the client sees that it is connected, and where it can resume."""
        if opening is StreamOpening.COMMENT or self.name is None:
            return sse.KEEP_ALIVE
        if opening is StreamOpening.RETRY:
            return sse.retry(self._limits.retry_ms)
        return sse.priming(sse.event_id(self.name, place), self._limits.retry_ms)

    def _wire(self, event: QueuedMessage) -> bytes:
        return sse.event(event.data, None if self.name is None else sse.event_id(self.name, event.number))

    def _after(self, number: int) -> list[QueuedMessage]:
        fresh = []
        for event in reversed(self._events):
            if event.number <= number:
                break
            fresh.append(event)
        fresh.reverse()
        return fresh

    def _trim(self) -> None:
        while len(self._events) > self._limits.stream_events or self._bytes > self._limits.stream_bytes:
            for index, event in enumerate(self._events):
                if event.number <= self._sent or event.kind is MessageKind.NOTIFICATION:
                    del self._events[index]
                    self._bytes -= len(event.data)
                    break
            else:
                return  # only unsent questions and answers are left: they are few, and none may be lost

    async def _changed(self, seconds: float | None) -> bool:
        """Wait for a change; return False if there is none in time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.add(waiter)
        timer = None if seconds is None else loop.call_later(seconds, _resolve, waiter, False)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        for waiter in self._waiters:
            _resolve(waiter, True)


def _resolve(waiter: asyncio.Future[bool], value: bool) -> None:
    if not waiter.done():
        waiter.set_result(value)
