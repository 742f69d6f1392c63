"""The service behind all clients of the proxy: answers what the proxy knows, and forwards the rest to a server.

Every request is answered exactly once, whatever the server does. Forwarded messages are not changed, except for what
differs between the two eras of MCP (handshake and modern). Where there are several servers, a request goes to the one
that offers its tool, prompt or resource; notifications and log levels go to all.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...protocol.jsonrpc import INVALID_PARAMS, RpcError, shown
from ..own_tools import HEALTH, STATUS, health_contents, is_health_uri
from ..state import GIVEN_UP, LISTS
from .failure_answers import UnansweredRequest, not_served, unavailable
from .forwarder import ForwardedRequest, report
from .own_tool_answers import OwnToolAnswers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...protocol.peer_info import ServerInfo
    from ...protocol.service import Call, Params, Result, Session
    from ..inspection.call_recorder import Answering, CallRecorder
    from ..state import ProxyState, Routes
    from .forwarder import Forwarder

HEALTH_QUIET_SECONDS = 0.05  # a crash and its restart change about ten facts within 20 ms
# The members of the report whose changes are announced; the others are durations, counters, and what was found on disk.
HEALTH_MEMBERS = (
    "status",
    "connectionState",
    "hostProcessId",
    "toolCount",
    "unoSdkVersion",
    "effectiveWorkspaceDirectory",
    "selectedSolutionPath",
    "issues",
    "addIns",
)
EXCLUDED = "The workspace's config leaves it out (tools.include, tools.exclude)."
# The requests that go to the server which offers what they name.
BY_NAME = frozenset({"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete"})
ROOTS_CHANGED = "notifications/roots/list_changed"


class HealthUpdates:
    """Announces changes of the health report to clients that have subscribed to it. Costs nothing without these."""

    def __init__(self, state: ProxyState, resource_updated: Callable[[str], None]) -> None:
        self._state = state
        self._resource_updated = resource_updated
        self._uris: set[str] = set()  # clients may spell it in different ways
        self._told: list[object] = []
        self._next: asyncio.TimerHandle | None = None

    def follow(self, uri: str) -> None:
        if not self._uris:
            self._told = self._present()
            self._state.subscribe(self._changed)
        self._uris.add(uri)

    def leave(self, uri: str) -> None:
        self._uris.discard(uri)
        if not self._uris:
            self._state.unsubscribe(self._changed)

    def _changed(self) -> None:
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(HEALTH_QUIET_SECONDS, self._announce)

    def _announce(self) -> None:
        self._next = None
        present = self._present()
        if present != self._told:
            self._told = present
            for uri in tuple(self._uris):
                self._resource_updated(uri)

    def _present(self) -> list[object]:
        told = self._state.report()
        return [told.get(name) for name in HEALTH_MEMBERS]


class ProxyService:
    """Implements `protocol.service.Service`.

    `forwarding`: to the main server. `resource_updated` notifies the clients that follow that resource;
    `roots_changed` is called when a client's roots have changed, and `reconsider` by each request while something waits
    for the user's agreement. Everything must be called in the engine's loop.
    """

    relays = True

    def __init__(
        self,
        forwarding: Forwarder,
        *,
        resource_updated: Callable[[str], None],
        roots_changed: Callable[[Session], None],
        reconsider: Callable[[], Awaitable[None]],
    ) -> None:
        self._reconsider = reconsider
        self._state = forwarding.state
        self._roots_changed = roots_changed
        self.limits = forwarding.limits
        self.forwarding = forwarding
        self.conversations = forwarding.conversations
        self.members: dict[str, Forwarder] = {}  # of the further servers, by name
        self._health = HealthUpdates(self._state, resource_updated)
        self._own = OwnToolAnswers(self)

    @property
    def info(self) -> ServerInfo:
        return self._state.server

    def capabilities(self) -> dict[str, Any]:
        return self._state.capabilities

    @property
    def servers(self) -> list[Forwarder]:
        """Those of all servers, the main one first."""
        return [*([self.forwarding] if self._state.facts.serves else []), *self.members.values()]

    def add(self, name: str, forwarding: Forwarder) -> None:
        """Forward to a further server; it gets the log levels that clients have set."""
        forwarding.observer = self.forwarding.observer
        for session, known in self.conversations.by_session.items():
            forwarding.conversations.of(session).log_level = known.log_level
        self.members[name] = forwarding

    def observe(self, observer: CallRecorder | None) -> None:
        """Have all requests recorded from now on, or none."""
        for each in (self.forwarding, *self.members.values()):
            each.observer = observer

    def answer(
        self,
        call: Call,
        relayed: ForwardedRequest | UnansweredRequest | RpcError | None = None,
        to: Forwarder | None = None,
    ) -> Answering:
        """Answer a request; if it was relayed to a server without success, `relayed` is its outcome, or how to repeat
        it.
        """
        answering, observer = self._answer(call, relayed, to), self.forwarding.observer
        return answering if observer is None else observer.follow(call, answering)

    async def _answer(
        self, call: Call, relayed: ForwardedRequest | UnansweredRequest | RpcError | None, to: Forwarder | None
    ) -> Result | msgspec.Raw:
        method, params = call.method, call.params
        try:
            if isinstance(relayed, ForwardedRequest):
                assert to is not None
                return await to.run_queued(call, relayed)
            if relayed is not None:
                raise relayed
            if self._state.facts.awaits_agreement and not self._is_served(method, params):
                await self._reconsider()
            if method == "tools/call" and self._own.has(name := params.get("name")):
                return await self._own.answer(call, str(name), params.get("arguments"))
            if method in LISTS:
                return await self._list(call)
            if method == "resources/read" and is_health_uri(params.get("uri")):
                return health_contents(self._state.told_health())
            to = await self.server_for(method, params, call)
            return await to.run(call, ForwardedRequest(method, params))
        except UnansweredRequest as failure:
            if to is not None:
                failure.of_server(to.state.facts, several=bool(self.members))
            return failure.answer(method)

    def _is_served(self, method: str, params: Params) -> bool:
        """Whether a known server is concerned; then its hot reload checks what the user has agreed to."""
        if not self.servers or params.get("name") == HEALTH or is_health_uri(params.get("uri")):
            return False
        is_own = method == "tools/call" and self._own.has(params.get("name"))
        return not self.members or is_own or _server_of(self._state.routes, method, params) is not None

    async def server_for(self, method: str, params: Params, call: Call | None = None) -> Forwarder:
        """Return the forwarder to the server that answers a request; raise RpcError if there is none.

        What no server offers is waited for while one starts, or gets new code, that may offer it. Raise
        UnansweredRequest if a start takes too long, or if there are no servers.
        """
        name = str(params.get("name"))
        if method == "tools/call" and name in self._state.routes.excluded:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: '{shown(name)}'. {EXCLUDED}")
        server = _server_of(self._state.routes, method, params)
        if server is None and self.members and method in BY_NAME:
            server = await self._await_offer(method, params, call)
        if server and server in self.members:
            return self.members[server]
        if not self.servers:
            raise not_served(self._state)
        routes = self._state.routes
        if server is None and method == "tools/call" and routes.only_listed:
            waits = f" {STATUS} waits for new code, and says what is wrong with it." if self._own.has(STATUS) else ""
            why = f"No server lists it.{waits} {HEALTH} says which servers there are."
            raise RpcError(INVALID_PARAMS, f"Unknown tool: '{shown(name)}'. {why}")
        if server:
            raise RpcError(INVALID_PARAMS, f"The server '{server}' is not served.")
        if self._state.facts.serves or len(self.members) == 1:
            return self.servers[0]
        raise RpcError(INVALID_PARAMS, f"No server offers what '{shown(method)}' asks for.")

    async def _await_offer(self, method: str, params: Params, call: Call | None) -> str | None:
        """Wait, while servers start or get new code, until one offers this; return its name, or None."""
        servers = [to for to in self.servers if to.may_reload or to in self._starting()]
        if not servers:
            return None
        changed, waits = asyncio.Event(), any(to.waits for to in servers)
        names = ", ".join(to.state.facts.upstream_name for to in servers)
        seconds = self.limits.hold_seconds if waits else self.limits.grace_seconds
        telling = call and asyncio.ensure_future(report(call, lambda: names, self.limits.progress_seconds))
        reloading = [asyncio.ensure_future(to.newest_code()) for to in servers]
        for each in reloading:
            each.add_done_callback(lambda _: changed.set())
        self._state.subscribe(changed.set)  # it also hears of the further servers
        try:
            async with asyncio.timeout(seconds):
                while (server := _server_of(self._state.routes, method, params)) is None and (
                    self._starting() or not all(each.done() for each in reloading)
                ):
                    changed.clear()
                    await changed.wait()
                return server
        except TimeoutError:
            if not (starting := self._starting()):
                return None
            raise unavailable(starting[0].link, starting[0].state).of_server(starting[0].state.facts) from None
        finally:
            self._state.unsubscribe(changed.set)
            for task in (*reloading, *([telling] if telling else [])):
                task.cancel()

    def _starting(self) -> list[Forwarder]:
        """The servers that start, and have not listed yet what they offer."""
        return [
            to
            for to in self.servers
            if not (to.state.facts.lists_fresh or to.state.connection in GIVEN_UP or to.link.fallback)
        ]

    async def notified(self, session: Session, method: str, params: Params) -> None:
        if method == ROOTS_CHANGED:
            self._roots_changed(session)
        for to in self.members.values():  # one that hangs must not hold up the others
            known = to.conversations.of(session)
            known.start(partial(known.send_notification, method, params), method)
        await self.conversations.of(session).send_notification(method, params)

    async def watched(self, uri: str, wanted: bool) -> None:
        if not is_health_uri(uri):
            to = await self.server_for("resources/subscribe", {"uri": uri})
            await to.conversations.follow(uri, wanted)
        elif wanted:
            self._health.follow(uri)
        else:
            self._health.leave(uri)

    async def log_level_set(self, session: Session, level: str) -> None:
        for to in self.members.values():
            known = to.conversations.of(session)
            known.start(partial(known.set_level, level), "logging/setLevel")
        await self.conversations.of(session).set_level(level)

    def opened(self, session: Session) -> None:
        for to in (self.forwarding, *self.members.values()):
            to.conversations.of(session)

    def closed(self, session: Session) -> None:
        for to in (self.forwarding, *self.members.values()):
            to.conversations.end(session)

    async def close(self) -> None:
        """Close the conversations of all clients, in bounded time."""
        await asyncio.gather(*(to.conversations.close() for to in (self.forwarding, *self.members.values())))

    async def _list(self, call: Call) -> Result:
        method, params = call.method, call.params
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list here is one page.")
        if method == "tools/list" and self._state.holds_tools:
            seconds = self.limits.tools_seconds
            await asyncio.gather(*(to.link.until_connected(seconds) for to in self.servers))
        for to in self.servers:
            to.list_read()
        if method == "tools/list":
            self.tools_listed(call.session, self._state.lists.tools)
        key, which = LISTS[method]
        return {key: msgspec.Raw(getattr(self._state.lists, which))}

    def tools_listed(self, session: Session, tools: bytes) -> None:
        """Record which list of tools this client has read."""
        self.conversations.of(session).listed_tools = tools


def _server_of(routes: Routes, method: str, params: Params) -> str | None:
    """The name of the server that offers what the request is about; empty for the main one, None if none does."""
    if method == "tools/call":
        return routes.tools.get(str(params.get("name")), (None,))[0]
    if method == "completion/complete":
        ref = params.get("ref")
        params = ref if isinstance(ref, dict) else {}
    if "uri" not in params:
        return routes.prompts.get(str(params.get("name")), (None,))[0]
    uri = str(params["uri"])
    found = routes.resources.get(uri, routes.templates.get(uri))
    if found is not None:
        return found
    return next((server for template, server in routes.templates.items() if _fits(uri, template)), None)


def _fits(uri: str, template: str) -> bool:
    """Whether the URI may be one of the template (RFC 6570), whose variables stand for any text."""
    literals = re.split(r"\{[^}]*\}", template)
    return re.fullmatch(".*".join(map(re.escape, literals)), uri, re.DOTALL) is not None
