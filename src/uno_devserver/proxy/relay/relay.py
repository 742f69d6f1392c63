"""The service that all clients of the proxy talk to: its own answers, and everything else from the upstream.

Whatever the upstream does, every request is answered exactly once, and truthfully; what passes is not changed but for
what separates two eras of MCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError
from ..board import LISTS
from ..tools import health_contents, is_health_uri
from .connections import Connections
from .everybody import Everybody
from .forwarding import Forwarding
from .outcomes import NoAnswer
from .own_calls import OwnCalls
from .policy import DEFAULT_RELAY_POLICY, RelayPolicy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ...protocol.parties import ServerInfo
    from ...protocol.service import Call, Params, Result, Session
    from ..board import Board
    from .link import Link
    from .observation import Answering, Observer
    from .pipeline import Pipeline

ROOTS_CHANGED = "notifications/roots/list_changed"


class Relay:
    """Implements `protocol.service.Service`.

    `resource_updated` tells the clients who follow that resource; `roots_changed` tells the engine that a client has
    other roots now. Everything is used in the engine's loop.
    """

    relays = True

    def __init__(
        self,
        link: Link,
        board: Board,
        *,
        resource_updated: Callable[[str], None],
        roots_changed: Callable[[Session], None],
        policy: RelayPolicy = DEFAULT_RELAY_POLICY,
    ) -> None:
        self._link = link
        self._board = board
        self._roots_changed = roots_changed
        self._policy = policy
        self._connections = Connections(link, board, resource_updated, policy)
        self._forwarding = Forwarding(link, board, self._connections, policy)
        self._own = OwnCalls(link, board, self._forwarding, policy)
        self.everybody = Everybody(self._connections)  # the peer of a conversation that all clients have to share
        self._observer: Observer | None = None

    @property
    def info(self) -> ServerInfo:
        return self._board.server

    def capabilities(self) -> dict[str, Any]:
        return self._board.capabilities

    @property
    def wait_calls(self) -> bool:
        """Whether requests wait for an upstream (`--wait-calls`), instead of being answered that there is none."""
        return self._forwarding.waits

    @wait_calls.setter
    def wait_calls(self, wanted: bool) -> None:
        self._forwarding.waits = wanted

    @property
    def pipeline(self) -> Pipeline | None:
        """Where code is reloaded: all calls of tools pass it."""
        return self._forwarding.pipeline

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline | None) -> None:
        self._forwarding.pipeline = pipeline
        self._pass_observer_on()

    @property
    def observer(self) -> Observer | None:
        """Who looks on; calls that are under way when one comes are not followed."""
        return self._observer

    @observer.setter
    def observer(self, observer: Observer | None) -> None:
        self._observer = observer
        self._forwarding.observer = observer
        self._pass_observer_on()

    def _pass_observer_on(self) -> None:
        if self.pipeline is not None:
            self.pipeline.observer = self._observer

    def await_pipeline(self, arranging: asyncio.Future[None]) -> None:
        """Whether there will be one is known when this is done."""
        self._forwarding.arranging = arranging

    def listed(self) -> None:
        """A client has read a list, here or from the board."""
        self._forwarding.listed()

    def answer(self, call: Call) -> Answering:
        """No coroutine of its own: nothing comes between a call and its answer while nobody looks."""
        observer = self._observer
        return self._answer(call) if observer is None else observer.follow(call, self._answer(call))

    async def _answer(self, call: Call) -> Result | msgspec.Raw:
        method, params = call.method, call.params
        try:
            if method == "tools/call":
                name = params.get("name")
                if self._own.has(name):
                    return await self._own.answer(call, str(name), params.get("arguments"))
            elif method in LISTS:
                return await self._list(method, params)
            elif method == "resources/read" and is_health_uri(params.get("uri")):
                return health_contents(self._board.health())
            return await self._forwarding.run(call, method, params)
        except NoAnswer as none:
            return none.told(method)

    async def notified(self, session: Session, method: str, params: Params) -> None:
        if method == ROOTS_CHANGED:
            self._roots_changed(session)
        await self._connections.of(session).tell(method, params)

    async def followed(self, uri: str, wanted: bool) -> None:
        if not is_health_uri(uri):
            await self._connections.follow(uri, wanted)

    async def levelled(self, session: Session, level: str) -> None:
        await self._connections.of(session).set_level(level)

    def opened(self, session: Session) -> None:
        self._connections.of(session)

    def closed(self, session: Session) -> None:
        self._connections.end(session)

    def upstream_changed(self) -> None:
        """From the engine: there is another upstream, or none any more."""
        self._connections.renew()

    def upstream_replaced(self) -> None:
        """From the engine: there is another upstream, and the one before still answers what it was asked."""
        self._connections.renew(old_answers=True)

    async def until_unused(self, generation: int) -> None:
        """Until no request waits for the upstream of that generation."""
        await self._connections.lines.until_unused(generation)

    async def close(self) -> None:
        """Say goodbye to the upstream for all clients, within a bound."""
        await self._connections.close()

    async def _list(self, method: str, params: Params) -> Result:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
        if method == "tools/list" and self._board.holds_tools:
            await self._link.until_connected(self._policy.tools_seconds)
        self.listed()
        key, which = LISTS[method]
        return {key: msgspec.Raw(getattr(self._board.lists, which))}
