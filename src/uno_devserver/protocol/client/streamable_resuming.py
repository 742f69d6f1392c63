"""Taking up an event stream where it was cut: a server that keeps its events tells the rest to whoever knows the last.

A stream that the server has ended is asked for again after the time that it said; one whose connection broke, at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..sse import EVENT_STREAM
from .connection import Lost
from .streamable_endpoint import Cut, Endpoint, media_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..http.client_connection import Reply
    from .messages import Message

RETRY_SECONDS = 1.0  # where the server does not say
LONGEST_RETRY_SECONDS = 300.0
SHORTEST_RETRY_SECONDS = 0.05  # a server that ends its stream at once, and says 0, must not keep us busy
MAX_BREAKS = 5  # of connections in a row, without a word in between


async def resumed_answer(
    endpoint: Endpoint, headers: bytes, cut: Cut, request_id: int, hear: Callable[[Message], None]
) -> Message:
    """The answer whose stream was cut, however often the server cuts it. Lost where it cannot be had any more."""
    last_id, retry_ms, breaks = None, None, 0
    while True:
        heard = cut.reader.last_id not in (None, last_id)
        last_id = cut.reader.last_id or last_id
        retry_ms = retry_ms if cut.reader.retry_ms is None else cut.reader.retry_ms
        breaks = breaks + 1 if cut.broken and not heard else 0
        if last_id is None or breaks > MAX_BREAKS:
            raise Lost(str(cut), sent=True)
        if breaks or not cut.broken:
            await asyncio.sleep(pause(retry_ms))
        reply = await _resume(endpoint, resuming(headers, last_id))
        try:
            return await endpoint.answer_in_events(reply, request_id, hear)
        except Cut as again:
            cut = again


def resuming(headers: bytes, last_id: bytes | None) -> bytes:
    return headers if last_id is None else b"%bLast-Event-ID: %b\r\n" % (headers, last_id)


def pause(retry_ms: int | None) -> float:
    seconds = RETRY_SECONDS if retry_ms is None else retry_ms / 1000
    return min(max(seconds, SHORTEST_RETRY_SECONDS), LONGEST_RETRY_SECONDS)


async def _resume(endpoint: Endpoint, headers: bytes) -> Reply:
    try:
        reply = await endpoint.send("GET", headers)
    except Lost as lost:
        raise Lost(str(lost), sent=True) from None  # of the request whose answer this is about
    if reply.status != 200 or media_type(reply) != EVENT_STREAM:
        reply.release()
        raise Lost(f"The server at {endpoint.url} does not keep the answer: HTTP {reply.status}.", sent=True)
    return reply
