"""Server-sent events: writing events, ids and comments, and reading events from the bytes of a stream."""

from __future__ import annotations

import re

from ...system.values import Value

EVENT_STREAM = "text/event-stream"
# The last header keeps reverse proxies from buffering events.
HEADERS = (("Content-Type", EVENT_STREAM), ("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no"))
KEEP_ALIVE = b": keep-alive\n\n"
MAX_EVENT = 64 * 1024 * 1024  # the same limit as for a whole answer

_BOM = b"\xef\xbb\xbf"
_HEADER_VALUE = re.compile(rb"[\x20-\x7e\x80-\xff]+")  # an event id must be valid in a header, in which it is sent back
_MILLISECONDS = re.compile(rb"[0-9]{1,9}")


def event(data: bytes, name: str | None = None) -> bytes:
    """An event with a message; `data` is JSON on one line."""
    head = b"" if name is None else b"id: %s\n" % name.encode()
    return b"%sevent: message\ndata: %s\n\n" % (head, data)


def priming(name: str, retry_ms: int) -> bytes:
    """An event without data: it has an id to resume from, and says how long to wait before resuming."""
    return b"id: %s\nretry: %d\ndata: \n\n" % (name.encode(), retry_ms)


def retry(retry_ms: int) -> bytes:
    """A line that says how long to wait before resuming, without an event."""
    return b"retry: %d\n\n" % retry_ms


def event_id(stream: str, number: int) -> str:
    return f"{stream}-{number}"


def position(name: str) -> tuple[str, int] | None:
    """The stream and the number in an event id; None if it is not one of ours."""
    stream, dash, number = name.rpartition("-")
    if not dash or not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    return stream, int(number)


class SseEvent(Value):
    name: str
    data: bytes


class EventReader:
    """Reads events from the bytes of a stream, in any pieces."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self.last_id: bytes | None = None  # the id after which the stream can be resumed
        self.retry_ms: int | None = None  # how long the server wants us to wait before we resume
        self._limit = limit
        self._first = True
        self._after_return = False
        self._line = bytearray()  # the incomplete last line
        self._name = ""
        self._id: bytes | None = None
        self._data = bytearray()  # not a list of lines, which could take many times as much memory

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Read a chunk; return the events that it completes. ValueError if one is too long."""
        if self._after_return and chunk.startswith(b"\n"):  # the second half of CR LF
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ends, rest = chunk.split(b"\n")
        if ends and self._line:
            self._line += ends[0]
            ends[0] = bytes(self._line)
            self._line.clear()
        events: list[SseEvent] = []
        for line in ends:
            self._read(line, events)
        if rest:
            self._line += rest
            self._check_size()
        return events

    def _read(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._finish(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data += value
            self._data += b"\n"
            self._check_size()
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id":
            self._id = value if _HEADER_VALUE.fullmatch(value) else None
        elif field == b"retry" and _MILLISECONDS.fullmatch(value):
            self.retry_ms = int(value)

    def _finish(self, events: list[SseEvent]) -> None:
        self.last_id = self._id
        if self._data:
            del self._data[-1]  # the line end after the last line
            events.append(SseEvent(self._name or "message", bytes(self._data)))
            self._data.clear()
        self._name = ""

    def _check_size(self) -> None:
        if len(self._line) + len(self._data) > self._limit:
            self.last_id = self._id or self.last_id  # a stream that is resumed must not begin with this event again
            raise ValueError(f"an event is longer than {self._limit} bytes")
