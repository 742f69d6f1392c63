"""The engine: creates the parts of the proxy behind the front, connects and closes them. They share one event loop.

The keeper reports events of the upstream to the engine. The workspace controller and the reloader also call other parts
directly. Closing is bounded in time, whatever hangs.
"""

from __future__ import annotations

import _thread
import asyncio
import traceback
from typing import TYPE_CHECKING

from ..issues import UserError
from ..protocol.jsonrpc import RpcNotification
from ..protocol.server.modern import ModernSession
from ..protocol.versions import MODERN_VERSIONS
from ..system.event_loop import Tasks, run_in_thread
from ..system.folders import folders
from ..system.log import ERROR, log
from ..workspace.addins import workspace_addins
from ..workspace.global_json import read_global_json
from .announcements import Announcements
from .calls.relay import CallRelay
from .calls.service import ProxyService
from .front.session import StdioSession
from .inspection.http_listeners import HttpListeners
from .lists.publisher import ListPublisher
from .reload.watched_code import unknown_code
from .upstream.keeper import UNKNOWN_CLIENT, Keeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..protocol.client.connection import Peer
    from ..protocol.jsonrpc import RpcRequest, RpcResponse
    from ..protocol.peer_info import ClientInfo
    from ..protocol.service import Params, Session
    from .first_start import FirstStart
    from .front.output import ClientOutput
    from .options import ProxyOptions
    from .reload.reloader import Reloader
    from .state import ProxyState
    from .upstream.base import RunningUpstream
    from .workspace.controller import WorkspaceController

CLOSE_SECONDS = 0.23  # the process gives the engine 0.25 s
READY_SECONDS = 1.0  # some clients never send `notifications/initialized`
TOOLS_SECONDS = 30.0  # --mcp-wait-tools-list: what clients allow for their start
FIND_CODE_SECONDS = 1.0  # the most that a slow disk may delay a start; finding the code usually takes microseconds
FIRST_CALLS_SECONDS = 0.02  # a pause after the start, for the calls that waited for it
QUIET_SECONDS = 0.2  # first calls come as soon as the upstream is connected; following the workspace can wait
LONG_START_SECONDS = 0.3  # most starts are over by then; the status file shows the progress of longer ones
NAME_CHARACTERS, MOST_CLIENTS = 100, 20  # limits of the client names in health report and status file
CATALOGUE_SECONDS = 60.0  # --force-generate-tool-cache: a Host has 30 s to start, and its add-ins as long to load


class Engine:
    """Implements `front.first_answers.Engine` and `upstream.keeper.Owner`."""

    def __init__(
        self,
        options: ProxyOptions,
        state: ProxyState,
        write: Callable[[bytes], None],
        output: ClientOutput,
        first: FirstStart,
    ) -> None:
        state.timeline.mark("loop")
        self._options = options
        self._state = state
        self._first = first
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._over = asyncio.Event()
        self._client: ClientInfo | None = None  # the client on stdio, as it last introduced itself
        self._unready: asyncio.TimerHandle | None = None  # set while a client has introduced itself, but is not ready
        self._saving = self._following = False  # whether these tasks are due, after the first calls
        self._announcements = Announcements(self._say)
        self._publisher = ListPublisher(
            options, state, folders().state, broadcast=self._broadcast, changed=self._save_catalogue_soon
        )
        state.learn(state=first.lifecycle.state, tool_count=self._publisher.tool_count)
        self.keeper = Keeper(
            self,
            first.lifecycle,
            first.launcher,
            state,
            self._publisher,
            self._announcements,
            first.upstream,
            named=options.upstream_name,
            comes_back=options.url is not None,
        )
        self._service = ProxyService(
            self.keeper,
            state,
            resource_updated=self._resource_updated,
            roots_changed=self._roots_changed,
            wait_calls=options.wait_calls,
        )
        self._session = StdioSession(self._service, write)
        self.relay = CallRelay(state, self.keeper, self._service, self._session, output)
        self._listeners = HttpListeners(options, self._service, state)
        self._reloader: Reloader | None = None  # None until hot reload has begun
        self.workspace: WorkspaceController | None = None  # None if the upstream does not depend on one
        if first.unknown_code is not None:
            state.learn(hot_reload_off=first.unknown_code)
            self._publisher.adapt(hot_reload=False, lists_follow=True)
        if first.decisions is not None:
            from .workspace.controller import WorkspaceController

            self.workspace = WorkspaceController(
                options,
                first.decisions,
                first.resolved_at,
                first.channel_name,
                keeper=self.keeper,
                state=state,
                publisher=self._publisher,
                forwarding=self._service.forwarding,
                announcements=self._announcements,
                changed=self._workspace_changed,
                reload_code=self._reload_code,
            )
        first.launcher.report_to(self._loop, self.keeper.reported)

    async def run(self) -> None:
        """Serve until `stop` is called."""
        self._loop.call_later(LONG_START_SECONDS, self._state.first_start_takes_long)
        if self.workspace is not None:
            self.workspace.begin()
        # For a Host, hot reload begins after the start, or has begun before a second attempt.
        if not self._first.is_host and self._first.unknown_code is None and self._reloader is None:
            self._service.forwarding.await_reloader(self._begin_reload())
        elif self.workspace is not None and self.keeper.running is None:
            _thread.start_new_thread(_read_ahead, (self.workspace.workspace.working_directory,))
        if self._state.holds_tools:
            self._loop.call_later(TOOLS_SECONDS, self._release_tools)
        await self._listeners.open()
        await self._over.wait()

    def stop(self) -> None:
        self._over.set()

    async def make_catalogue(self) -> UserError | None:
        """--force-generate-tool-cache: save the lists of the upstream; return an error if it does not connect."""
        keeper = self.keeper
        keeper.met(UNKNOWN_CLIENT)
        startup_seconds = keeper.upstream.startup_seconds if keeper.upstream is not None else 0.0
        seconds = CATALOGUE_SECONDS + keeper.limits.additional_seconds(startup_seconds)
        if keeper.upstream is not None and await keeper.until_connected(seconds):
            await self._save_catalogue()
            return None
        issues = (*self._state.facts.issues, *(self.workspace.workspace.issues if self.workspace else ()))
        why, step = f"{keeper.named} did not start.", "Look at its output."
        if issues:  # after "; the", a step says what the proxy does by itself, which does not apply here
            why, step = issues[0].message, issues[0].remediation.partition("; the ")[0].rstrip(".") + "."
        return UserError("NoCatalogue", f"No tool catalogue was made. {why}", f"{step} Then run this again.")

    async def close(self) -> None:
        """Close all parts at the same time; return after `CLOSE_SECONDS` even if some are not closed."""
        self._tasks.cancel()
        self.relay.close()
        if self.workspace is not None:
            self.workspace.close()
        parts = (self.keeper, self._session, self._service, self._listeners, self._reloader)
        saving = [self._save_catalogue()] if self._saving else []  # before the keeper forgets the server
        closing = [*saving, run_in_thread(self._state.close), *(part.close() for part in parts if part is not None)]
        await asyncio.wait([asyncio.ensure_future(one) for one in closing], timeout=CLOSE_SECONDS)

    # Messages from the front.

    def take(self, message: RpcRequest | RpcNotification | RpcResponse) -> None:
        try:
            self._session.take(message)
            if isinstance(message, RpcNotification) and message.method == "notifications/initialized":
                self._client_ready()
        except Exception:  # a bug in the proxy, which must not stop the messages after it
            log.write(ERROR, f"a message could not be processed:\n{traceback.format_exc()}")

    def client_met(self, client: ClientInfo) -> None:
        self._session.introduce(client)
        self._client = client
        self._open_ahead()
        self._service.conversations.met(client)
        self.keeper.met(client)
        clients = dict.fromkeys((*self._state.facts.clients, (client.name or "unknown")[:NAME_CHARACTERS]))
        self._state.learn(clients=tuple(clients)[-MOST_CLIENTS:])
        if client.protocol_version in MODERN_VERSIONS:
            self._roots_changed(None)
        elif self._unready is None:
            self._unready = self._loop.call_later(READY_SECONDS, self._client_ready)

    def list_read(self, *, tools: bool) -> None:
        self.keeper.list_read()
        self._service.forwarding.list_read()
        if tools and (session := self._client_session()) is not None:
            self._service.tools_listed(session)

    def _client_ready(self) -> None:
        """Ask for the roots of the client, which has finished its handshake and may be sent requests."""
        if self._unready is not None:
            self._unready.cancel()
            self._unready = None
            self._roots_changed(self._session.session)

    def _roots_changed(self, session: Session | None) -> None:
        if self.workspace is not None:
            self.workspace.met(session)

    # Notifications to all clients.

    def _broadcast(self, method: str, params: Params | None = None) -> None:
        self._session.broadcast(method, params)
        self._listeners.broadcast(method, params)

    def _resource_updated(self, uri: str) -> None:
        self._session.resource_updated(uri)
        self._listeners.resource_updated(uri)

    def _say(self, method: str, params: Params) -> None:
        self._service.conversations.notify(method, params)

    # Events of the upstream. Implements `upstream.keeper.Owner`.

    @property
    def shared_peer(self) -> Peer:
        return self._service.conversations

    def upstream_changed(self) -> None:
        self._service.conversations.renew()
        self._open_ahead()

    def _open_ahead(self) -> None:
        """Connect the client on stdio to the upstream before its first call, if both are known."""
        session = self._client_session()
        if session is not None:
            self._service.conversations.open_ahead(session)

    def _client_session(self) -> Session | None:
        """The session of the client on stdio, if it is known."""
        client = self._client
        modern = client is not None and client.protocol_version in MODERN_VERSIONS
        return ModernSession(client) if client is not None and modern else self._session.session

    def upstream_replaced(self) -> None:
        self._service.conversations.renew(old_answers=True)

    async def until_unused(self, generation: int) -> None:
        await self._service.conversations.until_unused(generation)

    async def before_launch(self) -> None:
        if self._reloader is None:
            await self._begin_reload_if_known()
        if self._reloader is not None:
            await self._reloader.before_launch()

    def ends_on_purpose(self) -> bool:
        return self._reloader is not None and self._reloader.ends_on_purpose()

    def launched(self, running: RunningUpstream | None) -> None:
        if self.workspace is not None:
            self.workspace.launched(running)

    def lists_were_read(self) -> None:
        self._save_catalogue_soon()

    def start_settled(self) -> None:
        self._release_tools()
        self._save_catalogue_soon()
        if not self._following:
            self._following = True
            self._tasks.start(self._follow_workspace())
        self._listeners.start_settled()
        if self._reloader is not None:
            self._reloader.start_settled()
        elif self._first.unknown_code is not None:
            self._loop.call_later(FIRST_CALLS_SECONDS, lambda: self._tasks.start(self._begin_reload_if_known()))
        else:
            reloader_known = self._begin_reload()
            facts = self._state.facts
            found = facts.upstream is not None and not facts.upstream.owned  # its owner may watch the code
            if facts.trusted or found:  # otherwise no code of the workspace runs
                self._service.forwarding.await_reloader(reloader_known)

    # Events of the workspace.

    def _workspace_changed(self) -> None:
        if self._reloader is not None:
            self._reloader.update()
            self._listeners.open_if_wanted()

    def _reload_code(self) -> bool:
        return self._reloader is not None and self._reloader.reload()

    # Hot reload.

    def _begin_reload(self) -> asyncio.Task[None]:
        """Begin hot reload; the returned task is done when it is known which proxy watches the code."""
        from .reload.reloader import Reloader

        self._reloader = Reloader(
            self._options,
            self._first.channel_name,
            self._first.content,
            keeper=self.keeper,
            forwarding=self._service.forwarding,
            open_inspector=self._listeners.inspector_url,
        )
        return self._reloader.update()

    async def _begin_reload_if_known(self) -> None:
        """Begin hot reload if it is known where the code is; otherwise its modules are not imported."""
        if self._first.unknown_code is not None:
            search = self._tasks.start(run_in_thread(lambda: unknown_code(self._options)))
            await asyncio.wait([search], timeout=FIND_CODE_SECONDS)
            if not search.done() or search.result() is not None:
                return
        if self._reloader is None:
            self._begin_reload()

    # After the first calls.

    def _release_tools(self) -> None:
        self._state.holds_tools = False

    def _save_catalogue_soon(self) -> None:
        if not self._saving:
            self._saving = True
            self._tasks.start(self._save_catalogue_later())

    async def _save_catalogue_later(self) -> None:
        await asyncio.sleep(FIRST_CALLS_SECONDS)
        self._saving = False
        await self._save_catalogue()

    async def _save_catalogue(self) -> None:
        server = self.keeper.server
        if server is not None:
            save = self._publisher.saver(server)
            global_json = self.workspace.workspace.global_json if self.workspace else None

            def save_for_sdk() -> tuple[float, str | None]:
                sdk = read_global_json(global_json).uno_sdk if global_json else None
                version = sdk.version if sdk else None
                return save(version), version

            written, version = await run_in_thread(save_for_sdk)
            self._state.learn(catalogue_written=written, catalogue_sdk=version)

    async def _follow_workspace(self) -> None:
        """Watch the workspace's files, and learn the state of the Host."""
        await asyncio.sleep(QUIET_SECONDS)
        self._following = False
        if self.workspace is not None:
            self.workspace.follow_disk()
            await self.workspace.ask_host()


def _read_ahead(folder: str) -> None:
    """Import, while a Host starts, the modules that are needed when it is connected."""
    from ..discovery import discover  # noqa: F401
    from .health import status_file  # noqa: F401
    from .reload import reloader  # noqa: F401

    if workspace_addins(folder):
        from ..hotreload import local_authority  # noqa: F401
        from ..hotreload.control import server  # noqa: F401
        from ..system import inotify  # noqa: F401
        from .calls import call_queue  # noqa: F401
