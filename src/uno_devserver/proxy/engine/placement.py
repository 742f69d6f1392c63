"""Which workspace is served, over the life of a proxy: who is asked, what is watched, and what a decision leads to.

Deciding is `workspaces`'s business. Everything here happens in the engine's loop, but for what looks at the disk. A
client that does not answer delays nobody.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ...instances.active import active_servers
from ...instances.health_report import ConnectionState
from ...protocol.running import Tasks
from ...system.folders import folders
from ...system.threads import apart
from ...workspace.config import read_config
from ...workspace.transitions import Transition
from ...workspace.trust import agreement_path
from ..health.ailments import upstream_issues
from ..place.results import initialized
from ..place.roots import RootsInquiry, can_be_asked, falls_back
from ..upstream.configured import ConfiguredUpstream
from ..upstream.host import HostUpstream
from ..upstream.host_running import HostRunning
from .mending import Mending
from .reload_subject import not_reloaded
from .seen import Seen, counting, discovered, has_agreed, is_outdated, see
from .supply import workspace_upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...protocol.service import Session
    from ...workspace.resolver import Workspace
    from ..options import Options
    from ..place.watching import Watcher
    from ..place.workspaces import Decision, Workspaces
    from ..relay.relay import Relay
    from ..upstream.upstream import Running
    from .announcements import Announcements
    from .keeper import Keeper
    from .knowledge import Knowledge
    from .offering import Offering, Recollection

LOADING_SECONDS = 1.0  # between two questions whether the add-ins are loaded by now
FINISH_SECONDS = 10.0  # for calls under way, when the config names another server
READY_SECONDS = 120.0  # uno_app_initialize waits so long for its server, as agents know it
GREETING_SECONDS = 1.0  # a client says who it is at once; without a word from it, nobody will name the workspace
UNTIL_THEN = "; what runs stays until its next start"


class Placement:
    def __init__(
        self,
        options: Options,
        workspaces: Workspaces,
        first: Decision,
        looked_at: float,
        channel_name: str,
        *,
        keeper: Keeper,
        knowledge: Knowledge,
        offering: Offering,
        relay: Relay,
        announcements: Announcements,
    ) -> None:
        """`first` is being carried out already, if there was anything to be done."""
        self._options = options
        self._channel_name = channel_name
        self._workspaces = workspaces
        self._keeper = keeper
        self._knowledge = knowledge
        self._offering = offering
        self._relay = relay
        self._announcements = announcements
        self._issues = first.issues
        self._config = read_config(first.workspace.config)
        self._looked_at = looked_at  # in seconds since 1970: when the workspace was last looked at
        self._inquiry = RootsInquiry()
        self._asked = False  # the client, and it has not answered
        self._tasks = Tasks()
        self._deciding = asyncio.Lock()  # one decision is carried out before the next is made
        self.fallback = not workspaces.told  # whether it waits for uno_app_initialize
        self._watcher: Watcher | None = None
        self.looked: Callable[[], object] = lambda: None  # the workspace, its config or its trust may be another
        self._loop = asyncio.get_running_loop()
        knowledge.workspace = lambda: workspaces.workspace
        self._unmet = self._loop.call_later(GREETING_SECONDS, self._settle)  # nobody has introduced itself
        self._mending = Mending(keeper, knowledge, look_again=self._changed, restart=self._restart)

    def begin(self) -> None:
        if self._keeper.started:
            self._say_where()
        else:
            self.look()

    @property
    def workspace(self) -> Workspace:
        return self._workspaces.workspace

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
            self._decide(lambda: self._workspaces.roots(answer, started=self._keeper.started))

    # The disk, and the user.

    def _changed(self) -> None:
        self._decide(lambda: self._workspaces.rescan(started=self._keeper.started))

    async def initialize(self, directory: str, solution: str | None) -> dict[str, Any]:
        decision = await self._decided(
            lambda: self._workspaces.initialize(directory, solution, started=self._keeper.started)
        )
        if decision.result is not None:
            return decision.result
        connected = await self._keeper.until_connected(READY_SECONDS)
        facts = self._knowledge.facts
        return initialized(
            decision.workspace,
            tool_count=self._offering.tool_count,
            connected=connected,
            degraded=not connected and not self._keeper.started,
            reasons=() if connected else facts.issues or tuple(upstream_issues(facts)),
        )

    async def select(self, solution: str, *, force_restart: bool) -> dict[str, Any]:
        decision = await self._decided(
            lambda: self._workspaces.select(solution, started=self._keeper.started, force_restart=force_restart)
        )
        assert decision.result is not None
        return decision.result

    async def reconsider(self) -> None:
        """Look for the user's agreement, without waiting until it is noticed. That is cheap, unlike another attempt."""
        workspace = self.workspace
        if self._knowledge.facts.trusted is False and await apart(lambda: has_agreed(workspace)):
            self._agreed()

    def _agreed(self) -> None:
        """The code of the workspace may run by now."""
        if self._knowledge.facts.trusted is not False:  # somebody was faster
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
        left_out = running.left_out if isinstance(running, HostRunning) else None
        self._keeper.named = upstream.named
        # Who watches the code knows for sure, later.
        reloads = bool(upstream.trusted) and self._config.hot_reload.enabled
        uses_host, lists_follow = isinstance(upstream, HostUpstream), running is not None
        self._offering.adapt(uses_host=uses_host, hot_reload=reloads or None, lists_follow=lists_follow)
        self._knowledge.learn(
            named=upstream.named, trusted=upstream.trusted, refusal=upstream.refusal, left_out=left_out, host=None
        )
        self._knowledge.blame("launch", upstream.issues)

    def introduced(self, name: object) -> None:
        """The server is connected, and calls itself so."""
        upstream = self._upstream
        if isinstance(upstream, ConfiguredUpstream):
            upstream.introduced(name)
            self._keeper.named = upstream.named
            self._knowledge.learn(named=upstream.named)

    @property
    def _upstream(self) -> HostUpstream | ConfiguredUpstream | None:
        upstream = self._keeper.upstream
        return upstream if isinstance(upstream, HostUpstream | ConfiguredUpstream) else None

    async def ask_host(self) -> None:
        """Learn what the Host tells of itself and its add-ins; again, while it still loads them."""
        keeper = self._keeper
        while keeper.state is ConnectionState.CONNECTED and isinstance(running := keeper.running, HostRunning):
            told = await apart(running.probe)
            if told.connected and running is keeper.running:
                self._knowledge.learn(host=told)
            if not told.loading:
                break
            await asyncio.sleep(LOADING_SECONDS)
        await self._mending.catch_up(self.workspace)

    def look(self) -> None:
        """Watch the disk from now on, and find out in the background what lies there and who else runs.

        Not before the first start is through: that needs the processor.
        """
        if self._watcher is None:
            from ..place.watching import Watcher

            self._watcher = Watcher(lambda _: _call_in(self._loop, self._changed))
        self._watcher.observe(self.workspace, self._looked_at, _also(self.workspace))
        self._tasks.start(self._look())

    async def _look(self) -> None:
        workspace = self.workspace
        found = await apart(lambda: discovered(workspace))
        servers = await apart(lambda: active_servers(folders().registry, workspace))
        if workspace is self.workspace:
            self._knowledge.learn(discovery=found, servers=servers)

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
            seen = await apart(lambda: see(operation, self._offering))
            decision, self._config = seen.decision, counting(self._config, seen.config)
            self._looked_at, self._issues = looked_at, decision.issues
            if seen.recalled is not None and self._offering.change(seen.recalled):
                self._offers_anew(seen.recalled)
            await self._carry_out(seen)
            self._settle()
        self.look()
        self.looked()
        return decision

    def _offers_anew(self, recalled: Recollection) -> None:
        found = recalled.found
        self._knowledge.learn(
            tool_count=self._offering.tool_count,
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
            elif seen.trusted and self._knowledge.facts.trusted is False:
                self._knowledge.learn(trusted=upstream.trusted, refusal="")
            elif not seen.trusted and upstream.trusted is not False and (upstream.trusted or outdated):
                if self._knowledge.facts.trusted is not False:
                    self._announcements.say("warning", not_reloaded(seen.refusal))
                self._knowledge.learn(trusted=False, refusal=seen.refusal + UNTIL_THEN)
        self._mending.saved(seen.sources)

    async def _let_finish(self) -> None:
        """What is under way comes to its end before another server takes over, within a bound."""
        self._announcements.say("info", "The workspace wants another server now; calls under way may finish first.")
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._keeper.unused(self._keeper.generation)
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
        undecided = self._keeper.state is ConnectionState.INITIALIZING and self._workspaces.told
        if undecided and not self.workspace.resolved and not self._asked:
            self._give_up()
        self.fallback = falls_back(
            forced=not self._workspaces.told,
            resolved=self.workspace.resolved,
            roots=self._asked,
            started=self._keeper.started,
        )
        wait_calls = self._options.wait_calls or self._config.wait_calls
        self._relay.wait_calls = wait_calls
        self._offering.fall_back(self.fallback)
        self._knowledge.blame("workspace", (*self._issues, *self._config.issues))
        self._knowledge.learn(fallback=self.fallback, wait_calls=wait_calls)
        self._keeper.moved()


def _also(workspace: Workspace) -> tuple[str, ...]:
    """The user's agreement lies outside the workspace, and starts what waits for it."""
    return (agreement_path(folders().state, workspace.working_directory),)


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the proxy has ended
