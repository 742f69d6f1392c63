"""Relays ordinary calls from the client's line to the upstream and back, without a task, and decoded only once.

`CallRelay.take` is the one place where a call leaves this path: for the proxy's own tools, while there is no upstream,
while code is reloaded, between two eras of MCP, and while its connection is not open. Such a call is forwarded by
`service.py` as a decoded request. `CallRelay._forward` passes on a relayed call that got no result.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING

import msgspec

from ...protocol.client.connection import AccessDenied, AnswerTooLong, ConnectionLost
from ...protocol.client.raw_messages import ABSENT, RawMessage, opened_params, result_in, without_half_surrogates
from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    RESOURCE_NOT_FOUND,
    STOPPED,
    RpcError,
    RpcRequest,
    error_message,
    notification_message,
)
from ...protocol.server.call_runner import answer_message, stopped
from ...protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, LOG_LEVEL_KEY, VERSION_KEY, envelope_of, wants_log
from ...system.log import ERROR, log
from ..state import ConnectionState
from .failure_answers import ended, refused, silent, too_long
from .forwarder import ForwardedRequest

if TYPE_CHECKING:
    from ...protocol.peer_info import ClientInfo
    from ...protocol.service import Params, Result
    from ..front.output import ClientOutput
    from ..front.session import StdioSession
    from ..inspection.call_recorder import CallRecord
    from ..state import ProxyState
    from .call_queue import RunningCalls
    from .conversations import Conversation, Conversations, Route
    from .failure_answers import UnansweredRequest
    from .forwarder import Forwarder
    from .service import ProxyService

CONNECTED = ConnectionState.CONNECTED
DEFECT = "uno-devserver failed on the outcome of this call; its log says why. Whether the call was run is not known."
SILENCE_CHECKS = 10  # checks within the limit on silence, which is therefore exceeded by a tenth at most


class _Envelope(msgspec.Struct, gc=False):
    """The members of a client's message that relaying reads."""

    jsonrpc: str = ""
    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = ABSENT


class _Meta(msgspec.Struct, gc=False):
    progress_token: msgspec.Raw = msgspec.field(default=ABSENT, name="progressToken")
    version: msgspec.Raw = msgspec.field(default=ABSENT, name=VERSION_KEY)
    capabilities: msgspec.Raw = msgspec.field(default=ABSENT, name=CAPABILITIES_KEY)
    client: msgspec.Raw = msgspec.field(default=ABSENT, name=CLIENT_KEY)
    log_level: str | None = msgspec.field(default=None, name=LOG_LEVEL_KEY)


class _Params(msgspec.Struct, gc=False, rename={"meta": "_meta", "input": "inputResponses", "state": "requestState"}):
    name: str
    meta: _Meta | None = None
    input: msgspec.Raw = ABSENT
    state: msgspec.Raw = ABSENT


class _Error(msgspec.Struct, gc=False):
    code: int
    message: str


_envelope = msgspec.json.Decoder(_Envelope).decode
_params = msgspec.json.Decoder(_Params).decode
_error = msgspec.json.Decoder(_Error).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CallRelay:
    """Relays the calls of the client on stdio. Everything must be called in the engine's loop."""

    def __init__(self, state: ProxyState, service: ProxyService, session: StdioSession, output: ClientOutput) -> None:
        self._state = state
        self._service = service
        self.session = session
        self.open = session.open  # the unanswered requests of the client, by id
        self.output = output
        self._main = service.forwarding
        self._members = service.members
        self.loop = asyncio.get_running_loop()
        self._unwritten: dict[Route, None] = {}  # the connections with calls to flush
        self._silence_timer: asyncio.TimerHandle | None = None

    def take(self, line: bytes) -> bytes | RpcRequest | None:
        """Relay the call and return None; if it cannot be relayed, return it decoded, or as the unchecked line."""
        try:
            if not line.isascii():
                line.decode()  # payloads are passed on undecoded, so the whole line must be valid UTF-8
            message = _envelope(line)
            params = _params(message.params)
        except (ValueError, RecursionError):
            whole = without_half_surrogates(line)
            return line if whole == line else self.take(whole)
        if message.method != "tools/call" or message.jsonrpc != "2.0" or message.id is None:
            return line
        state, is_open = self._state, self.open
        if params.name in state.own_tools or message.id in is_open or len(is_open) >= self.session.limit:
            return line
        server, own_name = state.routes.tools.get(params.name) or (None, params.name)
        to = self._members.get(server) if server else self._main
        if to is None or (server is None and (state.routes.only_listed or self._members)):
            return line
        route = self._route(params, to.conversations)
        if (
            route is None
            or to.state.connection is not CONNECTED
            or route.generation != to.state.generation
            or to.queue_pending is not None
            or not self._relays(message, params, route, to, own_name)
        ):
            return RpcRequest(message.id, message.method, opened_params(message.params))
        return None

    def flush(self) -> None:
        """Write the calls that were taken since the last flush."""
        unwritten, self._unwritten = self._unwritten, {}
        for route in unwritten:
            route.connection.flush()

    def close(self) -> None:
        if self._silence_timer is not None:
            self._silence_timer.cancel()

    def _route(self, params: _Params, conversations: Conversations) -> Route | None:
        """Return the open connection of this client to an upstream of its own era, if there is one."""
        meta = params.meta
        if meta is None or not meta.version:
            session = self.session.session
            conversation = None if session is None else conversations.by_session.get(session)
            route = None if conversation is None else conversation.route
            return None if route is None or route.modern else route
        if params.state or params.input:  # it may continue a call that waits for this answer
            return None
        conversation = self._conversation_of(meta, conversations)
        route = None if conversation is None else conversation.route
        return route if route is not None and route.modern else None

    def _conversation_of(self, meta: _Meta, conversations: Conversations) -> Conversation | None:
        """Return the conversation of the envelope's client, if it has begun. Most envelopes repeat the last one."""
        written = bytes(meta.version), bytes(meta.capabilities), bytes(meta.client)
        known = conversations.last_envelope
        if known is not None and known[:3] == written and not known[3].ended:
            return known[3]
        try:
            values = [msgspec.json.decode(each) if each else None for each in written]
            keys = (VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY)
            client = envelope_of({"_meta": {k: v for k, v in zip(keys, values, strict=True) if v is not None}}).client
        except (RpcError, msgspec.DecodeError, RecursionError):
            return None
        conversation = conversations.known_modern(client)
        if conversation is not None:
            conversations.last_envelope = (*written, conversation)
        return conversation

    def _relays(self, message: _Envelope, params: _Params, route: Route, to: Forwarder, own_name: str) -> bool:
        """Send the call, if the call queue and the connection accept it now; return whether it was sent.

        `own_name`: that of the tool at the server.
        """
        queue, running = to.queue, None
        if queue is not None and (running := queue.enter(params.name)) is None:
            return False
        assert message.id is not None
        call = RelayedCall(self, message.id, params.name, message.params, to, route, running, self.loop.time())
        if (meta := params.meta) is not None:
            call.progress_token, call.level = bytes(meta.progress_token), meta.log_level
        sent = message.params if own_name == params.name else _renamed(message.params, own_name)
        if not route.connection.send(call, own_name, sent):
            if running is not None:
                running.leave()
            return False
        observer = to.observer
        if observer is not None:
            call.record = observer.begin("tools/call", params.name, call.client, message.params)
        self.open[call.id] = call
        route.callers[call] = None
        self._unwritten[route] = None
        if self._silence_timer is None:
            self._watch_silence()
        return True

    # A call that gets no result.

    def end(
        self,
        call: RelayedCall,
        outcome: ConnectionLost | AccessDenied | UnansweredRequest | RpcError,
        raw: msgspec.Raw = ABSENT,
    ) -> None:
        """Answer or repeat the call; after a bug here, the answer is an error. `raw`: the upstream's error as bytes."""
        try:
            if isinstance(outcome, ConnectionLost):
                self._lose(call, outcome)
            elif isinstance(outcome, RpcError):
                self._fail(call, outcome, raw)
            elif isinstance(outcome, AccessDenied):
                call.to.link.refused(call.route.generation, outcome)
                self._forward(call, refused(outcome))
            else:
                self._forward(call, outcome)
        except Exception:  # a bug in the proxy
            log.write(ERROR, f"The outcome of a call could not be processed:\n{traceback.format_exc()}")
            call.leave_queue()
            if call.record is not None:
                call.record.forget()
            self.output.write(error_message(call.id, RpcError(INTERNAL_ERROR, DEFECT)))

    def _lose(self, call: RelayedCall, loss: ConnectionLost) -> None:
        """Have the call of a lost upstream repeated; or answered, if it may have run there and must not run twice."""
        call.route.leave()
        self._forward(call, loss)

    def _fail(self, call: RelayedCall, error: RpcError, raw: msgspec.Raw) -> None:
        """Answer with the upstream's error; if the upstream was stopping, repeat the call where that is allowed."""
        if isinstance(error, AnswerTooLong):
            self._forward(call, too_long(call.request))
        elif error.code == STOPPED and call.to.may_repeat(call.request):
            self._forward(call, ConnectionLost(error.message, sent=True))
        elif not _is_error(raw) or (call.route.modern and error.code == RESOURCE_NOT_FOUND):
            self._forward(call, error)
        else:
            call_id = msgspec.json.encode(call.id)
            self.output.queue(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, raw))
            call.leave_queue()
            if call.record is not None:
                call.record.fail(error)

    def _forward(self, call: RelayedCall, outcome: ConnectionLost | UnansweredRequest | RpcError) -> None:
        """Have the service repeat the call, or answer with this outcome in the form of the client's era."""
        if call.record is not None:
            call.record.forget()  # the service records it from now on
        try:
            params = opened_params(call.params)
        except RecursionError:  # the stack is deeper than in `take`, so deeply nested params may fail only here
            params = {"name": call.name}
            if isinstance(outcome, ConnectionLost):
                outcome = ended(call.request, 1)
        relayed: ForwardedRequest | UnansweredRequest | RpcError
        if isinstance(outcome, ConnectionLost):
            relayed = ForwardedRequest("tools/call", params, call.route.generation, outcome.sent, call.running)
        else:
            relayed = outcome
        request = RpcRequest(call.id, "tools/call", params)
        to = call.to
        self.session.begin(request, lambda call: self._service.answer(call, relayed, to), call.leave_queue)

    # Calls that are silent for too long.

    def _watch_silence(self) -> None:
        """Start the timer for all calls: a timer for each call would cost as much as relaying it."""
        seconds = min(to.silence_seconds for to in (self._main, *self._members.values()))
        self._silence_timer = self.loop.call_later(seconds / SILENCE_CHECKS, self._check_silence)

    def _check_silence(self) -> None:
        self._silence_timer = None
        now = self.loop.time()
        calls = [call for call in self.open.values() if isinstance(call, RelayedCall)]
        for call in calls:
            seconds = call.to.silence_seconds
            if call.heard_at <= now - seconds and not call.questions:
                call.abandon()
                self.end(call, silent(call.request, seconds))
        if calls:
            self._watch_silence()


class RelayedCall(msgspec.Struct, eq=False, gc=False):
    """A call that was sent to the upstream and is not answered.

    Implements `protocol.client.connection.PendingCall` for the upstream and `front.session.OpenRequest` for the client.
    A Struct, because creating an ordinary object for each call would take four times as long.
    """

    relay: CallRelay
    id: int | str
    name: str
    params: msgspec.Raw
    to: Forwarder
    route: Route
    running: RunningCalls | None  # the calls of the queue that it has entered; None after it has left them
    heard_at: float
    progress_token: bytes = b""
    level: str | None = None  # the level of log messages that a modern client wants
    data: bytes = b""
    sent: bool = False
    ticket: object = None
    record: CallRecord | None = None  # for the inspector page, if one is open
    questions: int = 0  # the number of open questions of the upstream to the client

    @property
    def request(self) -> ForwardedRequest:
        """The request without its arguments, for failure messages."""
        return ForwardedRequest("tools/call", {"name": self.name})

    # From the upstream.

    def settle(self, outcome: RawMessage | ConnectionLost | AccessDenied | RpcError) -> None:
        relay = self.relay
        relay.open.pop(self.id, None)
        route = self.route
        del route.callers[self]
        if route.left or route.unused is not None:
            route.check()
        if not isinstance(outcome, RawMessage):
            relay.end(self, outcome)
            return
        if outcome.error is not ABSENT or not bytes(outcome.result).startswith(b"{"):
            try:
                result_in(outcome)
            except RpcError as error:
                relay.end(self, error, outcome.error)
                return
        call_id = b"%d" % self.id if isinstance(self.id, int) else msgspec.json.encode(self.id)
        relay.output.queued.append(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (call_id, outcome.result))
        if self.running is not None:
            self.leave_queue()
        if self.record is not None:
            self.record.end_with(outcome.result)
        to = self.to
        if to.proven != route.generation:
            to.proven = route.generation
            to.link.worked(route.generation)

    def leave_queue(self) -> None:
        """Report the call to its queue as over, so that a restart does not wait for it."""
        running, self.running = self.running, None
        if running is not None:
            if self.questions:  # its client may answer later, or never
                running.answered()
            running.leave()

    def turn_over(self, *, more: bool = False) -> None:
        if more and self.relay.open:
            self.relay.loop.call_soon(self.relay.output.flush)
        else:
            self.relay.output.flush()

    @property
    def client(self) -> ClientInfo:
        return self.route.conversation.client

    @property
    def log_level(self) -> str | None:
        session = self.relay.session.session
        if self.route.modern or session is None:
            return self.level
        return session.log_level

    def notify(self, method: str, params: Params) -> None:
        self.heard_at = self.relay.loop.time()
        if wants_log(self.log_level, method, params):
            self.relay.output.write(notification_message(method, params))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        """Ask the client; only a handshake server asks in this way, and its relayed clients are of that era."""
        session = self.relay.session.session
        if session is None:
            raise RpcError(STOPPED, "The client has gone.")
        self.questions += 1
        if self.questions == 1 and self.running is not None:
            self.running.asks()
        try:
            return await session.ask(method, params)
        finally:
            self.questions -= 1
            self.heard_at = self.relay.loop.time()
            if not self.questions and self.running is not None:
                self.running.answered()

    # From the client.

    def withdraw(self) -> None:
        self.abandon()
        self.leave_queue()
        if self.record is not None:
            self.record.cancel()

    def stop(self) -> None:
        self.abandon()
        self.leave_queue()
        self.relay.output.write(answer_message(self.id, stopped()))

    def abandon(self) -> None:
        """Remove it from the open requests, and cancel it at the upstream."""
        self.relay.open.pop(self.id, None)
        self.route.end(self)
        self.route.connection.cancel(self)


def _renamed(params: msgspec.Raw, name: str) -> msgspec.Raw:
    """The params with the server's own name of the tool; the arguments stay as they are written."""
    return msgspec.Raw(msgspec.json.encode({**_members(params), "name": name}))


def _is_error(raw: msgspec.Raw) -> bool:
    """Whether it is a valid error, which can be passed to the client unchanged."""
    try:
        _error(raw)
    except (ValueError, RecursionError):
        return False
    return True
