"""A conversation of the modern era over Streamable HTTP: every request has a connection of its own.

Closing the connection cancels the request. Notifications that belong to no request come over a subscription, which is
opened again when it ends.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from ...system.log import log
from ..http.client import encode_headers
from ..http.headers import HEADER_NAME
from ..jsonrpc import (
    INVALID_REQUEST,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    RpcError,
    notification_message,
    request_message,
    shown,
)
from ..versions import (
    CANCELLED,
    HEADER_MISMATCH,
    LISTEN,
    NAMED_BY,
    NOTIFICATIONS_REMOVED_IN_MODERN,
    SUBSCRIPTION_ACKNOWLEDGED,
    SUBSCRIPTION_KEY,
    UNSUPPORTED_VERSION,
    encoded_header,
    without_meta,
)
from .backoff import Backoff
from .change_subscription import announce_all_lists, listen_params, notifies_changes
from .connection import AccessDenied, ConnectionLost, ServerDescription
from .http_call import HttpCall
from .http_endpoint import COMMON_HEADERS, NOT_RUN, Endpoint, NotMcp, StreamCut
from .raw_messages import (
    MODERN_VERSION,
    NOTHING,
    RawMessage,
    discovered_server,
    object_in,
    opened_params,
    params_of,
    result_in,
    with_envelope,
)
from .server_requests import call_until_complete, notify_peer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..http.client_connection import Reply
    from ..service import Params
    from .connection import Peer, PendingCall

ACKNOWLEDGE_SECONDS = 2.0  # how long `watch` waits until the server acknowledges a subscription
MAX_PAGES = 100  # of a list of tools; some servers always name a next page
LEFT_OUT = NOTIFICATIONS_REMOVED_IN_MODERN | {CANCELLED}  # a request is cancelled by closing its connection


class ModernConnection:
    @classmethod
    async def open(cls, endpoint: Endpoint, peer: Peer, marks: ToolMarks | None = None) -> ModernConnection:
        """Open a conversation. RpcError, NotMcp or UnusableServer if the server does not speak this era.

        `marks`: those of the server's tools, if several connections share them.
        """
        connection = cls(endpoint, peer, {} if marks is None else marks)
        try:
            described = await connection._exchange("server/discover", {}, peer)
        except RpcError as error:
            if not _supports_our_version(error):
                raise
            described = await connection._exchange("server/discover", {}, peer)
        connection._server = discovered_server(described)
        connection._begun = True
        return connection

    def __init__(self, endpoint: Endpoint, peer: Peer, marks: ToolMarks) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._server: ServerDescription
        self._begun = False  # whether the server has answered in this era
        self._ids = count(1)
        self._headers = encode_headers({**COMMON_HEADERS, "MCP-Protocol-Version": MODERN_VERSION})
        self._marks = marks
        self._watching = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None

    @property
    def server(self) -> ServerDescription:
        return self._server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        async def send(params: Params) -> msgspec.Raw:
            return await self._call(method, params, peer)

        result = await call_until_complete(params, peer, send)
        if method == "tools/list" and MARK.encode() in bytes(result):
            return msgspec.Raw(msgspec.json.encode(self._with_usable_tools(object_in(result) or {})))
        return result

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        if name in self._marks:
            return False
        http_call = HttpCall(call, next(self._ids), self._endpoint, partial(self._finished, call, params))
        return http_call.send(self._headers + routing_headers("tools/call", {"name": name}), params)

    def flush(self) -> None:
        """Do nothing: `send` writes each call at once."""

    def cancel(self, call: PendingCall) -> None:
        http_call = call.ticket
        assert isinstance(http_call, HttpCall)
        http_call.cancel()

    async def notify(self, method: str, params: Params) -> None:
        if method in LEFT_OUT:
            return
        headers = self._headers + routing_headers(method, params)
        reply = await self._endpoint.send("POST", headers, notification_message(method, params))
        reply.release()

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        """Replace the subscription; the old one ends when the new one is acknowledged, or after a limited time."""
        async with self._watching:
            listener = None
            if uris or notifies_changes(self._server):
                listener, refusal = await self._begin_to_listen(uris)
                if refusal is not None and uris:
                    return dict.fromkeys(uris, refusal)
            if self._listener is not None:
                self._listener.cancel()
            self._listener = listener
            return {}

    async def set_level(self, level: str) -> None:
        """Do nothing: each request carries its level, and there are no other log messages."""

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
        self._endpoint.close()

    # --- requests

    async def _call(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        try:
            try:
                return await self._exchange(method, params, peer)
            except RpcError as error:
                if error.code != HEADER_MISMATCH or method != "tools/call" or not await self._learn_marks(params):
                    raise
            return await self._exchange(method, params, peer)  # it was not run before; the headers are known now
        except NotMcp as other:
            raise other.as_error() from None

    async def _exchange(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        request_id = next(self._ids)
        headers = self._headers + routing_headers(method, params)
        if self._marks and method == "tools/call":
            headers += argument_headers(self._marks.get(str(params.get("name")), ()), params)
        body = request_message(request_id, method, with_envelope(params, peer))
        return await self._result(await self._endpoint.send("POST", headers, body), request_id, peer)

    async def _finished(self, call: PendingCall, params: bytes, reply: Reply, request_id: int) -> msgspec.Raw:
        """The result of a reply that `HttpCall` leaves to this class: a redirect, an error or a stream."""
        if reply.status in NOT_RUN:  # redirects and refused credentials are handled by `_call`
            reply.release()
            return await self._call("tools/call", opened_params(params), call)
        try:
            return await self._result(reply, request_id, call)
        except NotMcp as other:
            raise other.as_error() from None
        except RpcError as error:
            if error.code != HEADER_MISMATCH:
                raise
            return await self._call("tools/call", opened_params(params), call)  # the server has not run it

    async def _result(self, reply: Reply, request_id: int, peer: Peer) -> msgspec.Raw:
        try:
            message = await self._endpoint.answer(reply, request_id, _hear(peer))
        except StreamCut as cut:
            raise ConnectionLost(str(cut), sent=True) from None
        try:
            return result_in(message)
        except RpcError as error:
            other_era = self._begun and reply.status in (400, 404) and _is_of_other_era(message, error)
            self._endpoint.check_same_server(reply.status, error, other_era)
            raise

    async def _learn_marks(self, call: Params) -> bool:
        """Learn from the list of tools which headers the tool requires; return whether that was news."""
        name, cursor = call.get("name"), None
        for _ in range(MAX_PAGES):
            params: Params = {} if cursor is None else {"cursor": cursor}
            try:
                page = object_in(await self._exchange("tools/list", params, self._peer)) or {}
            except ConnectionLost as lost:
                raise ConnectionLost(str(lost), sent=False) from None  # only the list was sent; the call was refused
            for tool in page.get("tools") or ():
                if isinstance(tool, dict) and tool.get("name") == name:
                    marks, known = marks_in(tool.get("inputSchema")), self._marks.get(str(name), ())
                    self._marks[str(name)] = marks or ()
                    return (marks or ()) != known
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return False

    def _with_usable_tools(self, page: dict[str, Any]) -> dict[str, Any]:
        """The page of a list without tools whose marks are invalid; the marks of the others are recorded."""
        usable = []
        for tool in page.get("tools") or ():
            marks = marks_in(tool.get("inputSchema")) if isinstance(tool, dict) else ()
            if marks is None:
                name = shown(str(tool.get("name")))
                log.warn(f"The tool '{name}' is left out: its '{MARK}' is not one that MCP allows.")
                continue
            if marks:
                self._marks[str(tool.get("name"))] = marks
            usable.append(tool)
        return {**page, "tools": usable}

    # --- notifications that belong to no request

    async def _begin_to_listen(self, uris: frozenset[str]) -> tuple[asyncio.Task[None], RpcError | None]:
        acknowledged: asyncio.Future[RpcError | None] = asyncio.get_running_loop().create_future()
        listener = asyncio.create_task(self._listen(uris, acknowledged))
        try:
            await asyncio.wait((acknowledged,), timeout=ACKNOWLEDGE_SECONDS)
        except asyncio.CancelledError:
            listener.cancel()
            raise
        return listener, acknowledged.result() if acknowledged.done() else None

    async def _listen(self, uris: frozenset[str], acknowledged: asyncio.Future[RpcError | None]) -> None:
        """Pass notifications on until cancelled, or until the server refuses the subscription."""

        def hear(message: RawMessage) -> None:
            if message.method != SUBSCRIPTION_ACKNOWLEDGED:
                params = without_meta(params_of(message), frozenset({SUBSCRIPTION_KEY}))  # an id of ours
                notify_peer(self._peer, message.method or "", params)
            elif acknowledged.done():
                announce_all_lists(self._peer, self._server)
            else:
                acknowledged.set_result(None)

        backoff = Backoff()
        while True:
            used = self._endpoint.credentials
            try:
                await self._hear_subscription(uris, hear)
            except (RpcError, NotMcp) as refusal:
                log.debug(f"{self._endpoint.url} refuses the subscription: {refusal}")
                if not acknowledged.done():
                    acknowledged.set_result(refusal if isinstance(refusal, RpcError) else refusal.as_error())
                return
            except (ConnectionLost, StreamCut) as error:
                log.debug(f"the subscription of {self._endpoint.url} has ended: {error}")
            except AccessDenied as denied:
                log.debug(f"{self._endpoint.url} refuses the subscription: {denied}")
                await self._endpoint.until_other_credentials(used)
            await asyncio.sleep(backoff.next())

    async def _hear_subscription(self, uris: frozenset[str], hear: Callable[[RawMessage], None]) -> None:
        request_id = next(self._ids)
        headers = self._headers + routing_headers(LISTEN, {})
        body = request_message(request_id, LISTEN, with_envelope(listen_params(uris), self._peer))
        reply = await self._endpoint.send("POST", headers, body)
        result_in(await self._endpoint.answer(reply, request_id, hear))


def _is_of_other_era(answer: RawMessage, error: RpcError) -> bool:
    """Whether the server refused the request without running it, because it was restarted with another era."""
    wants_session = error.code in (SESSION_REQUIRED, SESSION_NOT_FOUND) and answer.id in NOTHING
    return wants_session or error.code == UNSUPPORTED_VERSION


def _supports_our_version(error: RpcError) -> bool:
    """Whether the server refused the version, but names it among those that it supports."""
    data = error.data if isinstance(error.data, dict) else {}
    supported = data.get("supported")
    return error.code == UNSUPPORTED_VERSION and isinstance(supported, list) and MODERN_VERSION in supported


def _hear(peer: Peer) -> Callable[[RawMessage], None]:
    def hear(message: RawMessage) -> None:
        if message.is_notification:
            notify_peer(peer, message.method or "", params_of(message))
        else:
            log.debug("the server sent a request, or a second answer, which this era does not have")

    return hear


# --- headers that repeat parts of the body

MARK = "x-mcp-header"  # a key in an argument's schema; the header `Mcp-Param-<value>` repeats the argument
MAX_DEPTH = 20  # how deep marks are looked for in nested objects

MARKED_TYPES = frozenset({"string", "integer", "boolean", "null"})  # the last one beside another

# The path of an argument, and the name of its header.
Marks = tuple[tuple[tuple[str, ...], str], ...]
ToolMarks = dict[str, Marks]  # by tool: the arguments that headers repeat, where known


def routing_headers(method: str, params: Mapping[str, Any]) -> bytes:
    """The headers Mcp-Method and Mcp-Name. RpcError for a method that no header can carry."""
    name = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    return _routing(method, name if isinstance(name, str) else None)


@functools.lru_cache(maxsize=1024)
def _routing(method: str, name: str | None) -> bytes:
    if encoded_header(method) != method:
        raise RpcError(INVALID_REQUEST, f"The method '{shown(method)}' cannot be sent over HTTP.")
    named = {} if name is None else {"Mcp-Name": encoded_header(name)}
    return encode_headers({"Mcp-Method": method, **named})


def marks_in(schema: object) -> Marks | None:
    """The arguments of a tool that are repeated in headers; those in lists or alternatives cannot be.

    None if one is marked in a way that MCP does not allow: then the tool must not be used.
    """
    try:
        marks = tuple(_marked(schema, ()))
    except ValueError:
        return None
    names = {name.lower() for _, name in marks}
    return marks if len(names) == len(marks) else None


def _marked(schema: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(schema, dict) or len(path) > MAX_DEPTH:
        return
    if path and MARK in schema:
        name, kind = schema[MARK], schema.get("type", "string")
        kinds = {str(each) for each in kind} if isinstance(kind, list) else {str(kind)}
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name) or kinds - MARKED_TYPES or kinds == {"null"}:
            raise ValueError
        yield path, name
    inner = schema.get("properties")
    if isinstance(inner, dict):
        for key, each in inner.items():
            yield from _marked(each, (*path, key))


def argument_headers(marks: Marks, params: Mapping[str, Any]) -> bytes:
    headers = {}
    for path, name in marks:
        value = params.get("arguments")
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[f"Mcp-Param-{name}"] = encoded_header(str(value))
    return encode_headers(headers)
