"""Calls over Streamable HTTP that need no task: they use an open connection, and the answer is plain JSON.

Any other answer (an event stream, a redirect, an HTTP error, a forgotten session) is handled in a task.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from ...system.log import ERROR, log
from ..http.headers import JSON
from ..jsonrpc import INTERNAL_ERROR, RpcError
from ..versions import HEADER_MISMATCH
from .connection import AccessDenied, ConnectionLost
from .raw_messages import RawMessage, decode_one

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    import msgspec

    from ..http.client_connection import ClientConnection, HttpFailure, Reply
    from .connection import PendingCall
    from .http_endpoint import Endpoint


class HttpCall:
    """Implements `http.client_connection.Taker`."""

    __slots__ = ("_call", "_connection", "_endpoint", "_finish", "_id", "_reply", "_task")

    def __init__(
        self,
        call: PendingCall,
        request_id: int,
        endpoint: Endpoint,
        finish: Callable[[Reply, int], Coroutine[Any, Any, msgspec.Raw]],
    ) -> None:
        """`finish` reads the result of an answer that `replied` cannot settle at once."""
        self._call: PendingCall | None = call
        self._id = b"%d" % request_id
        self._endpoint = endpoint
        self._finish = finish
        self._connection: ClientConnection | None = None
        self._reply: Reply | None = None  # the answer that the task reads, if `replied` could not settle it
        self._task: asyncio.Task[None] | None = None

    @property
    def request_id(self) -> int:
        return int(self._id)

    def send(self, headers: bytes, params: bytes) -> bool:
        """Send the call over an open connection; return False, and send nothing, if there is none."""
        body = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":%b}' % (self._id, params)
        self._connection = self._endpoint.send_now(headers, body, self)
        if self._connection is None or self._call is None:
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
                if (call := self._settle(message)) is not None:
                    call.turn_over(more=True)  # other answers may have come in the same turn of the loop
                return
        self._reply = reply
        self._task = asyncio.ensure_future(self._go_on(reply))

    def failed(self, failure: HttpFailure) -> None:
        self._settle(self._endpoint.lost(failure))

    def cancel(self) -> None:
        """Cancel the call by closing its connection: no other request could use it until the answer came."""
        self._detach()
        if self._task is not None:
            self._task.cancel()
            if self._reply is not None:
                self._reply.close()  # a task that has not started yet would not close it
        elif self._connection is not None:
            self._connection.fail("had not answered when the request was cancelled")

    async def _go_on(self, reply: Reply) -> None:
        try:
            result = await self._finish(reply, int(self._id))
        except (ConnectionLost, AccessDenied, RpcError) as failure:
            self._settle(failure)
        except Exception:  # a defect of ours; the call still needs an answer
            log.write(ERROR, f"an answer over HTTP could not be handled:\n{traceback.format_exc()}")
            self._settle(
                RpcError(INTERNAL_ERROR, "uno-devserver could not handle the server's answer; its own log says why.")
            )
        else:
            if (call := self._settle(RawMessage(result=result))) is not None:
                call.turn_over()

    def _settle(self, outcome: RawMessage | ConnectionLost | AccessDenied | RpcError) -> PendingCall | None:
        """Settle the call and return it; None if it was settled or cancelled before."""
        call = self._detach()
        if call is not None:
            call.settle(outcome)
        return call

    def _detach(self) -> PendingCall | None:
        """Return the call, if it is open, and break the reference cycle with it: the garbage collector rarely runs."""
        call, self._call = self._call, None
        if call is not None:
            call.ticket = None
        return call


def _is_one_line(body: bytes) -> bool:
    """Whether the message can be passed on as a line; line breaks around it do not matter."""
    if b"\n" in body or b"\r" in body:
        body = body.strip()
    return b"\n" not in body and b"\r" not in body


def _is_plain(message: RawMessage) -> bool:
    """Whether it is a result, or an error that is not about the headers of the request."""
    return message.is_result or (message.method is None and b"%d" % HEADER_MISMATCH not in bytes(message.error))
