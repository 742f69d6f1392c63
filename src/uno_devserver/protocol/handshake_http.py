"""The handshake era over HTTP: sessions, calls whose answers survive a lost connection, and a stream to listen on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from . import sse
from .calls import HandshakeCall
from .channel import Kind
from .eras import BATCH_VERSION, can_poll
from .followed import Followed
from .handshake import Handshake
from .http.messages import Answer, Response, Sink, Streaming
from .jsonrpc import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    STOPPED,
    Id,
    Refused,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    error_message,
    read,
    shown,
)
from .media import Accepts
from .parties import ClientInfo
from .policy import Policy
from .replies import ACCEPTED, plain, refusal
from .running import answer_message
from .service import Service
from .sessions import HttpSession, Sessions
from .streams import Opening, Stream

SESSION_HEADER = "mcp-session-id"


class HandshakeHttp:
    def __init__(self, service: Service, policy: Policy, followed: Followed) -> None:
        self.sessions = Sessions(policy, self._ended)
        self._era = Handshake(service, policy, followed)
        self._relays = service.relays
        self._policy = policy

    async def post(self, value: object, headers: Mapping[str, str], accepts: Accepts) -> Answer:
        if isinstance(value, list):
            session = self._session(headers, None)
            return session if isinstance(session, Response) else await self._batch(session, value, accepts)
        message = read(value)
        if isinstance(message, Refused):
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
            return refusal(400, RpcError(INVALID_REQUEST, message))
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
            return plain(error_message(request.id, error))
        session = self._session(headers, request.id) if SESSION_HEADER in headers else self._open(client, request.id)
        if isinstance(session, Response):
            return session
        session.client = client  # some clients shake hands again in their session
        message = answer_message(request.id, result)
        header = (("Mcp-Session-Id", session.id),)
        return plain(message, headers=header) if accepts.json else _one_event(message, header)

    def _open(self, client: ClientInfo, request_id: Id) -> HttpSession | Response:
        session = HttpSession(client, self._policy, relayed=self._relays)
        if not self.sessions.add(session):
            busy = f"All {self._policy.sessions} sessions are in use; end one, or try again later."
            return refusal(503, RpcError(BUSY, busy), request_id)
        self._era.opened(session)
        return session

    def _session(self, headers: Mapping[str, str], request_id: Id | None) -> HttpSession | Response:
        known = headers.get(SESSION_HEADER)
        if known is None:
            message = "The header Mcp-Session-Id is missing; only initialize is sent without one."
            return refusal(400, RpcError(SESSION_REQUIRED, message), request_id)
        return self.sessions.get(known) or _unknown_session(request_id)

    async def _batch(self, session: HttpSession, values: list[object], accepts: Accepts) -> Answer:
        version = session.client.protocol_version
        if version != BATCH_VERSION:
            why = f"Version {version} of the protocol has no batches; send each message by itself."
            return refusal(400, RpcError(INVALID_REQUEST, why))
        if not 0 < len(values) <= self._policy.batch:
            return refusal(400, RpcError(INVALID_REQUEST, f"A batch has 1 to {self._policy.batch} messages."))
        requests: list[RpcRequest] = []
        refusals: list[bytes] = []
        for message in map(read, values):
            if isinstance(message, Refused):
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
            stream.send(message, Kind.ANSWER)
        calls = [HandshakeCall(session, request, stream, accepts.events) for request in requests]
        self._era.start(calls, partial(session.settle, stream))
        answers = await stream.plain_answers(self._policy.plain_answer_seconds if accepts.events else None)
        if answers is None:
            return self._listen(session, stream, 0)
        if not answers:
            return ACCEPTED  # cancelled: the client does not want to hear of it
        return plain(answers[0] if refusals is None else b"[" + b",".join(answers) + b"]")

    def _take(self, session: HttpSession, message: RpcNotification | RpcResponse) -> None:
        if isinstance(message, RpcNotification) and message.method == "notifications/cancelled":
            cancelled = message.params.get("requestId")
            for call in session.calls:
                if call.id == cancelled and type(call.id) is type(cancelled):
                    call.stop(None)
        else:
            self._era.take(session, message)

    def _listen(self, session: HttpSession, stream: Stream, after: int | None) -> Streaming:
        opening = Opening.PRIMING if can_poll(session.client.protocol_version) else Opening.RETRY

        async def run(sink: Sink) -> None:
            await stream.deliver(sink, after, opening)

        return Streaming(200, sse.HEADERS, run)

    def _ended(self, session: HttpSession) -> None:
        self._era.ended(session, RpcError(STOPPED, "The session ended before the call did; its outcome is unknown."))


def _refused(message: Refused) -> Response:
    # A request that is well-formed but for its params has an id, and gets its answer there.
    return refusal(200 if message.error.code == INVALID_PARAMS else 400, message.error, message.id)


def _unknown_session(request_id: Id | None) -> Response:
    error = RpcError(SESSION_NOT_FOUND, "There is no such session (any more); send initialize to start a new one.")
    return refusal(404, error, request_id)


def _one_event(message: bytes, headers: tuple[tuple[str, str], ...]) -> Streaming:
    async def run(sink: Sink) -> None:
        await sink.write(sse.event(message))

    return Streaming(200, sse.HEADERS + headers, run)
