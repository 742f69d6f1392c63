"""A handshake-era call: a request of a session on its way through the service."""

from __future__ import annotations

import asyncio

from .eras import can_poll, check_client_can, wants_log
from .jsonrpc import (
    BUSY,
    INVALID_REQUEST,
    STOPPED,
    Id,
    RpcError,
    RpcRequest,
    RpcResponse,
    notification_message,
    request_message,
    result_of,
)
from .running import in_loop
from .service import Params, Result
from .sessions import Session
from .streams import Kind, Stream


class HandshakeCall:
    """What the service sees of a request; speaks on the stream of the POST that brought it."""

    def __init__(self, session: Session, request: RpcRequest, stream: Stream, heard: bool) -> None:
        self.session = session
        self.task: asyncio.Task[Result | RpcError] | None = None
        self.why_stopped: RpcError | None = None
        self.unwanted = False  # the client cancelled it
        self._request = request
        self._stream = stream
        self._heard = heard  # False: the client takes one JSON answer and nothing else
        self._loop = asyncio.get_running_loop()

    @property
    def id(self) -> Id:
        return self._request.id

    @property
    def method(self) -> str:
        return self._request.method

    @property
    def params(self) -> Params:
        return self._request.params

    @property
    def log_level(self) -> str | None:
        return self.session.log_level

    def notify(self, method: str, params: Params | None = None) -> None:
        if self._heard and wants_log(self.log_level, method, params):
            in_loop(self._loop, self._stream.send, notification_message(method, params))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        check_client_can(self.session.client, method, params)
        if not self._heard:
            raise RpcError(INVALID_REQUEST, "The client accepts JSON only, so it cannot be asked during this call.")
        policy = self.session.policy
        if len(self.session.asks) >= policy.asks:
            raise RpcError(BUSY, f"{policy.asks} questions wait for this client already.")
        ask_id, answer = self.session.next_ask()
        try:
            self._stream.send(request_message(ask_id, method, params), Kind.REQUEST)
            async with asyncio.timeout(policy.ask_seconds):
                return result_of(await answer)
        except TimeoutError:
            raise RpcError(STOPPED, f"The client did not answer '{method}' in {policy.ask_seconds:g} s.") from None
        finally:
            del self.session.asks[ask_id]
            if not answer.done() or answer.cancelled():
                self._stream.send(notification_message("notifications/cancelled", {"requestId": ask_id}))

    def stop(self, why: RpcError | None) -> None:
        """Cancel it. With a reason it is answered by that; without one, as the client wished, not at all."""
        self.why_stopped = why
        self.unwanted = why is None
        if self.task is not None:
            self.task.cancel()

    def close_stream(self) -> None:
        if self._heard and can_poll(self.session.client.protocol_version):
            in_loop(self._loop, self._stream.hang_up)


def answer_ask(session: Session, response: RpcResponse) -> bool:
    """Hand a client's answer to the call that asked; False when nobody (any more) waits for it."""
    answer = session.asks.get(response.id) if isinstance(response.id, str) else None
    if answer is None or answer.done():
        return False
    answer.set_result(response)
    return True
