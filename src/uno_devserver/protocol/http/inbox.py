"""The requests of one connection, handed out one after the other.

While one is being answered, what the client sends ahead is held unread, and beyond a bound not even received. A
client that is slow with its headers, or stops in the middle of a body, is given up.
"""

from __future__ import annotations

import asyncio

from .alarm import Alarm
from .reader import Incoming, Problem, RequestReader, Stage
from .settings import Settings
from .wire import Wire

HELD_BYTES = 64 * 1024  # what a client may send ahead while it waits for an answer, before we stop receiving


class Inbox:
    def __init__(self, settings: Settings, wire: Wire, alarm: Alarm) -> None:
        self._settings = settings
        self._wire = wire
        self._alarm = alarm
        self._reader = RequestReader(settings.max_body, settings.max_headers)
        self._held = bytearray()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False

    @property
    def problem(self) -> Problem | None:
        """Why there are no more requests, if the client is to be told."""
        return self._reader.problem

    @property
    def idle(self) -> bool:
        """Whether a request is waited for, and none is here."""
        return self._waiting is not None and not self._waiting.done()

    async def next(self) -> Incoming | None:
        """Wait for a request; None when there will be none."""
        while not self._reader.complete:
            if self._held and self.problem is None:
                self._read(self.take_held())
                continue
            if self._ended or self.problem is not None:
                return None
            self._waiting = asyncio.get_running_loop().create_future()
            self._expect_more()
            await self._waiting
            self._waiting = None
        self._alarm.clear()
        return self._reader.complete.popleft()

    def received(self, data: bytes) -> None:
        if self.idle:
            self._read(data)
            return
        self._held += data
        if len(self._held) > HELD_BYTES:
            self._wire.stop_reading()

    def take_held(self) -> bytes:
        """What came ahead and was not read."""
        held = bytes(self._held)
        self._held.clear()
        self._wire.go_on_reading()
        return held

    def refuse(self, problem: Problem) -> None:
        """Hand out no requests, because of that."""
        self._reader.problem = problem
        self._wake()

    def end(self) -> None:
        """The client sends nothing more."""
        self._ended = True
        self._wake()

    def on_alarm(self) -> None:
        """The client took too long, while we were idle."""
        if self._reader.stage is Stage.BETWEEN:
            self._wire.close()
            self._alarm.set(self._settings.idle_timeout)  # it may not even take the rest of its last answer
        else:
            self.refuse(Problem(408, "the request did not come to its end in time"))

    def _read(self, data: bytes) -> None:
        before = self._reader.stage
        self._held[:0] = self._reader.feed(data)
        if self._reader.complete or self.problem is not None:
            self._wake()
        elif self._reader.stage is Stage.BODY or self._reader.stage is not before:
            self._expect_more()  # a body may take long as long as it comes; the headers have one deadline together

    def _expect_more(self) -> None:
        in_head = self._reader.stage is Stage.HEAD
        self._alarm.set(self._settings.header_timeout if in_head else self._settings.idle_timeout)
        if self._reader.wants_continue:
            self._reader.wants_continue = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
