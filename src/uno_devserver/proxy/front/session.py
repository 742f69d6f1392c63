"""The client on standard input and output: its open requests, in both eras at the same time.

Every request is answered once, or not at all when its client has cancelled it; after that nothing is said for it. The
messages come decoded and validated from the front. Everything but `broadcast` and `resource_updated` is used in the
engine's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ...protocol.jsonrpc import (
    BUSY,
    INVALID_REQUEST,
    STOPPED,
    Id,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    error_message,
    is_id,
    notification_message,
    shown,
)
from ...protocol.peer_info import ClientInfo
from ...protocol.server.call_runner import FAILURES, Outcome, answer_message, attempt, failure, stopped
from ...protocol.server.handshake import HandshakeCall, HandshakeEra, HandshakeSession
from ...protocol.server.limits import DEFAULT_ENDPOINT_LIMITS, EndpointLimits
from ...protocol.server.message_stream import MessageKind
from ...protocol.server.modern import ModernEra, ModernSession
from ...protocol.server.subscriptions import WatchedResources
from ...protocol.versions import (
    CANCELLED,
    HANDSHAKE_VERSIONS,
    LISTEN,
    MODERN_VERSIONS,
    NEWEST_HANDSHAKE,
    envelope_of,
    has_envelope,
)
from ...system.event_loop import Tasks, in_loop
from ...system.log import log

if TYPE_CHECKING:
    from ...protocol.server.call_runner import Answerer
    from ...protocol.service import Params, Service

# A client that has said nothing about itself.
UNKNOWN_CLIENT = ClientInfo(None, None, {}, NEWEST_HANDSHAKE)
UNKNOWN_MODERN_CLIENT = ClientInfo(None, None, {}, MODERN_VERSIONS[-1])

# There is one client, which is not refused for asking much at once: what it may leave unread bounds it.
SESSION_LIMITS = DEFAULT_ENDPOINT_LIMITS.replace(calls=100_000)

Write = Callable[[bytes], None]


class OpenRequest(Protocol):
    """A request that has not been answered."""

    def withdraw(self) -> object:
        """The client has cancelled it: nothing is said for it any more."""

    def stop(self) -> None:
        """The proxy ends: answer that the outcome is unknown."""


class StdioSession:
    """`write` gets whole messages, each without a line break in it or behind it. It neither waits nor fails."""

    def __init__(self, service: Service, write: Write, limits: EndpointLimits = SESSION_LIMITS) -> None:
        self._service = service
        self._write = write
        self._limits = limits
        self._watched = WatchedResources(service)
        self._handshake = HandshakeEra(service, limits, self._watched)
        self._modern = ModernEra(service, limits, self._watched)
        self.session: HandshakeSession | None = None  # the client as one of the handshake era, if it has been that
        self._opening = Tasks()  # of subscriptions
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.open: dict[Id, OpenRequest] = {}
        self.limit = limits.calls  # of open requests; 0 when it is closed

    def take(self, message: RpcRequest | RpcNotification | RpcResponse) -> None:
        if isinstance(message, RpcRequest):
            self.begin(message)
        elif isinstance(message, RpcNotification) and message.method == CANCELLED:
            self._cancel(message.params.get("requestId"))
        elif not self._closed:
            self._hear(message)

    def introduce(self, client: ClientInfo) -> None:
        """The client has said who it is; a modern one needs no session."""
        if client.protocol_version not in HANDSHAKE_VERSIONS:
            return
        if self.session is None:
            self._open(client)
        else:
            self.session.client = client  # some clients shake hands again

    def begin(
        self, request: RpcRequest, answer: Answerer | None = None, ended: Callable[[], None] | None = None
    ) -> None:
        """Run it to its answer; `answer`: who gives that instead of the service. `ended` is called when it is over."""
        if request.id in self.open:
            message = "A request with this id still runs; it goes on, and this one does not begin."
            self._write(error_message(request.id, RpcError(INVALID_REQUEST, message)))
            return
        line = _Request(self._write, request.id, self.open, ended)
        try:
            self._begin(request, line, answer)
        except RpcError as error:
            line.answer(error)
        except FAILURES:
            line.answer(failure(f"'{shown(request.method)}'"))

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Tell the client, and every subscription that asked for it. Safe from any thread."""
        in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Tell it if the client, or one of its subscriptions, watches that resource. Safe from any thread."""
        in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """Answer what is open, and end; bounded in time, and for good."""
        self._closed, self.limit = True, 0
        session, self.session = self.session, None
        if session is not None:
            self._handshake.ended(session, stopped())
        self._opening.cancel()
        await asyncio.gather(self._handshake.close(), self._modern.close())
        for request in list(self.open.values()):  # relayed calls, and those that did not let themselves be stopped
            request.stop()
        await self._watched.close(self._limits.close_seconds)

    def _begin(self, request: RpcRequest, line: _Request, answer: Answerer | None) -> None:
        if self._closed:
            raise RpcError(STOPPED, "The server is stopping.")
        if len(self.open) > self.limit:
            raise RpcError(BUSY, f"{self.limit} requests of this client run already.")
        if not has_envelope(request.params):
            # Without a handshake, too: there is only one client, and nothing to mistake it for.
            call = HandshakeCall(self.session or self._open(UNKNOWN_CLIENT), request, line)
            line.withdraw = partial(call.stop, None)
            self._handshake.start([call], line.end, answer)
        elif request.method == LISTEN:
            line.withdraw = self._opening.start(self._listen(request, line)).cancel
        else:
            envelope = envelope_of(request.params)
            line.withdraw = self._modern.call(request, envelope, line, answer=answer).withdraw

    async def _listen(self, request: RpcRequest, line: _Request) -> None:
        opened = await attempt(self._modern.listen(request, line), LISTEN)
        if isinstance(opened, RpcError):
            line.answer(opened)
        else:
            line.withdraw = partial(self._modern.subscriptions.remove, opened)

    def _cancel(self, request_id: object) -> None:
        request = self.open.pop(request_id, None) if is_id(request_id) else None
        if request is not None:
            request.withdraw()

    def _hear(self, message: RpcNotification | RpcResponse) -> None:
        if self.session is not None:
            self._handshake.take(self.session, message)
        elif isinstance(message, RpcNotification):
            self._handshake.notified(ModernSession(UNKNOWN_MODERN_CLIENT), message)
        else:
            log.debug(f"a client answered {shown(repr(message.id))}, but it has not been asked anything")

    def _open(self, client: ClientInfo) -> HandshakeSession:
        self.session = HandshakeSession(client, self._limits, _Line(self._write), relayed=self._service.relays)
        self._handshake.opened(self.session)
        return self.session

    def _broadcast(self, method: str, params: Params | None) -> None:
        if self.session is not None:
            self.session.announce(notification_message(method, params))
        self._modern.subscriptions.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        if self.session is not None:
            self._handshake.resource_updated([self.session], uri)
        self._modern.subscriptions.resource_updated(uri)


class _Line:
    """Implements `channel.Channel`: what is said is written at once."""

    def __init__(self, write: Write) -> None:
        self.ended = False
        self._write = write

    def send(self, data: bytes, kind: MessageKind = MessageKind.NOTIFICATION) -> None:  # noqa: ARG002
        if not self.ended:
            self._write(data)

    def send_once(self, data: bytes) -> None:
        self.send(data)

    def end(self) -> None:
        self.ended = True

    def hang_up(self) -> None:
        """Nothing: the client could not come back."""


class _Request(_Line):
    """A request that runs in a task, until it is answered."""

    def __init__(
        self, write: Write, request_id: Id, running: dict[Id, OpenRequest], ended: Callable[[], None] | None
    ) -> None:
        super().__init__(write)
        self._ended = ended
        self.withdraw: Callable[[], object] = _nothing  # what is to be done when the client cancels it
        self._id = request_id
        self._running = running
        running[request_id] = self

    def answer(self, said: Outcome) -> None:
        self.send(answer_message(self._id, said), MessageKind.ANSWER)
        self.end()

    def stop(self) -> None:
        self.answer(stopped())

    def end(self) -> None:
        super().end()
        self.withdraw = _nothing  # which held the call, and that held this
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
        if self._running.get(self._id) is self:  # a client that cancelled it may have used its id again
            del self._running[self._id]


def _nothing() -> None:
    pass
