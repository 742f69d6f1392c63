"""Server-sent events on the wire: events, their ids, comments."""

from __future__ import annotations

EVENT_STREAM = "text/event-stream"
# The last one keeps reverse proxies from holding events back.
HEADERS = (("Content-Type", EVENT_STREAM), ("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no"))
KEEP_ALIVE = b": keep-alive\n\n"


def event(data: bytes, name: str | None = None) -> bytes:
    """One message. `data` is JSON on one line."""
    head = b"" if name is None else b"id: %s\n" % name.encode()
    return b"%sevent: message\ndata: %s\n\n" % (head, data)


def priming(name: str, retry_ms: int) -> bytes:
    """An id to resume from before anything was said, and how long to wait before resuming."""
    return b"id: %s\nretry: %d\ndata: \n\n" % (name.encode(), retry_ms)


def retry(retry_ms: int) -> bytes:
    """How long to wait before resuming, without an event."""
    return b"retry: %d\n\n" % retry_ms


def event_id(stream: str, number: int) -> str:
    return f"{stream}-{number}"


def position(name: str) -> tuple[str, int] | None:
    """The stream and the number that an event id names; None when it is none of ours."""
    stream, dash, number = name.rpartition("-")
    if not dash or not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    return stream, int(number)
