"""One client's connection: its requests are answered one after the other, in the order they came.

A plain handler is never cancelled because its client left: what it does may matter. A stream is, it has no reader any
more. Every state has a deadline, except a handler at work and a stream with its client: these end by themselves or
with the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from ...system.values import Value
from .alarm import Alarm
from .answers import log_failure, refused, respond
from .guard import Guard
from .heads import BODILESS, head
from .messages import Handler, Response, Streaming, Upgrade
from .reader import Incoming, Problem, RequestReader, Stage
from .sink import StreamSink
from .wire import Wire

if TYPE_CHECKING:
    from .websocket import ServerWebSocket

MAX_CONNECTIONS = 512  # below the usual limit of 1024 open files
HELD_BYTES = 64 * 1024  # what a client may send ahead while it waits for an answer, before we stop reading
# After the last answer we go on reading for a while: closing with unread bytes would destroy the answer on its way.
LINGER_SECONDS = 2.0


class Settings(Value):
    """What all connections of a server have in common."""

    handler: Handler
    guard: Guard
    max_body: int
    max_headers: int
    header_timeout: float
    idle_timeout: float
    extra: bytes  # header lines for every answer


class Connection(asyncio.Protocol):
    _wire: Wire
    _alarm: Alarm
    closed: asyncio.Future[None]

    def __init__(self, settings: Settings, open_ones: set[Connection], tasks: set[asyncio.Task[None]]) -> None:
        self._settings = settings
        self._open_ones = open_ones
        self._tasks = tasks  # may outlive their connections
        self._reader = RequestReader(settings.max_body, settings.max_headers)
        self._held = bytearray()  # came while a request was being answered
        self._task: asyncio.Task[None] | None = None
        self._interruptible: asyncio.Task[None] | None = None  # the task, while it can be cancelled without harm
        self._waiting: asyncio.Future[None] | None = None  # set while the task waits for a request
        self._undelivered = 0
        self._websocket: ServerWebSocket | None = None
        self._half_closed = False  # the client sends nothing more
        self._last = False  # nothing is answered after the present request
        self._stopping = False

    async def _serve(self) -> None:
        """Answer the client's requests until one of us has enough."""
        try:
            while not self._last and await self._arrived():
                await self._answer(self._reader.complete.popleft())
                if self._wire.stalled:
                    await self._delivered()
        except ConnectionError:
            pass  # it left without its answer
        except Exception as error:
            log_failure("a connection", error)
        finally:
            self._finish()

    def stop(self) -> None:
        """The server stops: end what is idle or a stream, let a handler finish its answer."""
        self._stopping = self._last = True
        if self._interruptible is not None:
            self._interruptible.cancel()
        elif self._idle or (self._task is not None and self._task.done() and self._websocket is None):
            self._wire.close()

    def abort(self) -> None:
        self._wire.abort()

    # --- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._wire = Wire(cast(asyncio.Transport, transport))
        self._alarm = Alarm(loop, self._deadline_passed)
        self.closed = loop.create_future()
        self._open_ones.add(self)
        if len(self._open_ones) > MAX_CONNECTIONS:
            self._reader.problem = Problem(503, f"{MAX_CONNECTIONS} connections are open already")
        self._task = loop.create_task(self._serve())
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def data_received(self, data: bytes) -> None:
        if self._websocket is not None:
            self._websocket.received(data)
        elif self._idle:
            self._read(data)
        elif not self._last:
            self._held += data
            if len(self._held) > HELD_BYTES:
                self._wire.stop_reading()

    def eof_received(self) -> bool:
        """The client sends no more. While a handler works it may still want the answer, so keep the connection."""
        self._half_closed = True
        if self._websocket is not None:
            self._websocket.lost()
            return False
        return not (self._idle or self._interruptible is not None or (self._task is not None and self._task.done()))

    def pause_writing(self) -> None:
        self._wire.pause()

    def resume_writing(self) -> None:
        self._wire.resume()
        if self._websocket is not None:
            self._websocket.balance()

    def connection_lost(self, _error: Exception | None) -> None:
        self._wire.lost()
        self._alarm.stop()
        self._wake()
        if self._websocket is not None:
            self._websocket.lost()  # it sees that by itself
        elif self._interruptible is not None:
            self._interruptible.cancel()
        self._open_ones.discard(self)
        self.closed.set_result(None)

    def _deadline_passed(self) -> None:
        if self._websocket is not None:
            self._websocket.on_alarm()
        elif self._idle and self._reader.stage is Stage.BETWEEN:
            self._wire.close()
        elif self._idle:
            self._reader.problem = Problem(408, "the request did not come to its end in time")
            self._wake()
        elif self._waiting is None and not self._takes_its_answer():
            self._wire.abort()

    # --- requests

    async def _arrived(self) -> bool:
        """Wait for a request; False when there will be none."""
        while not self._reader.complete:
            if self._reader.problem is not None:
                self._last = True
                self._send(refused(self._reader.problem.status, self._reader.problem.reason))
                return False
            if self._held:
                held = bytes(self._held)
                self._held.clear()
                self._wire.go_on_reading()
                self._read(held)
                continue
            if self._half_closed or self._wire.gone:
                return False
            self._waiting = asyncio.get_running_loop().create_future()
            self._expect_more()
            await self._waiting
            self._waiting = None
        self._alarm.clear()
        return True

    def _read(self, data: bytes) -> None:
        before = self._reader.stage
        self._held[:0] = self._reader.feed(data)
        if self._reader.complete or self._reader.problem is not None:
            self._wake()
        elif self._reader.stage is Stage.BODY or self._reader.stage is not before:
            self._expect_more()  # a body may take long as long as it comes; the headers have one deadline together

    def _expect_more(self) -> None:
        in_head = self._reader.stage is Stage.HEAD
        self._alarm.set(self._settings.header_timeout if in_head else self._settings.idle_timeout)
        if self._reader.wants_continue:
            self._reader.wants_continue = False
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    @property
    def _idle(self) -> bool:
        """Whether no request is here that has to be answered."""
        return self._waiting is not None and not self._waiting.done()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():  # as `_idle`, in words that mypy understands
            self._waiting.set_result(None)

    # --- answers

    async def _answer(self, incoming: Incoming) -> None:
        answer = await respond(incoming.request, self._settings.guard, self._settings.handler)
        self._last = self._last or not incoming.keep_alive
        if isinstance(answer, Response):
            self._send(answer, incoming.request.method)
        elif isinstance(answer, Streaming):
            await self._stream(answer, incoming)
        elif incoming.websocket:
            await self._upgrade(answer, incoming)
        else:
            self._send(refused(400, "only WebSockets are served here; send the headers of an upgrade"))

    def _send(self, answer: Response, method: str = "") -> None:
        framing = b"" if answer.status in BODILESS else b"Content-Length: %d\r\n" % len(answer.body)
        try:
            start = head(answer.status, answer.headers, framing, self._settings.extra, not self._last)
        except ValueError as error:
            self._send(_unspeakable(error), method)
            return
        self._wire.write(start if method == "HEAD" or not framing else start + answer.body)

    async def _stream(self, answer: Streaming, incoming: Incoming) -> None:
        self._last = self._last or not incoming.chunks  # the end of the connection is the end of the body
        framing = b"Transfer-Encoding: chunked\r\n" if incoming.chunks else b""
        try:
            start = head(answer.status, answer.headers, framing, self._settings.extra, not self._last)
        except ValueError as error:
            self._send(_unspeakable(error))
            return
        self._wire.write(start)
        if incoming.request.method == "HEAD":
            return
        sink = StreamSink(self._wire, incoming.chunks)
        whole = await self._interruptibly(answer.run(sink), f"the stream of {incoming.request.path}")
        sink.end(whole)
        self._last = self._last or not whole

    async def _upgrade(self, answer: Upgrade, incoming: Incoming) -> None:
        # websockets takes 25 ms to import, so only where one is wanted.
        from .websocket import HandshakeRefused, ServerWebSocket, accept

        try:
            self._wire.write(accept(incoming.request, self._settings.extra))
        except HandshakeRefused as refusal:
            self._send(refused(400, str(refusal)))
            return
        self._last = True
        self._websocket = websocket = ServerWebSocket(self._wire, self._alarm)
        websocket.received(bytes(self._held))
        self._held.clear()
        self._wire.go_on_reading()
        if self._half_closed or self._wire.gone:
            websocket.lost()
        whole = await self._interruptibly(answer.run(websocket), f"the WebSocket of {incoming.request.path}")
        websocket.start_closing(1000 if whole else 1001 if self._stopping else 1011)

    async def _interruptibly(self, work: Awaitable[None], what: str) -> bool:
        """Do work that may be cancelled when the server stops, or its reader left; whether it came to its end."""
        task = self._interruptible = _running_task()
        if self._stopping or (self._websocket is None and (self._half_closed or self._wire.gone)):
            task.cancel()  # takes effect where the work first waits, so it can clean up
        try:
            await work
            return True
        except asyncio.CancelledError:
            return False
        except Exception as error:
            if not (self._wire.gone and isinstance(error, ConnectionError)):
                log_failure(what, error)
            return False
        finally:
            self._interruptible = None
            # A cancellation that the work survived would hit whatever waits next.
            self._last = self._last or task.cancelling() > 0

    async def _delivered(self) -> None:
        """Wait until the client took its answer, so that one that never reads cannot make us pile them up."""
        self._undelivered = self._wire.backlog
        self._alarm.set(self._settings.idle_timeout)
        self._interruptible = _running_task()
        try:
            await self._wire.drain()
        finally:
            self._interruptible = None
            self._alarm.clear()

    def _takes_its_answer(self) -> bool:
        """Whether the client took some since we last looked; then we wait on."""
        before, self._undelivered = self._undelivered, self._wire.backlog
        if not 0 < self._undelivered < before:
            return False
        self._alarm.set(self._settings.idle_timeout)
        return True

    def _finish(self) -> None:
        self._last = True
        if self._wire.gone:
            return
        if self._websocket is not None:
            self._websocket.start_closing(1011)  # of no effect, unless something went wrong on the way
            return
        self._undelivered = self._wire.backlog
        if self._stopping or self._half_closed:
            self._wire.close()
        else:
            self._wire.end()
            self._wire.go_on_reading()
        self._alarm.set(LINGER_SECONDS)


def _running_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _unspeakable(error: ValueError) -> Response:
    log_failure("the answer of a handler", error)
    return refused(500, "the request failed; the server's log has the reason")
