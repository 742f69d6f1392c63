"""The modern era over HTTP: every POST stands for itself, and a lost connection cancels its call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from . import sse
from .eras import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    read_envelope,
    unsupported_version,
)
from .followed import Followed
from .http.messages import Answer, Sink, Streaming
from .jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Refused,
    RpcError,
    RpcNotification,
    RpcRequest,
    read,
)
from .media import Accepts
from .modern import LISTEN, Modern
from .modern_calls import ModernCall
from .policy import Policy
from .replies import ACCEPTED, plain, refusal
from .service import Params, Service
from .streams import Stream

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


class ModernHttp:
    def __init__(self, service: Service, policy: Policy, followed: Followed) -> None:
        self._era = Modern(service, policy, followed)
        self._policy = policy

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
            if message.method == LISTEN:
                return await self._listen(message, accepts)
            stream = Stream(self._policy, needs_connection=not accepts.json)
            call = self._era.call(message, envelope, stream, accepts.events)
        except RpcError as error:
            return refusal(HTTP_STATUS.get(error.code, 200), error, message.id)
        return await self._exchange(call, stream, accepts)

    def broadcast(self, method: str, params: Params | None) -> None:
        self._era.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._era.resource_updated(uri)

    async def close(self) -> None:
        await self._era.close()

    async def _listen(self, request: RpcRequest, accepts: Accepts) -> Answer:
        if not accepts.events:
            return refusal(
                406, RpcError(INVALID_REQUEST, "A subscription needs a client that accepts text/event-stream.")
            )
        stream = Stream(self._policy)
        subscription = await self._era.listen(request, stream)

        async def run(sink: Sink) -> None:
            try:
                await stream.deliver(sink)
            finally:
                self._era.unlisten(subscription)

        return Streaming(200, sse.HEADERS, run)

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
