"""A conversation of the modern era over Streamable HTTP: every request stands for itself, and so does its connection.

Closing the connection is how a request is cancelled. What belongs to no request comes over a subscription, which is
opened again when it ends.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from ...system.log import log
from ..eras import HEADER_MISMATCH, UNSUPPORTED_VERSION
from ..http.client import encode_headers
from ..jsonrpc import (
    INTERNAL_ERROR,
    SESSION_NOT_FOUND,
    SESSION_REQUIRED,
    STOPPED,
    RpcError,
    notification_message,
)
from .connection import Lost, Server
from .messages import (
    MODERN_VERSION,
    NOTHING,
    Message,
    discovered_server,
    object_in,
    opened_params,
    params_of,
    request_bytes,
    result_in,
    with_envelope,
)
from .questions import tell
from .rounds import completed
from .streamable_calls import HttpCall
from .streamable_endpoint import COMMON_HEADERS, KEEPS_METHOD, Cut, Endpoint, NotMcp
from .streamable_headers import Marks, argument_headers, marks_in, routing_headers
from .subscribing import ACKNOWLEDGED, Backoff, tell_of_all_lists, tells_changes, wish, without_subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..http.client_connection import Reply
    from ..service import Params
    from .connection import Peer, PendingCall

ACKNOWLEDGE_SECONDS = 2.0  # a subscription counts from its acknowledgement on, which servers give at once
MAX_PAGES = 100  # of a list of tools
# This era has none of them.
LEFT_OUT = frozenset({"notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed"})


class ModernConnection:
    @classmethod
    async def open(cls, endpoint: Endpoint, peer: Peer) -> ModernConnection:
        """Ask who is there. RpcError, NotMcp or Refusal where nobody of this era is."""
        connection = cls(endpoint, peer)
        connection._server = discovered_server(await connection._exchange("server/discover", {}, peer))
        connection._begun = True
        return connection

    def __init__(self, endpoint: Endpoint, peer: Peer) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._server: Server
        self._begun = False  # it was found to speak this era
        self._ids = count(1)
        self._headers = encode_headers({**COMMON_HEADERS, "MCP-Protocol-Version": MODERN_VERSION})
        self._marks: dict[str, Marks] = {}  # of tools that have some
        self._following = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None

    @property
    def server(self) -> Server:
        return self._server

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        async def send(params: Params) -> msgspec.Raw:
            return await self._call(method, params, peer)

        return await completed(params, peer, send)

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        if name in self._marks:  # its arguments are wanted in headers
            return False
        http_call = HttpCall(call, next(self._ids), self._endpoint, partial(self._finished, call, params))
        return http_call.send(self._headers + routing_headers("tools/call", {"name": name}), params)

    def flush(self) -> None:
        """Nothing: each call has a connection of its own, and is written at once."""

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

    async def follow(self, uris: frozenset[str]) -> dict[str, RpcError]:
        """One subscription for all. The one before ends when the new one counts, so that nothing is missed."""
        async with self._following:
            listener = None
            if uris or tells_changes(self._server):
                listener, refusal = await self._begin_to_listen(uris)
                if refusal is not None and uris:
                    return dict.fromkeys(uris, refusal)
            if self._listener is not None:
                self._listener.cancel()
            self._listener = listener
            return {}

    async def set_level(self, level: str) -> None:
        """Nothing: each request says it for itself, and there are no messages but theirs."""

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
            return await self._exchange(method, params, peer)  # it was refused unseen, for headers that we know now
        except NotMcp as other:
            raise RpcError(INTERNAL_ERROR, f"The server {other}.") from None

    async def _exchange(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        request_id = next(self._ids)
        headers = self._headers + routing_headers(method, params)
        if self._marks and method == "tools/call":
            headers += argument_headers(self._marks.get(str(params.get("name")), ()), params)
        body = request_bytes(request_id, method, with_envelope(params, peer))
        return await self._result(await self._endpoint.send("POST", headers, body), request_id, peer)

    async def _finished(self, call: PendingCall, params: bytes, reply: Reply, request_id: int) -> msgspec.Raw:
        """The result of a call whose answer is not plain JSON."""
        if reply.status in KEEPS_METHOD:  # which the general way follows
            reply.release()
            return await self._call("tools/call", opened_params(params), call)
        try:
            return await self._result(reply, request_id, call)
        except NotMcp as other:
            raise RpcError(INTERNAL_ERROR, f"The server {other}.") from None
        except RpcError as error:
            if error.code != HEADER_MISMATCH:
                raise
            return await self._call("tools/call", opened_params(params), call)  # it was refused unseen

    async def _result(self, reply: Reply, request_id: int, peer: Peer) -> msgspec.Raw:
        try:
            message = await self._endpoint.answer(reply, request_id, _hear(peer))
        except Cut as cut:
            raise Lost(str(cut), sent=True) from None
        try:
            return result_in(message)
        except RpcError as error:
            if reply.status == 503 and error.code == STOPPED:
                raise Lost(f"The server at {self._endpoint.url} stops: {error.message}", sent=False) from None
            if self._begun and reply.status in (400, 404) and _is_of_other_era(message, error):
                why = f"The server at {self._endpoint.url} speaks this version of MCP no more: {error.message}"
                raise Lost(why, sent=False) from None
            raise

    async def _learn_marks(self, call: Params) -> bool:
        """Look up which headers the tool wants; whether that was news."""
        name, cursor = call.get("name"), None
        for _ in range(MAX_PAGES):
            params: Params = {} if cursor is None else {"cursor": cursor}
            try:
                page = object_in(await self._exchange("tools/list", params, self._peer)) or {}
            except Lost as lost:
                raise Lost(str(lost), sent=False) from None  # the call itself was refused unseen
            for tool in page.get("tools") or ():
                if isinstance(tool, dict) and tool.get("name") == name:
                    marks, known = marks_in(tool.get("inputSchema")), self._marks.get(str(name), ())
                    self._marks[str(name)] = marks
                    return marks != known
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return False

    # --- what belongs to no request

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
        """Hear of changes until cancelled, or until the server says that it does not tell them."""

        def hear(message: Message) -> None:
            if message.method != ACKNOWLEDGED:
                tell(self._peer, message.method or "", without_subscription(params_of(message)))
                return
            if acknowledged.done():
                tell_of_all_lists(self._peer, self._server)
            else:
                acknowledged.set_result(None)

        backoff = Backoff()
        while True:
            try:
                await self._hear_subscription(uris, hear)
            except (RpcError, NotMcp) as refusal:
                log.debug(f"{self._endpoint.url} does not tell what changes: {refusal}")
                if not acknowledged.done():
                    error = (
                        refusal if isinstance(refusal, RpcError) else RpcError(INTERNAL_ERROR, f"The server {refusal}.")
                    )
                    acknowledged.set_result(error)
                return
            except (Lost, Cut) as error:
                log.debug(f"nothing is heard of {self._endpoint.url}: {error}")
            await asyncio.sleep(backoff.next())

    async def _hear_subscription(self, uris: frozenset[str], hear: Callable[[Message], None]) -> None:
        request_id = next(self._ids)
        headers = self._headers + routing_headers("subscriptions/listen", {})
        body = request_bytes(request_id, "subscriptions/listen", with_envelope(wish(uris), self._peer))
        reply = await self._endpoint.send("POST", headers, body)
        result_in(await self._endpoint.answer(reply, request_id, hear))


def _is_of_other_era(answer: Message, error: RpcError) -> bool:
    """Whether a server refused the request unread that was started anew, and knows only sessions now."""
    wants_session = error.code in (SESSION_REQUIRED, SESSION_NOT_FOUND) and answer.id in NOTHING
    return wants_session or error.code == UNSUPPORTED_VERSION


def _hear(peer: Peer) -> Callable[[Message], None]:
    def hear(message: Message) -> None:
        if message.is_notification:
            tell(peer, message.method or "", params_of(message))
        else:
            log.debug("the server asks, or answers, what has no place in this era")

    return hear
