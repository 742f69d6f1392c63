"""Controls which workspace is served: asks the client for its roots, watches the disk, and carries decisions out.

`decisions` decides. Everything here runs in the engine's loop, except for reads of the disk, which run in threads. One
decision is carried out before the next is made. A client that does not answer delays nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from ...instances.active import active_servers
from ...protocol.running import Tasks
from ...system.folders import folders
from ...system.threads import apart
from ...system.values import Value
from ...workspace.addins import sources_key
from ...workspace.config import AS_BEFORE, read_config
from ...workspace.transitions import Transition
from ...workspace.trust import agreement_path, is_trusted, refusal
from ..health.upstream_issues import upstream_issues
from ..reload.subject import not_reloaded
from ..state import ConnectionState
from ..upstream.base import workspace_upstream
from ..upstream.configured import ConfiguredUpstream
from ..upstream.host_launch import HostUpstream
from ..upstream.host_process import HostProcess
from .client_roots import RootsQuery, can_be_asked, needs_initialize
from .tool_results import initialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...discovery.discover import Discovery
    from ...protocol.service import Session
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..calls.forwarding import Forwarding
    from ..engine import Announcements
    from ..lists.publisher import ListPublisher, LoadedCatalogue
    from ..options import Options
    from ..state import ProxyState
    from ..upstream.base import Running
    from ..upstream.keeper import Keeper
    from .decisions import Decision, WorkspaceDecisions
    from .watcher import Watcher


class WorkspaceLimits(Value):
    greeting_seconds: float = 1.0  # a client introduces itself at once; later, no client will name the workspace
    loading_seconds: float = 1.0  # between two questions to a Host that still loads its add-ins
    finish_seconds: float = 10.0  # for calls under way, when the config names another server
    ready_seconds: float = 120.0  # how long uno_app_initialize waits for its server, as agents expect it


DEFAULT_LIMITS = WorkspaceLimits()
SERVER_STAYS = "; what runs stays until its next start"


class Owner(Protocol):
    """The engine, as the workspace sees it."""

    def workspace_looked_at(self) -> None:
        """The workspace, its config or its trust may have changed."""

    def reload_code(self) -> bool:
        """Reload newer code as a call would. False: no code is watched."""


class WorkspaceController:
    def __init__(
        self,
        owner: Owner,
        options: Options,
        decisions: WorkspaceDecisions,
        first: Decision,
        looked_at: float,
        channel_name: str,
        *,
        keeper: Keeper,
        state: ProxyState,
        publisher: ListPublisher,
        forwarding: Forwarding,
        announcements: Announcements,
        limits: WorkspaceLimits = DEFAULT_LIMITS,
    ) -> None:
        """`first` is being carried out already. `looked_at`: when the workspace was resolved, in seconds since 1970."""
        self._owner = owner
        self._options = options
        self._channel_name = channel_name
        self._decisions = decisions
        self._keeper = keeper
        self._state = state
        self._publisher = publisher
        self._forwarding = forwarding
        self._announcements = announcements
        self._limits = limits
        self._issues = first.issues
        self._config = read_config(first.workspace.config)
        self._looked_at = looked_at
        self._roots_query = RootsQuery()
        self._roots_open = False  # the client has been asked and has not answered
        self._tasks = Tasks()
        self._deciding = asyncio.Lock()
        self._watcher: Watcher | None = None
        self._loop = asyncio.get_running_loop()
        self.fallback = not decisions.named  # whether the workspace has to be named by uno_app_initialize
        state.workspace = decisions.workspace
        self._no_client = self._loop.call_later(limits.greeting_seconds, self._update)
        self._repair = RepairRestart(
            keeper, state, look_again=self._changed, reload=owner.reload_code, restart=self._restart
        )

    def begin(self) -> None:
        if self._keeper.started:
            self._announce_workspace()
        else:
            self.look()

    @property
    def workspace(self) -> Workspace:
        return self._decisions.workspace

    def close(self) -> None:
        self._no_client.cancel()
        self._repair.close()
        self._roots_query.close()
        if self._watcher is not None:
            self._watcher.stop()

    # What makes a decision due: the client's roots, changed files, tool calls, the user's trust.

    def met(self, session: Session | None) -> None:
        """A client has introduced itself, or its roots have changed; None: a client that cannot be asked."""
        self._no_client.cancel()
        self._roots_open = session is not None and can_be_asked(session.client)
        if session is not None and self._roots_open:
            self._roots_query.ask(session, self._take_roots)
        self._update()

    def _take_roots(self, answer: object | None) -> None:
        self._roots_open = False
        if answer is None:
            self._update()
        else:
            self._start_deciding(lambda: self._decisions.roots(answer, started=self._keeper.started))

    def _changed(self) -> None:
        self._start_deciding(lambda: self._decisions.rescan(started=self._keeper.started))

    async def initialize(self, directory: str, solution: str | None) -> dict[str, Any]:
        """uno_app_initialize: the result, after the server has started or the wait for it is over."""
        decision = await self._decide(
            lambda: self._decisions.initialize(directory, solution, started=self._keeper.started)
        )
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
        """uno_app_select_solution: the result."""
        decision = await self._decide(
            lambda: self._decisions.select(solution, started=self._keeper.started, force_restart=force_restart)
        )
        assert decision.result is not None
        return decision.result

    async def reconsider(self) -> None:
        """Look for the user's trust now, without waiting for the watcher. That is cheap, unlike another attempt."""
        workspace = self.workspace
        if self._state.facts.trusted is False and await apart(lambda: _is_trusted(workspace)):
            self._start_trusted()

    def _start_trusted(self) -> None:
        if self._state.facts.trusted is not False:  # the watcher has noticed it meanwhile
            return
        if self._upstream is not None and self._upstream.trusted:  # what runs was trusted, before the config changed
            self._changed()
        else:
            self._keeper.begin(self._new_upstream())

    # Decisions.

    def _start_deciding(self, operation: Callable[[], Decision]) -> None:
        self._tasks.start(self._decide(operation))

    async def _decide(self, operation: Callable[[], Decision]) -> Decision:
        """Run `operation` in a thread and carry out what it decides.

        It reads `keeper.started` when it runs: the decision before may have changed that.
        """
        async with self._deciding:
            looked_at = time.time()
            view = await apart(lambda: view_disk(operation, self._publisher))
            decision, self._config = view.decision, effective_config(self._config, view.config)
            self._state.workspace = decision.workspace
            self._looked_at, self._issues = looked_at, decision.issues
            if view.kept is not None and self._publisher.switch(view.kept):
                found = view.kept.catalogue
                self._state.learn(
                    tool_count=self._publisher.tool_count,
                    lists_fresh=False,
                    catalogue_written=found.saved_at if found else None,
                    catalogue_sdk=found.sdk_version if found else None,
                )
            await self._carry_out(view)
            self._update()
        self.look()
        self._owner.workspace_looked_at()
        return decision

    async def _carry_out(self, view: DiskView) -> None:
        due = view.decision.transition
        if due in (Transition.START, Transition.RESTART):
            self._announce_workspace()
            self._keeper.begin(self._new_upstream())
        elif due is Transition.STOP:
            self._halt()
        elif due is Transition.REFRESH and view.decision.result is None:
            await self._refresh(view)

    async def _refresh(self, view: DiskView) -> None:
        """The workspace is the same, its files are not. Only what the user trusts now replaces what runs."""
        upstream = self._upstream
        if upstream is not None:
            outdated = is_outdated(upstream, view.config)
            if outdated and view.trusted:
                if self._keeper.state is ConnectionState.CONNECTED:
                    await self._let_calls_finish()
                self._keeper.begin(self._new_upstream())
                return
            if not view.config.readable:
                pass  # it is just being written
            elif view.trusted and self._state.facts.trusted is False:
                self._state.learn(trusted=upstream.trusted, refusal="")
            elif not view.trusted and upstream.trusted is not False and (upstream.trusted or outdated):
                if self._state.facts.trusted is not False:
                    self._announcements.say("warning", not_reloaded(view.refusal))
                self._state.learn(trusted=False, refusal=view.refusal + SERVER_STAYS)
        self._repair.saved(view.sources)

    async def _let_calls_finish(self) -> None:
        self._announcements.say("info", "The workspace wants another server now; calls under way may finish first.")
        try:
            async with asyncio.timeout(self._limits.finish_seconds):
                await self._keeper.until_unused()
        except TimeoutError:
            pass

    def _new_upstream(self) -> HostUpstream | ConfiguredUpstream:
        return workspace_upstream(self._options, self.workspace, self._channel_name)

    def _restart(self) -> None:
        self._announcements.say("info", "The Host is started again: its add-ins were changed.")
        self._keeper.begin(self._new_upstream())

    def _announce_workspace(self) -> None:
        place, solution = self.workspace.working_directory, self.workspace.solution
        self._announcements.say("info", f"The workspace is {place}{f', with {solution}' if solution else ''}.")

    def _halt(self) -> None:
        problems = " ".join(issue.message for issue in self.workspace.issues)
        self._keeper.halt(f"There is no workspace to serve. {problems}".strip())

    def _update(self) -> None:
        """Publish what follows from the workspace, its config and the client's roots as they are known now."""
        undecided = self._keeper.state is ConnectionState.INITIALIZING and self._decisions.named
        if undecided and not self.workspace.resolved and not self._roots_open:
            self._halt()
        self.fallback = needs_initialize(
            forced=not self._decisions.named,
            resolved=self.workspace.resolved,
            roots=self._roots_open,
            started=self._keeper.started,
        )
        wait_calls = self._options.wait_calls or self._config.wait_calls
        self._forwarding.waits = wait_calls
        self._publisher.list_initialize(self.fallback)
        self._state.blame("workspace", (*self._issues, *self._config.issues))
        self._state.learn(fallback=self.fallback, wait_calls=wait_calls)
        self._keeper.wake_waiters()

    # The upstream of the workspace.

    @property
    def _upstream(self) -> HostUpstream | ConfiguredUpstream | None:
        upstream = self._keeper.upstream
        return upstream if isinstance(upstream, HostUpstream | ConfiguredUpstream) else None

    def launched(self, running: Running | None) -> None:
        """A server was started or found; None: it could not be."""
        upstream = self._upstream
        assert upstream is not None
        self._keeper.named = upstream.named
        has_solutions = self.workspace.solution is not None or bool(self.workspace.candidates)
        reloads = bool(upstream.trusted) and self._config.hot_reload.enabled
        self._publisher.adapt(
            selects_solution=isinstance(upstream, HostUpstream) and has_solutions,
            hot_reload=reloads or None,  # the reloader knows for sure, later
            lists_follow=running is not None,
        )
        self._state.learn(
            named=upstream.named,
            trusted=upstream.trusted,
            refusal=upstream.refusal,
            left_out=running.left_out if isinstance(running, HostProcess) else None,
            host=None,
        )
        self._state.blame("launch", upstream.issues)

    def introduced(self, name: object) -> None:
        """The server is connected and has told its name."""
        upstream = self._upstream
        if isinstance(upstream, ConfiguredUpstream):
            upstream.introduced(name)
            self._keeper.named = upstream.named
            self._state.learn(named=upstream.named)

    async def ask_host(self) -> None:
        """Learn the state of the Host and its add-ins; repeat while it still loads them."""
        keeper = self._keeper
        while keeper.state is ConnectionState.CONNECTED and isinstance(running := keeper.running, HostProcess):
            probe = await apart(running.probe)
            if probe.connected and running is keeper.running:
                self._state.learn(host=probe)
            if not probe.loading:
                break
            await asyncio.sleep(self._limits.loading_seconds)
        await self._repair.catch_up(self.workspace)

    # The disk.

    def look(self) -> None:
        """Watch the disk from now on, and find packages and other servers in the background.

        Not before the first start is over: that needs the processor.
        """
        if self._watcher is None:
            from .watcher import Watcher

            self._watcher = Watcher(lambda _: _call_in(self._loop, self._changed))
        # The user's agreement is stored outside the workspace, and starts what waits for it.
        agreement = agreement_path(folders().state, self.workspace.working_directory)
        self._watcher.observe(self.workspace, self._looked_at, (agreement,))
        self._tasks.start(self._look())

    async def _look(self) -> None:
        workspace = self.workspace
        found = await apart(lambda: _discover(workspace))
        servers = await apart(lambda: active_servers(folders().registry, workspace))
        if workspace is self.workspace:
            self._state.learn(discovery=found, servers=servers)


class RepairRestart:
    """Starts a Host again after a save that may repair it: one that does not work, or that lacks an add-in.

    A Host with all its add-ins is left alone: newer code is loaded with the next call. Attempts keep the pauses of the
    keeper; after a save that comes too early, the disk is looked at again when the pause is over.
    """

    def __init__(
        self,
        keeper: Keeper,
        state: ProxyState,
        *,
        look_again: Callable[[], None],
        reload: Callable[[], bool],
        restart: Callable[[], None],
    ) -> None:
        """`look_again` calls `saved` after a look at the disk. `restart` is used where `reload` watches no code."""
        self._keeper = keeper
        self._state = state
        self._look_again = look_again
        self._reload = reload
        self._restart = restart
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def saved(self, sources: int) -> None:
        """A file of the workspace has changed; `sources` is the key of its add-ins' files now."""
        keeper = self._keeper
        connected = keeper.state is ConnectionState.CONNECTED
        if connected and not (self._lacks_addins() and self._differs(sources)):
            return
        if rest := keeper.retry_due_in():
            self.close()
            self._timer = self._loop.call_later(rest, self._look_again)
        elif not connected:
            keeper.wanted()
        elif not self._reload():
            self._restart()

    async def catch_up(self, workspace: Workspace) -> None:
        """Notice what was saved while the Host started, before it was known that add-ins are missing."""
        sources = await apart(lambda: sources_key(workspace.working_directory))
        if self._differs(sources):
            self.saved(sources)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _lacks_addins(self) -> bool:
        """Whether the Host is ours, and add-ins did not load."""
        facts = self._state.facts
        failed = facts.host is not None and any(addin.error is not None for addin in facts.host.add_ins)
        return facts.upstream is not None and facts.upstream.owned and bool(failed or facts.left_out)

    def _differs(self, sources: int) -> bool:
        """Whether the files differ from those of the last launch."""
        upstream = self._keeper.upstream
        return isinstance(upstream, HostUpstream) and upstream.sources not in (None, sources)


class DiskView(Value):
    """What the disk says about the workspace of a decision."""

    decision: Decision
    config: Config
    trusted: bool
    refusal: str  # why it is not trusted: the end of a sentence
    sources: int  # the key of the add-ins' files
    kept: LoadedCatalogue | None


def view_disk(operation: Callable[[], Decision], publisher: ListPublisher) -> DiskView:
    """Run `operation`, and read what its workspace has on disk. Blocks, so it runs in a thread."""
    decision = operation()
    workspace = decision.workspace
    folder = workspace.working_directory
    trusted = _is_trusted(workspace)
    return DiskView(
        decision,
        read_config(workspace.config),
        trusted,
        "" if trusted else refusal(folders().state, folder),
        sources_key(folder),
        publisher.load(workspace) if workspace.resolved else None,
    )


def is_outdated(upstream: HostUpstream | ConfiguredUpstream, config: Config) -> bool:
    """Whether the config names another server than the last start, or that start was without the workspace's code."""
    if upstream.trusted is False:
        return True
    if not config.readable:  # it is just being written
        return False
    if isinstance(upstream, HostUpstream):
        return config.names_server
    before = upstream.config
    if before is None:  # the first start has not read it yet
        return not config.names_server
    return (before.server, before.server_root) != (config.server, config.server_root)


def effective_config(before: Config, now: Config) -> Config:
    """The settings that count: a config that cannot be read is just being written, and the one before stays."""
    if now.readable or before.path != now.path:
        return now
    return before.replace(issues=tuple(issue.replace(remediation=AS_BEFORE) for issue in now.issues))


def _is_trusted(workspace: Workspace) -> bool:
    return is_trusted(os.environ, workspace.working_directory)


def _discover(workspace: Workspace) -> Discovery:
    from ...discovery.discover import Request, discover

    return discover(Request(workspace.requested_directory, workspace=workspace), os.environ)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the proxy has ended
