"""A WebSocket over a connection that began as HTTP. A module of its own because `websockets` takes 25 ms to import.

Messages that were received are delivered before the end is reported. Memory is bounded in both directions: while the
handler does not ask for the next message, reading stops; if the client does not read, `send` waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as HandshakeRequest
from websockets.protocol import OPEN, SEND_EOF
from websockets.server import ServerProtocol

from .messages import Request

if TYPE_CHECKING:
    from .transport import DeadlineTimer, MemoryBudget, ServerTransport

MAX_MESSAGE = 16 * 1024 * 1024
MAX_QUEUED = 4 * 1024 * 1024  # bytes received but not yet taken by the handler; above this we stop reading
MESSAGE_COST = 64  # counted for each message in addition to its bytes, because empty ones take memory too
MAX_BACKLOG = 1024 * 1024  # output that the client has not read, such as pongs; above this we stop reading
PING_SECONDS = 20.0  # keeps the connection alive in routers, and lets the kernel notice a machine that is gone
SILENCE_SECONDS = 300.0  # an app that a debugger has stopped may be silent for minutes
CLOSE_SECONDS = 1.0  # for the other side to answer a close frame


class HandshakeRefused(Exception):
    """The client's opening handshake is invalid; the text says why."""


def accept(request: Request, extra: bytes) -> bytes:
    """The answer to an opening handshake, with extra header lines; HandshakeRefused if it is invalid."""
    protocol = ServerProtocol()
    response = protocol.accept(HandshakeRequest(request.path, Headers(request.headers)))
    if protocol.handshake_exc is not None:
        raise HandshakeRefused(f"this is not a valid WebSocket handshake: {protocol.handshake_exc}")
    return response.serialize().removesuffix(b"\r\n") + extra + b"\r\n"


class ServerWebSocket:
    """Implements `WebSocket`."""

    def __init__(self, wire: ServerTransport, alarm: DeadlineTimer, budget: MemoryBudget) -> None:
        self._protocol = ServerProtocol(state=OPEN, max_size=MAX_MESSAGE)  # after the handshake
        self._wire = wire
        self._alarm = alarm
        self._budget = budget
        self._messages: deque[bytes] = deque()
        self._queued = 0
        self._in_hand = 0  # the part of it that the handler has, until it asks for the next message
        self._in_use = 0  # bytes of messages that the handler has or keeps
        self._news = asyncio.Event()
        self._partial = bytearray()
        self._partial_is_text = False
        self._silent_seconds = 0.0
        self._lost = False
        self._closing = False  # new messages are ignored; those that came before are still delivered
        alarm.set(PING_SECONDS)

    @property
    def size(self) -> int:
        return len(self._protocol.reader.buffer) + len(self._partial) + self._queued - self._in_hand

    @property
    def ended(self) -> bool:
        """Whether either side has closed, or the client is gone."""
        return self._lost or self._protocol.state is not OPEN

    async def receive(self) -> bytes | None:
        self._put_down()
        self.balance()
        while not self._messages:
            if self.ended:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._in_hand = len(message) + MESSAGE_COST
        self._use(self._in_hand)
        self._budget.keep(self)
        return message

    def keep(self, size: int) -> None:
        self._use(size)

    def handled(self, size: int) -> None:
        self._use(-min(size, self._in_use))  # `forget` may have been faster

    async def send(self, data: bytes) -> None:
        if self.ended:
            raise ConnectionResetError("the WebSocket is closed")
        self._protocol.send_binary(data)
        self._flush()
        await self._wire.drain()

    async def close(self, code: int = 1000) -> None:
        self.start_closing(code)

    # --- called by the connection

    def received(self, data: bytes) -> None:
        if self._lost or not data:
            return
        self._silent_seconds = 0.0
        self._protocol.receive_data(data)
        for frame in self._protocol.events_received():
            if isinstance(frame, Frame) and not self._closing:
                self._take(frame)
        self._budget.keep(self)
        self._flush()
        self.balance()

    def balance(self) -> None:
        """Stop reading while the handler or the client is too slow; else go on."""
        if not self._closing and (self._queued > MAX_QUEUED or self._wire.backlog > MAX_BACKLOG):
            self._wire.stop_reading()
        else:
            self._wire.go_on_reading()

    def lost(self) -> None:
        """The client has closed its side of the connection, or is gone."""
        self._lost = True
        self._partial.clear()
        self._protocol.reader.discard()
        self._budget.keep(self)
        self._news.set()

    def start_closing(self, code: int) -> None:
        """Send the close frame, once; the connection ends when it is answered, or after a short time."""
        if not self.ended:
            self._protocol.send_close(code)
        self._end()
        self._flush()

    def forget(self) -> None:
        """The handler has ended: drop the messages that it has not received."""
        self._put_down()
        self._drop()
        self._use(-self._in_use)

    # --- called by the budget

    def give_up(self) -> None:
        self._protocol.fail(1013, "the server holds too many messages; connect again")
        self._drop()
        self._end()
        self._flush()

    # --- called by the alarm

    def on_alarm(self) -> None:
        if self.ended:
            self._wire.abort()
            return
        if self._queued <= MAX_QUEUED:  # else we do not read
            self._silent_seconds += PING_SECONDS
        if self._silent_seconds > SILENCE_SECONDS:
            self._wire.abort()
            return
        self._protocol.send_ping(b"")
        self._flush()
        self._alarm.set(PING_SECONDS)

    # ---

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._partial_is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return  # pings are answered by the protocol
        self._partial += frame.data
        if not frame.fin:
            return
        message = bytes(self._partial)
        self._partial.clear()
        if self._partial_is_text and not _is_utf8(message):
            self._protocol.fail(1007, "a text message is not UTF-8")
            self._end()
            return
        self._messages.append(message)
        self._queued += len(message) + MESSAGE_COST
        self._news.set()

    def _put_down(self) -> None:
        self._queued -= self._in_hand
        self._use(-self._in_hand)
        self._in_hand = 0

    def _use(self, size: int) -> None:
        self._in_use += size
        self._budget.use(size)

    def _drop(self) -> None:
        self._messages.clear()
        self._queued = self._in_hand
        self._partial.clear()
        self._budget.keep(self)

    def _flush(self) -> None:
        pieces = self._protocol.data_to_send()
        self._wire.write(b"".join(pieces))
        if self._protocol.state is not OPEN:
            self._end()
        if SEND_EOF in pieces and self._protocol.close_rcvd is not None:
            self._wire.close()  # both sides have closed
        elif SEND_EOF in pieces:
            self._wire.end()  # the client may still be sending; closing now could destroy our close frame on its way

    def _end(self) -> None:
        if not self._closing:
            self._closing = True
            self._alarm.set(CLOSE_SECONDS)
        self._news.set()
        self._wire.go_on_reading()  # the answer to our close frame may come after other messages


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
