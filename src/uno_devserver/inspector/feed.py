"""Sends server-sent events to open pages: a snapshot, then changes.

`tell` never waits, and does nothing while no page is open. A page that reads too slowly gets another snapshot instead
of the events that it missed. All methods are called on one event loop.
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

MAX_VIEWERS = 20  # the most open pages
MAX_WAITING = 2000  # the most events that wait for one page
MAX_WAITING_BYTES = 4 * 1024 * 1024
KEEP_ALIVE_SECONDS = 15.0
LINGER_SECONDS = 10.0  # recording goes on for this long, so that a page that is reloaded misses nothing

Snapshot = Callable[[], Awaitable[dict[str, object]]]


class Feed:
    def __init__(
        self, snapshot: Snapshot, on_watched: Callable[[bool], None], linger_seconds: float = LINGER_SECONDS
    ) -> None:
        """`on_watched` is called with True when the first page opens, and with False a while after the last closed."""
        self._snapshot = snapshot
        self._on_watched = on_watched
        self._linger_seconds = linger_seconds
        self._viewers: set[_Viewer] = set()
        self._leaving: asyncio.TimerHandle | None = None
        self._watched = self._closed = False

    @property
    def watched(self) -> bool:
        """Whether a page is open, or was a moment ago."""
        return self._watched

    def tell(self, event: str, data: object) -> None:
        if self._viewers:
            message = _message(event, data)
            for viewer in self._viewers:
                viewer.put(message)

    def answer(self) -> Answer:
        """The answer to a page that requests the events."""
        if self._closed or len(self._viewers) >= MAX_VIEWERS:
            why = "the proxy is ending" if self._closed else "too many pages are open; close some"
            return Response(503, json.dumps({"error": why}).encode(), (("Content-Type", "application/json"),))
        return Streaming(200, sse.HEADERS, self._attend)

    def close(self) -> None:
        """Send a last event, and end all streams."""
        self.tell("closing", {})
        self._closed = True
        for viewer in self._viewers:
            viewer.end()
        self._stop_watching()

    async def _attend(self, sink: Sink) -> None:
        viewer = _Viewer()
        self._viewer_opened(viewer)
        try:
            await self._deliver(viewer, sink)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._viewer_closed(viewer)

    async def _deliver(self, viewer: _Viewer, sink: Sink) -> None:
        while True:
            if viewer.behind and not viewer.ended:
                viewer.behind = False  # changes during the snapshot are sent after it
                await sink.write(_message("snapshot", await self._snapshot()))
            elif events := viewer.take():
                await sink.write(events)
            elif viewer.ended:
                return
            else:
                await wait_for_event(viewer.woken, KEEP_ALIVE_SECONDS)
                if viewer.idle:
                    await sink.write(sse.KEEP_ALIVE)

    def _viewer_opened(self, viewer: _Viewer) -> None:
        self._viewers.add(viewer)
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if not self._watched:
            self._watched = True
            self._on_watched(True)

    def _viewer_closed(self, viewer: _Viewer) -> None:
        self._viewers.discard(viewer)
        if not self._viewers and self._watched and self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(self._linger_seconds, self._stop_watching)

    def _stop_watching(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._watched:
            self._watched = False
            self._on_watched(False)


class _Viewer:
    """One open page."""

    def __init__(self) -> None:
        self.behind = True  # whether it needs a snapshot
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
        if len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            log.debug("A page reads too slowly: it gets a snapshot instead of what it missed.")
            self.take()
            self.behind = True
        self.woken.set()

    def take(self) -> bytes:
        """Remove and return all waiting events."""
        events = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return events

    def end(self) -> None:
        self.ended = True
        self.woken.set()


def _message(event: str, data: object) -> bytes:
    # Not msgspec, which refuses lone surrogates, as in file names that are not valid text.
    return b"event: %s\ndata: %s\n\n" % (event.encode(), json.dumps(data).encode())
