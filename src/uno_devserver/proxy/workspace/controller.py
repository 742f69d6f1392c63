"""Controls which workspace is served: asks the client for its roots, watches the disk, and carries out decisions.

`decisions.py` decides. Everything here runs in the engine's loop, except for reads of the disk, which run in threads.
Decisions are made and carried out one at a time.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ...instances.health import started_before
from ...instances.host_kind import HostKind
from ...instances.host_program import not_told, restored_since, written_since
from ...instances.workspace_servers import active_servers
from ...system.event_loop import Tasks, in_loop, run_in_thread, shielded
from ...system.folders import folders
from ...system.log import log
from ...system.values import Value
from ...workspace.addins import sources_key
from ...workspace.config import AS_BEFORE, ToolFilter, read_config
from ...workspace.trust import STAYS, agreement_path, is_trusted, not_reloaded, refusal
from ..health.status_file import status_of
from ..health.upstream_issues import upstream_issues
from ..state import ConnectionState
from ..upstream.base import has_main_server, workspace_upstream
from ..upstream.configured_command import ConfiguredUpstream
from ..upstream.host_launch import HostUpstream
from ..upstream.host_process import HostProcess
from .client_roots import ANSWER_SECONDS, ask_roots, can_be_asked
from .decisions import Transition, initialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...issues import Issue
    from ...protocol.service import Session
    from ...workspace.config import Config, ServerCommand
    from ...workspace.resolver import Workspace
    from ..announcements import Announcements
    from ..calls.forwarder import Forwarder
    from ..lists.catalogue import Catalogue, CatalogueIdentity
    from ..lists.publisher import ListPublisher
    from ..options import ProxyOptions
    from ..state import ProxyFacts, ProxyState
    from ..upstream.base import RunningUpstream, Upstream
    from ..upstream.keeper import Keeper
    from .decisions import Decision, WorkspaceDecisions
    from .watcher import Watcher


class WorkspaceLimits(Value):
    greeting_seconds: float = 1.0  # clients introduce themselves at once; after this time, no roots are expected
    roots_seconds: float = ANSWER_SECONDS
    loading_seconds: float = 1.0  # between two requests to a Host that still loads its add-ins
    finish_seconds: float = 10.0  # for calls under way, when the config names another server
    ready_seconds: float = 120.0  # how long uno_app_initialize waits for its server, as agents expect it


DEFAULT_LIMITS = WorkspaceLimits()
CONNECTED = ConnectionState.CONNECTED


class WorkspaceController:
    def __init__(
        self,
        options: ProxyOptions,
        decisions: WorkspaceDecisions,
        resolved_at: float,
        channel_name: str,
        *,
        keeper: Keeper,
        state: ProxyState,
        publisher: ListPublisher,
        forwarding: Forwarder,
        announcements: Announcements,
        changed: Callable[[], None],
        reload_code: Callable[[], bool],
        limits: WorkspaceLimits = DEFAULT_LIMITS,
    ) -> None:
        """The first decision was made at `resolved_at`, in seconds since 1970, and is being carried out already.

        `changed` is called after each decision. `reload_code` checks for new code, or returns False if none is watched.
        """
        self._options = options
        self._channel_name = channel_name
        self._decisions = decisions
        self._keeper = keeper
        self._state = state
        self._publisher = publisher
        self._forwarding = forwarding
        self._announcements = announcements
        self._on_change = changed
        self._reload_code = reload_code
        self._limits = limits
        self._issues: tuple[Issue, ...] = ()
        self._restart_waits = False  # for the user's agreement to what the workspace has become
        self._config = read_config(decisions.workspace.config)
        if self._config.tools != ToolFilter() and is_trusted(os.environ, decisions.workspace.working_directory):
            publisher.restrict(self._config.tools)
        self._resolved_at = resolved_at
        self._asking: asyncio.Task[None] | None = None  # set while the client is asked for its roots
        self._tasks = Tasks()
        self._deciding = asyncio.Lock()
        self._watcher: Watcher | None = None
        self._loop = asyncio.get_running_loop()
        self._no_client = self._loop.call_later(limits.greeting_seconds, self._update)
        self._repair_later: asyncio.TimerHandle | None = None  # for a save that came before the next attempt was due
        state.workspace = decisions.workspace

    def begin(self) -> None:
        if self._keeper.started:
            self._announce_workspace()
        else:
            self.follow_disk()

    @property
    def workspace(self) -> Workspace:
        return self._decisions.workspace

    def close(self) -> None:
        for waiting in (self._no_client, self._repair_later, self._asking):
            if waiting is not None:
                waiting.cancel()
        if self._watcher is not None:
            self._watcher.stop()

    # Reasons for a decision: the client's roots, changed files, tool calls, the user's trust.

    def met(self, session: Session | None) -> None:
        """A client has introduced itself, or its roots have changed; `session` is None if it cannot be asked."""
        self._no_client.cancel()
        if session is not None and can_be_asked(session.client):
            if self._asking is not None:
                self._asking.cancel()
            self._asking = self._tasks.start(self._ask_roots(session))
        self._update()

    async def _ask_roots(self, session: Session) -> None:
        answer = await ask_roots(session, self._limits.roots_seconds)
        self._asking = None
        if answer is None:
            self._update()
        else:
            self._decide(partial(self._decisions.roots, answer))

    def _changed(self) -> asyncio.Task[Decision]:
        return self._decide(self._decisions.rescan)

    async def initialize(self, directory: str, solution: str | None) -> dict[str, Any]:
        """Serve uno_app_initialize: return the result when the server has started, or the wait for it is over."""
        decision = await shielded(self._decide(partial(self._decisions.initialize, directory, solution)))
        if decision.result is not None:
            return decision.result
        connected = await self._keeper.until_connected(self._limits.ready_seconds)
        facts = self._state.facts
        return initialized(
            decision.workspace,
            tool_count=self._publisher.tool_count,
            connected=connected,
            degraded=not connected and not self._keeper.started,
            reasons=() if connected else facts.issues or tuple(upstream_issues(facts)),
        )

    async def select(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        """Serve uno_app_select_solution."""
        operation = partial(self._decisions.select, solution, force_restart=force_restart)
        decision = await shielded(self._decide(operation))
        assert decision.result is not None
        return decision.result

    async def reconsider(self) -> None:
        """Check whether the user trusts the workspace by now, without waiting for the watcher."""
        folder, state = self.workspace.working_directory, self._state
        agreed = state.facts.trusted is False and await run_in_thread(lambda: is_trusted(os.environ, folder))
        if not agreed or state.facts.trusted is not False:  # the watcher may have noticed the trust meanwhile
            return
        if self._upstream is not None and self._upstream.trusted:  # the running server was trusted before an edit
            await shielded(self._changed())
        else:
            self._start()

    # Decisions.

    def _decide(self, operation: Callable[..., Decision]) -> asyncio.Task[Decision]:
        """Run `operation` in a thread and carry out its decision, even if the caller is cancelled."""
        return self._tasks.start(self._carry_out(operation))

    async def _carry_out(self, operation: Callable[..., Decision]) -> Decision:
        async with self._deciding:
            resolved_at, started, before = time.time(), self._keeper.started, self.workspace.working_directory
            view = await run_in_thread(lambda: view_disk(operation(started=started), self._publisher))
            decision, self._config = view.decision, effective_config(self._config, view.config)
            self._state.workspace = decision.workspace
            self._resolved_at, self._issues = resolved_at, decision.issues
            if view.kept is not None:
                self._publisher.switch(*view.kept)
            if not view.refusal and view.config.readable:
                self._publisher.restrict(view.config.tools)
            due = decision.transition
            if due is Transition.RESTART and self._keeps_running(before, view):
                due, self._restart_waits = Transition.REFRESH, True
            if due in (Transition.START, Transition.RESTART):
                self._announce_workspace()
                self._start()
            elif due is Transition.STOP:
                self._halt()
            elif due is Transition.REFRESH and decision.result is None:
                await self._refresh(view)
            self._update()
        self.follow_disk()
        self._on_change()
        return decision

    def _keeps_running(self, before: str, view: DiskView) -> bool:
        """Whether files of the folder, to which the user has not agreed, would stop code to which the user has."""
        decision, upstream = view.decision, self._upstream
        same = decision.result is None and decision.workspace.working_directory == before
        return same and bool(view.refusal and upstream and upstream.trusted) and self._keeper.state is CONNECTED

    async def _refresh(self, view: DiskView) -> None:
        """Handle changed files of the same workspace. Only code that the user trusts now replaces the running code."""
        upstream, trusted = self._upstream, not view.refusal
        if trusted and has_main_server(self._options, self.workspace) != self._state.facts.serves:
            self._start()
            return
        if upstream is not None:
            outdated = self._restart_waits or is_outdated(upstream, view.config)
            outdated = outdated or await has_new_variables(upstream, self._forwarding)
            if outdated and trusted:
                if self._keeper.state is CONNECTED:
                    await self._let_calls_finish()
                self._start()
                return
            if not view.config.readable:
                pass  # the config is being written
            elif upstream.trusted is None and isinstance(upstream, HostUpstream):  # it had no code to agree to
                new = not trusted and view.sources != 0
                self._state.learn(trusted=False if new else None, refusal=view.refusal if new else "")
            elif trusted and self._state.facts.trusted is False:
                self._state.learn(trusted=upstream.trusted, refusal="")
            elif not trusted and upstream.trusted is not False and (upstream.trusted or outdated):
                if self._state.facts.trusted is not False:
                    self._announcements.say("warning", not_reloaded(view.refusal))
                self._state.learn(trusted=False, refusal=view.refusal + STAYS)
        self._repair(view.sources, trusted=trusted)
        await self._tell_projects(trusted=trusted)

    async def _tell_projects(self, *, trusted: bool) -> None:
        """Write the port into projects that were added to the solution. A bundled Host does this itself."""
        running, workspace = self._keeper.running, self.workspace
        if workspace.solution is None or not isinstance(running, HostProcess) or running.kind is HostKind.BUNDLED:
            return
        if running.owned or trusted:
            from ...instances.csproj_user import write_port

            write = partial(write_port, workspace.solution, running.port, workspace.own_directory)
            for warning in (await run_in_thread(write)).warnings:
                log.warn(warning)

    async def _let_calls_finish(self) -> None:
        self._announcements.say("info", "The workspace wants another server now; calls under way may finish first.")
        try:
            async with asyncio.timeout(self._limits.finish_seconds):
                await self._keeper.until_unused()
        except TimeoutError:
            pass

    def _repair(self, sources: int, *, trusted: bool) -> None:
        """Restart a Host after a save that may fix it, if it does not work or lacks an add-in.

        A Host with all its add-ins is left alone: the next call loads newer code. `sources` is the present key of the
        add-ins' files. A save during a pause of the keeper is handled when the pause is over.
        """
        keeper = self._keeper
        connected = keeper.state is CONNECTED
        if connected and not (trusted and lacks_addins(self._state.facts) and self._differ(sources)):
            return
        if rest := keeper.retry_due_in():
            if self._repair_later is not None:
                self._repair_later.cancel()
            self._repair_later = self._loop.call_later(rest, self._changed)
        elif not connected:
            keeper.wanted()
        elif not self._reload_code():
            self._announcements.say("info", "The Host is started again: its add-ins were changed.")
            self._start()

    def _differ(self, sources: int) -> bool:
        """Whether the add-ins' files differ from those of the last launch."""
        upstream = self._keeper.upstream
        return isinstance(upstream, HostUpstream) and upstream.sources not in (None, sources)

    def _start(self) -> None:
        self._restart_waits = False
        serves = has_main_server(self._options, self.workspace)
        if serves != self._state.facts.serves:
            self._state.learn(serves=serves)
            self._publisher.server_changed()
        if not serves:
            if self._keeper.upstream is not None:
                self._keeper.halt("The config names no server besides its 'servers' any more.")
            return
        self._keeper.begin(workspace_upstream(self._options, self.workspace, self._channel_name))

    def _halt(self) -> None:
        problems = " ".join(issue.message for issue in self.workspace.issues)
        self._keeper.halt(f"There is no workspace to serve. {problems}".strip())

    def _announce_workspace(self) -> None:
        place, solution = self.workspace.working_directory, self.workspace.solution
        self._announcements.say("info", f"The workspace is {place}{f', with {solution}' if solution else ''}.")

    def _update(self) -> None:
        """Publish the facts that follow from the present workspace, its config and the client's roots."""
        expected = self.workspace.resolved or self._asking is not None
        if self._keeper.state is ConnectionState.INITIALIZING and self._decisions.named and not expected:
            self._halt()
        # uno_app_initialize has to name the workspace if an option says so, or nothing else names it.
        fallback = not self._decisions.named or not (expected or self._keeper.started)
        wait_calls = self._options.wait_calls or self._config.wait_calls
        self._forwarding.waits = wait_calls
        self._forwarding.limit_silence(self._config.silence_seconds)
        self._publisher.list_initialize(fallback)
        if not self.workspace.resolved:
            self._publisher.adapt(uno=True)  # what it will be is not known
        self._state.blame("workspace", (*self._issues, *self._config.issues))
        self._state.learn(fallback=fallback, wait_calls=wait_calls)
        self._keeper.wake_waiters()

    # The upstream of the workspace.

    @property
    def _upstream(self) -> HostUpstream | ConfiguredUpstream | None:
        upstream = self._keeper.upstream
        return upstream if isinstance(upstream, HostUpstream | ConfiguredUpstream) else None

    def launched(self, running: RunningUpstream | None) -> None:
        """A server was started or found; None if the start failed."""
        upstream = self._upstream
        assert upstream is not None
        self._keeper.named = upstream.named
        has_solutions = self.workspace.solution is not None or bool(self.workspace.candidates)
        host = running if isinstance(running, HostProcess) else None
        reloads = bool(upstream.trusted) and self._config.reloads and (host is None or host.kind is HostKind.BUNDLED)
        self._publisher.adapt(
            selects_solution=isinstance(upstream, HostUpstream) and has_solutions,
            hot_reload=reloads or None,  # the reloader decides it later
            uno=self.workspace.global_json is not None,
            lists_follow=running is not None,
        )
        self._state.learn(
            named=upstream.named,
            trusted=upstream.trusted,
            refusal=upstream.refusal,
            left_out=host.left_out if host is not None else None,
            host=None,
        )
        self._state.blame("launch", upstream.issues)
        self._state.blame("restore", ())

    def introduced(self, name: object) -> None:
        """Record the name that the connected server has reported."""
        upstream = self._upstream
        if isinstance(upstream, ConfiguredUpstream):
            upstream.introduced(name)
            self._keeper.named = upstream.named
            self._state.learn(named=upstream.named)

    async def ask_host(self) -> None:
        """Learn the state of the Host and its add-ins; repeat while it still loads them."""
        keeper = self._keeper
        while keeper.state is CONNECTED and isinstance(running := keeper.running, HostProcess):
            probe = await run_in_thread(running.probe)
            if probe.connected and running is keeper.running:
                self._state.learn(host=probe)
            if not probe.loading:
                await self._look_for_restored()
                break
            await asyncio.sleep(self._limits.loading_seconds)
        # Files may have been saved while the Host started, before it was known that add-ins are missing.
        folder = self.workspace.working_directory
        sources = await run_in_thread(lambda: sources_key(folder))
        if self._differ(sources):
            self._repair(sources, trusted=await run_in_thread(lambda: is_trusted(os.environ, folder)))

    # The disk.

    def follow_disk(self) -> None:
        """Watch the workspace's files, and find packages and other servers. Called when the first start is over."""
        if self._watcher is None:
            from .watcher import Watcher

            self._watcher = Watcher(lambda _: in_loop(self._loop, self._changed))
        # The user's agreement is stored outside the workspace, and may start its server.
        agreement = agreement_path(folders().state, self.workspace.working_directory)
        named = (config.server.env_file for config in (self._config, *self._config.servers) if config.server)
        variables = (path for path in named if path is not None)
        self._watcher.observe(self.workspace, self._resolved_at, (agreement, *dict.fromkeys(variables)))
        self._tasks.start(self._discover())

    async def _discover(self) -> None:
        from ...discovery.discover import DiscoveryRequest, discover

        workspace = self.workspace
        request = DiscoveryRequest(workspace.requested_directory, workspace=workspace)
        found = await run_in_thread(lambda: discover(request, os.environ))
        servers = await run_in_thread(lambda: active_servers(folders().registry, workspace))
        if workspace is self.workspace:
            self._state.learn(discovery=found, servers=servers)
            await self._look_for_restored()

    async def _look_for_restored(self) -> None:
        """Report add-ins that came after the start of a bundled Host that no proxy owns."""
        facts = self._state.facts
        missing = await run_in_thread(lambda: added_since_start(facts))
        if (facts.upstream, facts.discovery) == (self._state.facts.upstream, self._state.facts.discovery):
            self._state.blame("restore", missing)


class DiskView(Value):
    """A decision, with the state on disk of its workspace."""

    decision: Decision
    config: Config
    refusal: str  # why it is not trusted, as the end of a sentence; empty if it is trusted
    sources: int  # the key of the add-ins' files
    kept: tuple[CatalogueIdentity, Catalogue | None] | None


def view_disk(decision: Decision, publisher: ListPublisher) -> DiskView:
    """Read the disk for a decision. Blocks, so it runs in a thread."""
    workspace = decision.workspace
    folder = workspace.working_directory
    return DiskView(
        decision,
        read_config(workspace.config),
        "" if is_trusted(os.environ, folder) else refusal(folders().state, folder),
        sources_key(folder),
        publisher.load(workspace) if workspace.resolved else None,
    )


def lacks_addins(facts: ProxyFacts) -> bool:
    """Whether the Host is owned, and add-ins did not load."""
    failed = facts.host is not None and any(addin.error is not None for addin in facts.host.add_ins)
    return facts.upstream is not None and facts.upstream.owned and bool(failed or facts.left_out)


def added_since_start(facts: ProxyFacts) -> tuple[Issue, ...]:
    """The issues of add-ins that were not there, or not agreed to, when the Host was started. Reads the disk."""
    upstream, discovery, host = facts.upstream, facts.discovery, facts.host
    if upstream is None or upstream.owned or upstream.kind is not HostKind.BUNDLED or not (discovery and host):
        return ()
    server = next((each.server for each in facts.servers if each.server.process_id == upstream.process_id), None)
    if server is None or status_of(folders().state, server.parent_process_id):  # the proxy that started it restarts it
        return ()
    packages = restored_since(server, host, discovery, os.environ)
    files = written_since(server, host, discovery.workspace.working_directory, os.environ)
    return (
        *((started_before(packages, discovery),) if packages else ()),
        *((not_told(files),) if files else ()),
    )


def is_outdated(upstream: HostUpstream | ConfiguredUpstream, config: Config) -> bool:
    """Whether the config names another server than at the last start, or that start was without workspace code."""
    if upstream.trusted is False:
        return True
    if not config.readable:  # the config is being written
        return False
    if isinstance(upstream, HostUpstream):
        return config.names_server
    before = upstream.config
    if before is None:  # the first start has not read the config yet
        return not config.names_server
    return (_started(before.server), before.server_root) != (_started(config.server), config.server_root)


async def has_new_variables(upstream: Upstream | None, forwarding: Forwarder) -> bool:
    """Whether the file of variables has changed of a server that hot reload would not start again for that."""
    if not isinstance(upstream, ConfiguredUpstream) or forwarding.queue is not None:
        return False
    return await run_in_thread(upstream.has_new_variables)


def _started(server: ServerCommand | None) -> ServerCommand | None:
    """The settings of a start: an edit of the others restarts nothing."""
    return server and server.replace(build=None, startup_timeout_ms=0, silence_timeout_ms=0)


def effective_config(before: Config, now: Config) -> Config:
    """The config to use: the former one while the new one cannot be read, because it is being written."""
    if now.readable or before.path != now.path:
        return now
    return before.replace(issues=tuple(issue.replace(remediation=AS_BEFORE) for issue in now.issues))
