"""One client's connection: its requests are answered one after the other, in the order they came.

When its client leaves, a stream is cancelled, but a plain handler is not, because its work may matter. Every state has
a deadline, except a running handler and a stream with a client: these end by themselves or with the server. No client
can extend the deadline of a request by sending it slowly. If too many connections are open, the one that has waited
longest for its client makes room for a new one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Collection
from typing import TYPE_CHECKING, cast

from ...system.log import log
from ...system.tcp_peers import is_another_users
from ...system.values import Value
from . import cors
from .guard import Guard
from .headers import BODILESS, check_headers, response_head
from .messages import Answer, Handler, Headers, Request, Response, Streaming, Upgrade
from .request_reader import IncomingRequest, ReadStage, RequestProblem, RequestReader
from .transport import SMALL_BYTES, DeadlineTimer, MemoryBudget, ServerTransport, UsedMessage

if TYPE_CHECKING:
    from .websocket import ServerWebSocket

# How long we go on reading after the last answer: closing with unread bytes could destroy the answer on its way.
LINGER_SECONDS = 2.0
CROWD = 8  # the number of connections may exceed the limit by an eighth, for those that linger
# Shared by all connections, because received data is read before anything else happens in the event loop. Without it,
# asyncio would map and unmap 256 KiB for each request.
_BUFFER = memoryview(bytearray(64 * 1024))


class HttpLimits(Value):
    # Half of the usual limit of open files, to leave room for a second server.
    max_connections: int = 512
    max_body: int = 16 * 1024 * 1024
    max_headers: int = 64 * 1024
    # An app has one, so these are many apps; all the other places stay for requests.
    max_websockets: int = 64
    # For the bodies and WebSocket messages of all clients, until they are handled: four of the longest at once.
    max_incoming: int = 64 * 1024 * 1024
    # For the answers of all clients, until they are read: two of the longest that the proxy takes from a server.
    max_outgoing: int = 128 * 1024 * 1024
    header_timeout: float = 10.0  # a program of this machine sends its headers at once
    body_timeout: float = 120.0  # for the whole body: the longest one then comes with 1 Mbit/s or more
    idle_timeout: float = 120.0  # clients keep a connection for their next request for about that long


DEFAULT_HTTP_LIMITS = HttpLimits()


class ServerSettings(Value):
    handler: Handler
    guard: Guard
    limits: HttpLimits
    extra: bytes  # header lines for every answer
    any_user: bool  # whether other users of this machine may connect
    incoming: MemoryBudget
    outgoing: MemoryBudget


class ServerConnection(asyncio.BufferedProtocol):
    _wire: ServerTransport
    _alarm: DeadlineTimer
    _inbox: RequestInbox
    closed: asyncio.Future[None]

    def __init__(
        self, settings: ServerSettings, open_ones: set[ServerConnection], tasks: set[asyncio.Task[None]]
    ) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._open_ones = open_ones
        self._tasks = tasks  # of all connections; a task may outlive its connection
        self._task: asyncio.Task[None] | None = None
        self._interruptible: asyncio.Task[None] | None = None  # the task, while it can be cancelled without harm
        self._websocket: ServerWebSocket | None = None
        self._half_closed = False  # whether the client has closed its side
        self._last = False  # whether the present request is the last that is answered
        self._stopping = False
        self._undelivered = 0
        self._answering = False  # whether a handler, stream or WebSocket runs
        self._delivering_since: float | None = None  # since when the client is slow to read an answer

    async def _serve(self) -> None:
        """Answer the client's requests until either side ends the connection."""
        try:
            while not self._last and (incoming := await self._inbox.next()) is not None:
                self._answering = True
                try:
                    await self._answer(incoming)
                finally:
                    if incoming.request.used is not None:
                        incoming.request.used.release()
                del incoming  # its body may be long, and the next request may come much later
                self._answering = False
                if self._wire.stalled and not _running_task().cancelling():
                    self._delivering_since = asyncio.get_running_loop().time()
                    await self._delivered()
                    self._delivering_since = None
            if self._inbox.problem is not None and not self._last:
                self._last = True
                self._send(error_response(self._inbox.problem.status, self._inbox.problem.reason))
        except ConnectionError:
            pass  # the client left without its answer
        except Exception as error:
            log_failure("a connection", error)
        finally:
            self._finish()

    def stop(self) -> None:
        """The server stops: end the connection if it is idle or a stream; a handler may finish its answer."""
        self._stopping = self._last = True
        if self._interruptible is not None:
            self._interruptible.cancel()
        elif self._task is not None and (self._inbox.idle or (self._task.done() and self._websocket is None)):
            self._wire.close()

    def abort(self) -> None:
        self._wire.abort()

    @property
    def aborted(self) -> bool:
        return self._wire.aborted

    @property
    def waiting_since(self) -> float | None:
        """When this connection began to wait for its client; None while a handler, stream or WebSocket runs."""
        if self._websocket is not None or self._task is None:
            return None
        if self._task.done():
            return 0.0  # all is answered, so this one goes first
        if self._answering:
            return None
        return self._inbox.waiting_since if self._delivering_since is None else self._delivering_since

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":  # asyncio does it elsewhere, but a socket that was accepted there names no protocol
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wire = ServerTransport(cast(asyncio.Transport, transport), self._settings.outgoing)
        self._alarm = DeadlineTimer(loop, self._deadline_passed)
        # Some systems do not tell the address if the client has left already; it gets no answer anyway.
        own: tuple[str | int, ...] = transport.get_extra_info("sockname") or NO_ADDRESS
        guard = self._settings.guard
        reader = RequestReader(
            self._limits.max_body, self._limits.max_headers, lambda sent, path: guard(sent, path, own)
        )
        self._inbox = RequestInbox(self._limits, self._wire, self._alarm, reader, self._settings.incoming)
        self.closed = loop.create_future()
        most = self._limits.max_connections
        if not self._settings.any_user and is_another_users(transport.get_extra_info("socket")):
            self._inbox.refuse(RequestProblem(403, "programs of other users of this machine are not served"))
        elif not make_room(self._open_ones, most):
            self._inbox.refuse(RequestProblem(503, f"{most} connections are open already"))
        self._open_ones.add(self)
        self._task = loop.create_task(self._serve())
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(_BUFFER[:nbytes])
        if self._websocket is not None:
            self._websocket.received(data)
        elif not self._last:
            self._inbox.received(data)

    def eof_received(self) -> bool:
        """The client has closed its side. It may still wait for the answer of a running handler.

        A stream is ended: most likely the client has left, because clients that close only their side are very rare.
        """
        idle = self._inbox.idle
        self._half_closed = True
        self._inbox.end()
        if self._websocket is not None:
            self._websocket.lost()
            self._wire.close()
        elif idle or self._interruptible is not None or (self._task is not None and self._task.done()):
            self._wire.close()
        return True  # the event loop would not wait for what the transport still holds

    def pause_writing(self) -> None:
        self._wire.pause()

    def resume_writing(self) -> None:
        self._wire.resume()
        if self._websocket is not None:
            self._websocket.balance()

    def connection_lost(self, _error: Exception | None) -> None:
        self._wire.lost()
        self._alarm.stop()
        self._inbox.end()
        if self._websocket is not None:
            self._websocket.lost()  # its handler notices by itself
        elif self._interruptible is not None:
            self._interruptible.cancel()
        self._open_ones.discard(self)
        self.closed.set_result(None)

    def _deadline_passed(self) -> None:
        if self._websocket is not None and not self._wire.closing:
            self._websocket.on_alarm()
        elif self._inbox.idle and not self._wire.closing:
            self._inbox.on_alarm()
        elif not self._takes_its_answer():
            self._wire.abort()

    # --- answers

    async def _answer(self, incoming: IncomingRequest) -> None:
        answer = await respond(incoming.request, self._settings.handler)
        self._last = self._last or not incoming.keep_alive
        if isinstance(answer, Response):
            self._send(answer, incoming.request.method)
        elif isinstance(answer, Streaming):
            await self._stream(answer, incoming)
        elif incoming.websocket:
            await self._upgrade(answer, incoming)
        else:
            self._send(error_response(400, "only WebSockets are served here; send the headers of an upgrade"))

    def _send(self, answer: Response, method: str = "") -> None:
        framing = b"" if answer.status in BODILESS else b"Content-Length: %d\r\n" % len(answer.body)
        start = self._head(answer.status, answer.headers, framing)
        self._wire.write(start if method == "HEAD" or not framing else start + answer.body)

    async def _stream(self, answer: Streaming, incoming: IncomingRequest) -> None:
        self._last = self._last or not incoming.chunks  # the end of the connection is the end of the body
        framing = b"Transfer-Encoding: chunked\r\n" if incoming.chunks else b""
        self._wire.write(self._head(answer.status, answer.headers, framing))
        if incoming.request.method == "HEAD":
            return
        sink = StreamSink(self._wire, incoming.chunks)
        whole = await self._interruptibly(answer.run(sink), f"the stream of {incoming.request.path}")
        sink.end(whole)
        self._last = self._last or not whole

    async def _upgrade(self, answer: Upgrade, incoming: IncomingRequest) -> None:
        # Imported late: websockets takes 25 ms to import.
        from .websocket import HandshakeRefused, ServerWebSocket, accept

        most = self._limits.max_websockets
        if sum(each._websocket is not None for each in self._open_ones) >= most:
            self._send(error_response(503, f"{most} WebSockets are open already"))
            return
        try:
            self._wire.write(accept(incoming.request, self._settings.extra))
        except HandshakeRefused as refusal:
            self._send(error_response(400, str(refusal)))
            return
        self._last = True
        self._websocket = websocket = ServerWebSocket(self._wire, self._alarm, self._settings.incoming)
        websocket.received(self._inbox.take_held())
        if self._half_closed or self._wire.gone:
            websocket.lost()
        whole = await self._interruptibly(answer.run(websocket), f"the WebSocket of {incoming.request.path}")
        websocket.start_closing(1000 if whole else 1001 if self._stopping else 1011)

    def _head(self, status: int, headers: Headers, framing: bytes) -> bytes:
        return response_head(status, headers, framing, self._settings.extra, keep_alive=not self._last)

    async def _interruptibly(self, work: Awaitable[None], what: str) -> bool:
        """Do work that is cancelled if the server stops or the client leaves; return whether it was completed."""
        task = self._interruptible = _running_task()
        if self._stopping or (self._websocket is None and (self._half_closed or self._wire.gone)):
            task.cancel()  # takes effect where the work first waits, so that it can clean up
        try:
            await work
            return True
        except asyncio.CancelledError:
            return False
        except Exception as error:
            left = self._wire.closing or (self._websocket is not None and self._websocket.ended)
            if not (left and isinstance(error, ConnectionError)):  # the expected error of a client that left
                log_failure(what, error)
            return False
        finally:
            self._interruptible = None
            # A cancellation that the work ignored would affect the next wait.
            self._last = self._last or task.cancelling() > 0

    # --- the end of an answer, and of the connection

    async def _delivered(self) -> None:
        """Wait until the client has read its answer, so that answers to a client that never reads do not pile up."""
        self._undelivered = self._wire.backlog
        self._alarm.set(self._limits.idle_timeout)
        self._interruptible = _running_task()
        try:
            await self._wire.drain()
        finally:
            self._interruptible = None
            self._alarm.clear()

    def _takes_its_answer(self) -> bool:
        """Whether the client has read a part of its answer since the last check; if so, extend the deadline."""
        before, self._undelivered = self._undelivered, self._wire.backlog
        if not 0 < self._undelivered < before:
            return False
        self._alarm.set(self._limits.idle_timeout)
        return True

    def _finish(self) -> None:
        self._last = True
        self._inbox.forget()
        if self._websocket is not None:
            self._websocket.forget()
        if self._wire.gone:
            return
        if self._websocket is not None:
            self._websocket.start_closing(1011)  # has no effect if it is closing already
            return
        self._undelivered = self._wire.backlog
        if self._stopping or self._half_closed or self._is_crowded():
            self._wire.close()
        else:
            self._wire.end()
            self._wire.go_on_reading()
        self._alarm.set(LINGER_SECONDS)

    def _is_crowded(self) -> bool:
        """Whether there are too many connections to let this one linger: each needs one of the open files."""
        most = self._limits.max_connections
        return len(self._open_ones) > most + most // CROWD


def make_room(connections: Collection[ServerConnection], most: int) -> bool:
    """Make sure that fewer than `most` connections are open: abort those that have waited longest for their clients.

    False, and none is aborted, if too few of them wait.
    """
    if len(connections) < most:
        return True
    still_open = [each for each in connections if not each.aborted]
    waiting = sorted(
        (since, number) for number, each in enumerate(still_open) if (since := each.waiting_since) is not None
    )
    excess = len(still_open) - most + 1
    if len(waiting) < excess:
        return False
    for _, number in waiting[: max(excess, 0)]:
        still_open[number].abort()
    return True


def _running_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task


NO_ADDRESS = ("127.0.0.1", 0)
HELD_BYTES = 64 * 1024  # if a client sends more while it waits for an answer, we stop receiving


class RequestInbox:
    """The requests of a connection, one at a time. Data that comes during an answer is held unread, within a bound."""

    def __init__(
        self,
        limits: HttpLimits,
        wire: ServerTransport,
        alarm: DeadlineTimer,
        reader: RequestReader,
        budget: MemoryBudget,
    ) -> None:
        self._limits = limits
        self._budget = budget
        self._wire = wire
        self._alarm = alarm
        self._reader = reader
        self._timeouts = {
            ReadStage.BETWEEN: limits.idle_timeout,
            ReadStage.HEAD: limits.header_timeout,
            ReadStage.BODY: limits.body_timeout,
        }
        self._stage_began = alarm.set(limits.idle_timeout)
        self._held = bytearray()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False

    @property
    def problem(self) -> RequestProblem | None:
        """Why no more requests are read, which the client is told; None if there is no reason."""
        return self._reader.problem

    @property
    def waiting_since(self) -> float | None:
        """When the present stage of the next request began; None if a request is complete."""
        return None if self._reader.complete else self._stage_began

    @property
    def size(self) -> int:
        return self._reader.body_size

    @property
    def idle(self) -> bool:
        """Whether `next` waits for data."""
        return self._waiting is not None and not self._waiting.done()

    async def next(self) -> IncomingRequest | None:
        """Wait for a request; None if there will be none."""
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
        incoming = self._reader.complete.popleft()
        if (size := len(incoming.request.body)) <= SMALL_BYTES:
            return incoming
        return incoming.replace(request=incoming.request.replace(used=UsedMessage(self._budget, size)))

    def received(self, data: bytes) -> None:
        if self.idle:
            self._read(data)
            return
        self._held += data
        if len(self._held) > HELD_BYTES:
            self._wire.stop_reading()

    def take_held(self) -> bytes:
        """Return the data that is held, and receive again."""
        held = bytes(self._held)
        self._held.clear()
        self._wire.go_on_reading()
        return held

    def refuse(self, problem: RequestProblem) -> None:
        """Return no more requests, because of this problem."""
        self._reader.refuse(problem)
        self._budget.keep(self)
        self._wake()

    def give_up(self) -> None:
        reason = "the server holds too many large requests, and this one is incomplete; send it again in a while"
        self.refuse(RequestProblem(503, reason))

    def end(self) -> None:
        """The client has closed its side."""
        self._ended = True
        self._wake()

    def forget(self) -> None:
        """No request is answered any more: drop what has come of the next ones."""
        self._held.clear()
        self._reader.drop_body()
        self._budget.keep(self)

    def on_alarm(self) -> None:
        """The deadline for the next request has passed."""
        if self._reader.stage is ReadStage.BETWEEN:
            self._wire.close()
            self._alarm.set(self._limits.idle_timeout)  # the client may not read the rest of its last answer
        else:
            self.refuse(RequestProblem(408, "the request was not complete in time"))

    def _read(self, data: bytes) -> None:
        before = self._reader.stage
        self._held[:0] = self._reader.feed(data)
        self._budget.keep(self)
        if self._reader.complete or self.problem is not None:
            self._wake()
        elif self._reader.stage is not before:
            self._expect_more()

    def _expect_more(self) -> None:
        """Set the deadline for the present stage of the request: for all of it, however many parts it comes in."""
        self._stage_began = self._alarm.set(self._timeouts[self._reader.stage])
        if self._reader.wants_continue:
            self._reader.wants_continue = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


LAST_CHUNK = b"0\r\n\r\n"


class StreamSink:
    """Implements `Sink`. Writes fail once the answer is over."""

    def __init__(self, wire: ServerTransport, chunks: bool) -> None:
        self._wire = wire
        self._chunks = chunks
        self._over = False

    async def write(self, data: bytes) -> None:
        if self._over or self._wire.gone:
            raise ConnectionResetError("the client is gone, or its answer is over")
        if data:  # an empty chunk would be the last one
            self._wire.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunks else data)
        await self._wire.drain()

    def end(self, whole: bool) -> None:
        """End the answer; only with `whole`, the client is told that it is complete."""
        self._over = True
        if whole and self._chunks:
            self._wire.write(LAST_CHUNK)


async def respond(request: Request, handler: Handler) -> Answer:
    """The answer to a request. If the handler fails, it is 500, and only the log has the reason."""
    headers = request.headers
    if cors.is_preflight(request.method, headers):
        answer = _preflight(request)
    else:
        answer = await _handled(request, handler)
    if "origin" in headers and not isinstance(answer, Upgrade):
        return answer.replace(headers=cors.answer_headers(headers) + answer.headers)
    return answer


def error_response(status: int, reason: str) -> Response:
    import json  # needed for errors only, which are rare

    body = json.dumps({"error": reason}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(status, body, (("Content-Type", "application/json"),))


def log_failure(what: str, error: BaseException) -> None:
    """Log a failure in one line, and its traceback at the debug level."""
    import traceback

    log.warn(f"{what} failed: {type(error).__name__}: {error}")
    log.debug("".join(traceback.format_exception(error)).rstrip())


def _preflight(request: Request) -> Answer:
    reason = cors.preflight_refusal(request.headers)
    if reason is not None:
        return error_response(403, reason)
    return Response(204, b"", cors.preflight_headers(request.headers))


async def _handled(request: Request, handler: Handler) -> Answer:
    try:
        answer = await handler(request)
        if not isinstance(answer, Upgrade):
            check_headers(answer.headers)
        return answer
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # the server stops
        failure: BaseException = error  # something that the handler waited for was cancelled
    except Exception as error:
        failure = error
    log_failure(f"{request.method} {request.path}", failure)
    return error_response(500, "the request failed; the server's log has the reason")
