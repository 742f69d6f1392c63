"""A handshake-era call: a request of a session on its way through the service."""

from __future__ import annotations

import asyncio

from .channel import Channel
from .eras import can_poll, wants_log
from .jsonrpc import INVALID_REQUEST, Id, RpcError, RpcRequest, notification_message
from .running import in_loop
from .service import Params, Result
from .session import Session


class HandshakeCall:
    """What the service sees of a request; speaks on the channel that carries its answer."""

    def __init__(self, session: Session, request: RpcRequest, channel: Channel, heard: bool = True) -> None:
        self.session = session
        self.channel = channel
        self.task: asyncio.Task[None] | None = None
        self.why_stopped: RpcError | None = None
        self.unwanted = False  # the client cancelled it
        self._request = request
        self._heard = heard  # False: the client takes one JSON answer and nothing else

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
        if self._heard and not self.unwanted and wants_log(self.log_level, method, params):
            in_loop(self.session.loop, self.channel.send, notification_message(method, params))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        self.session.check_can(method, params)
        if not self._heard:
            raise RpcError(INVALID_REQUEST, "The client accepts JSON only, so it cannot be asked during this call.")
        return await self.session.ask_on(self.channel, method, params)

    def stop(self, why: RpcError | None) -> None:
        """Cancel it. With a reason it is answered by that; without one, as the client wished, not at all."""
        if self.unwanted:  # its client has cancelled it before
            return
        self.why_stopped = why
        self.unwanted = why is None
        if self.task is not None:
            self.task.cancel()

    def close_stream(self) -> None:
        if self._heard and can_poll(self.session.client.protocol_version):
            in_loop(self.session.loop, self.channel.hang_up)
