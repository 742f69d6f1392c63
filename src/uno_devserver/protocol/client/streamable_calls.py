"""Calls over Streamable HTTP without a task of their own: sent over a kept connection, answered as plain JSON.

What is not answered so (an event stream, a redirect, a refusal, a forgotten session) goes on in a task, with the
answer's head in hand.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

from ...system.log import ERROR, log
from ..jsonrpc import INTERNAL_ERROR, RpcError
from ..media import JSON
from .connection import Lost
from .messages import Message, decode_one

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    import msgspec

    from ..http.client_connection import ClientConnection, HttpFailure, Reply
    from .connection import PendingCall
    from .streamable_endpoint import Endpoint


class HttpCall:
    """One call on its way. Implements `http.client_connection.Taker`."""

    __slots__ = ("_call", "_connection", "_endpoint", "_finish", "_id", "_task")

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
        self._task: asyncio.Task[None] | None = None

    @property
    def request_id(self) -> int:
        return int(self._id)

    def send(self, headers: bytes, params: bytes) -> bool:
        """False: there is no connection over which it can be sent at once."""
        body = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":%b}' % (self._id, params)
        self._connection = self._endpoint.send_now(headers, body, self)
        self._call.sent = self._connection is not None
        return self._call.sent

    def replied(self, reply: Reply) -> None:
        if reply.ended and reply.status == 200 and reply.headers.get("content-type") == JSON:
            body = reply.body()
            try:
                message = decode_one(body)
            except (ValueError, RecursionError):
                message = None
            if message is not None and message.is_result and bytes(message.id) == self._id:
                self._call.settle(message)
                self._call.turn_over(more=True)  # other answers may have come in the same turn of the loop
                return
        self._task = asyncio.ensure_future(self._go_on(reply))

    def failed(self, failure: HttpFailure) -> None:
        self._call.settle(self._endpoint.lost(failure))

    def cancel(self) -> None:
        """Nobody waits any more: the connection is of no use until the answer came, so it is closed."""
        if self._task is not None:
            self._task.cancel()
        elif self._connection is not None:
            self._call = _NOBODY
            self._connection.fail("was not waited for")

    async def _go_on(self, reply: Reply) -> None:
        try:
            result = await self._finish(reply, int(self._id))
        except (Lost, RpcError) as failure:
            self._call.settle(failure)
        except Exception:  # a defect of ours; somebody waits for an answer
            log.write(ERROR, f"an answer over HTTP could not be taken:\n{traceback.format_exc()}")
            self._call.settle(
                RpcError(INTERNAL_ERROR, "uno-devserver failed on the server's answer; its log says why.")
            )
        else:
            self._call.settle(Message(result=result))
            self._call.turn_over()


class _Nobody:
    def settle(self, outcome: object) -> None:
        """The client has cancelled the call."""


_NOBODY: Any = _Nobody()
