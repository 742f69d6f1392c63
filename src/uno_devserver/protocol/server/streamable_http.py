"""Streamable HTTP, the server's end: one endpoint for clients of both eras at the same time.

Every request gets an answer, whatever it contains; every HTTP error except 405 carries a JSON-RPC error that says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from ...system.event_loop import in_loop
from ..http import sse
from ..http.headers import JSON, Accepts, accepted_types, is_json
from ..http.messages import Answer, Headers, Request, Response, Sink, Streaming
from ..http.transport import MemoryBudget
from ..jsonrpc import (
    BUSY,
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
    CANCELLED,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    LISTEN,
    MISSING_CAPABILITY,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    can_poll,
    is_modern,
    read_envelope,
    unsupported_version,
)
from .call_runner import FAILURES, answer_message, failure
from .handshake import HandshakeCall, HandshakeEra
from .http_sessions import HttpSession, HttpSessions
from .limits import DEFAULT_ENDPOINT_LIMITS, EndpointLimits
from .message_stream import MessageKind, MessageStream, StreamOpening
from .modern import ModernCall, ModernEra
from .subscriptions import WatchedResources

SESSION_HEADER = "mcp-session-id"
JSON_HEADERS: Headers = (("Content-Type", JSON),)
ACCEPTED = Response(202)
# The HTTP status of a modern error; other codes have 200.
HTTP_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


class StreamableHttp:
    def __init__(self, service: Service, limits: EndpointLimits = DEFAULT_ENDPOINT_LIMITS) -> None:
        self._limits = limits
        self._watched = WatchedResources(service, limits)
        self._modern = ModernEra(service, limits, self._watched)
        self._modern_http = ModernHttp(self._modern, limits)
        self._handshake = HandshakeEra(service, limits, self._watched)
        self._handshake_http = HandshakeHttp(self._handshake, limits, relays=service.relays)
        self._sessions = self._handshake_http.sessions
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    async def handle(self, request: Request) -> Answer:
        """Answer any request to the endpoint."""
        self._loop = asyncio.get_running_loop()
        if self._closed:
            return _error(503, STOPPED, "The server is stopping.")
        try:
            if request.method == "POST":
                return await self._post(request)
            if request.method in ("GET", "DELETE"):
                return self._get_or_delete(request)
            return Response(405, headers=(("Allow", "DELETE, GET, POST"),))
        except FAILURES:
            return _error_response(500, failure("a request to the MCP endpoint"))

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Notify every session, and every subscription that includes this notification. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Notify all sessions and subscriptions that watch the resource. Safe from any thread."""
        if self._loop is not None:
            in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """Answer and end all calls, sessions and streams, in bounded time. No request is served afterwards."""
        self._closed = True
        self._sessions.close()
        await asyncio.gather(self._handshake.close(), self._modern.close())
        await self._watched.close(self._limits.close_seconds)

    async def _post(self, request: Request) -> Answer:
        accepts = accepted_types(request.headers)
        if not (accepts.json or accepts.events):
            message = "The answer is application/json or text/event-stream; the client must accept both."
            return _error(406, INVALID_REQUEST, message)
        if not is_json(request.headers):
            return _error(415, INVALID_REQUEST, "The Content-Type must be application/json.")
        try:
            body = decode(request.body)
        except RpcError as error:
            return _error_response(400, error)
        if is_modern(request.headers.get(VERSION_HEADER), body):
            return await self._modern_http.post(body, request, accepts)
        return await self._handshake_http.post(body, request, accepts)

    def _get_or_delete(self, request: Request) -> Answer:
        version = request.headers.get(VERSION_HEADER)
        if version in MODERN_VERSIONS:
            return Response(405, headers=(("Allow", "POST"),))
        if request.method == "GET" and not ("accept" in request.headers and accepted_types(request.headers).events):
            # Before all checks that answer 400: launchers probe the server without Accept, and take 400 for a failure.
            return _error(406, INVALID_REQUEST, "The client must accept text/event-stream.")
        if version is not None and version not in HANDSHAKE_VERSIONS:
            return _error_response(400, unsupported_version(version))
        if request.method == "GET":
            return self._handshake_http.get(request.headers)
        return self._handshake_http.delete(request.headers)

    def _broadcast(self, method: str, params: Params | None) -> None:
        data = notification_message(method, params)
        for session in self._sessions:
            session.announce(data)
        self._modern.subscriptions.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        self._handshake.resource_updated(self._sessions, uri)
        self._modern.subscriptions.resource_updated(uri)


class HandshakeHttp:
    """POST, GET and DELETE of the handshake era."""

    def __init__(self, era: HandshakeEra, limits: EndpointLimits, *, relays: bool) -> None:
        self.sessions = HttpSessions(limits, self._ended)
        self._kept_answers = MemoryBudget(limits.kept_bytes)
        self._era = era
        self._limits = limits
        self._relays = relays

    async def post(self, body: object, sent: Request, accepts: Accepts) -> Answer:
        headers = sent.headers
        if isinstance(body, list):
            session = self._session(headers, None)
            return session if isinstance(session, Response) else await self._batch(session, body, sent, accepts)
        message = read(body)
        if isinstance(message, InvalidMessage):
            # A request of which only the params are ill-formed has an id, and is answered like any other.
            return _error_response(200 if message.error.code == INVALID_PARAMS else 400, message.error, message.id)
        if isinstance(message, RpcRequest) and message.method == "initialize":
            return self._initialize(message, headers, accepts)
        session = self._session(headers, message.id if isinstance(message, RpcRequest) else None)
        if isinstance(session, Response):
            return session
        if isinstance(message, RpcRequest):
            return await self._run(session, [message], sent, accepts)
        self._take(session, message, sent)
        return ACCEPTED

    def get(self, headers: Mapping[str, str]) -> Answer:
        """Answer with the stream of messages that belong to no request, or with a stream that is resumed."""
        session = self._session(headers, None)
        if isinstance(session, Response):
            return session
        last = headers.get("last-event-id")
        if not last:
            return self._stream(session, session.standing, None)
        position = sse.position(last)
        stream = session.stream(position[0]) if position is not None else None
        if position is None or stream is None:
            message = f"There is nothing to resume after event '{shown(last)}': it is unknown, or too old."
            return _error(400, INVALID_REQUEST, message)
        return self._stream(session, stream, position[1])

    def delete(self, headers: Mapping[str, str]) -> Answer:
        session = self._session(headers, None)
        if isinstance(session, Response):
            return session
        self.sessions.remove(session)
        return Response(200)

    def _initialize(self, request: RpcRequest, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        try:
            client, result = self._era.initialize(request)
        except RpcError as error:
            return _json_response(error_message(request.id, error))
        session = self._session(headers, request.id) if SESSION_HEADER in headers else self._open(client, request.id)
        if isinstance(session, Response):
            return session
        session.client = client  # some clients send `initialize` again in their session
        message = answer_message(request.id, result)
        header = (("Mcp-Session-Id", session.id),)
        if accepts.json:
            return _json_response(message, headers=header)

        async def run(sink: Sink) -> None:
            await sink.write(sse.event(message))

        return Streaming(200, sse.HEADERS + header, run)

    def _open(self, client: ClientInfo, request_id: Id) -> HttpSession | Response:
        session = HttpSession(client, self._limits, self._kept_answers, relayed=self._relays)
        if not self.sessions.add(session):
            busy = f"All {self._limits.sessions} sessions are in use; end one, or try again later."
            return _error(503, BUSY, busy, request_id)
        self._era.opened(session)
        return session

    def _session(self, headers: Mapping[str, str], request_id: Id | None) -> HttpSession | Response:
        session_id = headers.get(SESSION_HEADER)
        if session_id is None:
            message = "The header Mcp-Session-Id is missing; only initialize is sent without one."
            return _error(400, SESSION_REQUIRED, message, request_id)
        unknown = "There is no session with this id, or it has ended; send initialize to start a new one."
        return self.sessions.get(session_id) or _error(404, SESSION_NOT_FOUND, unknown, request_id)

    async def _batch(self, session: HttpSession, values: list[object], sent: Request, accepts: Accepts) -> Answer:
        version = session.client.protocol_version
        if version != BATCH_VERSION:
            why = f"Version {version} of the protocol has no batches; send each message by itself."
            return _error(400, INVALID_REQUEST, why)
        if not 0 < len(values) <= self._limits.batch:
            return _error(400, INVALID_REQUEST, f"A batch has 1 to {self._limits.batch} messages.")
        requests: list[RpcRequest] = []
        refusals: list[bytes] = []
        for message in map(read, values):
            if isinstance(message, InvalidMessage):
                refusals.append(error_message(message.id, message.error))
            elif not isinstance(message, RpcRequest):
                self._take(session, message, sent)
            elif message.method == "initialize":
                alone = RpcError(INVALID_REQUEST, "initialize cannot be part of a batch.")
                refusals.append(error_message(message.id, alone))
            else:
                requests.append(message)
        if not requests and not refusals:
            return ACCEPTED
        return await self._run(session, requests, sent, accepts, refusals)

    async def _run(
        self,
        session: HttpSession,
        requests: list[RpcRequest],
        sent: Request,
        accepts: Accepts,
        refusals: list[bytes] | None = None,
    ) -> Answer:
        """Run the calls of one POST; answer with JSON, or with a stream if that takes long or other messages come.

        `refusals` are the errors for the invalid messages of a batch; None if this is not a batch.
        """
        stream = session.open_stream(needs_connection=not accepts.json)
        for message in refusals or ():
            stream.send(message, MessageKind.ANSWER)
        calls = [HandshakeCall(session, request, stream, accepts.events) for request in requests]
        self._era.start(calls, partial(session.settle, stream))
        for call in calls:  # they may outlive the connection
            sent.keep_until(call.task)
        answers = await stream.plain_answers(self._limits.plain_answer_seconds if accepts.events else None)
        if answers is None:
            return self._stream(session, stream, 0)
        if not answers:
            return ACCEPTED  # cancelled: the client does not wait for an answer
        return _json_response(answers[0] if refusals is None else b"[" + b",".join(answers) + b"]")

    def _take(self, session: HttpSession, message: RpcNotification | RpcResponse, sent: Request) -> None:
        if isinstance(message, RpcNotification) and message.method == CANCELLED:
            cancelled = message.params.get("requestId")
            for call in session.calls:
                if call.id == cancelled and type(call.id) is type(cancelled):
                    call.stop(None)
        elif (task := self._era.take(session, message)) is not None:
            sent.keep_until(task)

    def _stream(self, session: HttpSession, stream: MessageStream, after: int | None) -> Streaming:
        opening = StreamOpening.PRIMING if can_poll(session.client.protocol_version) else StreamOpening.RETRY

        async def run(sink: Sink) -> None:
            await stream.deliver(sink, after, opening)

        return Streaming(200, sse.HEADERS, run)

    def _ended(self, session: HttpSession) -> None:
        self._era.ended(session, RpcError(STOPPED, "The session ended before the call did; its outcome is unknown."))


class ModernHttp:
    """POST of the modern era."""

    def __init__(self, era: ModernEra, limits: EndpointLimits) -> None:
        self._era = era
        self._limits = limits

    async def post(self, body: object, sent: Request, accepts: Accepts) -> Answer:
        headers, message = sent.headers, read(body)
        if isinstance(message, InvalidMessage):
            return _error_response(400, message.error, message.id)
        if isinstance(message, RpcNotification):
            # This era has no notifications from clients over HTTP, but some clients send them.
            version = headers.get(VERSION_HEADER)
            return ACCEPTED if version in MODERN_VERSIONS else _error_response(400, unsupported_version(version))
        if not isinstance(message, RpcRequest):
            return _error(400, INVALID_REQUEST, "In this version a client sends requests only.")
        try:
            envelope = read_envelope(message, headers)
            if message.method == LISTEN:
                return await self._listen(message, accepts)
            stream = MessageStream(self._limits, needs_connection=not accepts.json)
            call = self._era.call(message, envelope, stream, accepts.events)
            sent.keep_until(call.task)  # it may wait for answers after its connection
        except RpcError as error:
            return _error_response(HTTP_STATUS.get(error.code, 200), error, message.id)
        return await self._answer(call, stream, accepts)

    async def _listen(self, request: RpcRequest, accepts: Accepts) -> Answer:
        if not accepts.events:
            return _error(406, INVALID_REQUEST, "A subscription needs a client that accepts text/event-stream.")
        stream = MessageStream(self._limits)
        subscription = await self._era.listen(request, stream)

        async def run(sink: Sink) -> None:
            try:
                await stream.deliver(sink)
            finally:
                self._era.subscriptions.remove(subscription)

        return Streaming(200, sse.HEADERS, run)

    async def _answer(self, call: ModernCall, stream: MessageStream, accepts: Accepts) -> Answer:
        """Answer with JSON, or with a stream if other messages come first. A client that leaves cancels the call."""
        try:
            answers = await stream.plain_answers(self._limits.plain_answer_seconds if accepts.events else None)
        except asyncio.CancelledError:
            call.cancel()
            raise
        if answers is not None:
            return _json_response(answers[0], 200 if call.error_code is None else HTTP_STATUS.get(call.error_code, 200))

        async def run(sink: Sink) -> None:
            try:
                await stream.deliver(sink)
            finally:
                if not stream.ended:
                    call.cancel()

        return Streaming(200, sse.HEADERS, run)


def _error(status: int, code: int, message: str, request_id: Id | None = None) -> Response:
    return _error_response(status, RpcError(code, message), request_id)


def _error_response(status: int, error: RpcError, request_id: Id | None = None) -> Response:
    return _json_response(error_message(request_id, error), status)


def _json_response(message: bytes, status: int = 200, headers: Headers = ()) -> Response:
    return Response(status, message, JSON_HEADERS + headers)
