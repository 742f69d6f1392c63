"""Keeping an upstream: it carries out what the lifecycle says, and tells it what happened. The relay's `Link`.

There is one upstream at a time. Everything happens in the engine's loop, and nothing here blocks it.
"""

from __future__ import annotations

import asyncio
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...instances.health_report import ConnectionState
from ...instances.probe import HostKind
from ...protocol.client.connection import Lost, Refusal
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.parties import ClientInfo
from ...protocol.running import Tasks
from ...system.log import ERROR, log
from ...system.values import Value
from ..health.health import UpstreamFacts
from ..lists import counted
from ..relay.link import Unavailable
from ..upstream.upstream import Ending
from .knowledge import upstream_facts
from .lifecycle import STARTED_AGAIN, Announce, Connect, Lifecycle, Start, Stop
from .own_conversation import OwnConversation
from .starts import Failed, Launching, Ready, Said, Starts, Strayed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...protocol.client.connection import Connection, Peer, Server
    from ..lists import Entries
    from ..timeline import Timeline
    from ..upstream.upstream import Running, Upstream
    from .announcements import Announcements
    from .knowledge import Knowledge
    from .lifecycle import Action
    from .offering import Offering
    from .placement import Placement
    from .starts import Report

CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED
# No upstream comes from here by itself; and from Initializing not while nobody knows the workspace.
STUCK = frozenset({DEGRADED, ConnectionState.SHUTDOWN})
NO_MCP = (404, 400)  # how a .NET Host answers that has no add-in which brings MCP
NOBODY = ClientInfo("uno-devserver", __version__, {}, MODERN_VERSIONS[0])


class Policy(Value):
    hello_seconds: float = 1.0  # the client's first message came long ago, as a rule; its era is worth this wait
    end_seconds: float = 0.3  # a connection breaks a moment before the end of its process is told, which tells more
    stop_seconds: float = 5.0  # what takes longer to end, hangs, and the next one is started beside it
    retry_seconds: float = 5.0  # a server that comes back without our doing is looked for that often


DEFAULT_POLICY = Policy()


class Keeper:
    def __init__(
        self,
        lifecycle: Lifecycle,
        starts: Starts,
        knowledge: Knowledge,
        offering: Offering,
        announcements: Announcements,
        timeline: Timeline,
        upstream: Upstream | None,
        *,
        named: str,
        comes_back: bool = False,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """`upstream` is being started already. `named` is what it is called in sentences. `comes_back`: without our
        doing, so that looking again is worth it.
        """
        self._lifecycle = lifecycle
        self._starts = starts
        self._knowledge = knowledge
        self._offering = offering
        self._announcements = announcements
        self._timeline = timeline
        self.named = named
        self._comes_back = comes_back
        self._policy = policy
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._hello: asyncio.Future[ClientInfo] = self._loop.create_future()
        self._told = lifecycle.state  # the state that all others know of
        self._moved = asyncio.Event()  # set, and replaced, when it changes
        self._generation = 0
        self.running: Running | None = None
        self.server: Server | None = None  # what it says of itself, while connected
        self._conversation: OwnConversation | None = None
        self._work: set[asyncio.Task[None]] = set()  # what ends with the upstream
        self._stops = Tasks()  # those that are just being ended
        self._pending = 0 if upstream is None else 1  # starts that have not come to an end
        self.upstream = upstream  # what is started
        self.placement: Placement | None = None  # None: the upstream does not depend on a workspace
        self.shared_peer: Peer | None = None  # the clients, where they share a conversation
        self.changed: Callable[[], None] = lambda: None  # there is another upstream, or none any more
        self.listed_anew: Callable[[], None] = lambda: None  # the lists were read again
        self.settled: Callable[[], None] = lambda: None  # a start has come to its end, well or not

    # What the relay wants of it.

    @property
    def state(self) -> ConnectionState:
        return self._lifecycle.state

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def fallback(self) -> bool:
        return self.placement is not None and self.placement.fallback

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return self._offering.tool(name)

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        if self.running is None or self.state is not CONNECTED:
            raise Unavailable("The dev server is not connected.", "Wait a moment, then try again.")
        return await self.running.connect(peer, modern_first=modern_first)

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
        if self.placement is not None:
            await self.placement.reconsider()

    def wanted(self) -> None:
        if self.upstream is not None:
            self._do(self._lifecycle.wanted(self._loop.time()))

    def worked(self, generation: int) -> None:
        if generation == self._generation:
            self._lifecycle.worked()

    def lost(self, generation: int) -> None:
        if generation == self._generation and self.running is not None:
            self.running.doubt()

    def lists_changed(self) -> None:
        if self._conversation is not None:
            self._conversation.outdated()

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        assert self.placement is not None  # the tool is only offered then
        return await self.placement.initialize(directory, solution)

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        assert self.placement is not None
        return await self.placement.select(solution, force_restart=force_restart)

    # What the proxy wants of it.

    @property
    def started(self) -> bool:
        """Whether there is an upstream, or one is being started."""
        return self.state not in STUCK and self.state is not ConnectionState.INITIALIZING

    def rest(self) -> float:
        """How many seconds it is until another attempt is due."""
        return self._lifecycle.rest(self._loop.time())

    def begin(self, upstream: Upstream) -> None:
        """This is to be kept from now on; what was before is ended."""
        self._knowledge.forget_upstream()
        self.upstream = upstream
        self._do(self._lifecycle.begin(self._loop.time()))

    def halt(self, reason: str) -> None:
        """There is nothing to keep."""
        self._knowledge.forget_upstream()
        self.upstream = None
        self._do(self._lifecycle.halt(reason))

    def met(self, client: ClientInfo) -> None:
        """The client has said who it is."""
        if not self._hello.done():
            self._hello.set_result(client)

    def listed(self) -> None:
        """A client has read a list."""
        if self._conversation is not None:
            self._conversation.listed()

    def moved(self) -> None:
        """Something changed that decides whether waiting makes sense."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def close(self) -> None:
        """End the upstream, if it is ours, and what is just being started."""
        self._do(self._lifecycle.shut_down())
        while self._pending:
            await self._moved.wait()
        await self._stops.wait(self._policy.stop_seconds)

    # What the lifecycle says.

    def _do(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Stop):
                self._stop()
            elif isinstance(action, Announce):
                self._announcements.say(action.level, action.text)
            elif isinstance(action, Connect):
                self._begin_work(action.attempt, partial(self._converse, action.attempt))
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
        self._knowledge.learn(state=state, restarts=self._lifecycle.restarts)
        if before is CONNECTED:
            self._offering.outdated()
            self._knowledge.learn(lists_fresh=False)
        if CONNECTED in (before, state):
            self.changed()
        self.moved()
        if state in (CONNECTED, DEGRADED):
            self.settled()
        if state is DEGRADED and self._comes_back:
            self._loop.call_later(self._policy.retry_seconds, self.wanted)

    async def _start(self, start: Start) -> None:
        await self._stops.wait(self._policy.stop_seconds)
        await asyncio.sleep(start.after)
        if start.attempt == self._lifecycle.attempt and self.upstream is not None:
            self._pending += 1
            self._starts.start(start.attempt, self.upstream)

    def _stop(self) -> None:
        self._starts.give_up()
        self._end_work()
        if self.running is not None:
            self._stops.start(self.running.stop())
            self.running = self.server = None

    def _end_work(self) -> None:
        for task in self._work:
            task.cancel()
        self._work.clear()
        if self._conversation is not None:
            self._tasks.start(self._conversation.close())
            self._conversation = None

    def _begin_work(self, attempt: int, work: Callable[[], Awaitable[None]]) -> None:
        task = self._tasks.start(self._guarded(attempt, work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _guarded(self, attempt: int, work: Callable[[], Awaitable[None]]) -> None:
        """A defect of ours is no reason to wait for ever: it counts as the upstream's end."""
        try:
            await work()
        except Exception as error:
            log.write(ERROR, f"keeping the server failed:\n{traceback.format_exc()}")
            self._ended(attempt, Ending(f"something went wrong inside uno-devserver: {type(error).__name__}: {error}"))

    # What becomes of a start.

    def reported(self, report: Report) -> None:
        """From the thread that starts."""
        if isinstance(report, Ready | Failed):
            self._pending -= 1
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
            self._knowledge.strayed(report.line)
        else:
            self._failed(report)

    def _launching(self, report: Launching) -> None:
        self._knowledge.learn(upstream=UpstreamFacts(process_id=report.process_id, owned=report.process_id is not None))
        started = f"Started {report.what} (process {report.process_id})."
        self._announcements.say("info", f"Connecting to {report.what}." if report.process_id is None else started)
        self._do(self._lifecycle.launching(report.attempt))

    def _ready(self, report: Ready) -> None:
        running = report.running
        if report.attempt != self._lifecycle.attempt:  # nobody wants it any more
            self._stops.start(running.stop())
            return
        if running is self.running:  # it is the same as before
            self._end_work()
        else:
            self._stop()  # one that is no MCP server was left running
        self.running = running
        self._knowledge.learn(upstream=upstream_facts(running, None), host=None, connect_error="", without_mcp=False)
        if self.placement is not None:
            self.placement.launched(running)
        self._begin_work(report.attempt, partial(self._watch, report.attempt, running))
        self._do(self._lifecycle.ready(report.attempt))

    def _failed(self, report: Failed) -> None:
        failure = report.failure
        self._knowledge.blame("start", failure.issues)
        self._knowledge.forget_process()
        if self.placement is not None:
            self.placement.launched(None)
        if failure.ending is not None:
            self._knowledge.learn(last_end=failure.ending)
        self._do(self._lifecycle.failed(report.attempt, self._loop.time(), str(failure), final=failure.final))

    async def _watch(self, attempt: int, running: Running) -> None:
        self._ended(attempt, await running.ended())

    def _ended(self, attempt: int, ending: Ending) -> None:
        self._knowledge.learn(last_end=ending)
        self._knowledge.forget_process()
        if self.state is DEGRADED:  # it was no MCP server; the next one may be
            self._stop()
            self._loop.call_later(self._policy.retry_seconds, self.wanted)
        else:
            reason = f"{self.named} has gone: {ending.reason}."
            follows = "It is looked for again." if self._comes_back else STARTED_AGAIN
            self._do(self._lifecycle.ended(attempt, self._loop.time(), reason, follows=follows))

    # Speaking to it.

    async def _converse(self, attempt: int) -> None:
        running = self.running
        assert running is not None
        client = await self._client()
        peer = self.shared_peer if running.endpoint is None else None
        modern = client.protocol_version in MODERN_VERSIONS
        self._conversation = OwnConversation(running, peer, client, modern_first=modern, take=self._take)
        try:
            await self._conversation.run(lambda server: self._connected(attempt, running, server))
        except Refusal as refusal:
            without_mcp = running.kind is not HostKind.COMMAND and refusal.status in NO_MCP
            self._knowledge.learn(connect_error=str(refusal), without_mcp=without_mcp)
            self._do(
                self._lifecycle.refused(attempt, f"{self.named} cannot be used over MCP: {str(refusal).rstrip('.')}.")
            )
            if running.kind is HostKind.COMMAND:  # a Host is of use to others; this one to nobody
                self._stop()
                self._knowledge.forget_process()
        except (Lost, TimeoutError) as error:
            await asyncio.sleep(self._policy.end_seconds)
            self._ended(attempt, Ending(f"it cannot be spoken to: {str(error).rstrip('.') or 'it does not answer'}"))

    async def _client(self) -> ClientInfo:
        """Whoever is at the other end, for what it speaks."""
        try:
            async with asyncio.timeout(self._policy.hello_seconds):
                return await asyncio.shield(self._hello)
        except TimeoutError:
            return NOBODY

    def _connected(self, attempt: int, running: Running, server: Server) -> None:
        self.server = server
        if self.state is CONNECTED:  # the conversation was only begun anew
            return
        self._timeline.mark("connected")
        self._generation += 1
        self._knowledge.blame("start", ())
        self._knowledge.learn(upstream=upstream_facts(running, server), generation=self._generation)
        self._announcements.recovered()
        self._announcements.say("info", f"{self.named} is connected, with {counted(self._offering.tool_count)}.")
        self._do(self._lifecycle.connected(attempt, self._loop.time()))

    def _take(self, lists: dict[str, Entries], server: Server) -> None:
        self._offering.take(lists, server)
        self._knowledge.learn(tool_count=self._offering.tool_count, lists_fresh=True)
        self.listed_anew()
