"""What the disk says of a workspace, and what of that counts. It blocks, and is called beside the engine's loop.

Starting a Host again when somebody has saved what may mend it: one that does not work, or that lacks an add-in.

A Host that has all its add-ins is left alone, whatever is edited: newer code comes with the next call. One save is one
restart, because whoever watches the code is asked for it. Attempts are no closer to each other than others are; what is
saved too early is remembered.

Which workspace is served, over the life of a proxy: who is asked, what is watched, and what a decision leads to.

Deciding is `workspaces`'s business. Everything here happens in the engine's loop, but for what looks at the disk. A
client that does not answer delays nobody.
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
from ..upstream.choice import workspace_upstream
from ..upstream.configured import ConfiguredUpstream
from ..upstream.host import HostUpstream
from ..upstream.host_process import HostProcess
from .client_roots import RootsInquiry, can_be_asked, falls_back
from .tool_results import initialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...discovery.discover import Discovery
    from ...protocol.service import Session
    from ...workspace.config import Config
    from ...workspace.resolver import Workspace
    from ..calls.forwarding import Forwarding
    from ..engine import Announcements
    from ..lists.publisher import ListPublisher, Recollection
    from ..options import Options
    from ..state import ProxyState
    from ..upstream.base import Running
    from ..upstream.keeper import Keeper
    from .decisions import Decision, WorkspaceDecisions
    from .watcher import Watcher


class Seen(Value):
    decision: Decision
    config: Config
    trusted: bool
    refusal: str  # why not: the end of a sentence
    sources: int
    recalled: Recollection | None


def see(operation: Callable[[], Decision], publisher: ListPublisher) -> Seen:
    """What `operation` decides, and what lies there for it."""
    decision = operation()
    workspace = decision.workspace
    folder = workspace.working_directory
    trusted = has_agreed(workspace)
    return Seen(
        decision,
        read_config(workspace.config),
        trusted,
        "" if trusted else refusal(folders().state, folder),
        sources_key(folder),
        publisher.recall(workspace) if workspace.resolved else None,
    )


def is_outdated(upstream: HostUpstream | ConfiguredUpstream, config: Config) -> bool:
    """Whether the workspace wants another server than the one that was last started, or can have more of it."""
    if upstream.trusted is False:
        return True
    if not config.readable:  # it is just being written; who knows what it will say
        return False
    if isinstance(upstream, HostUpstream):
        return config.names_server
    before = upstream.config
    if before is None:  # the first start is about to read what is there now
        return not config.names_server
    return (before.server, before.server_root) != (config.server, config.server_root)


def counting(before: Config, now: Config) -> Config:
    """The settings that count: a config that cannot be read is just being written, and changes none."""
    if now.readable or before.path != now.path:
        return now
    return before.replace(issues=tuple(issue.replace(remediation=AS_BEFORE) for issue in now.issues))


def has_agreed(workspace: Workspace) -> bool:
    return is_trusted(os.environ, workspace.working_directory)


def discovered(workspace: Workspace) -> Discovery:
    from ...discovery.discover import Request, discover

    return discover(Request(workspace.requested_directory, workspace=workspace), os.environ)


class Mending:
    """`look_again` comes back to `saved` after a look at the disk; `restart` replaces the Host that runs."""

    def __init__(
        self,
        keeper: Keeper,
        state: ProxyState,
        *,
        look_again: Callable[[], None],
        reload: Callable[[], bool],
        restart: Callable[[], None],
    ) -> None:
        self._keeper = keeper
        self._state = state
        self._look_again = look_again
        self._reload = reload
        self._restart = restart
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None

    def saved(self, sources: int) -> None:
        """Some file of the workspace has changed; `sources` is the key of its add-ins' files now."""
        keeper = self._keeper
        connected = keeper.state is ConnectionState.CONNECTED
        if connected and not (self._lacks_addins() and self._are_new(sources)):
            return
        if rest := keeper.retry_due_in():
            self.close()
            self._due = self._loop.call_later(rest, self._look_again)
        elif connected:
            if not self._reload():
                self._restart()
        else:
            keeper.wanted()

    async def catch_up(self, workspace: Workspace) -> None:
        """A start is through: something may have been saved meanwhile, and nobody knew yet that it would matter."""
        sources = await apart(lambda: sources_key(workspace.working_directory))
        if self._are_new(sources):
            self.saved(sources)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _lacks_addins(self) -> bool:
        """Whether the Host is ours, and has add-ins that did not load."""
        facts = self._state.facts
        failed = facts.host is not None and any(addin.error is not None for addin in facts.host.add_ins)
        return facts.upstream is not None and facts.upstream.owned and bool(failed or facts.left_out)

    def _are_new(self, sources: int) -> bool:
        """Whether the files are others than at the last launch."""
        upstream = self._keeper.upstream
        return isinstance(upstream, HostUpstream) and upstream.sources not in (None, sources)


LOADING_SECONDS = 1.0  # between two questions whether the add-ins are loaded by now
FINISH_SECONDS = 10.0  # for calls under way, when the config names another server
READY_SECONDS = 120.0  # uno_app_initialize waits so long for its server, as agents know it
GREETING_SECONDS = 1.0  # a client says who it is at once; without a word from it, nobody will name the workspace
UNTIL_THEN = "; what runs stays until its next start"


class Owner(Protocol):
    """The engine, as the workspace sees it."""

    def workspace_looked_at(self) -> None:
        """The workspace, its config or its trust may be another."""

    def reload_code(self) -> bool:
        """Have newer code replace what runs, as a call would; whether anybody watches the code."""


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
    ) -> None:
        """`first` is being carried out already, if there was anything to be done."""
        self._owner = owner
        self._options = options
        self._channel_name = channel_name
        self._decisions = decisions
        self._keeper = keeper
        self._state = state
        self._publisher = publisher
        self._forwarding = forwarding
        self._announcements = announcements
        self._issues = first.issues
        self._config = read_config(first.workspace.config)
        self._looked_at = looked_at  # in seconds since 1970: when the workspace was last looked at
        self._inquiry = RootsInquiry()
        self._asked = False  # the client, and it has not answered
        self._tasks = Tasks()
        self._deciding = asyncio.Lock()  # one decision is carried out before the next is made
        self.fallback = not decisions.told  # whether it waits for uno_app_initialize
        self._watcher: Watcher | None = None
        self._loop = asyncio.get_running_loop()
        state.workspace = decisions.workspace
        self._unmet = self._loop.call_later(GREETING_SECONDS, self._settle)  # nobody has introduced itself
        self._mending = Mending(
            keeper, state, look_again=self._changed, reload=owner.reload_code, restart=self._restart
        )

    def begin(self) -> None:
        if self._keeper.started:
            self._say_where()
        else:
            self.look()

    @property
    def workspace(self) -> Workspace:
        return self._decisions.workspace

    # The client, and its folders.

    def met(self, session: Session | None) -> None:
        """A client is ready to be asked; None: one that never is."""
        self._unmet.cancel()
        self._asked = session is not None and can_be_asked(session.client)
        if session is not None and self._asked:
            self._inquiry.ask(session, self._answered)
        self._settle()

    def _answered(self, answer: object | None) -> None:
        self._asked = False
        if answer is None:
            self._settle()
        else:
            self._decide(lambda: self._decisions.roots(answer, started=self._keeper.started))

    # The disk, and the user.

    def _changed(self) -> None:
        self._decide(lambda: self._decisions.rescan(started=self._keeper.started))

    async def initialize(self, directory: str, solution: str | None) -> dict[str, Any]:
        decision = await self._decided(
            lambda: self._decisions.initialize(directory, solution, started=self._keeper.started)
        )
        if decision.result is not None:
            return decision.result
        connected = await self._keeper.until_connected(READY_SECONDS)
        facts = self._state.facts
        return initialized(
            decision.workspace,
            tool_count=self._publisher.tool_count,
            connected=connected,
            degraded=not connected and not self._keeper.started,
            reasons=() if connected else facts.issues or tuple(upstream_issues(facts)),
        )

    async def select(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        decision = await self._decided(
            lambda: self._decisions.select(solution, started=self._keeper.started, force_restart=force_restart)
        )
        assert decision.result is not None
        return decision.result

    async def reconsider(self) -> None:
        """Look for the user's agreement, without waiting until it is noticed. That is cheap, unlike another attempt."""
        workspace = self.workspace
        if self._state.facts.trusted is False and await apart(lambda: has_agreed(workspace)):
            self._agreed()

    def _agreed(self) -> None:
        """The code of the workspace may run by now."""
        if self._state.facts.trusted is not False:  # somebody was faster
            return
        if self._upstream is not None and self._upstream.trusted:  # what runs was agreed to, before the config changed
            self._changed()
        else:
            self._keeper.begin(self._new_upstream())

    # What became of it.

    def launched(self, running: Running | None) -> None:
        """A server was started or found, or could not be."""
        upstream = self._upstream
        assert upstream is not None
        left_out = running.left_out if isinstance(running, HostProcess) else None
        self._keeper.named = upstream.named
        # Who watches the code knows for sure, later.
        reloads = bool(upstream.trusted) and self._config.hot_reload.enabled
        self._publisher.adapt(
            selects_solution=isinstance(upstream, HostUpstream) and _has_solutions(self.workspace),
            hot_reload=reloads or None,
            lists_follow=running is not None,
        )
        self._state.learn(
            named=upstream.named, trusted=upstream.trusted, refusal=upstream.refusal, left_out=left_out, host=None
        )
        self._state.blame("launch", upstream.issues)

    def introduced(self, name: object) -> None:
        """The server is connected, and calls itself so."""
        upstream = self._upstream
        if isinstance(upstream, ConfiguredUpstream):
            upstream.introduced(name)
            self._keeper.named = upstream.named
            self._state.learn(named=upstream.named)

    @property
    def _upstream(self) -> HostUpstream | ConfiguredUpstream | None:
        upstream = self._keeper.upstream
        return upstream if isinstance(upstream, HostUpstream | ConfiguredUpstream) else None

    async def ask_host(self) -> None:
        """Learn what the Host tells of itself and its add-ins; again, while it still loads them."""
        keeper = self._keeper
        while keeper.state is ConnectionState.CONNECTED and isinstance(running := keeper.running, HostProcess):
            told = await apart(running.probe)
            if told.connected and running is keeper.running:
                self._state.learn(host=told)
            if not told.loading:
                break
            await asyncio.sleep(LOADING_SECONDS)
        await self._mending.catch_up(self.workspace)

    def look(self) -> None:
        """Watch the disk from now on, and find out in the background what lies there and who else runs.

        Not before the first start is through: that needs the processor.
        """
        if self._watcher is None:
            from .watcher import Watcher

            self._watcher = Watcher(lambda _: _call_in(self._loop, self._changed))
        self._watcher.observe(self.workspace, self._looked_at, _also(self.workspace))
        self._tasks.start(self._look())

    async def _look(self) -> None:
        workspace = self.workspace
        found = await apart(lambda: discovered(workspace))
        servers = await apart(lambda: active_servers(folders().registry, workspace))
        if workspace is self.workspace:
            self._state.learn(discovery=found, servers=servers)

    def close(self) -> None:
        self._unmet.cancel()
        self._mending.close()
        self._inquiry.close()
        if self._watcher is not None:
            self._watcher.stop()

    # Decisions.

    def _decide(self, operation: Callable[[], Decision]) -> None:
        self._tasks.start(self._decided(operation))

    async def _decided(self, operation: Callable[[], Decision]) -> Decision:
        """`operation` looks for itself whether something is started: decisions before it may change that."""
        async with self._deciding:
            looked_at = time.time()
            seen = await apart(lambda: see(operation, self._publisher))
            decision, self._config = seen.decision, counting(self._config, seen.config)
            self._state.workspace = decision.workspace
            self._looked_at, self._issues = looked_at, decision.issues
            if seen.recalled is not None and self._publisher.change(seen.recalled):
                self._offers_anew(seen.recalled)
            await self._carry_out(seen)
            self._settle()
        self.look()
        self._owner.workspace_looked_at()
        return decision

    def _offers_anew(self, recalled: Recollection) -> None:
        found = recalled.found
        self._state.learn(
            tool_count=self._publisher.tool_count,
            lists_fresh=False,
            catalogue_written=found.saved_at if found else None,
            catalogue_sdk=found.sdk_version if found else None,
        )

    async def _carry_out(self, seen: Seen) -> None:
        decision = seen.decision
        due, keeper = decision.transition, self._keeper
        if due in (Transition.START, Transition.RESTART):
            self._say_where()
            keeper.begin(self._new_upstream())
        elif due is Transition.STOP:
            self._give_up()
        elif due is Transition.REFRESH and decision.result is None:
            await self._refresh(seen)

    async def _refresh(self, seen: Seen) -> None:
        """The same workspace, with other files. Only what the user has agreed to, as it is now, replaces what runs."""
        upstream = self._upstream
        if upstream is not None:
            outdated = is_outdated(upstream, seen.config)
            if outdated and seen.trusted:
                if self._keeper.state is ConnectionState.CONNECTED:
                    await self._let_finish()
                self._keeper.begin(self._new_upstream())
                return
            if not seen.config.readable:
                pass  # it changes nothing
            elif seen.trusted and self._state.facts.trusted is False:
                self._state.learn(trusted=upstream.trusted, refusal="")
            elif not seen.trusted and upstream.trusted is not False and (upstream.trusted or outdated):
                if self._state.facts.trusted is not False:
                    self._announcements.say("warning", not_reloaded(seen.refusal))
                self._state.learn(trusted=False, refusal=seen.refusal + UNTIL_THEN)
        self._mending.saved(seen.sources)

    async def _let_finish(self) -> None:
        """What is under way comes to its end before another server takes over, within a bound."""
        self._announcements.say("info", "The workspace wants another server now; calls under way may finish first.")
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._keeper.until_unused()
        except TimeoutError:
            pass

    def _new_upstream(self) -> HostUpstream | ConfiguredUpstream:
        return workspace_upstream(self._options, self.workspace, self._channel_name)

    def _restart(self) -> None:
        self._announcements.say("info", "The Host is started again: its add-ins were changed.")
        self._keeper.begin(self._new_upstream())

    def _say_where(self) -> None:
        place, solution = self.workspace.working_directory, self.workspace.solution
        self._announcements.say("info", f"The workspace is {place}{f', with {solution}' if solution else ''}.")

    def _give_up(self) -> None:
        problems = " ".join(issue.message for issue in self.workspace.issues)
        self._keeper.halt(f"There is no workspace to serve. {problems}".strip())

    def _settle(self) -> None:
        """Say what follows from what is known of the workspace by now."""
        undecided = self._keeper.state is ConnectionState.INITIALIZING and self._decisions.told
        if undecided and not self.workspace.resolved and not self._asked:
            self._give_up()
        self.fallback = falls_back(
            forced=not self._decisions.told,
            resolved=self.workspace.resolved,
            roots=self._asked,
            started=self._keeper.started,
        )
        wait_calls = self._options.wait_calls or self._config.wait_calls
        self._forwarding.waits = wait_calls
        self._publisher.fall_back(self.fallback)
        self._state.blame("workspace", (*self._issues, *self._config.issues))
        self._state.learn(fallback=self.fallback, wait_calls=wait_calls)
        self._keeper.wake_waiters()


def _has_solutions(workspace: Workspace) -> bool:
    return workspace.solution is not None or bool(workspace.candidates)


def _also(workspace: Workspace) -> tuple[str, ...]:
    """The user's agreement lies outside the workspace, and starts what waits for it."""
    return (agreement_path(folders().state, workspace.working_directory),)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the proxy has ended
