"""The modern era over HTTP: every POST stands for itself, and a lost connection cancels its call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from . import sse
from .eras import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    MODERN_VERSIONS,
    REMOVED_IN_MODERN,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    Envelope,
    discover_result,
    method_not_found,
    read_envelope,
    unsupported_version,
)
from .http.messages import Answer, Sink, Streaming
from .jsonrpc import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STOPPED,
    Refused,
    RpcError,
    RpcNotification,
    RpcRequest,
    read,
)
from .media import Accepts
from .modern_calls import ModernCall
from .parked import Parked
from .policy import Policy
from .replies import ACCEPTED, plain, refusal
from .running import outcome, said_in
from .service import Call, Params, Result, Service
from .streams import Stream
from .subscriptions import Subscriptions

# Codes that are not in the table are answered with 200.
HTTP_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


class Modern:
    def __init__(self, service: Service, policy: Policy) -> None:
        self._service = service
        self._policy = policy
        self._parked: Parked[ModernCall] = Parked(policy)
        self._subscriptions = Subscriptions(policy)
        self._calls: set[ModernCall] = set()

    async def post(self, value: object, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        message = read(value)
        if isinstance(message, Refused):
            return refusal(400, message.error, message.id)
        if isinstance(message, RpcNotification):
            return _notified(headers)
        if not isinstance(message, RpcRequest):
            return refusal(400, RpcError(INVALID_REQUEST, "In this version a client sends requests only."))
        try:
            envelope = read_envelope(message, headers)
            if message.method in REMOVED_IN_MODERN:
                raise method_not_found(message.method)
            if message.method == "subscriptions/listen":
                return self._listen(message, accepts)
            call = self._call(message, envelope, accepts)
        except RpcError as error:
            return refusal(HTTP_STATUS.get(error.code, 200), error, message.id)
        return await self._exchange(call, call.stream, accepts)

    def broadcast(self, method: str, params: Params | None) -> None:
        self._subscriptions.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._subscriptions.resource_updated(uri)

    async def close(self) -> None:
        self._subscriptions.close(self._service.info)
        self._parked.close()
        tasks = {call.task for call in self._calls if call.task is not None}
        for call in self._calls:
            call.why_stopped = RpcError(STOPPED, "The server stopped before the call was done; its outcome is unknown.")
            call.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._policy.close_seconds)

    def _listen(self, request: RpcRequest, accepts: Accepts) -> Answer:
        if not accepts.events:
            return refusal(
                406, RpcError(INVALID_REQUEST, "A subscription needs a client that accepts text/event-stream.")
            )
        subscription = self._subscriptions.add(request, self._service.capabilities())

        async def run(sink: Sink) -> None:
            try:
                await subscription.stream.deliver(sink)
            finally:
                self._subscriptions.remove(subscription)

        return Streaming(200, sse.HEADERS, run)

    def _call(self, request: RpcRequest, envelope: Envelope, accepts: Accepts) -> ModernCall:
        """The call that this request continues, or a new one."""
        state = request.params.get("requestState")
        if state is not None:
            waiting = self._parked.take(state, request)
            waiting.go_on(request, envelope, accepts)
            return waiting
        if len(self._calls) >= self._policy.calls:
            raise RpcError(BUSY, f"{self._policy.calls} calls run already.")
        call = ModernCall(request, envelope, accepts, self._service.info, self._parked, self._policy)
        self._calls.add(call)
        call.task = asyncio.create_task(outcome(self._answer, call))
        call.task.add_done_callback(partial(self._done, call))
        return call

    def _done(self, call: ModernCall, task: asyncio.Task[Result | RpcError]) -> None:
        self._calls.discard(call)
        call.finish(said_in(task, call.why_stopped))

    async def _answer(self, call: Call) -> Result:
        if call.method == "server/discover":
            return discover_result(self._service.info, self._service.capabilities())
        return await self._service.answer(call)

    async def _exchange(self, call: ModernCall, stream: Stream, accepts: Accepts) -> Answer:
        try:
            answers = await stream.plain_answers(self._policy.plain_answer_seconds if accepts.events else None)
        except asyncio.CancelledError:
            call.cancel()
            raise
        if answers is not None:
            return plain(answers[0], 200 if call.error_code is None else HTTP_STATUS.get(call.error_code, 200))

        async def run(sink: Sink) -> None:
            try:
                await stream.deliver(sink)
            finally:
                if not stream.ended:
                    call.cancel()

        return Streaming(200, sse.HEADERS, run)


def _notified(headers: Mapping[str, str]) -> Answer:
    """This era has no notifications from clients over HTTP, but some send them: taken, and dropped."""
    version = headers.get(VERSION_HEADER)
    if version not in MODERN_VERSIONS:
        return refusal(400, unsupported_version(version))
    return ACCEPTED
