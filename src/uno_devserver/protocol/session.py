"""A handshake-era client, from `initialize` to its end: what it wants to hear, and what it is being asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .channel import Channel, Kind
from .eras import LOG_LEVELS, QUESTIONS, check_client_can, wants_log
from .jsonrpc import (
    BUSY,
    INVALID_PARAMS,
    UNANSWERED,
    RpcError,
    RpcResponse,
    notification_message,
    request_message,
    result_of,
)
from .parties import ClientInfo
from .policy import Policy
from .running import in_loop
from .service import Params, Result

if TYPE_CHECKING:
    from .calls import HandshakeCall


class Session:
    """`standing` is the channel for what belongs to no request."""

    def __init__(self, client: ClientInfo, policy: Policy, standing: Channel, *, relayed: bool) -> None:
        self.client = client
        self.policy = policy
        self.log_level: str | None = "info"  # until the client chooses
        self.watched: set[str] = set()
        self.calls: set[HandshakeCall] = set()
        self._standing = standing
        self._relayed = relayed  # what it is asked comes from another server, which may know more than we do
        self.loop = asyncio.get_running_loop()
        self._asks: dict[str, asyncio.Future[RpcResponse]] = {}
        self._last_ask = 0

    def notify(self, method: str, params: Params | None = None) -> None:
        if wants_log(self.log_level, method, params):
            in_loop(self.loop, self._standing.send, notification_message(method, params))

    def announce(self, data: bytes) -> None:
        """Something changed."""
        self._standing.send_once(data)

    def set_level(self, level: object) -> str:
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"The level must be one of {', '.join(LOG_LEVELS)}.")
        self.log_level = str(level)
        return self.log_level

    async def ask(self, method: str, params: Params) -> Result:
        """Ask the client outside any call."""
        self.check_can(method, params)
        return await self.ask_on(self._standing, method, params)

    def check_can(self, method: str, params: Params) -> None:
        """RpcError when it is of no use to ask the client that."""
        if method in QUESTIONS or not self._relayed:
            check_client_can(self.client, method, params)

    async def ask_on(self, channel: Channel, method: str, params: Params) -> Result:
        if len(self._asks) >= self.policy.asks:
            raise RpcError(BUSY, f"{self.policy.asks} questions wait for this client already.")
        self._last_ask += 1
        ask_id = f"server-{self._last_ask}"  # no client calls its own requests so
        answer = self._asks[ask_id] = self.loop.create_future()
        try:
            channel.send(request_message(ask_id, method, params), Kind.REQUEST)
            async with asyncio.timeout(self.policy.ask_seconds):
                return result_of(await answer)
        except TimeoutError:
            seconds = self.policy.ask_seconds
            raise RpcError(UNANSWERED, f"The client did not answer '{method}' in {seconds:g} s.") from None
        finally:
            del self._asks[ask_id]
            if not answer.done() or answer.cancelled():
                channel.send(notification_message("notifications/cancelled", {"requestId": ask_id}))

    def answered(self, response: RpcResponse) -> bool:
        """Hand the client's answer to whoever asked; False when nobody (any more) waits for it."""
        answer = self._asks.get(response.id) if isinstance(response.id, str) else None
        if answer is None or answer.done():
            return False
        answer.set_result(response)
        return True

    def stop(self, why: RpcError) -> None:
        """It is over: calls and questions end with `why`."""
        for call in self.calls:
            call.stop(why)
        for ask_id, answer in self._asks.items():
            if not answer.done():  # it belongs to no call
                answer.set_result(RpcResponse(ask_id, None, {"code": why.code, "message": why.message}))
        self._standing.end()
