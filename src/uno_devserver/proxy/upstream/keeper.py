"""Keeps one upstream running: carries out the actions of the lifecycle, and reports events to it.

There is one upstream at a time, except while a swap replaces one by another. Everything runs in the engine's loop and
does not block it. The keeper is also the `calls.upstream_link.Link` through which calls reach the upstream.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ... import __version__
from ...instances.host_kind import HostKind
from ...issues import Issue, warning
from ...protocol.client.connection import AccessDenied, ServerDescription, UnusableServer
from ...protocol.peer_info import ClientInfo
from ...protocol.versions import MODERN_VERSIONS
from ...system.event_loop import Tasks, shielded
from ...system.log import ERROR, log
from ...system.text import shown_url, usable_name
from ..calls.upstream_link import Unavailable
from ..lists.merge import counted
from ..state import GIVEN_UP, LISTS, ConnectionState, UpstreamFacts, unusable
from .base import Ending
from .launcher import Launcher, LaunchFailed, Launching, Ready, StrayLine
from .lifecycle import DEFAULT_LIMITS, STARTED_AGAIN, Announce, Connect, Lifecycle, Start, Stop, UpstreamLimits
from .supervision import SupervisedUpstream, UpstreamLists

if TYPE_CHECKING:
    from ...protocol.client.connection import Connection, Peer
    from ..announcements import Announcements
    from ..lists.publisher import ListPublisher, ServerLists
    from ..reload.second_server import SecondServer, Standby
    from ..state import ProxyState
    from ..workspace.controller import WorkspaceController
    from .base import RunningUpstream, Upstream
    from .launcher import Report
    from .lifecycle import Action
    from .supervision import Event

CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED
FIRST_ATTEMPT = 1  # the start that is under way when the keeper is made
UNAUTHORIZED = 401  # ends the connection; with 403, other requests may be allowed
NO_MCP_STATUS = (404, 400)  # the answers of a .NET Host without an add-in for MCP
NOT_WANTED = "The new server is not wanted any more: the workspace has changed, or the proxy ends."
UNKNOWN_CLIENT = ClientInfo("uno-devserver", __version__, {}, MODERN_VERSIONS[0])


class Owner(Protocol):
    """The member that has the keeper, as the keeper sees it."""

    workspace: WorkspaceController | None  # None if the upstream does not depend on one

    @property
    def shared_peer(self) -> Peer: ...  # represents all clients to an upstream that has only one conversation
    async def reconsider(self) -> None: ...  # checks what the user has agreed to by now
    def upstream_changed(self) -> None: ...  # an upstream was connected, or is not connected any more
    def upstream_replaced(self) -> None: ...  # another was connected; the old one still answers its open requests
    async def until_unused(self, generation: int) -> None: ...  # no request waits for the upstream of that generation
    async def before_launch(self) -> None: ...  # an upstream is about to be started, and will read its code
    async def runs_current_code(self) -> bool: ...  # the code on disk is that of the connected upstream
    def ends_on_purpose(self) -> bool: ...  # another proxy restarts the upstream, so its end is not a crash
    def launched(self, running: RunningUpstream | None) -> None: ...  # started or found; None if the start failed
    def lists_were_read(self) -> None: ...
    def start_settled(self) -> None: ...  # a start has succeeded, or failed for good


class Keeper:
    def __init__(
        self,
        owner: Owner,
        lifecycle: Lifecycle,
        launcher: Launcher,
        state: ProxyState,
        publisher: ListPublisher | ServerLists,
        announcements: Announcements,
        upstream: Upstream | None,
        *,
        named: str,
        limits: UpstreamLimits = DEFAULT_LIMITS,
    ) -> None:
        """`upstream` is being started already. `named`: its name at the beginning of a sentence."""
        self.named = named
        self._has_name = state.facts.options.server is not None  # whether it is not the one that the server reports
        self.upstream = upstream
        self.problem = ""  # why there is no upstream, while Degraded
        self.generation = 0  # counts the upstreams that were connected
        self.swap: SecondServer | None = None  # set while another upstream is started in addition to the present one
        self.owner = owner
        self.lifecycle = lifecycle
        self.proxy_state = state
        self.publisher = publisher
        self.limits = limits
        self.announcements = announcements
        self._launcher = launcher
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._client: asyncio.Future[ClientInfo] = self._loop.create_future()
        self._hello_until = self._loop.time() + limits.hello_seconds
        self._published = lifecycle.state
        self._changed = asyncio.Event()  # set, and replaced, when waiting tasks should check their condition
        self._current: SupervisedUpstream | None = None
        self._standby: Standby | None = None  # replaces the present upstream if that crashes
        self._stops = Tasks()
        self._later_stops = Tasks()  # tasks that stop replaced upstreams, which still answer requests
        self._all_stop = asyncio.Event()  # set when these must stop at once
        self._retry: asyncio.Task[None] | None = None  # set while Degraded, if the upstream is remote
        self._last_end: tuple[int, Ending | None] = (0, None)  # the last generation that ended by itself, and how
        self._looks = 0  # how often a remote upstream was looked for since it was last connected
        self._list_issues: tuple[Issue, ...] = ()  # the last ones of the upstream's lists
        self._pending = {} if upstream is None else {FIRST_ATTEMPT: upstream}  # starts without an outcome

    @property
    def state(self) -> ConnectionState:
        return self.lifecycle.state

    @property
    def running(self) -> RunningUpstream | None:
        return self._current.running if self._current is not None else None

    @property
    def server(self) -> ServerDescription | None:
        """How the connected server has introduced itself; None if none is connected."""
        return self._current.server if self._current is not None else None

    @property
    def started(self) -> bool:
        """Whether there is an upstream, or one is being started."""
        return self.state not in GIVEN_UP and self.state is not ConnectionState.INITIALIZING

    # Requests of the engine, the workspace and the reloader.

    def begin(self, upstream: Upstream) -> None:
        """Stop the present upstream, and start and keep this one."""
        self._switch_to(upstream)
        self.carry_out(self.lifecycle.begin(self._loop.time()))

    def halt(self, reason: str) -> None:
        """Stop the present upstream, and start no other."""
        self._switch_to(None)
        self.carry_out(self.lifecycle.halt(reason))

    def renew(self, after: float = 0.0, *, new_code: bool = False) -> None:
        """Stop the upstream, if it is owned, and start it after a pause; `new_code`: it has not run with it yet."""
        self._end_standby()
        announcement = f"{self.named} is restarted{' with the new code' if new_code else ''}."
        self.carry_out(self.lifecycle.renew(self._loop.time(), announcement, after=after, new_code=new_code))
        self.proxy_state.learn(reloads=self.lifecycle.reloads)

    def _switch_to(self, upstream: Upstream | None) -> None:
        if self.swap is not None:
            self.swap.abort(NOT_WANTED)
        self._end_standby()
        self.proxy_state.forget_upstream()
        self.upstream = upstream

    def met(self, client: ClientInfo) -> None:
        """Called when the client has introduced itself."""
        if not self._client.done():
            self._client.set_result(client)

    def list_read(self) -> None:
        """Called when a client has read a list."""
        if self._current is not None and self._current.reader is not None:
            self._current.reader.listed()

    def wake_waiters(self) -> None:
        """Let tasks that wait for an upstream check whether they still have to."""
        self._changed.set()
        self._changed = asyncio.Event()

    def retry_due_in(self) -> float:
        """The seconds until another attempt is allowed, while Degraded."""
        return self.lifecycle.retry_due_in(self._loop.time())

    async def until_settled(self) -> None:
        """Wait until the upstream is connected, or no start is under way or due."""
        await self._until(lambda: self.state in (CONNECTED, *GIVEN_UP))

    async def until_unused(self) -> None:
        """Wait until no request waits for the present upstream."""
        await self.owner.until_unused(self.generation)

    async def close(self) -> None:
        """Stop the upstream, if it is owned, and the start that is under way."""
        self.carry_out(self.lifecycle.shut_down())
        if self.swap is not None:
            self.swap.abort(NOT_WANTED)
        self._end_standby()
        self._all_stop.set()
        await self._until(lambda: not self._pending and self.swap is None)
        await self._stops.wait(self.limits.stop_seconds)
        await self._later_stops.wait(self.limits.stop_seconds)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    async def _until_within(self, seconds: float, condition: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until(condition)

    # Requests of calls. Implements `calls.upstream_link.Link`.

    @property
    def fallback(self) -> bool:
        return self.proxy_state.facts.fallback

    def tool(self, name: str) -> Mapping[str, Any] | None:
        return self.publisher.tool(name)

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        if self._current is None or self.state is not CONNECTED:
            raise Unavailable("The dev server is not connected.")
        return await self._current.running.connect(peer, modern_first=modern_first)

    async def until_connected(self, seconds: float) -> bool:
        await self._until_within(seconds, lambda: self.state in (CONNECTED, *GIVEN_UP) or self.fallback)
        return self.state is CONNECTED

    async def reconsider(self) -> None:
        await self.owner.reconsider()
        upstream, denied = self.upstream, self.proxy_state.facts.access_denied is not None
        if upstream is not None and upstream.remote and denied and upstream.has_other_credentials():
            self.wanted(at_once=True)

    def wanted(self, *, at_once: bool = False) -> None:
        if self.upstream is not None:
            self.carry_out(self.lifecycle.wanted(self._loop.time(), at_once=at_once))

    def worked(self, generation: int) -> None:
        if generation == self.generation:
            self.lifecycle.worked()

    def lost(self, generation: int) -> None:
        if generation == self.generation and self._current is not None:
            self._current.running.check_now()

    async def how_it_ended(self, generation: int, seconds: float) -> Ending | None:
        await self._until_within(seconds, lambda: self.state is not CONNECTED or self.generation != generation)
        known, ending = self._last_end
        return ending if known == generation else None

    def refused(self, generation: int, refusal: UnusableServer) -> None:
        if generation == self.generation and self._current is not None and refusal.status == UNAUTHORIZED:
            self._on_refused(self._current, refusal)

    def lists_changed(self) -> None:
        if self._current is not None and self._current.reader is not None:
            self._current.reader.outdated()

    async def set_workspace(self, directory: str, solution: str | None) -> dict[str, Any]:
        assert self.owner.workspace is not None  # the tool is only offered then
        return await self.owner.workspace.initialize(directory, solution)

    async def select_solution(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        assert self.owner.workspace is not None
        return await self.owner.workspace.select(solution, force_restart=force_restart)

    # Actions of the lifecycle.

    def carry_out(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Stop):
                self._stop(patient=action.patient)
            elif isinstance(action, Announce):
                self.announcements.say(action.level, action.text)
                self.problem = action.text if action.level == "error" else self.problem
            elif isinstance(action, Connect):
                assert self._current is not None
                self._current.start()
            elif not self._take_standby(action):
                self._tasks.start(self._start(action))
        self._publish_state()

    def _stop(self, *, patient: bool = False) -> None:
        self._launcher.give_up()
        if self._current is not None:
            self._current.release()
            self._stops.start(self._current.running.stop(patient=patient))
            self._current = None

    async def _start(self, start: Start) -> None:
        await self._until_stopped()
        await asyncio.sleep(start.after)
        try:
            await self.owner.before_launch()
        except Exception:  # a bug in the proxy; the start does not depend on it
            log.write(ERROR, f"the code could not be read before a start:\n{traceback.format_exc()}")
        if start.attempt == self.lifecycle.attempt and self.upstream is not None:
            self._pending[start.attempt] = self.upstream
            self._launcher.start(start.attempt, self.upstream)

    async def _until_stopped(self) -> None:
        """Wait, for a bounded time, until a swap is over and earlier upstreams are gone."""
        await self._until(lambda: self.swap is None)
        await self._until_within(self.limits.stop_seconds, lambda: self.upstream not in self._pending.values())
        await self._stops.wait(self.limits.stop_seconds)

    def _publish_state(self) -> None:
        before, state = self._published, self.state
        if before is state:
            return
        self._published = state
        log.debug(f"Connection state: {before.value} -> {state.value}")
        self.proxy_state.learn(state=state, restarts=self.lifecycle.restarts)
        if before is CONNECTED:
            self.proxy_state.learn(lists_fresh=False)
        if CONNECTED in (before, state):
            self.owner.upstream_changed()
        self.wake_waiters()
        if state is DEGRADED and self.upstream is not None:
            self.upstream.renegotiate()  # the code may have been fixed before the next start
        if state in (CONNECTED, DEGRADED):
            self.publisher.tell()  # changes of our own tools that waited for the upstream's lists
            self.owner.start_settled()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if state is DEGRADED and self.upstream is not None and self.upstream.remote:
            self._retry = self._tasks.start(self._look_again(self.upstream))

    async def _look_again(self, upstream: Upstream) -> None:
        """Look for a remote upstream again after a pause; if it refused our credentials, when there are others."""
        limits, denied = self.limits, self.proxy_state.facts.access_denied is not None
        if denied:
            while not upstream.has_other_credentials():
                await asyncio.sleep(limits.credential_seconds)
        else:
            growth = 2 ** min(self._looks, 10) if upstream.far else 1
            await asyncio.sleep(min(growth * limits.find_again_seconds, limits.longest_find_seconds))
        self._looks += 1
        self.wanted(at_once=denied)

    # The standby: a second upstream that is ready when the present one crashes.

    def _take_standby(self, start: Start) -> bool:
        """Let the standby be the upstream that is to be started; return False if there is none that is ready."""
        taken = self._standby.take() if self._standby is not None else None
        if taken is None:
            return False
        self._publish_state()  # that the former one is not connected any more
        self._standby = None
        self.proxy_state.learn(standby=None)
        self._current, listed = taken
        self._current.report, self._current.attempt = self._on_event, start.attempt
        self.owner.launched(self._current.running)
        self.lifecycle.ready(start.attempt)
        self._publish_lists(listed)
        self._on_connected(self._current, listed.server)
        return True

    def _begin_standby(self) -> None:
        """Start a standby of the upstream that was connected, instead of that of a former one."""
        self._end_standby()
        running = self.running
        if self.upstream is None or not self.upstream.standby or running is None or not running.owned:
            return
        from ..reload.second_server import Standby  # few servers have one

        self._standby = Standby(self, self.upstream)

    def _end_standby(self) -> None:
        if self._standby is not None:
            self._later_stops.start(self._standby.stop())
            self._standby = None
            self.proxy_state.learn(standby=None)

    def standby_ended(self, *, again: bool) -> None:
        """Called when the standby has ended by itself; `again`: it lived long enough to be started again."""
        self.proxy_state.learn(standby=None)
        log.warn(f"The server that stood by for {self.named} has ended{'; another is started' if again else ''}.")
        if again:
            self._begin_standby()

    # Reports of the launcher.

    def reported(self, report: Report) -> None:
        if isinstance(report, Ready | LaunchFailed):
            self._pending.pop(report.attempt, None)
            self.wake_waiters()
        if isinstance(report, Ready):
            self._on_ready(report)
        elif report.attempt != self.lifecycle.attempt:
            log.debug(f"a late report of a start: {report}")
        elif isinstance(report, Launching):
            self._on_launching(report)
        elif isinstance(report, StrayLine):
            self.proxy_state.report_stray_line(report.line)
        else:
            self._on_failed(report)

    def _on_launching(self, report: Launching) -> None:
        self.proxy_state.learn(
            upstream=UpstreamFacts(process_id=report.process_id, owned=report.process_id is not None)
        )
        started = f"Started {report.what} (process {report.process_id})."
        self.announcements.say("info", f"Connecting to {report.what}." if report.process_id is None else started)
        self.carry_out(self.lifecycle.launching(report.attempt))

    def _on_ready(self, report: Ready) -> None:
        running = report.running
        if report.attempt != self.lifecycle.attempt:  # the start was given up too late
            self._stops.start(running.stop())
            return
        if running is self.running and self._current is not None:  # the same Host was found again
            self._current.release()
        else:
            self._stop()  # a Host without MCP was left running
        self._current = SupervisedUpstream(self, running, self._on_event, report.attempt)
        facts = self._facts_of(running, None)
        self.proxy_state.learn(upstream=facts, host=None, connect_error="", access_denied=None, without_mcp=False)
        self.owner.launched(running)
        self.carry_out(self.lifecycle.ready(report.attempt))

    def _on_failed(self, report: LaunchFailed) -> None:
        failure = report.failure
        self.proxy_state.blame("start", failure.issues)
        self.proxy_state.forget_process()
        self.owner.launched(None)
        if failure.ending is not None:
            self.proxy_state.learn(last_end=failure.ending)
        self.carry_out(self.lifecycle.failed(report.attempt, self._loop.time(), str(failure), final=failure.final))

    # Events of the upstream.

    def promote(self, upstream: SupervisedUpstream, listed: UpstreamLists) -> None:
        """Keep the new server of a swap. The one before is stopped when it has answered its requests."""
        before, generation = self._current, self.generation
        upstream.report, upstream.attempt = self._on_event, self.lifecycle.swapped(self._loop.time())
        self._current = upstream
        self._begin_generation(upstream.running, listed.server)
        self._publish_lists(listed)
        tools = counted(self.publisher.tool_count)
        self.announcements.say("info", f"{self.named} was replaced, and has {tools} now.")
        if before is not None:
            before.release()
            self.owner.upstream_replaced()
            self._later_stops.start(self._stop_when_unused(before.running, generation))
            self.owner.start_settled()
        self._publish_state()

    async def _stop_when_unused(self, running: RunningUpstream, generation: int) -> None:
        """Stop a replaced upstream when its requests are answered, or when the proxy ends."""
        until_unused = self.owner.until_unused(generation)
        waits = [asyncio.ensure_future(one) for one in (until_unused, running.ended(), self._all_stop.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        await running.stop(patient=not self._all_stop.is_set())

    async def client_info(self) -> ClientInfo:
        """The client that is named to the upstream, and whose era is tried first. Only the first start waits for it."""
        try:
            async with asyncio.timeout_at(self._hello_until):
                return await shielded(self._client)
        except TimeoutError:
            return UNKNOWN_CLIENT

    def _on_event(self, upstream: SupervisedUpstream, event: Event) -> None:
        if isinstance(event, UpstreamLists):
            self._publish_lists(event)
        elif isinstance(event, ServerDescription):
            self._on_connected(upstream, event)
        elif isinstance(event, UnusableServer):
            self._on_refused(upstream, event)
        else:
            self._on_ended(upstream.attempt, event)

    def _on_connected(self, upstream: SupervisedUpstream, server: ServerDescription) -> None:
        if self.state is CONNECTED:  # only the conversation was opened again
            return
        self.proxy_state.timeline.mark("connected")
        self._begin_generation(upstream.running, server)
        self.announcements.say("info", f"{self.named} is connected, with {counted(self.publisher.tool_count)}.")
        self.carry_out(self.lifecycle.connected(upstream.attempt, self._loop.time()))

    def _on_refused(self, upstream: SupervisedUpstream, refusal: UnusableServer) -> None:
        is_command = upstream.running.kind is HostKind.COMMAND
        without_mcp = not is_command and refusal.status in NO_MCP_STATUS
        denied = refusal.denial if isinstance(refusal, AccessDenied) else None
        self.proxy_state.learn(connect_error=str(refusal), access_denied=denied, without_mcp=without_mcp)
        reason = str(refusal) if denied else unusable(self.named, str(refusal))
        self.carry_out(self.lifecycle.refused(upstream.attempt, reason))
        if is_command:  # a Host without MCP stays: other programs may use it
            self._stop()
            self.proxy_state.forget_process()

    def _on_ended(self, attempt: int, ending: Ending) -> None:
        now = self._loop.time()
        self.proxy_state.forget_process()
        if self.owner.ends_on_purpose():
            self.renew()
            return
        self.proxy_state.learn(last_end=ending)
        if self.state is CONNECTED:
            self._last_end = self.generation, ending
        if self.state is DEGRADED:  # it did not speak MCP; the next one may
            self._stop()
            self._loop.call_later(self.limits.find_again_seconds, self.wanted)
            return
        reason = f"{self.named} {'was shut down' if ending.shut_down else f'has gone: {ending.reason}'}."
        remote = self.upstream is not None and self.upstream.remote
        self.carry_out(
            self.lifecycle.ended(
                attempt,
                now,
                reason,
                consequence="It is looked for again." if remote else STARTED_AGAIN,
                on_purpose=ending.shut_down,
                other_era_next=ending.other_era_next,
                by_its_code=ending.is_by_code,
            )
        )

    def _begin_generation(self, running: RunningUpstream, server: ServerDescription) -> None:
        self.generation += 1
        self._looks = 0
        self.proxy_state.blame("start", ())
        self.proxy_state.learn(
            upstream=self._facts_of(running, server),
            generation=self.generation,
            reloads=self.lifecycle.reloads,
            connect_error="",
            access_denied=None,
            without_mcp=False,
        )
        self.announcements.recovered()
        self._begin_standby()
        if self.owner.workspace is not None:
            self.owner.workspace.introduced(server.info.get("name"))
        elif running.kind is HostKind.COMMAND and not self._has_name:
            self._rename(usable_name(server.info.get("name")))

    def name_typed_command(self, name: str | None) -> None:
        """Use the name of the config or the package instead of the one that the server reports."""
        self._has_name = self._has_name or name is not None
        if self.proxy_state.facts.options.server is None:  # else its name is that among several servers
            self._rename(name)

    def _rename(self, name: str | None) -> None:
        if name:
            self.named = f"The server '{name}'"
            self.proxy_state.learn(named=self.named)

    def _facts_of(self, running: RunningUpstream, server: ServerDescription | None) -> UpstreamFacts:
        info, known = server.info if server else {}, self.proxy_state.facts.upstream
        return UpstreamFacts(
            kind=running.kind,
            process_id=running.process_id,
            endpoint=running.endpoint and shown_url(running.endpoint),
            owned=running.owned,
            log_file=running.log_file,
            arrivals=running.arrivals,
            name=info.get("name"),
            version=info.get("version"),
            protocol_version=server.version if server else None,
            transport=server.transport if server else None,
            stray_line=known.stray_line if known and known.process_id == running.process_id else "",
        )

    def _publish_lists(self, listed: UpstreamLists) -> None:
        self.publisher.take(listed.lists, listed.server)
        issues = tuple(_list_issues(self.named, listed))
        if issues != self._list_issues:
            self._list_issues = issues
            self.proxy_state.blame("lists", issues)
        self.owner.lists_were_read()


def _list_issues(named: str, listed: UpstreamLists) -> Iterator[Issue]:
    unread = [method for method, (_, field) in LISTS.items() if field not in listed.lists]
    if unread:
        message = f"{named} did not answer {', '.join(unread)} with a list that can be read."
        step = "Fix the server; its log and the proxy's have the details. The former lists are kept until then."
        yield warning("UpstreamError", message, step)
    for method, count in listed.cut.items():
        message = f"{named} lists too much: of its {method}, only the first {count:,} entries are offered to clients."
        yield warning("UpstreamError", message, "Have the server offer fewer at once: no client can use as many.")
