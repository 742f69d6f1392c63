"""Keeps one upstream running: carries out what the lifecycle says, and tells it what happened.

There is one upstream at a time, except for the moment in which one takes the place of another. Everything happens in
the engine's loop, and nothing here blocks it. The keeper is also the `Link` through which calls see the upstream.
"""

from __future__ import annotations

import asyncio
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ... import __version__
from ...instances.host_kind import HostKind
from ...protocol.client.connection import Lost, Refusal
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.parties import ClientInfo
from ...protocol.running import Tasks
from ...system.log import ERROR, log
from ...system.urls import shown_url
from ...system.values import Value
from ...workspace.server_command import usable_name
from ..calls.upstream_link import Unavailable
from ..lists.merge import counted
from ..lists.reader import ListReader
from ..state import ConnectionState, UpstreamFacts
from .base import Ending
from .launcher import Failed, Launcher, Launching, Ready, Said, Strayed
from .lifecycle import (
    DEFAULT_LIMITS,
    STARTED_AGAIN,
    Announce,
    Connect,
    Lifecycle,
    Start,
    Stop,
    UpstreamLimits,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...hotreload.authority import Restarted
    from ...protocol.client.connection import Connection, Peer, Server
    from ..engine import Announcements
    from ..lists.merge import Entries
    from ..lists.publisher import ListPublisher
    from ..reload.restart import Restarter
    from ..state import ProxyState
    from ..workspace.controller import WorkspaceController
    from .base import Running, Upstream
    from .launcher import Report
    from .lifecycle import Action


class Departures:
    def __init__(self, stop_seconds: float) -> None:
        """`stop_seconds`: what takes longer to end, hangs, and is not waited for."""
        self._stop_seconds = stop_seconds
        self._stops = Tasks()
        self._leaving = Tasks()
        self._over = asyncio.Event()

    def stop(self, running: Running, *, patient: bool = False) -> None:
        """End it, if it is ours. `patient`: it works, so it gets the time that it needs to end well."""
        self._stops.start(running.stop(patient=patient))

    def see_off(self, running: Running, unused: Callable[[], Awaitable[object]]) -> None:
        """Another has its place: end it when nobody waits for its answers any more. However it ends, it is no crash."""
        self._leaving.start(self._see_off(running, unused))

    async def done(self) -> None:
        """Until those are gone that have to go at once, within a bound."""
        await self._stops.wait(self._stop_seconds)

    def hurry(self) -> None:
        """All is over: those that had still to answer go at once, too."""
        self._over.set()

    async def close(self) -> None:
        """Until all of them are gone, within a bound."""
        self.hurry()
        await self.done()
        await self._leaving.wait(self._stop_seconds)

    async def _see_off(self, running: Running, unused: Callable[[], Awaitable[object]]) -> None:
        waits = [asyncio.ensure_future(one) for one in (unused(), running.ended(), self._over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        await running.stop(patient=not self._over.is_set())


class Listed(Value):
    """Its lists were read, as far as they could be."""

    lists: dict[str, Entries]
    server: Server


class Connected(Value):
    """It can be spoken to, and its lists were read; again, when only the conversation was begun anew."""

    server: Server


class Refused(Value):
    """It speaks no MCP, and says so."""

    refusal: Refusal


Event = Listed | Connected | Refused | Ending


class Tenure:
    def __init__(
        self,
        running: Running,
        tell: Callable[[Tenure, Event], None],
        *,
        client: Callable[[], Awaitable[ClientInfo]],
        shared_peer: Peer | None,
        end_seconds: float,
    ) -> None:
        """`client` is whom the upstream sees. `end_seconds`: a connection breaks a moment before the end of its process
        is told, which tells more.
        """
        self.running = running
        self.tell = tell
        self.attempt = 0  # by which the lifecycle knows it
        self.server: Server | None = None  # what it says of itself, while it can be spoken to
        self._client = client
        self._shared_peer = shared_peer
        self._end_seconds = end_seconds
        self._tasks = Tasks()
        self._conversation: ListReader | None = None
        self._over = False

    def watch(self) -> None:
        """Tell of its end from now on."""
        self._tasks.start(self._guarded(self._watch))

    def converse(self) -> None:
        """Speak to it from now on."""
        self._tasks.start(self._guarded(self._converse))

    def outdated(self) -> None:
        """Its lists have changed, or may have."""
        if self._conversation is not None:
            self._conversation.outdated()

    def listed(self) -> None:
        """A client has read a list."""
        if self._conversation is not None:
            self._conversation.listed()

    def end(self) -> None:
        """Nothing is told of it any more; what clients have asked it is still answered."""
        self._over = True
        self._tasks.cancel()
        if self._conversation is not None:
            self._tasks.start(self._conversation.close())

    def _tell(self, event: Event) -> None:
        if not self._over:
            self.tell(self, event)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Not an awaitable that exists already: a task that ends before its first step would never await it."""
        try:
            await work()
        except Exception as error:
            log.write(ERROR, f"keeping the server failed:\n{traceback.format_exc()}")
            self._tell(Ending(f"something went wrong inside uno-devserver: {type(error).__name__}: {error}"))

    async def _watch(self) -> None:
        self._tell(await self.running.ended())

    async def _converse(self) -> None:
        client = await self._client()
        peer = self._shared_peer if self.running.endpoint is None else None
        modern = client.protocol_version in MODERN_VERSIONS
        self._conversation = ListReader(self.running, peer, client, modern_first=modern, take=self._took)
        try:
            await self._conversation.run(self._connected)
        except Refusal as refusal:
            self._tell(Refused(refusal))
        except (Lost, TimeoutError) as error:
            await asyncio.sleep(self._end_seconds)
            self._tell(Ending(f"it cannot be spoken to: {str(error).rstrip('.') or 'it does not answer'}"))

    def _took(self, lists: dict[str, Entries], server: Server) -> None:
        self._tell(Listed(lists, server))

    def _connected(self, server: Server) -> None:
        self.server = server
        self._tell(Connected(server))


CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED
# No upstream comes from here by itself; and from Initializing not while nobody knows the workspace.
STUCK = frozenset({DEGRADED, ConnectionState.SHUTDOWN})
FIRST = 1  # the number of the start that is under way already
NO_MCP = (404, 400)  # how a .NET Host answers that has no add-in which brings MCP
NOBODY = ClientInfo("uno-devserver", __version__, {}, MODERN_VERSIONS[0])


class Owner(Protocol):
    """The engine, as the keeper sees it."""

    @property
    def workspace(self) -> WorkspaceController | None:
        """None: the upstream does not depend on a workspace."""

    @property
    def shared_peer(self) -> Peer:
        """All clients, for an upstream that can have one conversation only."""

    def upstream_changed(self) -> None:
        """There is another upstream, or none any more."""

    def upstream_replaced(self) -> None:
        """There is another upstream, and the one before has still to answer what it was asked."""

    async def until_unused(self, generation: int) -> None:
        """Until no request waits for the upstream of that generation."""

    async def before_launch(self) -> None:
        """The code of an upstream is about to be read."""

    def ends_on_purpose(self) -> bool:
        """Whether another proxy restarts the upstream, and has said so: its end is no crash."""

    def launched(self, running: Running | None) -> None:
        """An upstream was started or found, or could not be."""

    def lists_were_read(self) -> None: ...

    def start_settled(self) -> None:
        """A start has come to its end, well or not."""


class Keeper:
    def __init__(
        self,
        owner: Owner,
        lifecycle: Lifecycle,
        starts: Launcher,
        state: ProxyState,
        publisher: ListPublisher,
        announcements: Announcements,
        upstream: Upstream | None,
        *,
        named: str,
        comes_back: bool = False,
        limits: UpstreamLimits = DEFAULT_LIMITS,
    ) -> None:
        """`upstream` is being started already. `named` is what it is called in sentences. `comes_back`: without our
        doing, so that looking again is worth it.
        """
        self._owner = owner
        self._lifecycle = lifecycle
        self._starts = starts
        self._state = state
        self._publisher = publisher
        self._announcements = announcements
        self.named = named
        self._comes_back = comes_back
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._hello: asyncio.Future[ClientInfo] = self._loop.create_future()
        self._told = lifecycle.state  # the state that all others know of
        self._moved = asyncio.Event()  # set, and replaced, when it changes
        self._generation = 0
        self._tenure: Tenure | None = None  # of the present upstream
        self._departures = Departures(limits.stop_seconds)
        # Launcher that have not come to an end, by their number.
        self._pending: dict[int, Upstream] = {} if upstream is None else {FIRST: upstream}
        self.alone = asyncio.Event()  # nothing is started beside the present one
        self.alone.set()
        self.problem = ""  # why there is none, when Degraded
        self.upstream = upstream  # what is started
        self._restarter: Restarter | None = None

    # How it stands.

    @property
    def state(self) -> ConnectionState:
        return self._lifecycle.state

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def running(self) -> Running | None:
        return self._tenure.running if self._tenure is not None else None

    @property
    def server(self) -> Server | None:
        """What it says of itself, while connected."""
        return self._tenure.server if self._tenure is not None else None

    async def until_unused(self) -> None:
        """Until no request waits for the present upstream."""
        await self._owner.until_unused(self._generation)

    async def before_launch(self) -> None:
        await self._owner.before_launch()

    async def until_settled(self) -> None:
        """Until it is connected, or none will come by itself."""
        while self.state is not CONNECTED and self.state not in STUCK:
            await self._moved.wait()

    def moved(self) -> None:
        """Something changed that decides whether waiting makes sense."""
        self._moved.set()
        self._moved = asyncio.Event()

    def met(self, client: ClientInfo) -> None:
        """The client has said who it is."""
        if not self._hello.done():
            self._hello.set_result(client)

    def wanted(self) -> None:
        if self.upstream is not None:
            self.do(self._lifecycle.wanted(self._loop.time()))

    # What the lifecycle says.

    def do(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Stop):
                self._stop(patient=action.patient)
            elif isinstance(action, Announce):
                self._announcements.say(action.level, action.text)
                self.problem = action.text if action.level == "error" else self.problem
            elif isinstance(action, Connect):
                assert self._tenure is not None
                self._tenure.converse()
            else:
                self._tasks.start(self._start(action))
        self._tell()

    def _tell(self) -> None:
        """Let everybody know of a new state."""
        before, state = self._told, self.state
        if before is state:
            return
        self._told = state
        log.debug(f"Connection state: {before.value} -> {state.value}")
        self._state.learn(state=state, restarts=self._lifecycle.restarts)
        if before is CONNECTED:
            self._publisher.outdated()
            self._state.learn(lists_fresh=False)
        if CONNECTED in (before, state):
            self._owner.upstream_changed()
        self.moved()
        if state in (CONNECTED, DEGRADED):
            self._publisher.tell()  # where lists were to follow that have not come
            self._owner.start_settled()
        if state is DEGRADED and self._comes_back:
            self._loop.call_later(self._limits.url_retry_seconds, self.wanted)

    async def _start(self, start: Start) -> None:
        await self._room()
        await asyncio.sleep(start.after)
        await self._owner.before_launch()
        if start.attempt == self._lifecycle.attempt and self.upstream is not None:
            self._pending[start.attempt] = self.upstream
            self._starts.start(start.attempt, self.upstream)

    async def _room(self) -> None:
        """Until nothing is left of what has to go; one that is started beside may come first, and be enough."""
        await self.alone.wait()
        try:
            async with asyncio.timeout(self._limits.stop_seconds):
                while self.upstream in self._pending.values():  # a start of the same, which was given up
                    await self._moved.wait()
        except TimeoutError:
            pass
        await self._departures.done()

    def _stop(self, *, patient: bool = False) -> None:
        self._starts.give_up()
        if self._tenure is not None:
            self._tenure.end()
            self._departures.stop(self._tenure.running, patient=patient)
            self._tenure = None

    # What becomes of a start.

    def reported(self, report: Report) -> None:
        """From the thread that starts."""
        if isinstance(report, Ready | Failed):
            self._pending.pop(report.attempt, None)
            self.moved()
        if isinstance(report, Ready):
            self._ready(report)
        elif report.attempt != self._lifecycle.attempt:
            log.debug(f"late, and of no interest any more: {report}")
        elif isinstance(report, Said):
            (log.warn if report.warning else log.info)(report.message)
        elif isinstance(report, Launching):
            self._launching(report)
        elif isinstance(report, Strayed):
            self._state.report_stray_line(report.line)
        else:
            self._failed(report)

    def _launching(self, report: Launching) -> None:
        self._state.learn(upstream=UpstreamFacts(process_id=report.process_id, owned=report.process_id is not None))
        started = f"Started {report.what} (process {report.process_id})."
        self._announcements.say("info", f"Connecting to {report.what}." if report.process_id is None else started)
        self.do(self._lifecycle.launching(report.attempt))

    def _ready(self, report: Ready) -> None:
        running = report.running
        if report.attempt != self._lifecycle.attempt:  # nobody wants it any more
            self._departures.stop(running)
            return
        if self._tenure is not None and running is self._tenure.running:  # it is the same as before
            self._tenure.end()
        else:
            self._stop()  # one that is no MCP server was left running
        self._tenure = self.tenure_of(running, self._heard)
        self._tenure.attempt = report.attempt
        self._state.learn(upstream=self._facts_of(running, None), host=None, connect_error="", without_mcp=False)
        self._owner.launched(running)
        self._tenure.watch()
        self.do(self._lifecycle.ready(report.attempt))

    def _failed(self, report: Failed) -> None:
        failure = report.failure
        self._state.blame("start", failure.issues)
        self._state.forget_process()
        self._owner.launched(None)
        if failure.ending is not None:
            self._state.learn(last_end=failure.ending)
        self.do(self._lifecycle.failed(report.attempt, self._loop.time(), str(failure), final=failure.final))

    def _ended(self, attempt: int, ending: Ending) -> None:
        self._state.forget_process()
        if self._owner.ends_on_purpose():
            announcement = f"{self.named} is restarted with the new code."
            self.do(self._lifecycle.renew(self._loop.time(), announcement, after=0.0))
            return
        self._state.learn(last_end=ending)
        if self.state is DEGRADED:  # it was no MCP server; the next one may be
            self._stop()
            self._loop.call_later(self._limits.url_retry_seconds, self.wanted)
        else:
            reason = f"{self.named} has gone: {ending.reason}."
            follows = "It is looked for again." if self._comes_back else STARTED_AGAIN
            self.do(self._lifecycle.ended(attempt, self._loop.time(), reason, consequence=follows))

    # What becomes of one that runs.

    def tenure_of(self, running: Running, tell: Callable[[Tenure, Event], None]) -> Tenure:
        return Tenure(
            running,
            tell,
            client=self._client,
            shared_peer=self._owner.shared_peer,
            end_seconds=self._limits.end_seconds,
        )

    def _heard(self, tenure: Tenure, event: Event) -> None:
        if isinstance(event, Listed):
            self._take(event)
        elif isinstance(event, Connected):
            self._connected(tenure, event.server)
        elif isinstance(event, Refused):
            self._refused(tenure, event.refusal)
        else:
            self._ended(tenure.attempt, event)

    def _refused(self, tenure: Tenure, refusal: Refusal) -> None:
        running = tenure.running
        without_mcp = running.kind is not HostKind.COMMAND and refusal.status in NO_MCP
        self._state.learn(connect_error=str(refusal), without_mcp=without_mcp)
        reason = f"{self.named} cannot be used over MCP: {str(refusal).rstrip('.')}."
        self.do(self._lifecycle.refused(tenure.attempt, reason))
        if running.kind is HostKind.COMMAND:  # a Host is of use to others; this one to nobody
            self._stop()
            self._state.forget_process()

    async def _client(self) -> ClientInfo:
        """Whoever is at the other end, for what it speaks."""
        try:
            async with asyncio.timeout(self._limits.hello_seconds):
                return await asyncio.shield(self._hello)
        except TimeoutError:
            return NOBODY

    def _connected(self, tenure: Tenure, server: Server) -> None:
        if self.state is CONNECTED:  # the conversation was only begun anew
            return
        self._state.timeline.mark("connected")
        self._next_generation(tenure.running, server)
        self._announcements.say("info", f"{self.named} is connected, with {counted(self._publisher.tool_count)}.")
        self.do(self._lifecycle.connected(tenure.attempt, self._loop.time()))

    def take_over(self, tenure: Tenure, listed: Listed) -> None:
        """What was started beside is kept from now on. The one before goes when it has answered what it was asked."""
        before, generation = self._tenure, self._generation
        tenure.tell, tenure.attempt = self._heard, self._lifecycle.swapped(self._loop.time())
        self._tenure = tenure
        self._next_generation(tenure.running, listed.server)
        self._take(listed)
        self._announcements.say(
            "info", f"{self.named} was replaced, and has {counted(self._publisher.tool_count)} now."
        )
        if before is not None:
            before.end()
            self._owner.upstream_replaced()
            self._departures.see_off(before.running, partial(self._owner.until_unused, generation))
            self._owner.start_settled()
        self._tell()

    def _next_generation(self, running: Running, server: Server) -> None:
        self._generation += 1
        self._state.blame("start", ())
        self._state.learn(
            upstream=self._facts_of(running, server),
            generation=self._generation,
            reloads=self._lifecycle.reloads,
            connect_error="",
            without_mcp=False,
        )
        self._announcements.recovered()
        if self._owner.workspace is not None:
            self._owner.workspace.introduced(server.info.get("name"))
        elif running.kind is HostKind.COMMAND and (name := usable_name(server.info.get("name"))):
            self.named = f"The server '{name}'"
            self._state.learn(named=self.named)

    def _facts_of(self, running: Running, server: Server | None) -> UpstreamFacts:
        info, known = server.info if server else {}, self._state.facts.upstream
        return UpstreamFacts(
            kind=running.kind,
            process_id=running.process_id,
            endpoint=running.endpoint and shown_url(running.endpoint),
            owned=running.owned,
            log_file=running.log_file,
            name=info.get("name"),
            version=info.get("version"),
            protocol_version=server.version if server else None,
            stray_line=known.stray_line if known and known.process_id == running.process_id else "",
        )

    def _take(self, listed: Listed) -> None:
        self._publisher.take(listed.lists, listed.server)
        self._state.learn(tool_count=self._publisher.tool_count, lists_fresh=True)
        self._owner.lists_were_read()

    # What calls want of it.

    @property
    def fallback(self) -> bool:
        return self._state.facts.fallback

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return self._publisher.tool(name)

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        if self._tenure is None or self.state is not CONNECTED:
            raise Unavailable("The dev server is not connected.", "Wait a moment, then try again.")
        return await self._tenure.running.connect(peer, modern_first=modern_first)

    async def until_connected(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while self.state is not CONNECTED:
                    if self.state in STUCK or self.fallback:
                        return False
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def reconsider(self) -> None:
        if self._owner.workspace is not None:
            await self._owner.workspace.reconsider()

    def worked(self, generation: int) -> None:
        if generation == self._generation:
            self._lifecycle.worked()

    def lost(self, generation: int) -> None:
        if generation == self._generation and self._tenure is not None:
            self._tenure.running.doubt()

    def lists_changed(self) -> None:
        if self._tenure is not None:
            self._tenure.outdated()

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        assert self._owner.workspace is not None  # the tool is only offered then
        return await self._owner.workspace.initialize(directory, solution)

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        assert self._owner.workspace is not None
        return await self._owner.workspace.select(solution, force_restart=force_restart)

    # What the proxy wants of it.

    @property
    def started(self) -> bool:
        """Whether there is an upstream, or one is being started."""
        return self.state not in STUCK and self.state is not ConnectionState.INITIALIZING

    def retry_due_in(self) -> float:
        """How many seconds it is until another attempt is due."""
        return self._lifecycle.retry_due_in(self._loop.time())

    def begin(self, upstream: Upstream) -> None:
        """This is to be kept from now on; what was before is ended."""
        self._drop_spare()
        self._state.forget_upstream()
        self.upstream = upstream
        self.do(self._lifecycle.begin(self._loop.time()))

    def halt(self, reason: str) -> None:
        """There is nothing to keep."""
        self._drop_spare()
        self._state.forget_upstream()
        self.upstream = None
        self.do(self._lifecycle.halt(reason))

    async def renew(self, delay_seconds: float = 0.0) -> Restarted:
        """Stop the upstream, if it is ours, and start it again after a pause, because its code is newer than what runs.

        Returns when that is connected, or has failed for good.
        """
        return await self._restarts().renew(delay_seconds)

    async def swap(self) -> Restarted:
        """Start the newer code beside what runs, and let it take its place when it answers, so that no call waits.

        Where that is not possible, what runs stays.
        """
        return await self._restarts().swap()

    def _restarts(self) -> Restarter:
        if self._restarter is None:
            from ..reload.restart import Restarter  # few proxies ever need it, and none when it starts

            self._restarter = Restarter(self, self._lifecycle, self._state, self._publisher, self._limits)
        return self._restarter

    def list_read(self) -> None:
        """A client has read a list."""
        if self._tenure is not None:
            self._tenure.listed()

    async def close(self) -> None:
        """End the upstream, if it is ours, and what is just being started."""
        self.do(self._lifecycle.shut_down())
        self._drop_spare()
        self._departures.hurry()
        while self._pending:
            await self._moved.wait()
        await self.alone.wait()
        await self._departures.close()

    def _drop_spare(self) -> None:
        if self._restarter is not None:
            self._restarter.give_up()
