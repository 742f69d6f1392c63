"""Calls over Streamable HTTP without a task of their own: sent over a kept connection, answered as plain JSON.

What is not answered so (an event stream, a redirect, a refusal, a forgotten session) goes on in a task, with the
answer's head in hand.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from ...system.log import ERROR, log
from ..http.headers import JSON
from ..jsonrpc import INTERNAL_ERROR, RpcError
from ..versions import HEADER_MISMATCH
from .connection import ConnectionLost
from .raw_messages import RawMessage, decode_one

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    import msgspec

    from ..http.client_connection import ClientConnection, HttpFailure, Reply
    from .connection import PendingCall
    from .http_endpoint import Endpoint


class HttpCall:
    """One call on its way. Implements `http.client_connection.Taker`."""

    __slots__ = ("_call", "_connection", "_endpoint", "_finish", "_id", "_reply", "_task")

    def __init__(
        self,
        call: PendingCall,
        request_id: int,
        endpoint: Endpoint,
        finish: Callable[[Reply, int], Coroutine[Any, Any, msgspec.Raw]],
    ) -> None:
        """`finish` gets the result out of an answer that is not plain JSON."""
        self._call = call
        self._id = b"%d" % request_id
        self._endpoint = endpoint
        self._finish = finish
        self._connection: ClientConnection | None = None
        self._reply: Reply | None = None  # an answer that is not plain JSON, which the task reads
        self._task: asyncio.Task[None] | None = None

    @property
    def request_id(self) -> int:
        return int(self._id)

    def send(self, headers: bytes, params: bytes) -> bool:
        """False: there is no connection over which it can be sent at once."""
        body = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":%b}' % (self._id, params)
        self._connection = self._endpoint.send_now(headers, body, self)
        if self._connection is None:
            return False
        self._call.sent, self._call.ticket = True, self
        return True

    def replied(self, reply: Reply) -> None:
        if reply.ended and reply.status == 200 and reply.headers.get("content-type", "").startswith(JSON):
            body = reply.body()
            try:
                message = decode_one(body) if _is_one_line(body) else None
            except (ValueError, RecursionError):
                message = None
            if message is not None and bytes(message.id) == self._id and _is_plain(message):
                call = self._settled(message)
                call.turn_over(more=True)  # other answers may have come in the same turn of the loop
                return
        self._reply = reply
        self._task = asyncio.ensure_future(self._go_on(reply))

    def failed(self, failure: HttpFailure) -> None:
        self._settled(self._endpoint.lost(failure))

    def cancel(self) -> None:
        """Nobody waits any more: the connection is of no use until the answer came, so it is closed."""
        self._let_go()
        if self._task is not None:
            self._task.cancel()
            if self._reply is not None:
                self._reply.close()  # the task may not have begun to read it
        elif self._connection is not None:
            self._connection.fail("was not waited for")

    async def _go_on(self, reply: Reply) -> None:
        try:
            result = await self._finish(reply, int(self._id))
        except (ConnectionLost, RpcError) as failure:
            self._settled(failure)
        except Exception:  # a defect of ours; somebody waits for an answer
            log.write(ERROR, f"an answer over HTTP could not be taken:\n{traceback.format_exc()}")
            self._settled(RpcError(INTERNAL_ERROR, "uno-devserver failed on the server's answer; its log says why."))
        else:
            self._settled(RawMessage(result=result)).turn_over()

    def _settled(self, outcome: RawMessage | ConnectionLost | RpcError) -> PendingCall:
        """The call, which has heard it."""
        call = self._let_go()
        call.settle(outcome)
        return call

    def _let_go(self) -> PendingCall:
        """The call, which is over here. It must not hold this object any more, which holds it: nobody collects both."""
        call, self._call = self._call, _NOBODY
        call.ticket = None
        return call


def _is_one_line(body: bytes) -> bool:
    """Whether its payload can be passed on as a line; a break behind the message does not matter."""
    if b"\n" in body or b"\r" in body:
        body = body.strip()
    return b"\n" not in body and b"\r" not in body


class _Nobody:
    """In the place of a call that is answered or cancelled."""

    ticket: object = None

    def settle(self, outcome: object) -> None:
        pass


_NOBODY: Any = _Nobody()


def _is_plain(message: RawMessage) -> bool:
    """A result, or an error that says nothing about the way the request was made."""
    return message.is_result or (message.method is None and b"%d" % HEADER_MISMATCH not in bytes(message.error))
