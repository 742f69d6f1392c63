"""The modern era, whatever carries its messages: every request stands for itself."""

from __future__ import annotations

import asyncio
from functools import partial

from .channel import Channel
from .eras import REMOVED_IN_MODERN, Envelope, discover_result, method_not_found
from .followed import Followed
from .jsonrpc import BUSY, RpcError, RpcRequest
from .modern_calls import ModernCall
from .parked import Parked
from .policy import Policy
from .running import Answer, Answerer, Outcome, outcome, said_in, stopped
from .service import Call, Params, Service
from .subscriptions import Subscription, Subscriptions

LISTEN = "subscriptions/listen"


class Modern:
    def __init__(self, service: Service, policy: Policy, followed: Followed) -> None:
        self._service = service
        self._policy = policy
        self._parked: Parked[ModernCall] = Parked(policy)
        self._subscriptions = Subscriptions(policy, followed)
        self._calls: set[ModernCall] = set()

    def call(
        self,
        request: RpcRequest,
        envelope: Envelope,
        channel: Channel,
        heard: bool = True,
        answer: Answerer | None = None,
    ) -> ModernCall:
        """Run the call that this request continues, or a new one; it is answered on `channel`.

        `answer`: who answers a new one in place of the service.
        """
        if request.method in REMOVED_IN_MODERN:
            raise method_not_found(request.method)
        state = request.params.get("requestState")
        if state is not None and (self._parked.issued(state) or not self._service.relays):
            waiting = self._parked.take(state, request)
            waiting.go_on(request, envelope, channel, heard)
            return waiting
        if len(self._calls) >= self._policy.calls:
            raise RpcError(BUSY, f"{self._policy.calls} calls run already.")
        call = ModernCall(request, envelope, channel, heard, self._service, self._parked, self._policy)
        self._calls.add(call)
        call.task = asyncio.create_task(outcome(answer or self._answer, call))
        call.task.add_done_callback(partial(self._done, call))
        return call

    async def listen(self, request: RpcRequest, channel: Channel) -> Subscription:
        """Open a subscription, acknowledged; it ends with `unlisten`."""
        return await self._subscriptions.open(request, self._service.capabilities(), channel)

    def unlisten(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription)

    def broadcast(self, method: str, params: Params | None) -> None:
        self._subscriptions.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._subscriptions.resource_updated(uri)

    async def close(self) -> None:
        self._subscriptions.close(self._service.info)
        self._parked.close()
        tasks = {call.task for call in self._calls if call.task is not None}
        for call in self._calls:
            call.why_stopped = stopped()
            call.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._policy.close_seconds)

    def _done(self, call: ModernCall, task: asyncio.Task[Outcome]) -> None:
        self._calls.discard(call)
        call.finish(said_in(task, call.why_stopped))

    async def _answer(self, call: Call) -> Answer:
        if call.method == "server/discover":
            return discover_result(self._service.info, self._service.capabilities())
        return await self._service.answer(call)
