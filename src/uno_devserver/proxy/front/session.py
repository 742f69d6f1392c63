"""The session of the client on standard input and output, which may speak both eras of MCP at the same time.

Every request is answered once, or not at all if the client cancels it; nothing is sent for a request after that. The
front has decoded and validated the messages. Everything except `broadcast` and `resource_updated` must be called in the
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
from ...system.values import Value

if TYPE_CHECKING:
    from ...protocol.server.call_runner import Answerer
    from ...protocol.server.subscriptions import Subscription
    from ...protocol.service import Params, Service

# They represent a client that has not introduced itself.
UNKNOWN_CLIENT = ClientInfo(None, None, {}, NEWEST_HANDSHAKE)
UNKNOWN_MODERN_CLIENT = ClientInfo(None, None, {}, MODERN_VERSIONS[-1])

# There is only one client, and the limit on unread output bounds the memory of its requests: many may be open.
SESSION_LIMITS = DEFAULT_ENDPOINT_LIMITS.replace(calls=100_000)

Write = Callable[[bytes], None]


class OpenRequest(Protocol):
    """A request that has not been answered."""

    def withdraw(self) -> object:
        """Cancel the request for the client: send nothing more for it."""

    def stop(self) -> None:
        """Answer that the outcome is unknown, because the proxy is ending."""


class StdioSession:
    """`write` gets whole messages without line breaks. It neither waits nor fails."""

    def __init__(self, service: Service, write: Write, limits: EndpointLimits = SESSION_LIMITS) -> None:
        self._service = service
        self._write = write
        self._limits = limits
        self._watched = WatchedResources(service, limits)
        self._handshake = HandshakeEra(service, limits, self._watched)
        self._modern = ModernEra(service, limits, self._watched)
        self.session: HandshakeSession | None = None  # set once the client has used the handshake era
        self._opening = Tasks()  # tasks that open subscriptions
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.open: dict[Id, OpenRequest] = {}
        self.limit = limits.calls  # the most open requests; 0 after `close`

    def take(self, message: RpcRequest | RpcNotification | RpcResponse) -> None:
        if isinstance(message, RpcRequest):
            self.begin(message)
        elif isinstance(message, RpcNotification) and message.method == CANCELLED:
            self._cancel(message.params.get("requestId"))
        elif not self._closed:
            self._hear(message)

    def introduce(self, client: ClientInfo) -> None:
        """Open or update the session of a handshake client; a modern client has none."""
        if client.protocol_version not in HANDSHAKE_VERSIONS:
            return
        if self.session is None:
            self._open(client)
        else:
            self.session.client = client  # some clients shake hands again

    def begin(
        self, request: RpcRequest, answer: Answerer | None = None, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Start the request, to be answered by `answer` or else by the service; `ended` is called when it is over."""
        if request.id in self.open:
            message = "A request with this id is still running. It continues; the new one is refused."
            self._write(error_message(request.id, RpcError(INVALID_REQUEST, message)))
            return
        line = _RequestLine(self._write, request.id, partial(self._over, ended))
        try:
            withdraw = self._start(request, line, answer)
            if not line.ended:  # the request may have ended already
                self.open[request.id] = _Open(line, withdraw)
        except RpcError as error:
            line.answer(error)
        except FAILURES:
            line.answer(failure(f"'{shown(request.method)}'"))

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Notify the client, and every subscription to this kind of change. Safe from any thread."""
        in_loop(self._loop, self._broadcast, method, params)

    def resource_updated(self, uri: str) -> None:
        """Notify the client and its subscriptions, where they watch that resource. Safe from any thread."""
        in_loop(self._loop, self._resource_updated, uri)

    async def close(self) -> None:
        """Answer all open requests and refuse new ones, in bounded time."""
        self._closed, self.limit = True, 0
        session, self.session = self.session, None
        if session is not None:
            self._handshake.ended(session, stopped())
        self._opening.cancel()
        await asyncio.gather(self._handshake.close(), self._modern.close())
        for request in list(self.open.values()):  # relayed calls, and those that ignored their cancellation
            request.stop()
        await self._watched.close(self._limits.close_seconds)

    def _start(self, request: RpcRequest, line: _RequestLine, answer: Answerer | None) -> Callable[[], object]:
        """Start the request and return the function that withdraws it."""
        if self._closed:
            raise RpcError(STOPPED, "The server is stopping.")
        if len(self.open) >= self.limit:
            raise RpcError(BUSY, f"{self.limit} requests of this client run already.")
        if not has_envelope(request.params):
            # No handshake is required, because there is only one client.
            call = HandshakeCall(self.session or self._open(UNKNOWN_CLIENT), request, line)
            self._handshake.start([call], line.end, answer)
            return partial(call.stop, None)
        if request.method == LISTEN:
            return partial(self._unlisten, self._opening.start(self._listen(request, line)))
        return self._modern.call(request, envelope_of(request.params), line, answer=answer).withdraw

    async def _listen(self, request: RpcRequest, line: _RequestLine) -> Subscription | None:
        opened = await attempt(self._modern.listen(request, line), LISTEN)
        if isinstance(opened, RpcError):
            line.answer(opened)
            return None
        return opened

    def _unlisten(self, opening: asyncio.Task[Subscription | None]) -> None:
        if opening.cancel() or opening.cancelled():
            return
        if (subscription := opening.result()) is not None:
            self._modern.subscriptions.remove(subscription)

    def _over(self, ended: Callable[[], None], line: _RequestLine) -> None:
        ended()
        entry = self.open.get(line.id)
        if isinstance(entry, _Open) and entry.line is line:  # a client may reuse the id of a cancelled request
            del self.open[line.id]

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
    """Writes each message at once. Implements `protocol.server.message_stream.Channel`."""

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
        """Do nothing: the client could not reconnect."""


class _RequestLine(_Line):
    """Writes the messages of one request; calls `over` with itself when the request ends."""

    def __init__(self, write: Write, request_id: Id, over: Callable[[_RequestLine], None]) -> None:
        super().__init__(write)
        self.id = request_id
        self._over = over

    def answer(self, outcome: Outcome) -> None:
        self.send(answer_message(self.id, outcome), MessageKind.ANSWER)
        self.end()

    def end(self) -> None:
        if not self.ended:
            super().end()
            self._over(self)


class _Open(Value):
    """A request that `begin` has started. Implements `OpenRequest`."""

    line: _RequestLine
    withdraw: Callable[[], object]

    def stop(self) -> None:
        self.line.answer(stopped())
