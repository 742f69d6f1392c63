"""A conversation of the handshake era over Streamable HTTP: a session that is renewed if the server forgets it.

A request is repeated only if the server did not know its session: then the server has not run it. A stream that broke
before the answer came is resumed if the server allows it; otherwise the request fails with `ConnectionLost`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from ...system.event_loop import Tasks
from ...system.log import log
from ..http.client import encode_headers
from ..http.client_connection import HttpFailure
from ..http.sse import EVENT_STREAM, EventReader
from ..jsonrpc import (
    METHOD_NOT_FOUND,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    RpcError,
    notification_message,
    request_message,
    shown,
)
from ..versions import CANCELLED, INITIALIZED, UNSUPPORTED_VERSION
from .backoff import Backoff
from .change_subscription import WatchedUris, announce_all_lists
from .connection import AccessDenied, ConnectionLost, ServerDescription, UnusableServer
from .http_call import HttpCall
from .http_endpoint import COMMON_HEADERS, NOT_RUN, Endpoint, NotMcp, StreamCut, hear_events, media_type
from .raw_messages import (
    NOTHING,
    RawMessage,
    initialize_params,
    initialized_server,
    opened_params,
    result_in,
    without_envelope,
)
from .server_requests import ServerQuestions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..http.client_connection import Reply
    from ..service import Params
    from .connection import Peer, PendingCall

LISTENING_SECONDS = 0.5  # for the answer to the GET request; most servers answer at once
CLOSE_SECONDS = 1.0

# These are not passed on. The connection sends its own: the server does not know the ids of a client's requests.
OWN_NOTIFICATIONS = frozenset({INITIALIZED, CANCELLED})


class _Session:
    def __init__(self, session_id: str | None, server: ServerDescription) -> None:
        self.id = session_id
        self.server = server
        named = {} if session_id is None else {"Mcp-Session-Id": session_id}
        self.headers = encode_headers({**COMMON_HEADERS, "MCP-Protocol-Version": server.version, **named})
        self.listening = asyncio.Event()  # set when the GET request is answered


class _SessionGone(Exception):
    """The server does not seem to know the session, nor to have run the request. `certain`: it answered 404."""

    def __init__(self, why: RpcError, *, certain: bool) -> None:
        super().__init__(why.message)
        self.why = why
        self.certain = certain


class HandshakeConnection:
    @classmethod
    async def open(cls, endpoint: Endpoint, peer: Peer) -> HandshakeConnection:
        """Open a session. RpcError, NotMcp or UnusableServer if the server does not speak this era."""
        connection = cls(endpoint, peer)
        connection._begin(await connection._shake_hands())
        return connection

    def __init__(self, endpoint: Endpoint, peer: Peer) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._ids = count(1)
        self._session: _Session
        self._questions = ServerQuestions(self._post)
        self._renewing = asyncio.Lock()
        self._renewals = Backoff()  # for the work on new sessions that no request waits for
        self._listener: asyncio.Task[None] | None = None
        self._tasks = Tasks()
        self._watching = asyncio.Lock()
        self._wanted: frozenset[str] = frozenset()  # the resources to watch in every session
        self._watched = WatchedUris(lambda method, params: self.request(method, params, self._peer))  # in this session
        self._level: str | None = None
        self._closed = False

    @property
    def server(self) -> ServerDescription:
        return self._session.server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        if self._closed:
            raise ConnectionLost("The connection is closed.", sent=False)
        session = self._session
        params = without_envelope(params)
        try:
            return await self._call(session, method, params, peer)
        except _SessionGone:
            return await self._call_again(session, method, params, peer)

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:  # noqa: ARG002
        if self._closed:
            return False
        session = self._session
        http_call = HttpCall(call, next(self._ids), self._endpoint, partial(self._finished, session, call, params))
        return http_call.send(session.headers, params)

    def flush(self) -> None:
        """Do nothing: `send` writes each call at once."""

    def cancel(self, call: PendingCall) -> None:
        http_call = call.ticket
        assert isinstance(http_call, HttpCall)
        http_call.cancel()
        self._send_cancelled(http_call.request_id)

    async def notify(self, method: str, params: Params) -> None:
        if method not in OWN_NOTIFICATIONS:
            await self._post(notification_message(method, without_envelope(params)))

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        self._wanted = uris
        async with self._watching:
            refusals = await self._watched.change(uris)
        try:
            await asyncio.wait_for(self._session.listening.wait(), LISTENING_SECONDS)
        except TimeoutError:
            log.debug(f"{self._endpoint.url} has not opened the stream of its notifications yet")
        return refusals

    async def set_level(self, level: str) -> None:
        self._level = level
        if "logging" in self.server.capabilities:
            await self.request("logging/setLevel", {"level": level}, self._peer)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._questions.close()
        self._tasks.cancel()
        if self._listener is not None:
            self._listener.cancel()
        self._endpoint.break_off()
        try:
            if self._session.id is not None:
                async with asyncio.timeout(CLOSE_SECONDS):
                    (await self._endpoint.send("DELETE", self._session.headers)).release()
        except (TimeoutError, ConnectionLost, AccessDenied) as error:
            log.debug(f"the session could not be ended: {error}")
        finally:
            self._endpoint.close()

    # --- the session

    async def _shake_hands(self) -> _Session:
        request_id = next(self._ids)
        body = request_message(request_id, "initialize", initialize_params(self._peer.client))
        reply = await self._endpoint.send("POST", encode_headers(COMMON_HEADERS), body)
        message = await self._endpoint.answer(reply, request_id, self._hear(self._peer))
        session = _Session(reply.headers.get("mcp-session-id"), initialized_server(result_in(message)))
        done = notification_message(INITIALIZED, None)
        (await self._endpoint.send("POST", session.headers, done)).release()
        return session

    def _begin(self, session: _Session) -> None:
        self._session = session
        self._listener = asyncio.create_task(self._listen(session))

    async def _renewed(self, old: _Session) -> _Session:
        """The session in place of one that the server has forgotten; a new one, unless another task has opened it."""
        async with self._renewing:
            if self._session is old:
                log.debug(f"{self._endpoint.url} has forgotten the session; a new one is opened")
                try:
                    session = await self._shake_hands()
                except AccessDenied:
                    raise
                except (ConnectionLost, UnusableServer, RpcError, NotMcp, StreamCut) as error:
                    why = f"The server at {self._endpoint.url} forgot the session, and opens no new one: {error}"
                    raise ConnectionLost(why, sent=False) from error
                if self._closed:
                    raise ConnectionLost("The connection is closed.", sent=False)
                self._begin(session)
                self._in_background(self._restore)
            return self._session

    async def _restore(self) -> None:
        """Send log level and watches again after a pause, and notify the client of a change of every list."""
        await asyncio.sleep(self._renewals.next())
        self._watched.forget()
        try:
            if self._level is not None:
                await self.set_level(self._level)
            await self.watch(self._wanted)
        except (RpcError, ConnectionLost, AccessDenied) as error:
            log.debug(f"the new session lacks something of the former one: {error}")
        announce_all_lists(self._peer, self.server)

    # --- requests

    async def _call(self, session: _Session, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        request_id = next(self._ids)
        try:
            reply = await self._endpoint.send("POST", session.headers, request_message(request_id, method, params))
            return await self._result(session, reply, request_id, peer)
        except asyncio.CancelledError:
            self._send_cancelled(request_id)
            raise

    async def _finished(
        self, session: _Session, call: PendingCall, params: bytes, reply: Reply, request_id: int
    ) -> msgspec.Raw:
        """The result of a call whose answer is not plain JSON."""
        if reply.status in NOT_RUN:  # redirects and refused credentials are handled by `request`
            reply.release()
            return await self.request("tools/call", opened_params(params), call)
        try:
            return await self._result(session, reply, request_id, call)
        except _SessionGone:
            return await self._call_again(session, "tools/call", opened_params(params), call)

    async def _call_again(self, forgotten: _Session, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        """Repeat a request in a new session."""
        session = await self._renewed(forgotten)
        try:
            return await self._call(session, method, params, peer)
        except _SessionGone as gone:
            if not gone.certain:
                raise gone.why from None
            raise ConnectionLost(
                f"The server at {self._endpoint.url} forgets its sessions: {gone}", sent=False
            ) from None

    def _send_cancelled(self, request_id: int) -> None:
        cancelled = {"requestId": request_id, "reason": "The client has cancelled the request."}
        self._in_background(partial(self._post, notification_message(CANCELLED, cancelled)))

    async def _result(self, session: _Session, reply: Reply, request_id: int, peer: Peer) -> msgspec.Raw:
        """The result in the answer to a request; _SessionGone if the server seems not to know the session."""
        hear = self._hear(peer)
        try:
            try:
                message = await self._endpoint.answer(reply, request_id, hear)
            except StreamCut as cut:
                message = await resumed_answer(self._endpoint, session.headers, cut, request_id, hear)
        except NotMcp as other:
            if other.status == 404 and session.id is not None:
                raise _SessionGone(other.as_error(), certain=True) from None
            raise other.as_error() from None
        try:
            return result_in(message)
        except RpcError as error:
            if session.id is not None and _forgot_session(reply.status, message, error):
                raise _SessionGone(error, certain=reply.status == 404) from None
            other_era = reply.status == 400 and error.code == UNSUPPORTED_VERSION
            self._endpoint.check_same_server(reply.status, error, other_era)
            raise

    def _hear(self, peer: Peer) -> Callable[[RawMessage], None]:
        return lambda message: self._questions.take(message, peer)

    async def _post(self, message: bytes) -> None:
        """Send a message that has no answer."""
        reply = await self._endpoint.send("POST", self._session.headers, message)
        reply.release()
        if reply.status >= 400:
            log.debug(f"{self._endpoint.url} refused a message: HTTP {reply.status}")

    def _in_background(self, work: Callable[[], Awaitable[None]]) -> None:
        if not self._closed:
            self._tasks.start(_quietly(work))

    # --- messages that belong to no request

    async def _listen(self, session: _Session) -> None:
        """Receive messages until the session is replaced, or the server turns out to send none."""
        last_id: bytes | None = None
        first = True  # the first 404 may come from a server that knows only POST, and does not mean a forgotten session
        missed = False  # whether notifications may have been missed, because the stream could not be resumed
        backoff = Backoff()
        while self._session is session:
            reader = EventReader()
            used = self._endpoint.credentials
            try:
                reply = await self._endpoint.send("GET", resume_headers(session.headers, last_id))
                session.listening.set()
                if reply.status == 404 and session.id is not None and not first:
                    reply.release()
                    await asyncio.sleep(self._renewals.next())
                    await self._renewed(session)
                    return
                if reply.status != 200 or media_type(reply) != EVENT_STREAM:
                    reply.release()
                    if last_id is None:
                        return  # the server sends no such messages; most say so with 405
                    last_id, missed = None, True  # the server has not kept the events after `last_id`
                    continue
                if missed:
                    announce_all_lists(self._peer, self.server)
                await hear_events(reply, reader, self._hear_all)
                wait = retry_pause(reader.retry_ms)
            except (HttpFailure, ConnectionLost, RpcError) as error:
                log.debug(f"the stream of {self._endpoint.url} has broken: {error}")
                wait = backoff.next()
            except AccessDenied as denied:
                log.debug(f"{self._endpoint.url} does not open the stream of its notifications: {denied}")
                await self._endpoint.until_other_credentials(used)
                wait = 0.0
            last_id = reader.last_id or last_id
            missed = last_id is None
            first = False
            await asyncio.sleep(wait)

    def _hear_all(self, message: RawMessage) -> bool:
        self._questions.take(message, self._peer)
        return False


def _forgot_session(status: int, answer: RawMessage, error: RpcError) -> bool:
    """Whether the error means that the server does not know the session: 404, or 400 from some that were restarted.

    The latter refuse the request before they have read its id. An answer with the id, and without the word "session",
    may be the error of a call that ran.
    """
    if status == 404:
        return error.code != METHOD_NOT_FOUND
    unread = answer.id in NOTHING or "session" in error.message.lower()
    return status == 400 and error.code in (SESSION_REQUIRED, SESSION_NOT_FOUND) and unread


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    # `work` is a function, because a coroutine would never be awaited if the task is cancelled before its first step.
    try:
        await work()
    except (ConnectionLost, AccessDenied) as lost:
        log.debug(f"a message could not be sent: {shown(str(lost))}")


# --- streams that are resumed

RETRY_SECONDS = 1.0  # the pause before resuming, unless the server sets one
LONGEST_RETRY_SECONDS = 300.0
SHORTEST_RETRY_SECONDS = 0.05  # a server that sets 0 and ends each stream at once must not keep us busy
MAX_BREAKS = 5  # broken connections in a row, without an event in between


async def resumed_answer(
    endpoint: Endpoint, headers: bytes, cut: StreamCut, request_id: int, hear: Callable[[RawMessage], None]
) -> RawMessage:
    """The answer, after its stream was cut once or several times. ConnectionLost if the server has not kept it."""
    last_id, retry_ms, breaks = None, None, 0
    while True:
        heard = cut.reader.last_id not in (None, last_id)
        last_id = cut.reader.last_id or last_id
        retry_ms = retry_ms if cut.reader.retry_ms is None else cut.reader.retry_ms
        breaks = breaks + 1 if cut.broken and not heard else 0
        if last_id is None or breaks > MAX_BREAKS:
            raise ConnectionLost(str(cut), sent=True)
        if breaks or not cut.broken:
            await asyncio.sleep(retry_pause(retry_ms))
        reply = await _resume(endpoint, resume_headers(headers, last_id))
        try:
            return await endpoint.answer_in_events(reply, request_id, hear)
        except StreamCut as again:
            cut = again


def resume_headers(headers: bytes, last_id: bytes | None) -> bytes:
    return headers if last_id is None else b"%bLast-Event-ID: %b\r\n" % (headers, last_id)


def retry_pause(retry_ms: int | None) -> float:
    seconds = RETRY_SECONDS if retry_ms is None else retry_ms / 1000
    return min(max(seconds, SHORTEST_RETRY_SECONDS), LONGEST_RETRY_SECONDS)


async def _resume(endpoint: Endpoint, headers: bytes) -> Reply:
    try:
        reply = await endpoint.send("GET", headers)
    except (ConnectionLost, AccessDenied) as lost:
        raise ConnectionLost(str(lost), sent=True) from None  # the request itself was sent
    if reply.status != 200 or media_type(reply) != EVENT_STREAM:
        reply.release()
        raise ConnectionLost(f"The server at {endpoint.url} does not keep the answer: HTTP {reply.status}.", sent=True)
    return reply
