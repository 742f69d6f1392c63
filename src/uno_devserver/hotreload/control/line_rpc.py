"""One connection of JSON-RPC 2.0 messages, one to a line: requests both ways, answers by id, notifications.

Requests run side by side. Whatever the other end sends becomes a message or an error, and the connection stays; it may
send as fast as it likes, and is read as fast as it is answered. Sending never waits: who does not read is cut off. When
the connection ends, everybody who waits for an answer hears so at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...protocol.jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    InvalidMessage,
    Message,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode,
    error_message,
    notification_message,
    read,
    request_message,
    result_of,
    shown,
)
from ...protocol.server.call_runner import answer_message, attempt, tell_service
from ...system.event_loop import Tasks
from ...system.log import log
from ...system.values import Value

READ_BYTES = 64 * 1024
LINES_PER_TURN = 32  # then the loop's other work has its turn, however many lines lie there


class RpcLimits(Value):
    line_bytes: int = 1024 * 1024  # requests have some hundred bytes
    requests: int = 32  # under way at a time; more of them wait unread
    unread_bytes: int = 256 * 1024  # more than this is unsent: the other end is not reading just now
    unread_seconds: float = 10.0  # and after so long it is taken for hung
    unsent_bytes: int = 64 * 1024 * 1024  # what we hold for it at most: some outputs of large builds
    finish_seconds: float = 1.0  # for what was asked by one that says no more but may still read, as in a shell's pipe
    close_seconds: float = 0.1  # to take what is left; a proxy that ends has 300 ms in all


class ConnectionEnded(Exception):
    """The connection is over, and with it what was asked over it."""


async def _answers_nothing(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG001
    raise RpcError(METHOD_NOT_FOUND, f"There is no method '{shown(method)}' at this end.")


class LineRpc:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]] = _answers_nothing,
        heard: Callable[[RpcNotification], None] = lambda _: None,
        limits: RpcLimits | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._heard = heard
        self._limits = limits or RpcLimits()
        self._free = asyncio.Semaphore(self._limits.requests)
        self._tasks = Tasks()
        self._asked: dict[int, asyncio.Future[RpcResponse]] = {}
        self._last_id = 0
        self._watch: asyncio.TimerHandle | None = None  # runs out for one that does not read
        self._loop = asyncio.get_running_loop()
        self.last_heard = self._loop.time()
        self.ended = False  # the other end will not say another word

    async def serve(self) -> None:
        """Until either end closes the connection."""
        try:
            await self._read()
            self._nobody_answers()
            await self._tasks.wait(self._limits.finish_seconds)
        except OSError:
            pass  # it went without a goodbye, or was cut off
        finally:
            self._end()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The other end's result; RpcError where it refuses, Ended where it has gone."""
        if self.ended:
            raise ConnectionEnded
        self._last_id += 1
        number = self._last_id
        answered = self._asked[number] = self._loop.create_future()
        try:
            self._send(request_message(number, method, params or {}))
            return result_of(await answered)
        finally:
            del self._asked[number]

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(notification_message(method, params))

    def abort(self) -> None:
        self._writer.transport.abort()
        self._end()

    async def close(self) -> None:
        """With what is unsent, if the other end takes it soon."""
        self._end()
        self._writer.close()
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            self._writer.transport.abort()

    def _end(self) -> None:
        self._nobody_answers()
        self._tasks.cancel()
        if self._watch is not None:
            self._watch.cancel()
        self._writer.close()

    def _nobody_answers(self) -> None:
        self.ended = True
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(ConnectionEnded())

    # --- what comes

    async def _read(self) -> None:
        lines = _Lines(self._limits.line_bytes)
        handled = 0
        while not self.ended and (data := await self._reader.read(READ_BYTES)):
            self.last_heard = self._loop.time()
            for line in lines.feed(data):
                await self._take(line)
                handled += 1
                if handled % LINES_PER_TURN == 0:
                    await asyncio.sleep(0)
                await self._writer.drain()  # whoever does not read our answers is not heard any further

    async def _take(self, line: bytes | None) -> None:
        message = _message_in(line, self._limits.line_bytes)
        if isinstance(message, RpcRequest):
            await self._free.acquire()
            self._tasks.start(self._respond(message))
        elif isinstance(message, RpcNotification):
            tell_service(self._heard, message)
        elif isinstance(message, RpcResponse):
            answered = self._asked.get(message.id) if isinstance(message.id, int) else None
            if answered is not None and not answered.done():  # else nobody waits for it any more
                answered.set_result(message)
        else:
            self._send(error_message(message.id, message.error))

    async def _respond(self, request: RpcRequest) -> None:
        try:
            said = await attempt(self._answer(request.method, request.params), request.method)
            self._send(answer_message(request.id, said if isinstance(said, RpcError) else dict(said)))
        finally:
            self._free.release()

    # --- what goes

    def _send(self, message: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(message + b"\n")
        unsent = self._unsent()
        if unsent > self._limits.unsent_bytes:
            self._cut_off()
        elif unsent > self._limits.unread_bytes and self._watch is None:
            self._watch = self._loop.call_later(self._limits.unread_seconds, self._look_again)

    def _look_again(self) -> None:
        self._watch = None
        if self._unsent() > self._limits.unread_bytes:
            self._cut_off()

    def _unsent(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def _cut_off(self) -> None:
        log.debug(f"a peer of the control channel is cut off: it has left {self._unsent():,} bytes unread")
        self.abort()


def _message_in(line: bytes | None, limit: int) -> Message:
    if line is None:
        return InvalidMessage(None, RpcError(INVALID_REQUEST, f"A message has at most {limit:,} bytes."))
    try:
        value = decode(line)
    except RpcError as error:
        return InvalidMessage(None, error)
    if isinstance(value, list):
        return InvalidMessage(
            None, RpcError(INVALID_REQUEST, "Batches are not understood; send one message to a line.")
        )
    return read(value)


class _Lines:
    """Bytes in pieces of any size become lines; one that is too long becomes None, once, and is not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        found: list[bytes | None] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            line = bytes(self._rest + piece)
            self._rest.clear()
            if not self._skipping and line.strip():
                found.append(line if len(line) <= self._limit else None)
            self._skipping = False
        if not self._skipping:
            self._rest += rest
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._skipping = True
            found.append(None)
        return found
