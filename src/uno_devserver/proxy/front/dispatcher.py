"""Handles the client's messages: validates each once, and answers it or passes it on.

Requests that need no upstream are answered at once from the state, whatever the engine does. An ordinary call goes to
the relay as bytes. Everything else goes to the engine as a decoded message. Every request is answered or passed on, in
its own era of MCP (handshake or modern), and no message of a client ends the proxy. Cheap to import: an AI client waits
for the first answers when it starts.
"""

from __future__ import annotations

from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    InvalidMessage,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    is_id,
    read,
)
from ...protocol.lines import LineTooLong, readable_members
from ...protocol.versions import (
    BATCH_VERSION,
    REMOVED_IN_MODERN,
    discover_result,
    envelope_of,
    has_envelope,
    initialize_result,
    initializing_client,
    method_not_found,
    modern_result,
)
from ...system.log import log
from ...system.values import Value
from ..own_tools import HEALTH, asks_details, health_contents, health_result, is_health_uri
from ..state import LISTS
from .input import MAX_LINE_BYTES
from .json_lines import answer_line, decoded, error_body, error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from ...protocol.peer_info import ClientInfo
    from ...protocol.service import Result
    from ..calls.relay import CallRelay
    from ..state import ProxyState
    from .batches import Batches
    from .output import ClientOutput

    Message = RpcRequest | RpcNotification | RpcResponse

    class Engine(Protocol):
        """Handles the messages that the front does not answer. Called in the engine's loop, in the front's thread."""

        @property
        def relay(self) -> CallRelay: ...

        def client_met(self, client: ClientInfo) -> None:
            """Called when a client has introduced itself."""

        def list_read(self, tools: bytes | None) -> None:
            """Called when a client has read a list; `tools`: that of the tools, if it was this one."""

        def take(self, message: Message) -> None: ...


_TIMED = frozenset({"server/discover", "initialize", "tools/list"})
_CALL = b'"tools/call"'
_TOO_LONG = f"A message has {MAX_LINE_BYTES // (1024 * 1024)} MiB at most."


class Dispatcher:
    def __init__(self, state: ProxyState, output: ClientOutput, needs_engine: Callable[[], None]) -> None:
        """`needs_engine` is called after each read with a message that needs the engine."""
        self._state = state
        self._output = output
        self._needs_engine = needs_engine
        self._batches: Batches | None = None  # None until the first batch comes
        self._engine: Engine | None = None
        self._relay: CallRelay | None = None
        self._held: list[_Held] = []  # what waits for the engine
        self._wants_engine = False  # whether a message of this read needs the engine
        self._failure = ""  # why there is no engine any more; empty before that
        self._client: ClientInfo | None = None  # the client of the last request, in either era
        self._version: str | None = None  # the version that the handshake agreed on

    def open(self, engine: Engine) -> None:
        """Pass on to the engine what was held for it, and everything from now on."""
        self._engine, self._relay = engine, engine.relay
        held, self._held = self._held, []
        for each in held:
            self._inform(each.tell)
        self._output.flush()

    def close(self, why: str) -> None:
        """Refuse from now on what only the engine could answer, because it has ended; `why` is a sentence."""
        self._engine = self._relay = None
        self._failure = why
        held, self._held = self._held, []
        for each in held:
            self._tell(each.tell, each.request)
        self._output.flush()

    def write(self, line: bytes) -> None:
        """Write one message of the engine to the client."""
        self._queue(line)
        self._output.flush()

    def _queue(self, line: bytes) -> None:
        if self._batches is None:
            self._output.queue(line)
        else:
            self._batches.write(line)

    def take(self, lines: Iterable[bytes | LineTooLong]) -> None:
        """Handle the lines of one read."""
        relay = self._relay
        for line in lines:
            try:
                if relay is None or isinstance(line, LineTooLong) or _CALL not in line:
                    self._take(line)
                elif isinstance(declined := relay.take(line), bytes):
                    self._take(declined)
                elif declined is not None:
                    self._take_message(declined)
            except Exception as error:  # a bug in the proxy must not affect other messages
                members = line.members if isinstance(line, LineTooLong) else readable_members(line)
                self._refuse(members, _unexpected(error))
        # All calls, and all answers, of one read are written together.
        if relay is not None:
            relay.flush()
        if self._output.queued:
            self._output.flush()
        if self._wants_engine:
            self._wants_engine = False
            self._needs_engine()  # only after the answers are written

    def _take(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            self._refuse(line.members, RpcError(INVALID_REQUEST, _TOO_LONG))
            return
        try:
            value = decoded(line)
        except RpcError as error:
            self._refuse(readable_members(line), error)
            return
        if isinstance(value, list):
            self._take_batch(value)
            return
        message = self._read(value)
        if message is None:
            return
        if self._engine is None and isinstance(message, RpcRequest) and message.method == "tools/call":
            self._take_early_call(line, message)
        else:
            self._take_message(message)

    def _take_early_call(self, line: bytes, call: RpcRequest) -> None:
        """Hold a call that comes before the engine as a line, so that it can be relayed as bytes."""
        if self._failure or call.params.get("name") == HEALTH:
            self._take_message(call)
        else:
            self._held.append(_Held(lambda _: self.take([line]), call))
            self._wants_engine = True

    def _take_message(self, message: Message) -> None:
        reply = self._reply(message)
        if reply is None:
            self._pass_on(message)
        else:
            self._queue(reply.line)
            # After the answer: the engine may send questions to the client, which must follow it.
            if reply.then is not None:
                self._inform(reply.then)

    def _tell(self, tell: Callable[[Engine], None], request: RpcRequest | None = None) -> None:
        """Call `tell` with the engine, now or when there is one; if it has ended, refuse `request`."""
        if self._engine is not None:
            tell(self._engine)
        elif not self._failure:
            self._held.append(_Held(tell, request))
        elif request is not None:
            self._queue(error_line(request.id, RpcError(INTERNAL_ERROR, self._failure)))

    def _inform(self, tell: Callable[[Engine], None]) -> None:
        """Call `tell` with the engine; errors are only logged, because the request may be answered already."""
        try:
            self._tell(tell)
        except Exception as error:
            _unexpected(error)

    def _pass_on(self, message: Message) -> None:
        request = message if isinstance(message, RpcRequest) else None
        self._tell(lambda engine: engine.take(message), request)
        if request is not None:
            self._wants_engine = True
        elif self._batches and isinstance(message, RpcNotification) and message.method == "notifications/cancelled":
            self._batches.cancelled(message.params.get("requestId"))

    def _refuse(self, members: Mapping[str, Any], error: RpcError) -> None:
        """Answer a message that could not be decoded; `members` are those of its members that could."""
        known = members.get("id") if is_id(members.get("id")) else None
        if _is_response(members):
            # It answers a question, which fails. The client would take an error for the answer to a request of its own.
            self._pass_on(RpcResponse(known, None, error_body(error)))
        else:
            self._queue(error_line(known if "method" in members else None, error))

    def _read(self, value: Any) -> Message | None:
        """Return the message in the value; if it is invalid, answer it and return None."""
        message = read(value)
        if not isinstance(message, InvalidMessage):
            return message
        if isinstance(value, dict) and _is_response(value):
            log.debug("The client sent an invalid answer.")
        else:
            self._queue(error_line(message.id, message.error))
        return None

    def _take_batch(self, values: list[Any]) -> None:
        from .batches import MAX_BATCH, NO_BATCH, Batches  # imported late: only one version of MCP has batches

        if self._version != BATCH_VERSION or not 0 < len(values) <= MAX_BATCH:
            self._queue(error_line(None, RpcError(INVALID_REQUEST, NO_BATCH)))
            return
        passed: list[Message] = []
        replies: list[_Reply] = []
        for value in values:
            message = read(value)
            if isinstance(message, InvalidMessage):
                if not (isinstance(value, dict) and _is_response(value)):
                    replies.append(_Reply(error_line(message.id, message.error)))
            elif (reply := self._reply(message, alone=False)) is not None:
                replies.append(reply)
            else:
                passed.append(message)
        requests = [message.id for message in passed if isinstance(message, RpcRequest)]
        if self._batches is None:
            self._batches = Batches(self._output.queue)
        self._batches.open(requests, [reply.line for reply in replies])
        for message in passed:
            self._pass_on(message)
        for reply in replies:
            if reply.then is not None:
                self._inform(reply.then)

    def _reply(self, message: Message, *, alone: bool = True) -> _Reply | None:
        """Return the answer if it needs no engine; None if the engine answers, or no answer is due."""
        if not isinstance(message, RpcRequest):
            return None
        try:
            if message.method == "initialize" and not alone:
                raise RpcError(INVALID_REQUEST, "initialize cannot be part of a batch.")
            return self._answer(message)
        except RpcError as error:
            return _Reply(error_line(message.id, error))
        except Exception as error:
            return _Reply(error_line(message.id, _unexpected(error)))

    def _answer(self, request: RpcRequest) -> _Reply | None:
        modern = request.method == "server/discover" or has_envelope(request.params)
        version = self._version
        if modern:
            client = envelope_of(request.params).client
            self._meet(client)
            version = client.protocol_version
            if request.method in REMOVED_IN_MODERN:
                raise method_not_found(request.method)
        if request.method == "initialize":
            return self._greet(request)
        found = self._result(request, version)
        if found is None:
            return None
        result, spliced = found
        if modern:
            result = modern_result(request.method, result, self._state.server)
        if request.method in _TIMED:
            self._state.timeline.mark(request.method)
        then: Callable[[Engine], None] | None = None
        if request.method in LISTS:
            tools = self._state.lists.tools if request.method == "tools/list" else None
            then = lambda engine: engine.list_read(tools)  # noqa: E731
        self._wants_engine = self._wants_engine or then is not None
        return _Reply(answer_line(request.id, result, spliced), then)

    def _meet(self, client: ClientInfo) -> None:
        """Tell the engine which modern client sends the next requests; it names itself in each of them."""
        if client != self._client:
            self._client = client
            self._tell(lambda engine: engine.client_met(client))

    def _greet(self, request: RpcRequest) -> _Reply:
        client = initializing_client(request.params)
        self._client, self._version = client, client.protocol_version
        state = self._state
        state.timeline.mark(request.method)
        result = initialize_result(client.protocol_version, state.server, state.capabilities)
        return _Reply(answer_line(request.id, result), lambda engine: engine.client_met(client))

    def _result(self, request: RpcRequest, version: str | None) -> tuple[Result, bytes] | None:
        """Return the result, and a member of it that is JSON already; None if the engine answers."""
        state, method, params = self._state, request.method, request.params
        if method == "server/discover":
            return discover_result(state.server, state.capabilities), b""
        if method == "ping":
            return {}, b""
        if method in LISTS and not (method == "tools/list" and state.holds_tools):
            if params.get("cursor") is not None:
                raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
            member, name = LISTS[method]
            return {}, b'"%s":%s' % (member.encode(), getattr(state.lists, name))
        if state.facts.awaits_agreement:
            return None  # the engine checks first whether the user has agreed by now
        if method == "tools/call" and params.get("name") == HEALTH:
            details = asks_details(params.get("arguments"))
            return health_result(state.told_health(details=details), version), b""
        if method == "resources/read" and is_health_uri(params.get("uri")):
            return health_contents(state.told_health()), b""
        return None


class _Reply(Value):
    line: bytes
    then: Callable[[Engine], None] | None = None  # called after the line is written


class _Held(Value):
    """A message, or other news, for the engine that came before the engine was ready."""

    tell: Callable[[Engine], None]
    request: RpcRequest | None  # the request to refuse if the engine does not start


def _is_response(members: Mapping[str, Any]) -> bool:
    return "method" not in members and ("result" in members or "error" in members)


def _unexpected(error: Exception) -> RpcError:
    import traceback

    log.warn(f"A request could not be answered: {error!r}")
    log.debug(traceback.format_exc())
    return RpcError(INTERNAL_ERROR, f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}")
