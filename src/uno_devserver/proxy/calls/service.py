"""The service behind all clients of the proxy: answers what the proxy knows, and forwards the rest to the upstream.

Every request is answered exactly once, whatever the upstream does. Forwarded messages are not changed, except for what
differs between the two eras of MCP (handshake and modern).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError
from ..own_tools import health_contents, is_health_uri
from ..state import LISTS
from .conversations import Conversations
from .failure_answers import UnansweredRequest
from .forwarder import ForwardedRequest, Forwarder
from .own_tool_answers import OwnToolAnswers
from .upstream_link import DEFAULT_LIMITS, CallLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.peer_info import ServerInfo
    from ...protocol.service import Call, Params, Result, Session
    from ..inspection.call_recorder import Answering
    from ..state import ProxyState
    from .upstream_link import Link

ROOTS_CHANGED = "notifications/roots/list_changed"


class ProxyService:
    """Implements `protocol.service.Service`.

    `resource_updated` notifies the clients that follow that resource; `roots_changed` is called when a client's
    roots have changed. Everything must be called in the engine's loop.
    """

    relays = True

    def __init__(
        self,
        link: Link,
        state: ProxyState,
        *,
        resource_updated: Callable[[str], None],
        roots_changed: Callable[[Session], None],
        wait_calls: bool = False,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        self._link = link
        self._state = state
        self._roots_changed = roots_changed
        self.limits = limits
        self.conversations = Conversations(link, state, resource_updated, limits)
        self.forwarding = Forwarder(link, state, self.conversations, limits, waits=wait_calls)
        self._own = OwnToolAnswers(link, state, self.forwarding, self.conversations, limits)

    @property
    def info(self) -> ServerInfo:
        return self._state.server

    def capabilities(self) -> dict[str, Any]:
        return self._state.capabilities

    def answer(self, call: Call, relayed: ForwardedRequest | UnansweredRequest | RpcError | None = None) -> Answering:
        """Answer a request; if it was relayed without success, `relayed` is its outcome, or how to repeat it."""
        answering, observer = self._answer(call, relayed), self.forwarding.observer
        return answering if observer is None else observer.follow(call, answering)

    async def _answer(
        self, call: Call, relayed: ForwardedRequest | UnansweredRequest | RpcError | None
    ) -> Result | msgspec.Raw:
        method, params = call.method, call.params
        try:
            if isinstance(relayed, ForwardedRequest):
                return await self.forwarding.run_queued(call, relayed)
            if relayed is not None:
                raise relayed
            if method == "tools/call" and self._own.has(name := params.get("name")):
                return await self._own.answer(call, str(name), params.get("arguments"))
            if method in LISTS:
                return await self._list(call)
            if method == "resources/read" and is_health_uri(params.get("uri")):
                return health_contents(self._state.told_health())
            return await self.forwarding.run(call, ForwardedRequest(method, params))
        except UnansweredRequest as failure:
            return failure.answer(method)

    async def notified(self, session: Session, method: str, params: Params) -> None:
        if method == ROOTS_CHANGED:
            self._roots_changed(session)
        await self.conversations.of(session).send_notification(method, params)

    async def watched(self, uri: str, wanted: bool) -> None:
        if not is_health_uri(uri):
            await self.conversations.follow(uri, wanted)

    async def log_level_set(self, session: Session, level: str) -> None:
        await self.conversations.of(session).set_level(level)

    def opened(self, session: Session) -> None:
        self.conversations.of(session)

    def closed(self, session: Session) -> None:
        self.conversations.end(session)

    async def close(self) -> None:
        """Close the conversations of all clients, in bounded time."""
        await self.conversations.close()

    async def _list(self, call: Call) -> Result:
        method, params = call.method, call.params
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
        if method == "tools/list" and self._state.holds_tools:
            await self._link.until_connected(self.limits.tools_seconds)
        self.forwarding.list_read()
        if method == "tools/list":
            self.tools_listed(call.session)
        key, which = LISTS[method]
        return {key: msgspec.Raw(getattr(self._state.lists, which))}

    def tools_listed(self, session: Session) -> None:
        """Record which list of tools this client has read."""
        self.conversations.of(session).listed_tools = self._state.lists.tools
