"""Keeping an upstream: it carries out what the lifecycle says, and tells it what happened.

There is one upstream at a time, but for the moment in which one takes the place of another. Everything happens in the
engine's loop, and nothing here blocks it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ... import __version__
from ...instances.health_report import ConnectionState
from ...instances.probe import HostKind
from ...protocol.eras import MODERN_VERSIONS
from ...protocol.parties import ClientInfo
from ...protocol.running import Tasks
from ...system.log import log
from ...workspace.server_command import usable_name
from ..health.health import UpstreamFacts
from ..lists import counted
from .departures import Departures
from .knowledge import upstream_facts
from .lifecycle import STARTED_AGAIN, Announce, Connect, Lifecycle, Start, Stop
from .policy import DEFAULT_POLICY, Policy
from .starts import Failed, Launching, Ready, Said, Starts, Strayed
from .tenure import Connected, Listed, Refused, Tenure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...protocol.client.connection import Peer, Refusal, Server
    from ..timeline import Timeline
    from ..upstream.upstream import Ending, Running, Upstream
    from .announcements import Announcements
    from .knowledge import Knowledge
    from .lifecycle import Action
    from .offering import Offering
    from .placement import Placement
    from .starts import Report
    from .tenure import Event

CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED
# No upstream comes from here by itself; and from Initializing not while nobody knows the workspace.
STUCK = frozenset({DEGRADED, ConnectionState.SHUTDOWN})
FIRST = 1  # the number of the start that is under way already
NO_MCP = (404, 400)  # how a .NET Host answers that has no add-in which brings MCP
NOBODY = ClientInfo("uno-devserver", __version__, {}, MODERN_VERSIONS[0])


class Upkeep:
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
        self._tenure: Tenure | None = None  # of the present upstream
        self._departures = Departures(policy.stop_seconds)
        # Starts that have not come to an end, by their number.
        self._pending: dict[int, Upstream] = {} if upstream is None else {FIRST: upstream}
        self.alone = asyncio.Event()  # nothing is started beside the present one
        self.alone.set()
        self.problem = ""  # why there is none, when Degraded
        self.upstream = upstream  # what is started
        self.placement: Placement | None = None  # None: the upstream does not depend on a workspace
        self.shared_peer: Peer | None = None  # the clients, where they share a conversation
        self.changed: Callable[[], None] = lambda: None  # there is another upstream, or none any more
        self.replaced: Callable[[], None] = lambda: None  # there is another, and the one before has still to answer
        self.unused: Callable[[int], Awaitable[None]] = _at_once  # no request waits for the upstream of that generation
        self.launching: Callable[[], Awaitable[None]] = _nothing  # the code of an upstream is about to be read
        # Somebody else restarts the upstream, and has said so: its end is no crash.
        self.ends_on_purpose: Callable[[], bool] = lambda: False
        # Have newer code replace what runs, as a call would; whether anybody watches the code.
        self.reload: Callable[[], bool] = lambda: False
        self.listed_anew: Callable[[], None] = lambda: None  # the lists were read again
        self.settled: Callable[[], None] = lambda: None  # a start has come to its end, well or not

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
        self._knowledge.learn(state=state, restarts=self._lifecycle.restarts)
        if before is CONNECTED:
            self._offering.outdated()
            self._knowledge.learn(lists_fresh=False)
        if CONNECTED in (before, state):
            self.changed()
        self.moved()
        if state in (CONNECTED, DEGRADED):
            self._offering.tell()  # where lists were to follow that have not come
            self.settled()
        if state is DEGRADED and self._comes_back:
            self._loop.call_later(self._policy.retry_seconds, self.wanted)

    async def _start(self, start: Start) -> None:
        await self._room()
        await asyncio.sleep(start.after)
        await self.launching()
        if start.attempt == self._lifecycle.attempt and self.upstream is not None:
            self._pending[start.attempt] = self.upstream
            self._starts.start(start.attempt, self.upstream)

    async def _room(self) -> None:
        """Until nothing is left of what has to go; one that is started beside may come first, and be enough."""
        await self.alone.wait()
        try:
            async with asyncio.timeout(self._policy.stop_seconds):
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
            self._knowledge.strayed(report.line)
        else:
            self._failed(report)

    def _launching(self, report: Launching) -> None:
        self._knowledge.learn(upstream=UpstreamFacts(process_id=report.process_id, owned=report.process_id is not None))
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
        self._knowledge.learn(upstream=upstream_facts(running, None), host=None, connect_error="", without_mcp=False)
        if self.placement is not None:
            self.placement.launched(running)
        self._tenure.watch()
        self.do(self._lifecycle.ready(report.attempt))

    def _failed(self, report: Failed) -> None:
        failure = report.failure
        self._knowledge.blame("start", failure.issues)
        self._knowledge.forget_process()
        if self.placement is not None:
            self.placement.launched(None)
        if failure.ending is not None:
            self._knowledge.learn(last_end=failure.ending)
        self.do(self._lifecycle.failed(report.attempt, self._loop.time(), str(failure), final=failure.final))

    def _ended(self, attempt: int, ending: Ending) -> None:
        self._knowledge.forget_process()
        if self.ends_on_purpose():
            announcement = f"{self.named} is restarted with the new code."
            self.do(self._lifecycle.renew(self._loop.time(), announcement, after=0.0))
            return
        self._knowledge.learn(last_end=ending)
        if self.state is DEGRADED:  # it was no MCP server; the next one may be
            self._stop()
            self._loop.call_later(self._policy.retry_seconds, self.wanted)
        else:
            reason = f"{self.named} has gone: {ending.reason}."
            follows = "It is looked for again." if self._comes_back else STARTED_AGAIN
            self.do(self._lifecycle.ended(attempt, self._loop.time(), reason, follows=follows))

    # What becomes of one that runs.

    def tenure_of(self, running: Running, tell: Callable[[Tenure, Event], None]) -> Tenure:
        return Tenure(
            running, tell, client=self._client, shared_peer=self.shared_peer, end_seconds=self._policy.end_seconds
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
        self._knowledge.learn(connect_error=str(refusal), without_mcp=without_mcp)
        reason = f"{self.named} cannot be used over MCP: {str(refusal).rstrip('.')}."
        self.do(self._lifecycle.refused(tenure.attempt, reason))
        if running.kind is HostKind.COMMAND:  # a Host is of use to others; this one to nobody
            self._stop()
            self._knowledge.forget_process()

    async def _client(self) -> ClientInfo:
        """Whoever is at the other end, for what it speaks."""
        try:
            async with asyncio.timeout(self._policy.hello_seconds):
                return await asyncio.shield(self._hello)
        except TimeoutError:
            return NOBODY

    def _connected(self, tenure: Tenure, server: Server) -> None:
        if self.state is CONNECTED:  # the conversation was only begun anew
            return
        self._timeline.mark("connected")
        self._next_generation(tenure.running, server)
        self._announcements.say("info", f"{self.named} is connected, with {counted(self._offering.tool_count)}.")
        self.do(self._lifecycle.connected(tenure.attempt, self._loop.time()))

    def take_over(self, tenure: Tenure, listed: Listed) -> None:
        """What was started beside is kept from now on. The one before goes when it has answered what it was asked."""
        before, generation = self._tenure, self._generation
        tenure.tell, tenure.attempt = self._heard, self._lifecycle.taken(self._loop.time())
        self._tenure = tenure
        self._next_generation(tenure.running, listed.server)
        self._take(listed)
        self._announcements.say("info", f"{self.named} was replaced, and has {counted(self._offering.tool_count)} now.")
        if before is not None:
            before.end()
            self.replaced()
            self._departures.see_off(before.running, partial(self.unused, generation))
            self.settled()
        self._tell()

    def _next_generation(self, running: Running, server: Server) -> None:
        self._generation += 1
        self._knowledge.blame("start", ())
        self._knowledge.learn(
            upstream=upstream_facts(running, server),
            generation=self._generation,
            reloads=self._lifecycle.reloads,
            connect_error="",
            without_mcp=False,
        )
        self._announcements.recovered()
        if self.placement is not None:
            self.placement.introduced(server.info.get("name"))
        elif running.kind is HostKind.COMMAND and (name := usable_name(server.info.get("name"))):
            self.named = f"The server '{name}'"
            self._knowledge.learn(named=self.named)

    def _take(self, listed: Listed) -> None:
        self._offering.take(listed.lists, listed.server)
        self._knowledge.learn(tool_count=self._offering.tool_count, lists_fresh=True)
        self.listed_anew()


async def _nothing() -> None:
    pass


async def _at_once(_: int) -> None:
    """Where nobody relays, nobody waits for an answer."""
