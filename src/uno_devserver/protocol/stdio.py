"""MCP over lines, the server's end: one client, which may speak both eras at the same time.

Every request is answered once, or not at all when its client has cancelled it; after that nothing is said for it.
Requests run beside each other, whatever their era. Everything but `broadcast` and `resource_updated` is used in the
event loop that it was made in.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial

from ..system.log import ERROR, log
from .calls import HandshakeCall
from .channel import Kind
from .eras import BATCH_VERSION, HANDSHAKE_VERSIONS, MODERN_VERSIONS, NEWEST_HANDSHAKE, envelope_of, has_envelope
from .followed import Followed
from .handshake import Handshake
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    STOPPED,
    Id,
    Refused,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    error_message,
    is_id,
    notification_message,
    read,
    shown,
)
from .modern import LISTEN, Modern
from .modern_calls import ModernSession
from .parties import ClientInfo
from .policy import DEFAULT_POLICY, Policy
from .running import FAILURES, Outcome, Tasks, answer_message, attempt, in_loop, stopped
from .service import Params, Service
from .session import Session

# Who has said nothing about itself.
UNKNOWN_CLIENT = ClientInfo(None, None, {}, NEWEST_HANDSHAKE)
UNKNOWN_MODERN_CLIENT = ClientInfo(None, None, {}, MODERN_VERSIONS[-1])

Write = Callable[[bytes], None]


class Stdio:
    """`write` gets whole messages, each without a line break in it or behind it. It neither waits nor fails."""

    def __init__(self, service: Service, write: Write, policy: Policy = DEFAULT_POLICY) -> None:
        self._service = service
        self._write = write
        self._policy = policy
        self._followed = Followed(service)
        self._handshake = Handshake(service, policy, self._followed)
        self._modern = Modern(service, policy, self._followed)
        self._session: Session | None = None
        self._running: dict[Id, _Request] = {}
        self._opening = Tasks()  # of subscriptions
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def session(self) -> Session | None:
        """The client as one of the handshake era, if it has been that."""
        return self._session

    def take(self, value: object) -> None:
        """A message of the client, decoded; or several, where its version has batches."""
        if isinstance(value, list):
            self._batch(value)
            return
        message = read(value)
        if isinstance(message, RpcRequest):
            self._request(message)
        elif isinstance(message, Refused):
            self._refuse(value, message)
        elif isinstance(message, RpcNotification) and message.method == "notifications/cancelled":
            self._cancel(message.params.get("requestId"))
        elif not self._closed:
            self._hear(message)

    def introduce(self, client: ClientInfo) -> None:
        """Somebody has said who it is, and was answered; a modern client needs no session."""
        if client.protocol_version not in HANDSHAKE_VERSIONS:
            return
        if self._session is None:
            self._open(client)
        else:
            self._session.client = client  # some clients shake hands again

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Tell the client, and every subscription that asked for it. Safe from any thread."""
        in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Tell it if the client, or one of its subscriptions, watches that resource. Safe from any thread."""
        in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """End everything, each with a last word; bounded in time, and for good."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            self._handshake.ended(session, stopped())
        self._opening.cancel()
        await asyncio.gather(self._handshake.close(), self._modern.close())
        for line in list(self._running.values()):  # those that did not let themselves be stopped in time
            line.answer(stopped())
        await self._followed.close(self._policy.close_seconds)

    def _request(self, request: RpcRequest) -> None:
        if request.id in self._running:
            message = "A request with this id still runs; it goes on, and this one does not begin."
            self._write(error_message(request.id, RpcError(INVALID_REQUEST, message)))
            return
        line = _Request(self._write, request.id, self._running)
        try:
            self._begin(request, line)
        except RpcError as error:
            line.answer(error)
        except FAILURES:
            log.write(ERROR, f"'{request.method}' failed:\n{traceback.format_exc()}")
            line.answer(RpcError(INTERNAL_ERROR, "The server failed on this request; its log says why."))

    def _begin(self, request: RpcRequest, line: _Request) -> None:
        if self._closed:
            raise RpcError(STOPPED, "The server is stopping.")
        if request.method == "server/discover" or has_envelope(request.params):
            self._begin_modern(request, line)
        elif request.method == "initialize":
            client, result = self._handshake.initialize(request)
            line.answer(result)  # first: whoever hears of the client may have something to say to it
            self.introduce(client)
        elif request.method == "ping":
            line.answer({})
        else:
            # Without a handshake, too: there is only one client, and nothing to mistake it for.
            call = HandshakeCall(self._session or self._open(UNKNOWN_CLIENT), request, line)
            line.withdraw = partial(call.stop, None)
            self._handshake.start([call], line.end)

    def _begin_modern(self, request: RpcRequest, line: _Request) -> None:
        envelope = envelope_of(request.params)
        if request.method == LISTEN:
            line.withdraw = self._opening.start(self._listen(request, line)).cancel
        else:
            line.withdraw = self._modern.call(request, envelope, line).withdraw

    async def _listen(self, request: RpcRequest, line: _Request) -> None:
        opened = await attempt(self._modern.listen(request, line), LISTEN)
        if isinstance(opened, RpcError):
            line.answer(opened)
        else:
            line.withdraw = partial(self._modern.unlisten, opened)

    def _cancel(self, request_id: object) -> None:
        line = self._running.pop(request_id, None) if is_id(request_id) else None
        if line is not None:
            line.withdraw()

    def _hear(self, message: RpcNotification | RpcResponse) -> None:
        if self._session is not None:
            self._handshake.take(self._session, message)
        elif isinstance(message, RpcNotification):
            self._handshake.notified(ModernSession(UNKNOWN_MODERN_CLIENT), message)
        else:
            log.debug(f"a client answered {shown(repr(message.id))}, but it has not been asked anything")

    def _batch(self, values: list[object]) -> None:
        version = None if self._session is None else self._session.client.protocol_version
        if version != BATCH_VERSION or not 0 < len(values) <= self._policy.batch:
            message = f"Only {BATCH_VERSION} has batches, of 1 to {self._policy.batch} messages; send each by itself."
            self._write(error_message(None, RpcError(INVALID_REQUEST, message)))
            return
        for value in values:
            # One in another would be as deep as somebody likes.
            self.take(None if isinstance(value, list) else value)

    def _refuse(self, value: object, message: Refused) -> None:
        if isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value):
            # The client would take an error for the answer to a request of its own.
            log.debug(f"a client sent an answer that is none: {message.error.message}")
        else:
            self._write(error_message(message.id, message.error))

    def _open(self, client: ClientInfo) -> Session:
        self._session = Session(client, self._policy, _Line(self._write), relayed=self._service.relays)
        self._handshake.opened(self._session)
        return self._session

    def _broadcast(self, method: str, params: Params | None) -> None:
        if self._session is not None:
            self._session.announce(notification_message(method, params))
        self._modern.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        if self._session is not None:
            self._handshake.resource_updated([self._session], uri)
        self._modern.resource_updated(uri)


class _Line:
    """Implements `channel.Channel`: what is said is written at once."""

    def __init__(self, write: Write) -> None:
        self.ended = False
        self._write = write

    def send(self, data: bytes, kind: Kind = Kind.NOTIFICATION) -> None:  # noqa: ARG002
        if not self.ended:
            self._write(data)

    def send_once(self, data: bytes) -> None:
        self.send(data)

    def end(self) -> None:
        self.ended = True

    def hang_up(self) -> None:
        """Nothing: the client could not come back."""


class _Request(_Line):
    """A request that runs, until it is answered."""

    def __init__(self, write: Write, request_id: Id, running: dict[Id, _Request]) -> None:
        super().__init__(write)
        self.withdraw: Callable[[], object] = self.end  # what is to be done when the client cancels it
        self._id = request_id
        self._running = running
        running[request_id] = self

    def answer(self, said: Outcome) -> None:
        self.send(answer_message(self._id, said), Kind.ANSWER)
        self.end()

    def end(self) -> None:
        super().end()
        if self._running.get(self._id) is self:  # a client that cancelled it may have used its id again
            del self._running[self._id]
