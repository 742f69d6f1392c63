"""Hot reload in one proxy: decides which proxy watches the server's code, and connects calls and restarts to it.

The authority over the code is this proxy (`LocalAuthority`), or the proxy that owns the Host (`RemoteAuthority`). While
there is one, calls go through a queue that asks it for new code first; without one they are relayed directly. The first
start is not delayed: for a Host, hot reload begins when it is connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING

from ...hotreload.authority import AuthorityProblem, RestartResult
from ...hotreload.control.messages import NO_ANSWER
from ...hotreload.digest_store import UNKNOWN, DigestStore
from ...instances.host_kind import HostKind
from ...issues import Issue
from ...protocol.jsonrpc import RpcError
from ...system.event_loop import Tasks, run_in_thread
from ...system.folders import folders
from ...system.log import ERROR, log
from ...system.processes import process_started
from ...system.values import Value
from ...workspace.addins import sources_key
from ...workspace.config import read_config
from ...workspace.server_command import given_name, server_name
from ...workspace.trust import STAYS, is_trusted, not_reloaded, refusal, was_trusted
from ..state import ConnectionState
from ..upstream.configured_command import ConfiguredUpstream
from ..upstream.host_launch import HostUpstream
from ..upstream.host_process import HostProcess
from .watched_code import (
    NO_CONFIG,
    NOT_TRUSTED,
    NOT_YET,
    WatchedCode,
    content_at_launch,
    find_watched_code,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...hotreload.authority import Authority
    from ...hotreload.client_app import ClientApp
    from ...hotreload.control.remote_authority import RemoteAuthority
    from ...hotreload.control.server import ControlServer
    from ...hotreload.history import ReloadHistory
    from ...hotreload.local_authority import LocalAuthority
    from ...hotreload.watched_package import WatchedPackage
    from ...workspace.config import Config
    from ..calls.call_queue import CallQueue
    from ..calls.forwarder import Forwarder
    from ..options import ProxyOptions
    from ..upstream.keeper import Keeper
    from .restart_or_swap import Restarter

CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED


class ReloadLimits(Value):
    config_seconds: float = 2.0  # between two reads of the config of a typed command, whose workspace is not watched
    note_seconds: float = 1.0  # the most that reading the code may delay a start; it usually takes milliseconds
    owner_seconds: float = 30.0  # for the owner of a Host to launch it again; the end of the owner is noticed at once


LIMITS = ReloadLimits()


class Reloader:
    def __init__(
        self,
        options: ProxyOptions,
        channel_name: str,
        content: str | None,
        *,
        keeper: Keeper,
        forwarding: Forwarder,
        open_inspector: Callable[[int | None], Awaitable[str | Issue]],
    ) -> None:
        """`channel_name`: names our control channel. `content`: the digest of the running code, if it is known."""
        self._options = options
        self._channel_name = channel_name
        self._content = content
        self._content_of: tuple[WatchedPackage, ...] | None = None  # the packages of `_content`, where known
        self._keeper = keeper
        self._state = keeper.proxy_state
        self._forwarding = forwarding
        self._open_inspector = open_inspector
        self._tasks = Tasks()
        self._loop = asyncio.get_running_loop()
        self._next_update: asyncio.TimerHandle | None = None
        self._planning = asyncio.Lock()
        self._plan: WatchedCode | None = None
        self._own: LocalAuthority | None = None
        self._history: ReloadHistory | None = None  # of our former authority
        self._remote: RemoteAuthority | None = None
        self._channel: ControlServer | None = None
        self._channel_path: str | None = None
        self._queue: CallQueue | None = None
        self._restarter: Restarter | None = None
        self._was_current = True  # whether what is on disk was the running code when the plan changed
        self._refused = False  # whether the user has not agreed to the present config and code
        self._restarting = False  # whether we restart the upstream at this moment
        self._plan_waits = False  # whether the plan has changed while the authority restarts the upstream
        # Whether to check the code without waiting for a call: the upstream failed since the last check, or may
        # lack code that is watched only now, because the user has agreed to it.
        self._check_due = keeper.state is DEGRADED
        self._owners_restarts = 0  # how often the owner had restarted the Host when we were last connected
        self._state.follow_reloader(self)

    def update(self) -> asyncio.Task[None]:
        """Decide again whether code is watched, and by which proxy."""
        return self._tasks.start(_guarded(self._update_plan))

    def reload(self) -> bool:
        """Start to check for new code without a call; return False if this proxy does not watch the code."""
        if self._own is not None:
            self._tasks.start(_guarded(self._reload))
        return self._own is not None

    def status(self) -> Mapping[str, object] | None:
        """The status for the health report; None if hot reload is off. Safe from any thread."""
        if self._plan is None or self._queue is None or self._refused:
            return None
        own = self._own
        return {"owner": False} if own is None else own.status()

    async def close(self) -> None:
        self._tasks.cancel()
        self._cancel_next_update()
        await self._close_authority()

    async def _reload(self) -> None:
        async with self._planning:  # before its end, the authority may not know which code runs
            own = self._own
        if own is None:
            return
        with contextlib.suppress(AuthorityProblem):  # already logged
            if (await own.check(log.debug)).restart_due:
                await own.ready_to_restart()

    @property
    def _connected(self) -> bool:
        return self._keeper.state is CONNECTED

    def _cancel_next_update(self) -> None:
        if self._next_update is not None:
            self._next_update.cancel()

    # Events of the upstream.

    async def before_launch(self) -> None:
        """Record the code that the next upstream will read, and wait for the owner of a Host to launch it; bounded."""
        self._content = None
        noting = _guarded(partial(self._note_code, time.monotonic() + LIMITS.note_seconds))
        await asyncio.wait([self._tasks.start(noting)], timeout=LIMITS.note_seconds)
        if self._remote is not None:  # usually the owner launches the next Host
            await asyncio.wait([self._tasks.start(self._remote.until_restarted())], timeout=LIMITS.owner_seconds)

    async def _note_code(self, deadline: float) -> None:
        """The start goes on after the deadline, so what is read later may be newer than what was started."""
        await self._update_plan()  # the user may have trusted the config a moment ago
        if self._own is not None:
            await self._own.note_launch(deadline=deadline)
        elif self._options.command:  # the user may trust the config while the server runs
            self._content_of = None
            content = await run_in_thread(lambda: content_at_launch(self._options, None, os.environ))
            self._content = UNKNOWN if content and time.monotonic() > deadline else content

    async def runs_current_code(self) -> bool:
        """Whether the code on disk is that of the connected upstream, as far as we watch it."""
        return self._own is None or await self._own.runs_current_code()

    def start_settled(self) -> None:
        """A start has succeeded, or failed for good."""
        if self._own is not None and not self._restarting:
            self._report_start(self._own)
            self._check_due = self._keeper.state is DEGRADED
        if self._connected and self._state.facts.hot_reload_off == NOT_YET:
            self._state.learn(hot_reload_off=None)  # the update below finds out
        if self._queue is not None and self._connected:
            running = self._keeper.running
            if running is not None and not self._restarting:
                self._queue.connected(is_ours=running.owned and running.kind is HostKind.COMMAND)
            self._queue.hold()
            if self._plan is not None:
                self._queue.name = self._server_name(self._plan)
        if self._remote is not None and self._queue is not None:
            self._queue.resume()  # this proxy does not wait longer for the owner's restart, whatever its outcome
            self._owners_restarts = self._remote.restarts
        self.update()

    def ends_on_purpose(self) -> bool:
        """Whether the owner of the Host restarts it, or has just done so: the old Host's end may be noticed later."""
        remote = self._remote
        return remote is not None and (remote.restarting or remote.restarts != self._owners_restarts)

    def _report_start(self, own: LocalAuthority) -> None:
        if self._connected:
            own.connected()
        else:
            own.failed()

    # Which proxy watches the code.

    async def _update_plan(self) -> None:
        async with self._planning:
            found = await run_in_thread(lambda: _watch_plan(self._options, self._keeper, self._plan))
            plan, off = (None, found) if isinstance(found, str) else (found, None)
            if plan != self._plan and self._own is not None and self._own.restarting:
                self._plan_waits = True  # to close the authority now would end its restart
                return
            if plan != self._plan:
                await self._change_plan(plan)
                self._publish_status()
            await self._follow_agreement()
            off = NOT_TRUSTED if self._refused else off
            if off is None and self._connected and self._state.facts.hot_reload_off not in (None, NOT_YET):
                self._check_due = True
            if self._options.command and (off != NO_CONFIG or self._next_update is not None):
                self._cancel_next_update()
                self._next_update = self._loop.call_later(LIMITS.config_seconds, self.update)
                if off != NOT_TRUSTED and self._state.facts.trusted is False:
                    self._state.learn(trusted=True)
            if off != self._state.facts.hot_reload_off:
                self._state.learn(hot_reload_off=off)
            if self._plan is not None or self._connected:  # otherwise it is not known yet
                lists_follow = self._keeper.started and not self._connected
                self._keeper.publisher.adapt(hot_reload=self._plan is not None, lists_follow=lists_follow)
            # Its code may never have been built, and a server without tools gets no call that would check for new code.
            if self._check_due and self.reload():
                self._check_due = False

    async def _follow_agreement(self) -> None:
        """Learn, for our authority too, whether the user has agreed to the present config and code.

        For a typed command, clients are told at once; for a workspace, its controller does that.
        """
        plan = self._plan
        why = await run_in_thread(lambda: self._restart_refusal(plan)) if plan is not None else ""
        if self._own is not None:
            self._own.note_refusal(why)
        if bool(why) != self._refused:
            self._refused = bool(why)
            self._publish_status()
        if why and self._options.command and self._state.facts.trusted is not False:
            self._keeper.announcements.say("warning", not_reloaded(why))
            self._state.learn(trusted=False, refusal=why + STAYS)

    async def _change_plan(self, plan: WatchedCode | None) -> None:
        if self._own is not None and self._plan is not None:  # the running code stays the same
            self._content, self._content_of = self._own.content, self._plan.packages
            self._was_current = await self._own.runs_current_code()
        await self._close_authority()
        if plan is None:
            return
        self._plan = plan
        if self._options.command:
            self._keeper.name_typed_command(await run_in_thread(lambda: given_name(_of_package(plan))))
        try:
            await self._open_authority(plan)
        except Exception:
            await self._close_authority()  # the next update tries again
            raise

    async def _open_authority(self, plan: WatchedCode) -> None:
        if plan.channel is None:
            authority: LocalAuthority | RemoteAuthority = await self._open_own_authority(plan)
        else:
            from ...hotreload.control.remote_authority import RemoteAuthority

            authority = self._remote = RemoteAuthority(plan.channel, self._restart_announced, self._restarted)
            self._owners_restarts = 0
        self._queue = self._open_queue(authority, plan)

    def _open_queue(self, authority: Authority, plan: WatchedCode) -> CallQueue:
        from ..calls.call_queue import CallQueue
        from ..calls.upstream_link import DEFAULT_LIMITS

        config = plan.config
        longer = self._keeper.limits.additional_seconds(config.startup_seconds or 0.0)
        # Calls of a server share its extension and the client process, which do one thing at a time.
        shares = config.extension_path is not None or config.client is not None
        queue = CallQueue(
            authority,
            concurrency=config.concurrency or (1 if shares else None),
            strategy=config.hot_reload.strategy,
            waits=lambda: self._forwarding.waits,
            observer=lambda: self._forwarding.observer,
            serves=lambda: self._connected,
            generation=lambda: self._keeper.generation,
            tools=lambda: self._keeper.publisher.offered.tools,
            name=self._server_name(plan),
            source=plan.packages[0].root,
            status_seconds=config.hot_reload.status_timeout_ms / 1000,
            limits=DEFAULT_LIMITS.replace(restart_seconds=DEFAULT_LIMITS.restart_seconds + longer),
        )
        self._forwarding.queue = queue
        return queue

    async def _open_own_authority(self, plan: WatchedCode) -> LocalAuthority:
        from ...hotreload.control.server import ControlServer
        from ...hotreload.local_authority import LocalAuthority
        from ...hotreload.package_state import BuildSettings
        from ...system.pipes import PipeProblem

        state, hot_reload = folders().state, plan.config.hot_reload
        self._own = own = LocalAuthority(
            plan.packages,
            BuildSettings(DigestStore(state), os.environ, state, lambda: self._refusal(plan)),
            strategy=hot_reload.strategy,
            restart=self._restart,
            answers=lambda: self._keeper.until_connected(hot_reload.status_timeout_ms / 1000),
            say=self._keeper.announcements.say,
            status_changed=self._on_own_status,
            refusal=lambda: self._restart_refusal(plan),
            client=_client_app(plan, state, self._on_own_status),
            history=self._history,
        )
        await self._report_running_code(own, plan)
        self._channel = ControlServer(self._channel_name, own, plan.packages, self._inspector_url)
        try:
            self._channel_path = await self._channel.open()
        except PipeProblem as problem:
            log.warn(f"Other programs cannot ask for new code: {problem}")
            self._channel = None
        return own

    def _refusal(self, plan: WatchedCode) -> str:
        """Why the agreement does not cover the code as it is now; empty if it does, or if the command was typed."""
        typed = self._options.watch and plan.config.path is None
        return "" if typed or is_trusted(os.environ, plan.folder) else refusal(folders().state, plan.folder)

    def _restart_refusal(self, plan: WatchedCode) -> str:
        """The refusal of a restart. While the config cannot be read because it is being written, the last one counts.

        A Host is told its add-ins when it starts, so that needs the agreement to all of them.
        """
        why = self._refusal(plan)
        if not why or isinstance(self._keeper.upstream, HostUpstream) or not was_trusted(os.environ, plan.folder):
            return why
        return why if read_config(plan.config.path, plan.config.name).readable else ""

    async def _report_running_code(self, own: LocalAuthority, plan: WatchedCode) -> None:
        """Tell the authority which code runs: it was launched before the authority was opened."""
        content, self._content = self._content, None
        if self._content_of is None:
            pid = self._keeper.running.process_id if self._keeper.running else None
            started_at = await run_in_thread(lambda: process_started(pid)) if pid is not None else None
            await own.note_launch(on_disk=content, started_at=started_at)
        else:
            if content is not None and self._content_of != plan.packages:  # the digest is that of other files
                content = None if self._was_current else UNKNOWN
            await own.note_launch(running=content)
        upstream = self._keeper.upstream
        launched = upstream.sources if isinstance(upstream, HostUpstream) else None
        # Compare only after the code was read, so that a save in between is noticed.
        if launched is not None and await run_in_thread(lambda: sources_key(plan.folder)) != launched:
            await own.note_launch(running=UNKNOWN)
        running = self._keeper.running
        if isinstance(running, HostProcess) and await run_in_thread(
            lambda: bool(running.lacking(plan.folder, os.environ))
        ):
            await own.note_launch(running=UNKNOWN)
            self._check_due = True
        if self._keeper.state in (CONNECTED, DEGRADED):
            self._report_start(own)

    async def _inspector_url(self, port: int | None) -> str:
        """Open the inspector for a program that asks for it on the control channel; return the answer."""
        opened = await self._open_inspector(port)
        if isinstance(opened, Issue):
            raise RpcError(NO_ANSWER, f"{opened.message} {opened.remediation}")
        return opened

    async def _close_authority(self) -> None:
        """Close the authority, and run the calls that wait for it."""
        self._close_queue()
        self._history = self._own.history if self._own is not None else self._history
        parts = (self._channel, self._remote, self._own)
        self._plan = self._channel = self._channel_path = self._remote = self._own = None
        await asyncio.gather(*(part.close() for part in parts if part is not None))

    def _close_queue(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            self._forwarding.queue = None
            queue.close()

    def _server_name(self, plan: WatchedCode) -> str:
        known = self._options.command or (self._connected and isinstance(self._keeper.upstream, ConfiguredUpstream))
        if not known and (plan.config.names_server or plan.config.hot_reload.server_name):
            return f"the server '{server_name(plan.config)}'"
        name = self._keeper.named
        return name[0].lower() + name[1:]

    def _publish_status(self) -> None:
        """Let the subscribers of the proxy's state read `status` again."""
        self._state.learn(control_channel=self._channel_path)

    # Restarts by us.

    async def _restart(self) -> RestartResult:
        plan = self._plan
        assert plan is not None
        assert self._queue is not None
        assert self._own is not None
        if self._restarter is None:
            from .restart_or_swap import Restarter  # few proxies need it, and none when it starts

            self._restarter = Restarter(self._keeper)
        self._restarting = True
        try:
            return await self._restarter.restart(
                plan.config.hot_reload,
                self._queue,
                self._channel,
                new_code=self._own.starts_new_code,
                refusal=lambda: self._restart_refusal(plan),
            )
        finally:
            self._restarting = False

    def _on_own_status(self) -> None:
        """Called when the status of our authority has changed; a restart may be over, or the user has agreed."""
        if self._own is not None and bool(self._own.refused) != self._refused:
            self._refused = not self._refused
            self._state.learn(hot_reload_off=NOT_TRUSTED if self._refused else None)
        if self._queue is not None and self._own is not None and not self._own.restarting:
            self._queue.resume(self._own.last_restart)
            if self._plan_waits:
                self._plan_waits = False
                self.update()
        self._publish_status()

    # Restarts by the owner of the Host.

    async def _restart_announced(self) -> None:
        if self._queue is not None:
            await self._queue.pause(hold=False)

    def _restarted(self, outcome: RestartResult) -> None:
        """Resume calls, unless our own connection to the new Host is still to come."""
        connects = outcome.ok and self._keeper.started and not self._connected
        if self._queue is not None and not connects:
            self._queue.resume(outcome)


def _of_package(plan: WatchedCode) -> Config:
    """The config, with the package of a typed command as the folder of its server."""
    root = plan.packages[0].root
    return plan.config if plan.config.names_server else plan.config.replace(path=root, server_root=root)


def _watch_plan(options: ProxyOptions, keeper: Keeper, before: WatchedCode | None) -> WatchedCode | str:
    """The code to watch now, or why none is watched, as the end of a sentence. Reads the disk."""
    workspace = keeper.proxy_state.workspace
    plan = find_watched_code(options, workspace, os.environ, before and before.replace(channel=None))
    running, upstream = keeper.running, keeper.upstream
    if isinstance(plan, str):
        return plan
    if upstream is None:
        return NOT_YET
    if not isinstance(upstream, HostUpstream):
        return plan
    if not isinstance(running, HostProcess):  # the owner of the next Host is not known yet
        return before if before is not None and before.replace(channel=None) == plan else NOT_YET
    if running.kind is not HostKind.BUNDLED:
        return "only the bundled Host is reloaded"
    return plan.replace(channel=None if running.owned else running.control_channel)


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    """Log an unexpected error; hot reload must not break the proxy."""
    try:
        await work()
    except Exception:
        log.write(ERROR, f"hot reload failed:\n{traceback.format_exc()}")


def _client_app(plan: WatchedCode, state: str, status_changed: Callable[[], None]) -> ClientApp | None:
    client, folder = plan.config.client, plan.config.client_folder
    if client is None or folder is None:
        return None
    from ...hotreload.client_app import ClientApp

    return ClientApp(client, folder, os.environ, state, status_changed)
