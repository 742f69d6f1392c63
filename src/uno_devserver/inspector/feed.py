"""What pages hear while they are open: a snapshot, then what changes, as server-sent events.

Whoever tells something never waits, and does nothing while nobody looks. A page that reads too slowly is not told all
that it missed, but gets another snapshot. Everything happens in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable

from ..protocol.http import sse
from ..protocol.http.messages import Answer, Response, Sink, Streaming
from ..system.event_loop import wait_for_event
from ..system.log import log

MOST_VIEWERS = 20  # tabs that were left open; more are a mistake
MOST_WAITING = 2000  # events, and their bytes, of one page that does not read
MOST_WAITING_BYTES = 4 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0
LINGER_SECONDS = 10.0  # a page that is loaded again finds what was recorded meanwhile

Snapshot = Callable[[], Awaitable[dict[str, object]]]


class Feed:
    def __init__(
        self, snapshot: Snapshot, looked: Callable[[bool], None], linger_seconds: float = LINGER_SECONDS
    ) -> None:
        """`looked` hears when the first page comes, and when the last has been gone for a while."""
        self._snapshot = snapshot
        self._looked = looked
        self._linger_seconds = linger_seconds
        self._viewers: set[_Viewer] = set()
        self._leaving: asyncio.TimerHandle | None = None
        self._watched = self._closed = False

    @property
    def watched(self) -> bool:
        """Whether anybody looks, or did a moment ago."""
        return self._watched

    def tell(self, event: str, data: object) -> None:
        if self._viewers:
            message = _message(event, data)
            for viewer in self._viewers:
                viewer.put(message)

    def answer(self) -> Answer:
        """For one page that wants to hear it."""
        if self._closed or len(self._viewers) >= MOST_VIEWERS:
            why = "the proxy is ending" if self._closed else "too many pages are open; close some"
            return Response(503, json.dumps({"error": why}).encode(), (("Content-Type", "application/json"),))
        return Streaming(200, sse.HEADERS, self._attend)

    def close(self) -> None:
        """Nothing follows; pages are told."""
        self.tell("closing", {})
        self._closed = True
        for viewer in self._viewers:
            viewer.end()
        self._forget()

    async def _attend(self, sink: Sink) -> None:
        viewer = _Viewer()
        self._came(viewer)
        try:
            await self._deliver(viewer, sink)
        except ConnectionError:
            pass  # it is closed, which is how all of them end
        finally:
            self._left(viewer)

    async def _deliver(self, viewer: _Viewer, sink: Sink) -> None:
        while True:
            if viewer.behind and not viewer.ended:
                viewer.begin()  # what changes while the snapshot is made is told behind it
                await sink.write(_message("snapshot", await self._snapshot()))
            elif (news := viewer.take()) or viewer.ended:
                if news:
                    await sink.write(news)
                if viewer.ended:
                    return
            else:
                await wait_for_event(viewer.woken, KEEP_ALIVE_SECONDS)
                if viewer.idle:
                    await sink.write(sse.KEEP_ALIVE)

    def _came(self, viewer: _Viewer) -> None:
        self._viewers.add(viewer)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if not self._watched:
            self._watched = True
            self._looked(True)

    def _left(self, viewer: _Viewer) -> None:
        self._viewers.discard(viewer)
        if not self._viewers and self._watched and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(self._linger_seconds, self._forget)

    def _forget(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._watched:
            self._watched = False
            self._looked(False)


class _Viewer:
    """One page."""

    def __init__(self) -> None:
        self.behind = True  # it needs a snapshot
        self.ended = False
        self.woken = asyncio.Event()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0

    @property
    def idle(self) -> bool:
        return not (self.behind or self.ended or self._waiting)

    def put(self, message: bytes) -> None:
        if self.ended or self.behind:
            return
        self._waiting.append(message)
        self._bytes += len(message)
        if len(self._waiting) > MOST_WAITING or self._bytes > MOST_WAITING_BYTES:
            log.debug("a page reads too slowly: it gets a snapshot instead of what it missed")
            self.take()
            self.behind = True
        self.woken.set()

    def begin(self) -> None:
        self.behind = False

    def take(self) -> bytes:
        """All that waits."""
        news = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return news

    def end(self) -> None:
        self.ended = True
        self.woken.set()


def _message(event: str, data: object) -> bytes:
    # Not msgspec: a file name need not be valid text, and json writes whatever it is.
    return b"event: %s\ndata: %s\n\n" % (event.encode(), json.dumps(data).encode())
