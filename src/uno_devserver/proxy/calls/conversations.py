"""Each client's conversation with the upstream, opened when it is first needed.

A conversation outlives the upstream: when that is replaced, the next request goes over a connection to the new one. No
request is sent over a connection to an older upstream, and no answer of an older one is taken for a new request's.

A handshake client has a conversation for its session. A modern client has no session but says with each request who it
is: all who say the same share one, within a number, because none of them says goodbye. A server on pipes can have one
conversation only, which all clients share: what it says beside requests goes to all of them.
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
from ...system.event_loop import Tasks
from ...system.log import log
from ..state import ConnectionState
from .era_translation import error_for_handshake_client, for_handshake_client, for_handshake_server, for_modern_client
from .upstream_link import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from ...protocol.client.connection import Connection, Peer
    from ...protocol.service import Params, Result, Session
    from ..state import ProxyState
    from .forwarding import Caller
    from .upstream_link import CallLimits, Link

LIST_CHANGES = frozenset(method for _, method, _ in LISTS)
# Why the upstream may not be reached.
UNREACHED = (ConnectionLost, UnusableServer, Unavailable, TimeoutError)

Who = tuple[str | None, str | None, bytes]


class Route:
    """A conversation's connection to the upstream of one generation, and the requests that use it."""

    __slots__ = ("callers", "connection", "conversation", "generation", "left", "modern", "unused")

    def __init__(self, conversation: Conversation, connection: Connection, generation: int) -> None:
        self.conversation = conversation
        self.connection = connection
        self.generation = generation
        self.modern = connection.server.modern
        self.callers: dict[Peer, None] = {}  # in the order in which they came
        self.left = False  # nothing new goes over it
        self.unused: asyncio.Event | None = None  # for those who wait until no request is under way

    def end(self, caller: Peer) -> None:
        """The request of this caller, which was put into `callers`, is over."""
        del self.callers[caller]
        self.check()

    def check(self) -> None:
        """If nothing uses it any more, close it if it is left, and tell those who wait for that."""
        if self.callers:
            return
        if self.left:
            self.conversation.close(self)
        if self.unused is not None:
            self.unused.set()
            self.unused = None

    def leave(self) -> None:
        """Nothing new goes over it; it is closed when those who use it are done."""
        self.left = True
        if self.conversation.route is self:
            self.conversation.route = None
        self.check()


class Conversation:
    """Implements `protocol.client.connection.Peer` for what the upstream says beside all requests."""

    def __init__(self, session: Session, link: Link, owner: Conversations, limits: CallLimits) -> None:
        self.log_level: str | None = None  # that the client has chosen; a modern one with its requests
        self._session = session
        self._modern = session.client.protocol_version in MODERN_VERSIONS
        self._link = link
        self._owner = owner
        self._limits = limits
        self.route: Route | None = None  # the connection in use; None: none is open
        self._opening: asyncio.Task[None] | None = None
        self._opening_for = 0  # the generation
        self._begun = False
        self.ended = False  # the client has gone
        self._unconnected: dict[Peer, None] = {}  # callers that wait for a connection

    @property
    def client(self) -> ClientInfo:
        return self._session.client

    @property
    def idle(self) -> bool:
        return self._last_caller() is None

    async def request(self, method: str, params: Params, caller: Caller) -> msgspec.Raw | Result:
        """The upstream's result as its client understands it; RpcError, Lost, Unavailable or Refusal."""
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

    async def tell(self, method: str, params: Params) -> None:
        """Pass a notification on to the upstream, if one is connected."""

        async def notify() -> None:
            await (await self.open()).connection.notify(method, params)

        if self._link.state is ConnectionState.CONNECTED:
            await self._aside(notify, method)

    async def set_level(self, level: str) -> None:
        """Now, and on each connection that is still to come."""
        self.log_level = level
        if self.route is not None and self.route.generation == self._link.generation:
            await self._aside(partial(self.route.connection.set_level, level), "logging/setLevel")

    def renew(self, *, old_answers: bool = False) -> None:
        """The upstream is another one, or gone. Who has spoken to the old one hears the new one from the start.

        `old_answers`: what was sent to the old one is still answered there.
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
        """The client has gone."""
        self.ended = True
        if self._opening is not None:
            self._opening.cancel()
        if self.route is not None:
            self.route.leave()

    def close(self, route: Route) -> None:
        """Requests that still wait for an answer over it are lost."""
        if route in self._owner.routes:
            self._owner.routes.remove(route)
            self.start(route.connection.close, "a goodbye")

    def start(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """Something that nobody waits for."""
        self._owner.tasks.start(self._aside(work, what))

    # What the upstream says.

    def notify(self, method: str, params: Params) -> None:
        if not self._owner.noticed(method, params):
            self.pass_on(method, params)

    def pass_on(self, method: str, params: Params) -> None:
        """Notify this client only. A modern one listens to its requests only."""
        listener = self._last_caller() if self._modern else None
        (listener or self._session).notify(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        # A request that runs is likely what the question is about, and its client surely listens there.
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
            # A handshake server knows one level for all requests, of which each hears what it wants.
            if level is not None and (lowest is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(lowest)):
                await self.set_level(level)
            return for_modern_client(await route.connection.request(method, for_handshake_server(params), caller))
        try:
            return for_handshake_client(await route.connection.request(method, params, caller), method)
        except RpcError as error:
            raise error_for_handshake_client(error, method, params) from None

    async def _aside(self, work: Callable[[], Awaitable[object]], what: str) -> None:
        """Something that no request waits for, within a bound."""
        try:
            async with asyncio.timeout(self._limits.aside_seconds):
                await work()
        except (*UNREACHED, RpcError) as error:
            log.debug(f"'{shown(what)}' did not reach the upstream: {error}")

    async def open(self) -> Route:
        """The connection to the present upstream, opened once for all who wait."""
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
                await asyncio.shield(opening)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if opening.cancelled() and task is not None and not task.cancelling():
                    raise _gone() from None  # not who waits was cancelled, but what they wait for
                raise
        return self.route

    async def _connect(self, generation: int) -> None:
        try:
            connection = await self._link.connect(self, modern_first=self._modern)
        except ConnectionLost as lost:
            raise ConnectionLost(str(lost), sent=False) from None  # the greeting may have been sent, but no request
        if self.route is not None:
            self.route.leave()
        self.route, self._begun = Route(self, connection, generation), True
        self._owner.routes.add(self.route)
        if self.log_level is not None:
            await self._aside(partial(connection.set_level, self.log_level), "logging/setLevel")


def _gone() -> ConnectionLost:
    return ConnectionLost("Upstream or client had gone before there was a connection between them.", sent=False)


class Conversations:
    """Implements `protocol.client.connection.Peer` for all clients, which share an upstream's only conversation.

    `resource_updated` tells the clients who follow that resource.
    """

    log_level = None  # each request says which log messages it wants

    def __init__(
        self, link: Link, state: ProxyState, resource_updated: Callable[[str], None], limits: CallLimits
    ) -> None:
        self.tasks = Tasks()
        self.routes: set[Route] = set()  # all that are open
        self.by_session: dict[Session, Conversation] = {}
        self._link = link
        self._resource_updated = resource_updated
        self._limits = limits
        self._first: ClientInfo | None = None  # the AI client that has started the proxy
        self._own_client = ClientInfo(state.server.name, state.server.version, {}, MODERN_VERSIONS[0])
        self._modern: dict[Who, Conversation] = {}  # the one that was longest not used first
        self._watch = self._begin(ModernSession(self._own_client))  # follows resources for all clients
        self._followed: dict[str, int] = {}  # how many endpoints follow it for a client
        self._following = asyncio.Lock()  # the upstream is told one thing after the other, and the last is right

    def of(self, session: Session) -> Conversation:
        """The one of this session's client."""
        found = self.by_session.get(session)
        if found is not None:
            return found
        if session.client.protocol_version not in MODERN_VERSIONS:
            found = self.by_session[session] = self._begin(session)
            return found
        who = _who(session.client)
        found = self._modern.pop(who, None)
        if found is None:
            surplus = max(len(self._modern) + 1 - self._limits.modern_clients, 0)
            for other in [other for other, conversation in self._modern.items() if conversation.idle][:surplus]:
                self._modern.pop(other).end()
            found = self._begin(session)
        self._modern[who] = found
        return found

    def known_modern(self, client: ClientInfo) -> Conversation | None:
        """The one of this modern client, if it has begun."""
        return self._modern.get(_who(client))

    async def until_unused(self, generation: int) -> None:
        """Until no request waits for this upstream; one that is silent for too long is given up."""
        while busy := [route for route in self.routes if route.generation == generation and route.callers]:
            busy[0].unused = busy[0].unused or asyncio.Event()
            await busy[0].unused.wait()

    def end(self, session: Session) -> None:
        if (conversation := self.by_session.pop(session, None)) is not None:
            conversation.end()

    def open_ahead(self, session: Session) -> None:
        """Open the connection of this session before its first request, which then finds it open."""
        if self._link.state is ConnectionState.CONNECTED:
            self.of(session).open_ahead()

    def renew(self, *, old_answers: bool = False) -> None:
        """The upstream is another one, or gone. `old_answers`: what was sent to the old one is still answered there."""
        for conversation in (*self.all(), self._watch):
            conversation.renew(old_answers=old_answers)
        if self._followed and self._link.state is ConnectionState.CONNECTED:
            self.tasks.start(self._follow_again())

    async def follow(self, uri: str, wanted: bool) -> None:
        """Kept while there is no upstream; RpcError when there is one and it refuses."""
        before = self._followed.get(uri, 0)
        self._count(uri, before + (1 if wanted else -1))
        if bool(before) == bool(self._followed.get(uri)) or self._link.state is not ConnectionState.CONNECTED:
            return
        try:
            refusals = await self._follow()
        except UNREACHED as error:
            log.debug(f"the upstream hears later of the resources that are followed: {error}")
            return
        if wanted and uri in refusals:
            self._count(uri, self._followed.get(uri, 0) - 1)
            raise refusals[uri]

    def noticed(self, method: str, params: Params) -> bool:
        """Pass on a notification that concerns all clients; whether this was one."""
        if method in LIST_CHANGES:
            self._link.lists_changed()
        elif method == "notifications/resources/updated":
            self._resource_updated(str(params.get("uri")))
        else:
            return False
        return True

    def all(self) -> Iterator[Conversation]:
        """The sessions' first, in the order in which they came."""
        yield from (*self.by_session.values(), *self._modern.values())

    # For an upstream that can have one conversation only.

    def met(self, client: ClientInfo) -> None:
        """The AI client that has started the proxy has said who it is; a modern one does so before it calls."""
        self._first = client

    @property
    def client(self) -> ClientInfo:
        """Whom the server sees, with the capabilities that count for all."""
        return self._first or next((conversation.client for conversation in self.all()), self._own_client)

    def notify(self, method: str, params: Params) -> None:
        if not self.noticed(method, params):
            for conversation in self.all():
                conversation.pass_on(method, params)

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        # The first whose request runs; else the first.
        conversation = min(self.all(), key=lambda conversation: conversation.idle, default=None)
        if conversation is None:
            raise RpcError(INVALID_REQUEST, f"There is nobody yet who could be asked for '{method}'.")
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
                log.warn(f"The dev server does not tell any more when '{shown(uri)}' changes: {refusal}")
        except UNREACHED as error:
            log.warn(f"The dev server does not tell any more of the resources that are followed: {error}")

    async def _follow(self) -> Mapping[str, RpcError]:
        """Hear of changes of the resources that are followed; those that the upstream refuses. UNREACHED."""
        async with self._following, asyncio.timeout(self._limits.aside_seconds):
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


def _who(client: ClientInfo) -> Who:
    return client.name, client.version, msgspec.json.encode(client.capabilities)
