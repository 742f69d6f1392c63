"""Each client's conversation with the upstream, opened when it is first needed.

A conversation outlives its upstream: after the upstream is replaced, requests use a connection to the new one. No
request is sent to an older upstream, and no answer of an older upstream is taken for the answer to a new request.

A handshake client has a conversation for its session. A modern client has no session, but names itself with each
request: clients with the same name share a conversation. The number of these is limited, because modern clients do not
end them. A server on pipes has one conversation for all clients: its messages outside requests go to all of them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ...protocol.client.connection import ConnectionLost, UnusableServer
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError, shown
from ...protocol.peer_info import ClientInfo
from ...protocol.server.modern import ModernSession
from ...protocol.versions import LISTS, LOG_LEVELS, MODERN_VERSIONS
from ...system.event_loop import Tasks, shielded
from ...system.log import log
from ..state import ConnectionState
from .era_translation import error_for_handshake_client, for_handshake_client, for_handshake_server, for_modern_client
from .upstream_link import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from ...protocol.client.connection import Connection, Peer
    from ...protocol.service import Params, Result, Session
    from ..state import ProxyState
    from .forwarder import Caller
    from .upstream_link import CallLimits, Link

LIST_CHANGES = frozenset(method for _, method, _ in LISTS)
# The exceptions that are raised if the upstream cannot be reached.
UNREACHED = (ConnectionLost, UnusableServer, Unavailable, TimeoutError)

ClientKey = tuple[str | None, str | None, bytes]


class Route:
    """A conversation's connection to the upstream of one generation, and the requests that use it."""

    __slots__ = ("callers", "connection", "conversation", "generation", "left", "modern", "unused")

    def __init__(self, conversation: Conversation, connection: Connection, generation: int) -> None:
        self.conversation = conversation
        self.connection = connection
        self.generation = generation
        self.modern = connection.server.modern
        self.callers: dict[Peer, None] = {}  # the callers of running requests, in the order in which they came
        self.left = False  # True when no new request may use it
        self.unused: asyncio.Event | None = None  # set when no request runs any more

    def end(self, caller: Peer) -> None:
        """Remove the caller of a request that is over."""
        del self.callers[caller]
        self.check()

    def check(self) -> None:
        """If no request runs, set `unused`, and close the connection if it was left."""
        if self.callers:
            return
        if self.left:
            self.conversation.close(self)
        if self.unused is not None:
            self.unused.set()
            self.unused = None

    def leave(self) -> None:
        """Send no new request over this connection; close it when the present ones are over."""
        self.left = True
        if self.conversation.route is self:
            self.conversation.route = None
        self.check()


class Conversation:
    """Implements `protocol.client.connection.Peer` for the upstream's messages outside requests."""

    def __init__(self, session: Session, link: Link, owner: Conversations, limits: CallLimits) -> None:
        self.log_level: str | None = None  # the client's level; for a modern one, the lowest of its requests
        self._session = session
        self._modern = session.client.protocol_version in MODERN_VERSIONS
        self._link = link
        self._owner = owner
        self._limits = limits
        self.route: Route | None = None  # None while no connection is open
        self._opening: asyncio.Task[None] | None = None
        self._opening_for = 0  # the generation that `_opening` connects to
        self._begun = False  # whether there was a connection
        self.ended = False
        self.listed_tools: bytes | None = None  # the list of tools that the client has read last
        self._unconnected: dict[Peer, None] = {}  # callers that wait for a connection

    @property
    def client(self) -> ClientInfo:
        return self._session.client

    @property
    def idle(self) -> bool:
        return self._last_caller() is None

    async def request(self, method: str, params: Params, caller: Caller) -> msgspec.Raw | Result:
        """Return the upstream's result in the form of the client's era; raise RpcError, or one of UNREACHED."""
        route = self.route
        if route is None or route.generation != self._link.generation:
            self._unconnected[caller] = None
            try:
                route = await self.open()
            finally:
                del self._unconnected[caller]
        route.callers[caller] = None
        try:
            if route.modern is self._modern:
                return await route.connection.request(method, params, caller)
            return await self._translated(route, method, params, caller)
        except ConnectionLost:
            route.leave()
            raise
        finally:
            route.end(caller)

    def open_ahead(self) -> None:
        self.start(self.open, "a new connection")

    async def send_notification(self, method: str, params: Params) -> None:
        """Pass a notification on to the upstream, if one is connected."""

        async def notify() -> None:
            await (await self.open()).connection.notify(method, params)

        if self._link.state is ConnectionState.CONNECTED:
            await self._aside(notify, method)

    async def set_level(self, level: str) -> None:
        """Set the log level on the present connection and on all later ones."""
        self.log_level = level
        if self.route is not None and self.route.generation == self._link.generation:
            await self._aside(partial(self.route.connection.set_level, level), "logging/setLevel")

    def renew(self, *, old_answers: bool = False) -> None:
        """Leave the connection to a former upstream; a handshake client that used it is connected to the new one.

        `old_answers`: whether the former upstream still answers the requests that it received.
        """
        connected = self._link.state is ConnectionState.CONNECTED
        generation = self._link.generation if connected else None
        if self._opening is not None and self._opening_for != generation:
            self._opening.cancel()
        if self.route is not None and self.route.generation != generation:
            if old_answers:
                self.route.leave()
            else:
                self.close(self.route)
                self.route = None
        if connected and self._begun and self.route is None and not self._modern:
            self.open_ahead()

    def end(self) -> None:
        """End the conversation, because the client has disconnected."""
        self.ended = True
        if self._opening is not None:
            self._opening.cancel()
        if self.route is not None:
            self.route.leave()

    def close(self, route: Route) -> None:
        """Close the connection; requests that still wait for an answer over it are lost."""
        if route in self._owner.routes:
            self._owner.routes.remove(route)
            self.start(route.connection.close, "the end of a connection")

    def start(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """Start work that nothing waits for; `what` names it in the log."""
        self._owner.tasks.start(self._aside(work, what))

    # From the upstream.

    def notify(self, method: str, params: Params) -> None:
        if not self._owner.handled(method, params):
            self.pass_on(method, params)

    def pass_on(self, method: str, params: Params) -> None:
        """Notify this client alone; a modern client can only be notified during a request."""
        listener = self._last_caller() if self._modern else None
        (listener or self._session).notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        # The question is probably about a request that runs, and the client can be asked there in any case.
        caller = self._last_caller()
        if caller is not None:
            return await caller.ask(method, params, name)
        return await self._session.ask(method, params)

    def _last_caller(self) -> Peer | None:
        last = next(reversed(self._unconnected), None)
        return last or (None if self.route is None else next(reversed(self.route.callers), None))

    async def _translated(self, route: Route, method: str, params: Params, caller: Caller) -> Result:
        if self._modern:
            level, lowest = caller.log_level, self.log_level
            # A handshake server has one level for all requests: set the lowest, and filter for each request.
            if level is not None and (lowest is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(lowest)):
                await self.set_level(level)
            return for_modern_client(await route.connection.request(method, for_handshake_server(params), caller))
        try:
            return for_handshake_client(await route.connection.request(method, params, caller), method)
        except RpcError as error:
            raise error_for_handshake_client(error, method, params) from None

    async def _aside(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """Do work that no request waits for, in bounded time; a failure is only logged."""
        try:
            async with asyncio.timeout(self._limits.aside_seconds):
                await work()
        except (*UNREACHED, RpcError) as error:
            log.debug(f"The upstream was not reached for '{shown(what)}': {error}")

    async def open(self) -> Route:
        """Return the connection to the present upstream; concurrent callers share one attempt to open it."""
        if self.ended:
            raise _gone()
        while self.route is None or self.route.generation != self._link.generation:
            generation, opening = self._link.generation, self._opening
            if opening is None or opening.done() or self._opening_for != generation:
                if opening is not None:
                    opening.cancel()
                opening = self._opening = self._owner.tasks.start(self._connect(generation))
                self._opening_for = generation
            try:
                await shielded(opening)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if opening.cancelled() and task is not None and not task.cancelling():
                    raise _gone() from None  # the opening was cancelled, not the caller
                raise
        return self.route

    async def _connect(self, generation: int) -> None:
        try:
            connection = await self._link.connect(self, modern_first=self._modern)
        except ConnectionLost as lost:
            raise ConnectionLost(str(lost), sent=False) from None  # the request itself was not sent
        if self.route is not None:
            self.route.leave()
        self.route, self._begun = Route(self, connection, generation), True
        self._owner.routes.add(self.route)
        if self.log_level is not None:
            await self._aside(partial(connection.set_level, self.log_level), "logging/setLevel")


def _gone() -> ConnectionLost:
    return ConnectionLost("The upstream or the client ended before the connection was open.", sent=False)


class Conversations:
    """All conversations. Implements `protocol.client.connection.Peer` for a server with only one conversation.

    `resource_updated` notifies the clients that follow that resource.
    """

    log_level = None  # each request has its own level

    def __init__(
        self, link: Link, state: ProxyState, resource_updated: Callable[[str], None], limits: CallLimits
    ) -> None:
        self.tasks = Tasks()
        self.routes: set[Route] = set()  # all open connections
        self.by_session: dict[Session, Conversation] = {}
        self._link = link
        self._resource_updated = resource_updated
        self._limits = limits
        self.last_envelope: tuple[bytes, bytes, bytes, Conversation] | None = None  # of a relayed call
        self._first: ClientInfo | None = None  # the AI client that started the proxy
        self._own_client = ClientInfo(state.server.name, state.server.version, {}, MODERN_VERSIONS[0])
        self._modern: dict[ClientKey, Conversation] = {}  # the least recently used first
        self._watch = self._begin(ModernSession(self._own_client))  # follows resources for all clients
        self._followed: dict[str, int] = {}  # the number of endpoints that follow each resource
        self._following = asyncio.Lock()  # sets are sent one after the other, so that the last one is in effect
        self._next_question: asyncio.Task[Mapping[str, RpcError]] | None = None  # the one that waits for its turn

    def of(self, session: Session) -> Conversation:
        """Return the conversation of this session's client; begin it if needed."""
        found = self.by_session.get(session)
        if found is not None:
            return found
        if session.client.protocol_version not in MODERN_VERSIONS:
            found = self.by_session[session] = self._begin(session)
            return found
        key = _key(session.client)
        found = self._modern.pop(key, None)
        if found is None:
            surplus = max(len(self._modern) + 1 - self._limits.modern_clients, 0)
            for other in [other for other, conversation in self._modern.items() if conversation.idle][:surplus]:
                self._modern.pop(other).end()
            found = self._begin(session)
        self._modern[key] = found
        return found

    def known_modern(self, client: ClientInfo) -> Conversation | None:
        """Return the conversation of this modern client, if it has begun."""
        return self._modern.get(_key(client))

    async def until_unused(self, generation: int) -> None:
        """Wait until no request runs on the upstream of that generation."""
        while busy := [route for route in self.routes if route.generation == generation and route.callers]:
            busy[0].unused = busy[0].unused or asyncio.Event()
            await busy[0].unused.wait()

    def end(self, session: Session) -> None:
        if (conversation := self.by_session.pop(session, None)) is not None:
            conversation.end()

    def open_ahead(self, session: Session) -> None:
        """Open the connection of this session before its first request."""
        if self._link.state is ConnectionState.CONNECTED:
            self.of(session).open_ahead()

    def renew(self, *, old_answers: bool = False) -> None:
        """Leave all connections to a former upstream; with `old_answers`, it still answers requests that it got."""
        for conversation in (*self.all(), self._watch):
            conversation.renew(old_answers=old_answers)
        if self._followed and self._link.state is ConnectionState.CONNECTED:
            self.tasks.start(self._follow_again())

    async def follow(self, uri: str, wanted: bool) -> None:
        """Follow a resource, or stop, now or when there is an upstream; raise RpcError if the upstream refuses."""
        before = self._followed.get(uri, 0)
        self._count(uri, before + (1 if wanted else -1))
        if bool(before) == bool(self._followed.get(uri)) or self._link.state is not ConnectionState.CONNECTED:
            return
        try:
            refusals = await self._follow()
        except UNREACHED as error:
            log.debug(f"The upstream will be asked later to follow resources: {error}")
            return
        if wanted and uri in refusals:
            self._count(uri, self._followed.get(uri, 0) - 1)
            raise refusals[uri].with_traceback(None)  # several calls may raise the same one

    def handled(self, method: str, params: Params) -> bool:
        """Handle a notification that concerns all clients; return whether this was one."""
        if method in LIST_CHANGES:
            self._link.lists_changed()
        elif method == "notifications/resources/updated":
            self._resource_updated(str(params.get("uri")))
        else:
            return False
        return True

    def all(self) -> Iterator[Conversation]:
        """Yield all conversations: those of sessions first, in the order in which they began."""
        yield from (*self.by_session.values(), *self._modern.values())

    # For an upstream with one conversation for all clients.

    def met(self, client: ClientInfo) -> None:
        """Record how the AI client that started the proxy has introduced itself."""
        self._first = client

    @property
    def client(self) -> ClientInfo:
        """The client that the server sees; it takes the capabilities of this one for those of all clients."""
        return self._first or next((conversation.client for conversation in self.all()), self._own_client)

    def notify(self, method: str, params: Params) -> None:
        if not self.handled(method, params):
            for conversation in self.all():
                conversation.pass_on(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        # Ask the first client with a running request; without one, the first client.
        conversation = min(self.all(), key=lambda conversation: conversation.idle, default=None)
        if conversation is None:
            raise RpcError(INVALID_REQUEST, f"There is no client yet that can be asked for '{method}'.")
        return await conversation.ask(method, params, name)

    async def close(self) -> None:
        for conversation in (*self.all(), self._watch):
            conversation.end()
        await self.tasks.wait(self._limits.close_seconds)

    def _begin(self, session: Session) -> Conversation:
        return Conversation(session, self._link, self, self._limits)

    async def _follow_again(self) -> None:
        try:
            for uri, refusal in (await self._follow()).items():
                log.warn(f"The dev server does not report changes of '{shown(uri)}' any more: {refusal}")
        except UNREACHED as error:
            log.warn(f"The dev server does not report changes of followed resources any more: {error}")

    async def _follow(self) -> Mapping[str, RpcError]:
        """Ask the upstream to report changes of the followed resources; return its refusals. Raises UNREACHED.

        Callers that come while it is asked share the next question: each names all resources.
        """
        if self._next_question is None:
            self._next_question = self.tasks.start(self._watch_followed())
        return await shielded(self._next_question)

    async def _watch_followed(self) -> Mapping[str, RpcError]:
        async with self._following, asyncio.timeout(self._limits.aside_seconds):
            self._next_question = None
            route = await self._watch.open()
            try:
                return await route.connection.watch(frozenset(self._followed))
            except ConnectionLost:
                route.leave()
                raise

    def _count(self, uri: str, number: int) -> None:
        if number > 0:
            self._followed[uri] = number
        else:
            self._followed.pop(uri, None)


def _key(client: ClientInfo) -> ClientKey:
    return client.name, client.version, msgspec.json.encode(client.capabilities)
