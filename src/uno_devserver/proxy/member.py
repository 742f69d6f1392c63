"""One server behind the proxy, with everything that keeps it: keeper, calls, hot reload, and for the main one its
workspace.

Most proxies have one. Where there are several, each has its own state, and nothing in one makes another wait: all run
in the engine's loop, and what may block runs in threads.
"""

from __future__ import annotations

import _thread
import asyncio
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from ..system.event_loop import Tasks, run_in_thread
from ..system.log import log
from ..workspace.addins import workspace_addins
from .announcements import Announcements
from .calls.forwarder import Forwarder
from .front.client_watch import sends_nothing
from .reload.watched_code import unknown_code
from .upstream.configured_command import ConfiguredUpstream
from .upstream.keeper import UNKNOWN_CLIENT, Keeper

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..issues import Issue
    from ..protocol.client.connection import Peer
    from ..protocol.peer_info import ClientInfo
    from ..protocol.service import Params, Session
    from ..workspace.config import Config
    from ..workspace.resolver import Workspace
    from .first_start import FirstStart
    from .lists.publisher import ListPublisher, ServerLists
    from .reload.reloader import Reloader
    from .state import ProxyState
    from .upstream.base import RunningUpstream, Upstream
    from .workspace.controller import WorkspaceController

FIND_CODE_SECONDS = 1.0  # the most that a slow disk may delay a start; finding the code usually takes microseconds
FIRST_CALLS_SECONDS = 0.02  # a pause after the start, for the calls that waited for it
RECONSIDER_SECONDS = 1.0  # the most that a request waits for it; reading the config takes milliseconds
QUIET_SECONDS = 0.2  # first calls come as soon as the upstream is connected; following the workspace can wait
FINISH_SECONDS = 10.0  # for calls under way, when another server is wanted, or none

_logged_server: ContextVar[str] = ContextVar("server", default="")  # whose tasks write to the log


class Owner(Protocol):
    """The engine, as a member sees it."""

    def client_session(self) -> Session | None: ...  # of the client on stdio, if it is known
    def resource_updated(self, uri: str) -> None: ...
    def lists_were_read(self) -> None: ...
    def start_settled(self) -> None: ...  # a start has succeeded, or failed for good
    def workspace_changed(self) -> None: ...  # the main server's workspace, or its config, may have changed
    async def inspector_url(self, port: int | None = None) -> str | Issue: ...


class Member:
    """Implements `upstream.keeper.Owner`."""

    def __init__(
        self, owner: Owner, first: FirstStart, state: ProxyState, publisher: ListPublisher, lists: ServerLists | None
    ) -> None:
        """`publisher` has the lists of the main server, `lists` those of a further one."""
        if first.options.server is not None:
            _logged_server.set(f"{first.options.server}: ")
            log.origin = _logged_server.get
        self.first = first
        self.options = options = first.options
        self.state = state
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._following = False  # whether following the workspace is due, after the first calls
        self.announcements = Announcements(self._say)
        self.keeper = Keeper(
            self,
            first.lifecycle,
            first.launcher,
            state,
            lists or publisher,
            self.announcements,
            first.upstream,
            named=options.upstream_name,
        )
        if sends_nothing():
            self.keeper.met(UNKNOWN_CLIENT)
        self.forwarding = Forwarder(self.keeper, state, owner.resource_updated, waits=options.wait_calls)
        self.conversations = self.forwarding.conversations
        self._reloader: Reloader | None = None  # None until hot reload has begun
        self.workspace: WorkspaceController | None = None  # None if the upstream does not depend on one
        self.lists = lists
        if first.unknown_code is not None:
            state.learn(hot_reload_off=first.unknown_code)
            self.keeper.publisher.adapt(hot_reload=False, lists_follow=True)
        if first.decisions is not None:
            from .workspace.controller import WorkspaceController

            self.workspace = WorkspaceController(
                options,
                first.decisions,
                first.resolved_at,
                first.channel_name,
                keeper=self.keeper,
                state=state,
                publisher=publisher,
                forwarding=self.forwarding,
                announcements=self.announcements,
                changed=self._workspace_changed,
                reload_code=self._reload_code,
            )
        else:
            state.workspace = first.workspace

    def follow_start(self) -> None:
        """Take the reports of the first start, which may be over. The owner must know this member by then."""
        self.first.launcher.report_to(self._loop, self.keeper.reported)

    def begin(self) -> None:
        """Begin what follows the first start."""
        if self.workspace is not None:
            self.workspace.begin()
        if self.keeper.upstream is None:
            return
        # For a Host, hot reload begins after the start, or has begun before a second attempt.
        if not self.first.is_host and self.first.unknown_code is None and self._reloader is None:
            self.forwarding.await_reloader(self._begin_reload())
        elif self.workspace is not None and self.keeper.running is None:
            _thread.start_new_thread(_read_ahead, (self.workspace.workspace.working_directory,))

    def configure(self, config: Config) -> None:
        """Apply the settings of a further server's entry that need no restart."""
        assert self.lists is not None
        self.lists.set(prefix=config.prefix, tools=config.tools)
        self.forwarding.waits = self.options.wait_calls or config.wait_calls
        self.forwarding.limit_silence(config.silence_seconds)

    async def reconsider(self) -> None:
        """Check what the user has agreed to by now, without waiting for the next look; bounded."""
        if self.workspace is not None:
            await self.workspace.reconsider()
        elif self._reloader is not None:
            await asyncio.wait([self._reloader.update()], timeout=RECONSIDER_SECONDS)

    def update_reloader(self) -> None:
        """Have hot reload read the config again."""
        if self._reloader is not None:
            self._reloader.update()

    @property
    def settled(self) -> bool:
        """Whether no start is under way."""
        return self.keeper.upstream is None or self.keeper.state.value in ("Connected", "Degraded", "Shutdown")

    def is_of(self, workspace: Workspace | None) -> bool:
        """Whether it was typed, or is an entry of this workspace's config."""
        own = self.state.workspace
        return own is None or (workspace is not None and own.working_directory == workspace.working_directory)

    async def replace(self, upstream: Upstream) -> None:
        """Start this upstream instead of the present one, when its calls are over or have had time."""
        await self._let_calls_finish()
        self.keeper.begin(upstream)

    async def leave(self) -> None:
        """Close it, because it is not served any more, when its calls are over or have had time."""
        await self._let_calls_finish()
        await self.close()

    async def _let_calls_finish(self) -> None:
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self.keeper.until_unused()
        except TimeoutError:
            pass

    async def close(self) -> None:
        self._tasks.cancel()
        if self.workspace is not None:
            self.workspace.close()
        parts: list[Awaitable[None]] = [self.keeper.close(), self.conversations.close()]
        if self._reloader is not None:
            parts.append(self._reloader.close())
        await asyncio.gather(*parts)

    def met(self, client: ClientInfo) -> None:
        """A client has introduced itself."""
        self._open_ahead()
        self.conversations.met(client)
        self.keeper.met(client)

    def _say(self, method: str, params: Params) -> None:
        self.conversations.notify(method, params)

    # Events of the upstream. Implements `upstream.keeper.Owner`.

    @property
    def shared_peer(self) -> Peer:
        return self.conversations

    def upstream_changed(self) -> None:
        self.conversations.renew()
        self._open_ahead()

    def _open_ahead(self) -> None:
        """Connect the client on stdio to the upstream before its first call, if both are known."""
        session = self._owner.client_session()
        if session is not None:
            self.conversations.open_ahead(session)

    def upstream_replaced(self) -> None:
        self.conversations.renew(old_answers=True)

    async def until_unused(self, generation: int) -> None:
        await self.conversations.until_unused(generation)

    async def before_launch(self) -> None:
        if self._reloader is None:
            await self._begin_reload_if_known()
        if self._reloader is not None:
            await self._reloader.before_launch()

    async def runs_current_code(self) -> bool:
        return self._reloader is None or await self._reloader.runs_current_code()

    def ends_on_purpose(self) -> bool:
        return self._reloader is not None and self._reloader.ends_on_purpose()

    def launched(self, running: RunningUpstream | None) -> None:
        upstream = self.keeper.upstream
        if self.workspace is not None:
            self.workspace.launched(running)
        elif isinstance(upstream, ConfiguredUpstream):
            self.state.learn(trusted=upstream.trusted, refusal=upstream.refusal)
            self.state.blame("launch", upstream.issues)

    def lists_were_read(self) -> None:
        self._owner.lists_were_read()

    def start_settled(self) -> None:
        self._owner.start_settled()
        if not self._following and self.workspace is not None:
            self._following = True
            self._tasks.start(self._follow_workspace())
        if self._reloader is not None:
            self._reloader.start_settled()
        elif self.first.unknown_code is not None:
            self._loop.call_later(FIRST_CALLS_SECONDS, lambda: self._tasks.start(self._begin_reload_if_known()))
        else:
            reloader_known = self._begin_reload()
            facts = self.state.facts
            found = facts.upstream is not None and not facts.upstream.owned  # its owner may watch the code
            if facts.trusted or found or self.options.watch:  # otherwise no code of the workspace runs
                self.forwarding.await_reloader(reloader_known)

    async def _follow_workspace(self) -> None:
        """Watch the workspace's files, and learn the state of the Host."""
        await asyncio.sleep(QUIET_SECONDS)
        self._following = False
        if self.workspace is not None:
            self.workspace.follow_disk()
            await self.workspace.ask_host()

    # Hot reload.

    def _workspace_changed(self) -> None:
        self.update_reloader()
        self._owner.workspace_changed()

    def _reload_code(self) -> bool:
        return self._reloader is not None and self._reloader.reload()

    def _begin_reload(self) -> asyncio.Task[None]:
        """Begin hot reload; the returned task is done when it is known which proxy watches the code."""
        from .reload.reloader import Reloader

        self._reloader = Reloader(
            self.options,
            self.first.channel_name,
            self.first.content,
            keeper=self.keeper,
            forwarding=self.forwarding,
            open_inspector=self._owner.inspector_url,
        )
        return self._reloader.update()

    async def _begin_reload_if_known(self) -> None:
        """Begin hot reload if it is known where the code is; otherwise its modules are not imported."""
        if self.first.unknown_code is not None:
            search = self._tasks.start(run_in_thread(lambda: unknown_code(self.options)))
            await asyncio.wait([search], timeout=FIND_CODE_SECONDS)
            if not search.done() or search.result() is not None:
                return
        if self._reloader is None:
            self._begin_reload()


def _read_ahead(folder: str) -> None:
    """Import, while a Host starts, the modules that are needed when it is connected."""
    from ..discovery import discover  # noqa: F401
    from .health import status_file  # noqa: F401
    from .reload import reloader  # noqa: F401

    if workspace_addins(folder):
        from ..hotreload import local_authority  # noqa: F401
        from ..hotreload.control import server  # noqa: F401
        from .calls import call_queue  # noqa: F401

        if sys.platform == "linux":
            from ..system import inotify  # noqa: F401
