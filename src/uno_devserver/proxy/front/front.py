"""The part that never keeps a client waiting: it answers what needs no upstream, at once, and passes on the rest.

Everything that it says comes from the board, so it does not matter what the engine is doing. Whatever a client sends is
answered or passed on, and nothing that it sends ends the proxy. Each request is answered in the era that it was asked
in. Cheap to import: what happens here is what an AI client waits for when it starts.
"""

from __future__ import annotations

from ...protocol.eras import (
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
from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Refused,
    RpcError,
    RpcRequest,
    is_id,
    read,
)
from ...system.log import log
from ...system.values import Value
from ..board import LISTS
from ..tools import HEALTH, health_contents, health_result, is_health_uri
from .batches import Batches
from .lines import MAX_LINE_BYTES, TooLong, readable_members
from .messages import answer_line, decoded, error_body, error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...protocol.parties import ClientInfo
    from ...protocol.service import Result
    from ..board import Board
    from ..timeline import Timeline

MAX_BATCH = 100

_TIMED = frozenset({"server/discover", "initialize", "tools/list"})
_TOO_LONG = f"A message has {MAX_LINE_BYTES // (1024 * 1024)} MiB at most."
_NO_BATCH = f"Send each message on a line of its own: only {BATCH_VERSION} has batches, of 1 to {MAX_BATCH} messages."
# Versions before these know text only.
_STRUCTURED_VERSIONS = frozenset({"2025-06-18", "2025-11-25"})


class Front:
    def __init__(
        self, board: Board, put: Callable[[Any], None], write: Callable[[bytes], None], timeline: Timeline
    ) -> None:
        self._board = board
        self._put = put
        self._batches = Batches(write)
        self._timeline = timeline
        self._client: ClientInfo | None = None  # who spoke last, in either era
        self._version: str | None = None  # what was agreed on, in the handshake era

    @property
    def write(self) -> Callable[[bytes], None]:
        """The way to the client for whoever answers what was passed on."""
        return self._batches.write

    def take(self, line: bytes | TooLong) -> None:
        """What the client wrote."""
        if isinstance(line, TooLong):
            self._refuse(line.members, RpcError(INVALID_REQUEST, _TOO_LONG))
            return
        try:
            value = decoded(line)
        except RpcError as error:
            self._refuse(readable_members(line), error)
            return
        if isinstance(value, list):
            self._take_batch(value)
        elif (reply := self._reply(value)) is None:
            self._pass_on(value)
        else:
            if reply.line is not None:
                self._batches.write(reply.line)
            # Behind the answer: the engine may have questions for the client, and those come after it.
            if reply.tell is not None:
                self._put(reply.tell)

    def _refuse(self, members: Mapping[str, Any], error: RpcError) -> None:
        """Answer what could not be read, as far as one can see what it was."""
        known = members.get("id") if is_id(members.get("id")) else None
        if _is_response(members):
            # Whoever waits for it is told; the client would take an error for the answer to something of its own.
            self._put(("message", {"jsonrpc": "2.0", "id": known, "error": error_body(error)}))
        else:
            self._batches.write(error_line(known if "method" in members else None, error))

    def _take_batch(self, values: list[Any]) -> None:
        if self._version != BATCH_VERSION or not 0 < len(values) <= MAX_BATCH:
            self._batches.write(error_line(None, RpcError(INVALID_REQUEST, _NO_BATCH)))
            return
        passed: list[Any] = []
        replies: list[_Reply] = []
        for value in values:
            reply = self._reply(value, alone=False)
            if reply is None:
                passed.append(value)
            else:
                replies.append(reply)
        requests = [value["id"] for value in passed if "method" in value and "id" in value]
        self._batches.open(requests, [reply.line for reply in replies if reply.line is not None])
        for value in passed:
            self._pass_on(value)
        for reply in replies:
            if reply.tell is not None:
                self._put(reply.tell)

    def _pass_on(self, value: dict[str, Any]) -> None:
        self._put(("message", value))
        if value.get("method") == "notifications/cancelled":
            self._batches.cancelled((value.get("params") or {}).get("requestId"))

    def _reply(self, value: Any, *, alone: bool = True) -> _Reply | None:
        """What is to be said at once; None where that is the engine's business."""
        message = read(value)
        if isinstance(message, Refused):
            if isinstance(value, dict) and _is_response(value):
                log.debug("the client sent an answer that is none")
                return _Reply(None)
            return _Reply(error_line(message.id, message.error))
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
        if modern:
            self._meet(envelope_of(request.params).client)
            if request.method in REMOVED_IN_MODERN:
                raise method_not_found(request.method)
        if request.method == "initialize":
            return self._greet(request)
        found = self._result(request, modern)
        if found is None:
            return None
        result, spliced = found
        if modern:
            result = modern_result(request.method, result, self._board.server)
        if request.method in _TIMED:
            self._timeline.mark(request.method)
        tell = ("read", request.method) if request.method in LISTS else None
        return _Reply(answer_line(request.id, result, spliced), tell)

    def _meet(self, client: ClientInfo) -> None:
        """Tell the engine whose requests follow; a modern client does not introduce itself but in each of them."""
        if client != self._client:
            self._client = client
            self._put(("greeting", client))

    def _greet(self, request: RpcRequest) -> _Reply:
        client = initializing_client(request.params)
        self._client, self._version = client, client.protocol_version
        board = self._board
        self._timeline.mark(request.method)
        result = initialize_result(client.protocol_version, board.server, board.capabilities)
        return _Reply(answer_line(request.id, result), ("greeting", client))

    def _result(self, request: RpcRequest, modern: bool) -> tuple[Result, bytes] | None:
        """A result of ours, and the member of it that is JSON already."""
        board, method, params = self._board, request.method, request.params
        if method == "server/discover":
            return discover_result(board.server, board.capabilities), b""
        if method == "ping":
            return {}, b""
        if method in LISTS and not (method == "tools/list" and board.holds_tools):
            if params.get("cursor") is not None:
                raise RpcError(INVALID_PARAMS, "There is one page only; ask without a cursor.")
            member, name = LISTS[method]
            return {}, b'"%s":%s' % (member.encode(), getattr(board.lists, name))
        if method == "tools/call" and params.get("name") == HEALTH:
            return health_result(board.health(), structured=modern or self._version in _STRUCTURED_VERSIONS), b""
        if method == "resources/read" and is_health_uri(params.get("uri")):
            return health_contents(board.health()), b""
        return None


class _Reply(Value):
    line: bytes | None
    tell: tuple[str, Any] | None = None  # for the engine, once the line is written


def _is_response(members: Mapping[str, Any]) -> bool:
    return "method" not in members and ("result" in members or "error" in members)


def _unexpected(error: Exception) -> RpcError:
    import traceback

    log.warn(f"A request could not be answered: {error!r}")
    log.debug(traceback.format_exc())
    return RpcError(INTERNAL_ERROR, f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}")
