"""One connection to an HTTP server, for one request at a time; its answer can be read while it comes.

Every request ends with an answer that is complete, or with an `HttpFailure`. Heads and trailers are limited in size,
and a body is not received faster than it is read.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

import httptools

from .headers import joined_headers
from .sse import EVENT_STREAM

MAX_BODY = 64 * 1024 * 1024
MAX_HEAD = 64 * 1024  # also for what the parser keeps without a callback: a trailer, the extension of a chunk
TOO_LONG_HEAD = f"answered with a head of more than {MAX_HEAD} bytes"
UNREAD_BYTES = 1024 * 1024  # of a body that is read in parts; with more, we stop receiving
REST_BYTES = 64 * 1024  # of an answer that is not needed; with more to skip, a new connection is cheaper
REST_SECONDS = 1.0
# A machine that cannot be reached any more is noticed after a minute.
KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class HttpFailure(Exception):
    """There is no answer, or only a part of it. The text is a predicate whose subject is the server ("hung up").

    `sent`: whether the server may have seen the request. `began`: whether it had begun to answer.
    """

    def __init__(self, why: str, *, sent: bool, began: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.began = began


class BodyTooLong(HttpFailure):
    """The body is longer than the limit."""


class Taker(Protocol):
    """Gets the answer to a request that was sent without waiting."""

    def replied(self, reply: Reply) -> None:
        """Called when the whole answer has come, or the beginning of a long one or of an event stream."""

    def failed(self, failure: HttpFailure) -> None:
        """Called if there is no answer."""


class Reply:
    """The answer to one request. Its body is read once: as a whole, or part by part."""

    def __init__(self, connection: ClientConnection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers  # names in lower case; repeated ones joined by ", "
        self.ended = False  # whether the whole body has come
        self._connection = connection
        self._body = bytearray()  # received and not read; a list of small chunks could take 60 times as much memory
        self._limit = UNREAD_BYTES
        self._failure: HttpFailure | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._released: asyncio.TimerHandle | None = None

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """Wait for the whole body; HttpFailure if it breaks off, BodyTooLong if it is longer than the limit."""
        self._limit = limit
        while True:
            if len(self._body) > limit:
                self.close()
                raise BodyTooLong(f"answered with more than {limit} bytes", sent=True, began=True)
            if self.ended:
                return self._take()
            await self._more()

    def body(self) -> bytes:
        """The whole body of an answer that has ended, without waiting."""
        return bytes(self._body)

    async def part(self) -> bytes:
        """Wait for data, and return all since the last part; b"" at the end. HttpFailure if the body breaks off."""
        while not self._body and not self.ended:
            await self._more()
        return self._take()

    def release(self) -> None:
        """Skip the rest of the body. If it is short, the connection is kept for other requests, else closed."""
        if self.ended or self._released is not None:
            return
        self._take()
        self._limit = REST_BYTES
        self._released = asyncio.get_running_loop().call_later(REST_SECONDS, self.close)
        self._connection.go_on_reading()

    def close(self) -> None:
        """Close the connection, unless the whole answer has come."""
        if not self.ended:
            self._connection.fail("had not sent its whole answer when the connection was closed")

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        self._connection.go_on_reading()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise

    def _take(self) -> bytes:
        body, self._body = self._body, bytearray()
        return bytes(body)

    # --- called by the connection

    def add(self, chunk: bytes) -> None:
        self._body += chunk
        if len(self._body) > self._limit:
            if self._released is None:
                self._connection.stop_reading()
            else:
                self.close()

    def end(self, failure: HttpFailure | None = None) -> None:
        self.ended = failure is None
        self._failure = failure
        if self._released is not None:
            self._released.cancel()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


# Shared by all connections, because received data is read before anything else happens in the event loop. Without it,
# asyncio would allocate 256 KiB for each answer, which takes longer than the answer.
_BUFFER = memoryview(bytearray(64 * 1024))


class ClientConnection(asyncio.BufferedProtocol):
    """`free` is called when the connection can take another request, `gone` when it is closed."""

    def __init__(self, free: Callable[[ClientConnection], None], gone: Callable[[ClientConnection], None]) -> None:
        self.idle_since = 0.0
        self.checked = False  # whether its server is known not to be another user's
        self._free = free
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._open = False  # True from a request to the end of its answer
        self._waiter: asyncio.Future[Reply] | None = None  # waits for the head of the answer
        self._taker: Taker | None = None  # gets the answer to a request that was sent without waiting
        self._reply: Reply | None = None
        self._fields: list[tuple[bytes, bytes]] = []
        self._last_fields: list[tuple[bytes, bytes]] | None = None
        self._last_headers: Mapping[str, str] = {}
        self._keeps_alive = False
        self._framed = False  # whether the head says where the body ends
        self._heard = False  # whether a part of the answer has come
        self._surplus = False  # whether data has come that belongs to no request
        self._untold = 0  # bytes since the last callback of the parser
        self._poller: select.poll | None = None

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def has_input(self) -> bool:
        """Whether an idle connection is readable, most likely because the server has closed it."""
        assert self._transport is not None
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self._transport.get_extra_info("socket")], [], [], 0)[0])
        if self._poller is None:
            self._poller = select.poll()
            self._poller.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return bool(self._poller.poll(0))

    async def exchange(self, request: bytes) -> Reply:
        """Send a request, and wait for the head of the answer. Cancelling closes the connection."""
        if self._transport is None or self._transport.is_closing():
            raise HttpFailure("hung up at once", sent=False)
        self._open, self._heard = True, False
        waiter: asyncio.Future[Reply] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        try:
            return await waiter
        except asyncio.CancelledError:
            if self._waiter is waiter:
                self.fail("had not answered when the request was cancelled")
            elif not waiter.cancelled() and waiter.exception() is None:
                waiter.result().close()  # the answer came at the same moment
            raise

    def send(self, request: bytes, taker: Taker) -> None:
        """Send a request without waiting. The connection must be usable."""
        assert self._transport is not None
        self._open, self._heard = True, False
        self._taker = taker
        self._transport.write(request)

    def fail(self, why: str) -> None:
        """Close the connection, and fail the request that waits."""
        failure = HttpFailure(why, sent=True, began=self._heard)
        waiter, self._waiter = self._waiter, None
        taker, self._taker = self._taker, None
        reply, self._reply = self._reply, None
        self._open = False
        if self._transport is not None:
            self._transport.abort()
        if reply is not None:
            reply.end(failure)
            reply.wake()
        if waiter is not None and not waiter.done():
            waiter.set_exception(failure)
        if taker is not None:
            taker.failed(failure)

    def close(self) -> None:
        """Close the connection; the rest of a request that was answered before its end is not sent."""
        if self._transport is not None:
            self._transport.abort()

    def stop_reading(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def go_on_reading(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does not always, on Windows
        _watch(connected)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = True
        self._untold += nbytes
        try:
            self._parser.feed_data(_BUFFER[:nbytes])
        except httptools.HttpParserUpgrade:
            self.fail("changed to another protocol")
        except httptools.HttpParserError:
            if self._open:
                self.fail("does not speak HTTP, or breaks its rules")
            self._surplus = True
        if self._untold > MAX_HEAD:
            self.fail(TOO_LONG_HEAD)
        self._tell()

    def eof_received(self) -> None:
        if self._reply is not None and not self._framed:
            self._reply.end()  # such an answer ends with the connection
            self._tell()
        self.fail("broke off in the middle of its answer" if self._heard else "hung up without an answer")

    def connection_lost(self, error: Exception | None) -> None:
        self.fail("hung up without an answer" if error is None else f"broke off: {error}")
        self._gone(self)

    # --- called by the parser

    def on_message_begin(self) -> None:
        self._surplus = not self._open

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reply is None:  # fields after the head are trailers
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        received, self._untold = self._untold, 0
        status = self._parser.get_status_code()
        fields, self._fields = self._fields, []
        if received > MAX_HEAD and sum(len(name) + len(value) for name, value in fields) > MAX_HEAD:
            self.fail(TOO_LONG_HEAD)
            return
        if status < 200 or not self._open:
            return  # an interim answer, or there is no request
        if fields != self._last_fields:  # heads of one server are often equal, and reading them is half of the work
            self._last_fields, self._last_headers = fields, joined_headers(fields)
        headers = self._last_headers
        self._keeps_alive = self._parser.should_keep_alive()
        self._framed = "content-length" in headers or "transfer-encoding" in headers
        self._reply = Reply(self, status, headers)

    def on_body(self, body: bytes) -> None:
        self._untold = 0
        if self._reply is not None and self._open:
            self._reply.add(body)

    def on_message_complete(self) -> None:
        self._untold = 0
        if self._reply is not None and self._open:
            self._reply.end()
            self._open = False

    # ---

    def _tell(self) -> None:
        """Report what has come; after a complete answer, free the connection for the next request or close it."""
        reply, waiter = self._reply, self._waiter
        if reply is None:
            if self._surplus:
                self.fail("sent data that belongs to no request")
            return
        self._waiter = None
        taker = self._taker
        if taker is not None and (reply.ended or self._paused or _is_stream(reply)):
            self._taker = None
        if waiter is not None:
            if not waiter.done():
                waiter.set_result(reply)
            elif not reply.ended:
                self.fail("had not answered when the request was cancelled")
        reply.wake()
        if reply.ended:
            self._reply = None
            self.go_on_reading()
            if self._keeps_alive and not self._surplus:
                self._free(self)
            else:
                self.close()
        if taker is not None and self._taker is None:
            taker.replied(reply)


def _is_stream(reply: Reply) -> bool:
    return reply.headers.get("content-type", "")[: len(EVENT_STREAM)].lower() == EVENT_STREAM


def _watch(connected: socket.socket) -> None:
    """Have the system check whether the other machine can be reached, because an answer may take hours."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
