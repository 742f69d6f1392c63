"""Server-sent events on the wire: events, their ids, comments."""

from __future__ import annotations

EVENT_STREAM = "text/event-stream"
# The last one keeps reverse proxies from holding events back.
HEADERS = (("Content-Type", EVENT_STREAM), ("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no"))
KEEP_ALIVE = b": keep-alive\n\n"


def event(data: bytes, id: str | None = None) -> bytes:  # noqa: A002
    """One message. `data` is JSON on one line."""
    head = b"" if id is None else b"id: %s\n" % id.encode()
    return b"%sevent: message\ndata: %s\n\n" % (head, data)


def priming(id: str, retry_ms: int) -> bytes:  # noqa: A002
    """An id to resume from before anything was said, and how long to wait before resuming."""
    return b"id: %s\nretry: %d\ndata: \n\n" % (id.encode(), retry_ms)


def retry(retry_ms: int) -> bytes:
    """How long to wait before resuming, without an event."""
    return b"retry: %d\n\n" % retry_ms


def event_id(stream: str, number: int) -> str:
    return f"{stream}-{number}"


def position(id: str) -> tuple[str, int] | None:  # noqa: A002
    """The stream and the number that an event id names; None when it is none of ours."""
    stream, dash, number = id.rpartition("-")
    if not dash or not (number.isascii() and number.isdigit()) or len(number) > 18:
        return None
    return stream, int(number)
