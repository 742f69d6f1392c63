"""Who is to be asked whether the code of the server has changed, and about what.

Hot reload in one proxy: who is asked whether the code is newer than what runs, and what a restart does.

It stands in the way of no first start: for a Host, whose add-ins are read within milliseconds, it begins when that is
connected. Where there is nothing to watch, calls are relayed as if it did not exist.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from functools import partial
from typing import TYPE_CHECKING

from ...hotreload.authority import Restarted
from ...hotreload.kept import UNKNOWN
from ...hotreload.on_disk import NoAnswer
from ...hotreload.wire import NO_ANSWER
from ...instances.host_kind import HostKind
from ...issues import Issue
from ...protocol.jsonrpc import RpcError
from ...protocol.running import Tasks
from ...system.folders import folders
from ...system.log import ERROR, log
from ...system.threads import apart
from ...system.values import Value
from ...workspace.addins import sources_key
from ...workspace.config import Strategy
from ...workspace.server_command import server_name
from ...workspace.trust import refusal
from ..state import ConnectionState
from ..upstream.configured import ConfiguredUpstream
from ..upstream.host import HostUpstream
from ..upstream.host_process import HostProcess
from .subject import NO_CONFIG, NOT_TRUSTED, Subject, content_at_launch, not_reloaded, subject_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...hotreload.channel import ControlChannel
    from ...hotreload.client import ClientProcess
    from ...hotreload.own_authority import OwnAuthority
    from ...hotreload.package import Package
    from ...hotreload.remote_authority import RemoteAuthority
    from ..calls.call_queue import CallQueue
    from ..calls.forwarding import Forwarding
    from ..engine import Announcements
    from ..lists.publisher import ListPublisher
    from ..options import Options
    from ..state import ProxyState
    from ..upstream.keeper import Keeper
    from ..workspace.controller import WorkspaceController


NOT_YET = "no server runs yet"


class Arrangement(Value):
    subject: Subject
    channel: str | None = None  # of the proxy that owns the Host; None: we ask ourselves


def wanted_of(
    options: Options, keeper: Keeper, controller: WorkspaceController | None, before: Arrangement | None
) -> Arrangement | str:
    """Looks at the disk. A text: why there is none, the end of a sentence. `before`: what there was until now."""
    workspace = controller.workspace if controller else None
    subject = subject_of(options, workspace, os.environ, before.subject if before else None)
    running, upstream = keeper.running, keeper.upstream
    if isinstance(subject, str):
        return subject
    if upstream is None:
        return NOT_YET
    if not isinstance(upstream, HostUpstream):
        return Arrangement(subject)
    if not isinstance(running, HostProcess):  # who will own the next one is not known yet
        return before if before is not None and before.subject == subject else NOT_YET
    if running.kind is not HostKind.BUNDLED:
        return "only the bundled Host is reloaded"
    return Arrangement(subject, None if running.owned else running.control_channel)


CONNECTED, DEGRADED = ConnectionState.CONNECTED, ConnectionState.DEGRADED
AGREED_SECONDS = 2.0  # between two looks at the config, and whether the user agrees, where nobody watches the workspace
LOOK_SECONDS = 1.0  # a start does not wait longer for a look at its code, which takes milliseconds as a rule
OWNER_SECONDS = 30.0  # for the owner of a Host to have launched it again; if it goes, that is known at once
PEERS_SECONDS = 5.0  # for the calls of other proxies to come to their end before their Host is restarted


class Reloader:
    def __init__(
        self,
        options: Options,
        channel_name: str,
        content: str | None,
        *,
        keeper: Keeper,
        workspace: WorkspaceController | None,
        forwarding: Forwarding,
        publisher: ListPublisher,
        state: ProxyState,
        announcements: Announcements,
        open_inspector: Callable[[int | None], Awaitable[str | Issue]],
    ) -> None:
        """`channel_name`: of our own control channel, should there be one. `content`: the code that runs, if known."""
        self._options = options
        self._channel_name = channel_name
        self._content = content
        self._content_of: tuple[Package, ...] | None = None  # whose that is; None: of the first start
        self._keeper = keeper
        self._workspace = workspace
        self._forwarding = forwarding
        self._publisher = publisher
        self._state = state
        self._announcements = announcements
        self._open_inspector = open_inspector
        self._tasks = Tasks()
        self._loop = asyncio.get_running_loop()
        self._next_look: asyncio.TimerHandle | None = None
        self._arranging = asyncio.Lock()
        self._arranged: Arrangement | None = None
        self._own: OwnAuthority | None = None
        self._remote: RemoteAuthority | None = None
        self._channel: ControlChannel | None = None
        self._queue: CallQueue | None = None
        self._replacing = False  # by ourselves, at this moment
        self._gave_up = keeper.state is DEGRADED  # a start has failed for good since the code was last looked at
        self._owners_restarts = 0  # that had been made when we were last connected
        state.follow_reloader(self)

    @property
    def _connected(self) -> bool:
        return self._keeper.state is CONNECTED

    def look(self) -> asyncio.Task[None]:
        """Something was found out, or has happened, that may decide whether code is reloaded, and by whom."""
        return self._tasks.start(_guarded(self._arrange))

    def reload(self) -> bool:
        """Look for new code without a call that asks for it; whether anybody watches it."""
        if self._own is not None:
            self._tasks.start(_guarded(partial(self._reload, self._own)))
        return self._own is not None

    async def _reload(self, own: OwnAuthority) -> None:
        try:
            if (await own.check(log.debug)).restart_due:
                await own.ready_to_restart()
        except NoAnswer:
            pass  # which was logged where it was asked for

    # What becomes of the upstream.

    async def before_launch(self) -> None:
        """The next upstream is about to be started: what it will read is what lies there now. Bounded."""
        self._content = None
        await asyncio.wait([self._tasks.start(_guarded(self._look_before))], timeout=LOOK_SECONDS)
        if self._remote is not None:  # which launches the next one itself, as a rule
            await asyncio.wait([self._tasks.start(self._remote.until_restarted())], timeout=OWNER_SECONDS)

    async def _look_before(self) -> None:
        await self._arrange()  # the user may have agreed to it a moment ago
        if self._own is not None:
            await self._own.launched()
        elif self._options.command:  # the user may agree while it runs
            self._content_of = None
            self._content = await apart(lambda: content_at_launch(self._options, None, os.environ))

    def start_settled(self) -> None:
        """A start has come to its end, well or not."""
        if self._own is not None and not self._replacing:
            self._tell_of_start(self._own)
            self._gave_up = self._keeper.state is DEGRADED
        if self._queue is not None and self._connected:
            self._queue.hold()
            if self._arranged is not None:
                self._queue.name = self._server_name(self._arranged.subject)
        if self._remote is not None and self._queue is not None:
            self._queue.resume()  # whatever the owner's restart has come to, as far as we are concerned
            self._owners_restarts = self._remote.restarts
        self.look()

    def _tell_of_start(self, own: OwnAuthority) -> None:
        (own.connected if self._connected else own.failed)()

    async def close(self) -> None:
        self._tasks.cancel()
        self._cancel_look()
        await self._undo()

    def _cancel_look(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()

    # Who is asked.

    async def _arrange(self) -> None:
        async with self._arranging:
            found = await apart(lambda: wanted_of(self._options, self._keeper, self._workspace, self._arranged))
            wanted, off = (None, found) if isinstance(found, str) else (found, None)
            before = self._arranged
            if wanted != self._arranged:
                await self._rearrange(wanted)
                self._tell()
            if self._options.command and (off != NO_CONFIG or self._next_look is not None):
                self._cancel_look()
                self._next_look = self._loop.call_later(AGREED_SECONDS, self.look)
                await self._tell_of_agreement(off, before)
            if off != self._state.facts.hot_reload_off:
                self._state.learn(hot_reload_off=off)
            if self._arranged is not None or self._connected:  # else it is not known yet
                lists_follow = self._keeper.started and not self._connected
                self._publisher.adapt(hot_reload=self._arranged is not None, lists_follow=lists_follow)
            if self._gave_up and self.reload():  # it may never have been built; without its tools, no call would tell
                self._gave_up = False

    async def _tell_of_agreement(self, off: str | None, before: Arrangement | None) -> None:
        """To the config of a typed command, which may change or be taken back while that runs."""
        if off != NOT_TRUSTED:
            if self._state.facts.trusted is False:
                self._state.learn(trusted=True)
        elif before is not None:
            folder = before.subject.folder
            why = await apart(lambda: refusal(folders().state, folder))
            self._announcements.say("warning", not_reloaded(why))
            self._state.learn(trusted=False, refusal=f"{why}; what runs stays")

    async def _rearrange(self, wanted: Arrangement | None) -> None:
        if self._own is not None and self._arranged is not None:  # what runs goes on, whoever is asked about it
            self._content, self._content_of = self._own.content, self._arranged.subject.packages
        await self._undo()
        if wanted is None:
            return
        self._arranged = wanted
        try:
            await self._begin(wanted)
        except Exception:
            await self._undo()  # and it is tried again when something has happened
            raise

    async def _begin(self, wanted: Arrangement) -> None:
        if wanted.channel is None:
            await self._ask_ourselves(wanted.subject)
        else:
            from ...hotreload.remote_authority import RemoteAuthority

            self._remote = RemoteAuthority(wanted.channel, self._restart_announced, self._restarted)
            self._owners_restarts = 0
        authority = self._own or self._remote
        assert authority is not None
        from ..calls.call_queue import CallQueue

        config = wanted.subject.config
        self._queue = CallQueue(
            authority,
            concurrency=config.concurrency or (None if config.path is None else 1),
            strategy=config.hot_reload.strategy,
            waits=lambda: self._forwarding.waits,
            observer=lambda: self._forwarding.observer,
            serves=lambda: self._connected,
            name=self._server_name(wanted.subject),
            source=wanted.subject.packages[0].root,
            status_seconds=config.hot_reload.status_timeout_ms / 1000,
        )
        self._forwarding.use_queue(self._queue)

    async def _ask_ourselves(self, subject: Subject) -> None:
        from ...hotreload.channel import ControlChannel
        from ...hotreload.kept import KeptDigests
        from ...hotreload.own_authority import OwnAuthority
        from ...system.pipes import PipeProblem

        state, hot_reload = folders().state, subject.config.hot_reload
        self._own = own = OwnAuthority(
            subject.packages,
            KeptDigests(state, subject.folder),
            os.environ,
            state,
            strategy=hot_reload.strategy,
            restart=self._restart,
            answers=lambda: self._keeper.until_connected(hot_reload.status_timeout_ms / 1000),
            client=_client(subject, state),
        )
        own.say, own.moved = self._announcements.say, self._moved
        await self._catch_up(own, subject)
        inspector = self._inspector_url
        self._channel = ControlChannel(self._channel_name, own, subject.packages, open_inspector=inspector)
        try:
            path = await self._channel.open()
        except PipeProblem as problem:
            log.warn(f"Other programs cannot ask for new code: {problem}")
            self._channel = path = None
        self._state.learn(control_channel=path)

    async def _inspector_url(self, port: int | None) -> str:
        """For somebody who asks on the control channel."""
        opened = await self._open_inspector(port)
        if isinstance(opened, Issue):
            raise RpcError(NO_ANSWER, f"{opened.message} {opened.remediation}")
        return opened

    async def _catch_up(self, own: OwnAuthority, subject: Subject) -> None:
        """What runs was launched before anybody was there to watch its code."""
        content, self._content = self._content, None
        if self._content_of not in (None, subject.packages):  # other files count by now
            content = None
        await own.launched(content)
        upstream = self._keeper.upstream
        launched = upstream.sources if isinstance(upstream, HostUpstream) else None
        # Looked at after the code was read, so that a save in between is seen by one of the two.
        if launched is not None and await apart(lambda: sources_key(subject.folder)) != launched:
            await own.launched(UNKNOWN)
        if self._keeper.state in (CONNECTED, DEGRADED):
            self._tell_of_start(own)

    async def _undo(self) -> None:
        """Nobody is asked any more; calls that wait are run."""
        if self._queue is not None:
            self._forwarding.use_queue(None)
            self._queue.close()
        parts = (self._channel, self._remote, self._own)
        await asyncio.gather(*(part.close() for part in parts if part is not None))
        self._arranged = self._queue = self._channel = self._remote = self._own = None

    def _server_name(self, subject: Subject) -> str:
        introduced = self._connected and isinstance(self._keeper.upstream, ConfiguredUpstream)
        if not introduced and (subject.config.names_server or subject.config.hot_reload.server_name):
            return f"the server '{server_name(subject.config)}'"
        name = self._keeper.named
        return name[0].lower() + name[1:]

    def _tell(self) -> None:
        """It stands otherwise than before; those who read it from the disk want to know."""
        self._state.learn(**({} if self._channel else {"control_channel": None}))

    def status(self) -> Mapping[str, object] | None:
        """At this moment, for the health report; from any thread."""
        if self._queue is None:  # calls do not ask for new code yet
            return None
        own = self._own
        return {"owner": False} if own is None else own.status()

    # A restart.

    async def _restart(self) -> Restarted:
        """Of our own upstream: nothing of ours or of other proxies runs on it, or what does may finish."""
        assert self._arranged is not None
        hot_reload = self._arranged.subject.config.hot_reload
        swaps, queue, channel = hot_reload.strategy is Strategy.SWAP, self._queue, self._channel
        assert queue is not None
        keeper, outcome = self._keeper, Restarted(False, "The restart was broken off.")
        self._replacing = True
        try:
            await queue.pause(hold=swaps)
            if channel is not None:
                await channel.announce_restart(PEERS_SECONDS)
            outcome = await (keeper.swap() if swaps else keeper.renew(hot_reload.restart_delay_ms / 1000))
            if outcome.ok:
                outcome = outcome.replace(problem=await self._not_loaded())
            return outcome
        finally:
            self._replacing = False
            if channel is not None:
                channel.announce_restarted(outcome)

    async def _not_loaded(self) -> str:
        """What is wrong with the add-ins of a Host that is connected, so that health knows it at once, too."""
        running = self._keeper.running
        if not isinstance(running, HostProcess):
            return ""
        host = await apart(running.probe)
        if host.connected and running is self._keeper.running:
            self._state.learn(host=host)
        return " ".join(addin.failure for addin in host.add_ins if addin.error is not None)

    def _moved(self) -> None:
        """The authority has something to tell: perhaps that a restart is over, with all that it has to write down."""
        if self._queue is not None and self._own is not None and not self._own.restarting:
            self._queue.resume()
        self._tell()

    def ends_on_purpose(self) -> bool:
        """Whether the owner of the Host restarts it, or has: the end of the old one may be noticed after that."""
        remote = self._remote
        return remote is not None and (remote.restarting or remote.restarts != self._owners_restarts)

    async def _restart_announced(self) -> None:
        """By the proxy that owns the Host."""
        if self._queue is not None:
            await self._queue.pause(hold=False)

    def _restarted(self, outcome: Restarted) -> None:
        """Our own connection is made anew by then, or is about to be: the end of the old Host was noticed."""
        comes = outcome.ok and self._keeper.started and not self._connected
        if self._queue is not None and not comes:
            self._queue.resume()


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    """A defect of ours, or a disk that does not answer: code is not reloaded then, and nothing else is lost."""
    try:
        await work()
    except Exception:
        log.write(ERROR, f"hot reload failed:\n{traceback.format_exc()}")


def _client(subject: Subject, state: str) -> ClientProcess | None:
    client, folder = subject.config.client, subject.config.client_folder
    if client is None or folder is None:
        return None
    from ...hotreload.client import ClientProcess

    return ClientProcess(client, folder, os.environ, state)
