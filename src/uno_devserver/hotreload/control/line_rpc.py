"""A JSON-RPC 2.0 connection with one message per line; both ends may send requests and notifications.

Requests run concurrently. Invalid input is answered with an error and does not end the connection. The other end is
read only as fast as it is answered. Sending never waits; an end that does not read is disconnected. When the connection
ends, all open requests fail at once.
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
from ...protocol.lines import LineSplitter, LineTooLong
from ...protocol.server.call_runner import answer_message, attempt, tell_service
from ...system.event_loop import Tasks
from ...system.log import log
from ...system.values import Value

READ_BYTES = 64 * 1024
LINES_PER_TURN = 32  # the most that are handled before other tasks of the loop run


class RpcLimits(Value):
    line_bytes: int = 1024 * 1024  # requests have a few hundred bytes
    requests: int = 32  # the most that are handled at a time; further ones wait unread
    unread_bytes: int = 256 * 1024  # if more than this is unsent, the other end is taken not to be reading
    unread_seconds: float = 10.0  # if that is still so after this time, it is disconnected
    unsent_bytes: int = 64 * 1024 * 1024  # the most that is kept: a few outputs of large builds
    finish_seconds: float = 1.0  # how long requests may run after the other end stopped sending
    close_seconds: float = 0.1  # for the other end to read the rest; a proxy must end within 300 ms


class ConnectionEnded(Exception):
    """The connection ended before the answer arrived."""


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
        self._watch: asyncio.TimerHandle | None = None  # disconnects an end that does not read
        self._loop = asyncio.get_running_loop()
        self.last_heard = self._loop.time()
        self.ended = False  # the other end has stopped sending, or the connection was lost or closed

    async def serve(self) -> None:
        """Read and answer until either end closes the connection."""
        try:
            await self._read()
            self._fail_requests()
            await self._tasks.wait(self._limits.finish_seconds)
        except OSError:
            pass  # the other end crashed, or was disconnected
        finally:
            self._end()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result; RpcError if the other end refuses, ConnectionEnded if the connection ends first."""
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
        """Send what is unsent, if the other end reads it soon, and end the connection."""
        self._end()
        self._writer.close()
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            self._writer.transport.abort()

    def _end(self) -> None:
        self._fail_requests()
        self._tasks.cancel()
        if self._watch is not None:
            self._watch.cancel()
        self._writer.close()

    def _fail_requests(self) -> None:
        self.ended = True
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(ConnectionEnded())

    # Receiving.

    async def _read(self) -> None:
        lines = LineSplitter(self._limits.line_bytes)
        handled = 0
        while not self.ended and (data := await self._reader.read(READ_BYTES)):
            self.last_heard = self._loop.time()
            for line in lines.feed(data):
                await self._take(line)
                handled += 1
                if handled % LINES_PER_TURN == 0:
                    await asyncio.sleep(0)
                await self._writer.drain()  # an end that does not read our answers is not read either

    async def _take(self, line: bytes | LineTooLong) -> None:
        message = _message_in(line, self._limits.line_bytes)
        if isinstance(message, RpcRequest):
            await self._free.acquire()
            self._tasks.start(self._respond(message))
        elif isinstance(message, RpcNotification):
            tell_service(self._heard, message)
        elif isinstance(message, RpcResponse):
            answered = self._asked.get(message.id) if isinstance(message.id, int) else None
            if answered is not None and not answered.done():  # otherwise nothing waits for it
                answered.set_result(message)
        else:
            self._send(error_message(message.id, message.error))

    async def _respond(self, request: RpcRequest) -> None:
        try:
            said = await attempt(self._answer(request.method, request.params), request.method)
            self._send(answer_message(request.id, said if isinstance(said, RpcError) else dict(said)))
        finally:
            self._free.release()

    # Sending.

    def _send(self, message: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(message + b"\n")
        unsent = self._unsent()
        if unsent > self._limits.unsent_bytes:
            self._disconnect()
        elif unsent > self._limits.unread_bytes and self._watch is None:
            self._watch = self._loop.call_later(self._limits.unread_seconds, self._look_again)

    def _look_again(self) -> None:
        self._watch = None
        if self._unsent() > self._limits.unread_bytes:
            self._disconnect()

    def _unsent(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def _disconnect(self) -> None:
        log.debug(f"a peer of the control channel is disconnected: it has left {self._unsent():,} bytes unread")
        self.abort()


def _message_in(line: bytes | LineTooLong, limit: int) -> Message:
    if isinstance(line, LineTooLong):
        problem = RpcError(INVALID_REQUEST, f"A message has at most {limit:,} bytes.")
        return InvalidMessage(line.members.get("id"), problem)
    try:
        value = decode(line)
    except RpcError as error:
        return InvalidMessage(None, error)
    if isinstance(value, list):
        problem = RpcError(INVALID_REQUEST, "Batches are not supported; send one message to a line.")
        return InvalidMessage(None, problem)
    return read(value)
