"""Streamable HTTP, the server's end: one endpoint for clients of both eras at the same time.

Every request gets an answer, whatever is in it: an HTTP status that says how far it came, and a JSON-RPC message.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from functools import partial

from ...system.event_loop import in_loop
from ...system.log import ERROR, log
from ..http import sse
from ..http.headers import JSON, Accepts, accepted_types, is_json
from ..http.messages import Answer, Headers, Request, Response, Sink, Streaming
from ..jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    STOPPED,
    Id,
    InvalidMessage,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode,
    error_message,
    notification_message,
    read,
    shown,
)
from ..peer_info import ClientInfo
from ..service import Params, Service
from ..versions import (
    BATCH_VERSION,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    can_poll,
    has_envelope,
    read_envelope,
    unsupported_version,
)
from .call_runner import FAILURES, answer_message
from .handshake import HandshakeCall, HandshakeEra
from .http_sessions import HttpSession, HttpSessions
from .limits import DEFAULT_ENDPOINT_LIMITS, EndpointLimits
from .message_stream import MessageKind, MessageStream, StreamOpening
from .modern import LISTEN, ModernCall, ModernEra
from .subscriptions import WatchedResources


class StreamableHttp:
    def __init__(self, service: Service, limits: EndpointLimits = DEFAULT_ENDPOINT_LIMITS) -> None:
        self._limits = limits
        self._watched = WatchedResources(service)
        self._handshake = HandshakeHttp(service, limits, self._watched)
        self._modern = ModernHttp(service, limits, self._watched)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def session_count(self) -> int:
        return len(self._handshake.sessions)

    async def handle(self, request: Request) -> Answer:
        """Answer any request to the endpoint."""
        self._loop = asyncio.get_running_loop()
        if self._closed:
            return rpc_error_response(503, RpcError(STOPPED, "The server is stopping."))
        try:
            if request.method == "POST":
                return await self._post(request)
            if request.method in ("GET", "DELETE"):
                return self._get_or_delete(request)
            return Response(405, headers=(("Allow", "DELETE, GET, POST"),))
        except FAILURES:
            log.write(ERROR, f"a request to the MCP endpoint failed:\n{traceback.format_exc()}")
            return rpc_error_response(
                500, RpcError(INTERNAL_ERROR, "The server failed on this request; its log says why.")
            )

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Tell every session, and every subscription that asked for it. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Tell everyone who watches that resource. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """End all sessions, calls and streams, each with a last word; bounded in time, and for good."""
        self._closed = True
        await asyncio.gather(self._handshake.close(), self._modern.close())
        await self._watched.close(self._limits.close_seconds)

    async def _post(self, request: Request) -> Answer:
        accepts = accepted_types(request.headers)
        if not (accepts.json or accepts.events):
            message = "The answer is application/json or text/event-stream; the client must accept both."
            return rpc_error_response(406, RpcError(INVALID_REQUEST, message))
        if not is_json(request.headers):
            return rpc_error_response(415, RpcError(INVALID_REQUEST, "The Content-Type must be application/json."))
        try:
            value = decode(request.body)
        except RpcError as error:
            return rpc_error_response(400, error)
        version = request.headers.get(VERSION_HEADER)
        if _is_modern(version, value):
            return await self._modern.post(value, request.headers, accepts)
        return await self._handshake.post(value, request.headers, accepts)

    def _get_or_delete(self, request: Request) -> Answer:
        version = request.headers.get(VERSION_HEADER)
        if version in MODERN_VERSIONS:
            return Response(405, headers=(("Allow", "POST"),))
        if request.method == "GET" and not ("accept" in request.headers and accepted_types(request.headers).events):
            # Before anything else: launchers ask without Accept whether the server is up, and take 400 for no.
            return rpc_error_response(406, RpcError(INVALID_REQUEST, "The client must accept text/event-stream."))
        if version is not None and version not in HANDSHAKE_VERSIONS:
            return rpc_error_response(400, unsupported_version(version))
        if request.method == "GET":
            return self._handshake.get(request.headers)
        return self._handshake.delete(request.headers)

    def _broadcast(self, method: str, params: Params | None) -> None:
        self._handshake.broadcast(notification_message(method, params))
        self._modern.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        self._handshake.resource_updated(uri)
        self._modern.resource_updated(uri)


def _is_modern(version: str | None, value: object) -> bool:
    """The body decides where it can: an envelope is modern, `initialize` without one is not. Else the header does."""
    if isinstance(value, dict):
        params = value.get("params")
        if isinstance(params, dict) and has_envelope(params):
            return True
        if value.get("method") == "initialize":
            return False
    return version is not None and version not in HANDSHAKE_VERSIONS


SESSION_HEADER = "mcp-session-id"


class HandshakeHttp:
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self.sessions = HttpSessions(limits, self._ended)
        self._era = HandshakeEra(service, limits, watched)
        self._relays = service.relays
        self._limits = limits

    async def post(self, value: object, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        if isinstance(value, list):
            session = self._session(headers, None)
            return session if isinstance(session, Response) else await self._batch(session, value, accepts)
        message = read(value)
        if isinstance(message, InvalidMessage):
            return _refused(message)
        if isinstance(message, RpcRequest) and message.method == "initialize":
            return self._initialize(message, headers, accepts)
        session = self._session(headers, message.id if isinstance(message, RpcRequest) else None)
        if isinstance(session, Response):
            return session
        if isinstance(message, RpcRequest):
            return await self._exchange(session, [message], accepts)
        self._take(session, message)
        return ACCEPTED

    def get(self, headers: Mapping[str, str]) -> Answer:
        """Listen to what belongs to no request, or resume a stream that was cut off."""
        session = self._session(headers, None)
        if isinstance(session, Response):
            return session
        last = headers.get("last-event-id")
        if not last:
            return self._listen(session, session.standing, None)
        place = sse.position(last)
        stream = session.stream(place[0]) if place is not None else None
        if place is None or stream is None:
            message = f"There is nothing to resume after event '{shown(last)}': it is unknown, or too old."
            return rpc_error_response(400, RpcError(INVALID_REQUEST, message))
        return self._listen(session, stream, place[1])

    def delete(self, headers: Mapping[str, str]) -> Answer:
        session = self._session(headers, None)
        if isinstance(session, Response):
            return session
        self.sessions.remove(session)
        return Response(200)

    def broadcast(self, data: bytes) -> None:
        self._era.broadcast(self.sessions, data)

    def resource_updated(self, uri: str) -> None:
        self._era.resource_updated(self.sessions, uri)

    async def close(self) -> None:
        for session in self.sessions:
            self.sessions.remove(session)
        self.sessions.close()
        await self._era.close()

    def _initialize(self, request: RpcRequest, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        try:
            client, result = self._era.initialize(request)
        except RpcError as error:
            return json_response(error_message(request.id, error))
        session = self._session(headers, request.id) if SESSION_HEADER in headers else self._open(client, request.id)
        if isinstance(session, Response):
            return session
        session.client = client  # some clients shake hands again in their session
        message = answer_message(request.id, result)
        header = (("Mcp-Session-Id", session.id),)
        return json_response(message, headers=header) if accepts.json else _one_event(message, header)

    def _open(self, client: ClientInfo, request_id: Id) -> HttpSession | Response:
        session = HttpSession(client, self._limits, relayed=self._relays)
        if not self.sessions.add(session):
            busy = f"All {self._limits.sessions} sessions are in use; end one, or try again later."
            return rpc_error_response(503, RpcError(BUSY, busy), request_id)
        self._era.opened(session)
        return session

    def _session(self, headers: Mapping[str, str], request_id: Id | None) -> HttpSession | Response:
        known = headers.get(SESSION_HEADER)
        if known is None:
            message = "The header Mcp-Session-Id is missing; only initialize is sent without one."
            return rpc_error_response(400, RpcError(SESSION_REQUIRED, message), request_id)
        return self.sessions.get(known) or _unknown_session(request_id)

    async def _batch(self, session: HttpSession, values: list[object], accepts: Accepts) -> Answer:
        version = session.client.protocol_version
        if version != BATCH_VERSION:
            why = f"Version {version} of the protocol has no batches; send each message by itself."
            return rpc_error_response(400, RpcError(INVALID_REQUEST, why))
        if not 0 < len(values) <= self._limits.batch:
            return rpc_error_response(
                400, RpcError(INVALID_REQUEST, f"A batch has 1 to {self._limits.batch} messages.")
            )
        requests: list[RpcRequest] = []
        refusals: list[bytes] = []
        for message in map(read, values):
            if isinstance(message, InvalidMessage):
                refusals.append(error_message(message.id, message.error))
            elif not isinstance(message, RpcRequest):
                self._take(session, message)
            elif message.method == "initialize":
                alone = RpcError(INVALID_REQUEST, "initialize cannot be part of a batch.")
                refusals.append(error_message(message.id, alone))
            else:
                requests.append(message)
        if not requests and not refusals:
            return ACCEPTED
        return await self._exchange(session, requests, accepts, refusals)

    async def _exchange(
        self, session: HttpSession, requests: list[RpcRequest], accepts: Accepts, refusals: list[bytes] | None = None
    ) -> Answer:
        """Run the calls of one POST; answer in JSON if that says it all, else on a stream. A batch has `refusals`."""
        stream = session.open_stream(needs_connection=not accepts.json)
        for message in refusals or ():
            stream.send(message, MessageKind.ANSWER)
        calls = [HandshakeCall(session, request, stream, accepts.events) for request in requests]
        self._era.start(calls, partial(session.settle, stream))
        answers = await stream.plain_answers(self._limits.plain_answer_seconds if accepts.events else None)
        if answers is None:
            return self._listen(session, stream, 0)
        if not answers:
            return ACCEPTED  # cancelled: the client does not want to hear of it
        return json_response(answers[0] if refusals is None else b"[" + b",".join(answers) + b"]")

    def _take(self, session: HttpSession, message: RpcNotification | RpcResponse) -> None:
        if isinstance(message, RpcNotification) and message.method == "notifications/cancelled":
            cancelled = message.params.get("requestId")
            for call in session.calls:
                if call.id == cancelled and type(call.id) is type(cancelled):
                    call.stop(None)
        else:
            self._era.take(session, message)

    def _listen(self, session: HttpSession, stream: MessageStream, after: int | None) -> Streaming:
        opening = StreamOpening.PRIMING if can_poll(session.client.protocol_version) else StreamOpening.RETRY

        async def run(sink: Sink) -> None:
            await stream.deliver(sink, after, opening)

        return Streaming(200, sse.HEADERS, run)

    def _ended(self, session: HttpSession) -> None:
        self._era.ended(session, RpcError(STOPPED, "The session ended before the call did; its outcome is unknown."))


def _refused(message: InvalidMessage) -> Response:
    # A request that is well-formed but for its params has an id, and gets its answer there.
    return rpc_error_response(200 if message.error.code == INVALID_PARAMS else 400, message.error, message.id)


def _unknown_session(request_id: Id | None) -> Response:
    error = RpcError(SESSION_NOT_FOUND, "There is no such session (any more); send initialize to start a new one.")
    return rpc_error_response(404, error, request_id)


def _one_event(message: bytes, headers: tuple[tuple[str, str], ...]) -> Streaming:
    async def run(sink: Sink) -> None:
        await sink.write(sse.event(message))

    return Streaming(200, sse.HEADERS + headers, run)


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
    def __init__(self, service: Service, limits: EndpointLimits, watched: WatchedResources) -> None:
        self._era = ModernEra(service, limits, watched)
        self._limits = limits

    async def post(self, value: object, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        message = read(value)
        if isinstance(message, InvalidMessage):
            return rpc_error_response(400, message.error, message.id)
        if isinstance(message, RpcNotification):
            return _notified(headers)
        if not isinstance(message, RpcRequest):
            return rpc_error_response(400, RpcError(INVALID_REQUEST, "In this version a client sends requests only."))
        try:
            envelope = read_envelope(message, headers)
            if message.method == LISTEN:
                return await self._listen(message, accepts)
            stream = MessageStream(self._limits, needs_connection=not accepts.json)
            call = self._era.call(message, envelope, stream, accepts.events)
        except RpcError as error:
            return rpc_error_response(HTTP_STATUS.get(error.code, 200), error, message.id)
        return await self._exchange(call, stream, accepts)

    def broadcast(self, method: str, params: Params | None) -> None:
        self._era.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._era.resource_updated(uri)

    async def close(self) -> None:
        await self._era.close()

    async def _listen(self, request: RpcRequest, accepts: Accepts) -> Answer:
        if not accepts.events:
            return rpc_error_response(
                406, RpcError(INVALID_REQUEST, "A subscription needs a client that accepts text/event-stream.")
            )
        stream = MessageStream(self._limits)
        subscription = await self._era.listen(request, stream)

        async def run(sink: Sink) -> None:
            try:
                await stream.deliver(sink)
            finally:
                self._era.unlisten(subscription)

        return Streaming(200, sse.HEADERS, run)

    async def _exchange(self, call: ModernCall, stream: MessageStream, accepts: Accepts) -> Answer:
        try:
            answers = await stream.plain_answers(self._limits.plain_answer_seconds if accepts.events else None)
        except asyncio.CancelledError:
            call.cancel()
            raise
        if answers is not None:
            return json_response(answers[0], 200 if call.error_code is None else HTTP_STATUS.get(call.error_code, 200))

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
        return rpc_error_response(400, unsupported_version(version))
    return ACCEPTED


JSON_HEADERS: Headers = (("Content-Type", JSON),)
ACCEPTED = Response(202)


def json_response(message: bytes, status: int = 200, headers: Headers = ()) -> Response:
    return Response(status, message, JSON_HEADERS + headers)


def rpc_error_response(status: int, error: RpcError, request_id: Id | None = None) -> Response:
    return json_response(error_message(request_id, error), status)
