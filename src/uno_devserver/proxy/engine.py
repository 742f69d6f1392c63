"""The engine: creates the parts of the proxy behind the front, connects and closes them. They share one event loop.

There is a `Member` for the main server, and one for each further server that the user or the config names. The engine
has what the clients share: the session on stdio, the relay, the HTTP listeners, the catalogue. Closing is bounded in
time, whatever hangs.
"""

from __future__ import annotations

import asyncio
import traceback
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from ..issues import UserError, fatal, warning
from ..protocol.jsonrpc import RpcNotification
from ..protocol.server.modern import ModernSession
from ..protocol.versions import MODERN_VERSIONS
from ..system.event_loop import Tasks, run_in_thread
from ..system.folders import folders
from ..system.log import ERROR, log
from ..workspace.global_json import read_global_json
from ..workspace.trust import not_run
from .calls.relay import CallRelay
from .calls.service import ProxyService
from .first_start import start_further
from .front.session import StdioSession
from .inspection.http_listeners import HttpListeners
from .lists.publisher import NAMES_SECONDS, ListPublisher
from .member import FIRST_CALLS_SECONDS, Member
from .state import ProxyState
from .upstream.base import further_servers, workspace_upstream
from .upstream.configured_command import ConfiguredUpstream
from .upstream.keeper import UNKNOWN_CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..issues import Issue
    from ..protocol.jsonrpc import RpcRequest, RpcResponse
    from ..protocol.peer_info import ClientInfo
    from ..protocol.service import Params, Session
    from ..workspace.config import Config
    from .first_start import FirstStart
    from .front.output import ClientOutput
    from .options import ProxyOptions
    from .workspace.controller import WorkspaceController

CLOSE_SECONDS = 0.23  # the process gives the engine 0.25 s
READY_SECONDS = 1.0  # some clients never send `notifications/initialized`
TOOLS_SECONDS = 30.0  # --mcp-wait-tools-list: what clients allow for their start
LONG_START_SECONDS = 0.3  # most starts are over by then; the status file shows the progress of longer ones
NAME_CHARACTERS, MOST_CLIENTS = 100, 20  # limits of the client names in health report and status file
CATALOGUE_SECONDS = 60.0  # --force-generate-tool-cache: a Host has 30 s to start, and its add-ins as long to load


class Engine:
    """Implements `front.dispatcher.Engine` and `member.Owner`."""

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
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._over = asyncio.Event()
        self._client: ClientInfo | None = None  # the client on stdio, as it last introduced itself
        self._unready: asyncio.TimerHandle | None = None  # set while a client has introduced itself, but is not ready
        self._saving = False  # until the catalogue is written, which begins after the first calls
        self._unsaved = False  # whether lists were read since that began
        self._endpoints: tuple[StdioSession | HttpListeners, ...] = ()  # none until all parts are made
        self._publisher = ListPublisher(
            options, state, folders().state, broadcast=self._broadcast, changed=self.lists_were_read
        )
        state.learn(state=first.lifecycle.state, tool_count=self._publisher.tool_count, serves=first.serves)
        self._main = Member(self, first, state, self._publisher, None)
        self.keeper = self._main.keeper
        self._members: dict[str, Member] = {}  # the further servers
        self._updating = asyncio.Lock()
        self._refused: list[Issue] = []  # why further servers are not served, as last reported
        self._service = ProxyService(
            self._main.forwarding,
            resource_updated=self.resource_updated,
            roots_changed=self._roots_changed,
            reconsider=self._reconsider,
        )
        self._session = StdioSession(self._service, write)
        self.relay = CallRelay(state, self._service, self._session, output)
        self._listeners = HttpListeners(options, self._service, state)
        self._endpoints = (self._session, self._listeners)
        if not first.serves:
            self._publisher.adapt(hot_reload=False, lists_follow=True)
        self._publisher.serve([str(each.options.server) for each in first.members])
        for each in first.members:
            self._add(each, first.config)
        self._report_refusal(first.config, first.refusal)
        self._main.follow_start()

    async def run(self) -> None:
        """Serve until `stop` is called."""
        self._loop.call_later(LONG_START_SECONDS, self._state.first_start_takes_long)
        self._main.begin()
        if self._state.holds_tools:
            self._loop.call_later(TOOLS_SECONDS, self._release_tools)
        await self._listeners.open()
        await self._over.wait()

    def stop(self) -> None:
        self._over.set()

    async def make_catalogue(self) -> UserError | None:
        """--force-generate-tool-cache: save the lists of the upstream; return an error if it does not connect."""
        for member in self._all():
            member.keeper.met(UNKNOWN_CLIENT)
        connected = await asyncio.gather(*(_until_connected(member) for member in self._all()))
        if connected and all(connected):
            await self._save_catalogue()
            return None
        issues = (*self._state.facts.issues, *(self.workspace.workspace.issues if self.workspace else ()))
        issues += tuple(issue for member in self._members.values() for issue in member.state.facts.issues)
        why, step = f"{self.keeper.named} did not start.", "Look at its output."
        if issues:  # after "; the", a step says what the proxy does by itself, which does not apply here
            why, step = issues[0].message, issues[0].remediation.partition("; the ")[0].rstrip(".") + "."
        return UserError("NoCatalogue", f"No tool catalogue was made. {why}", f"{step} Then run this again.")

    async def close(self) -> None:
        """Close all parts at the same time; return after `CLOSE_SECONDS` even if some are not closed."""
        self._tasks.cancel()
        self.relay.close()
        members = (member.close() for member in (self._main, *self._members.values()))
        saving = [self._save_catalogue()] if self._saving else []
        parts = (*members, self._session.close(), self._listeners.close())
        closing = [*saving, run_in_thread(self._state.close), *parts]
        await asyncio.wait([asyncio.ensure_future(one) for one in closing], timeout=CLOSE_SECONDS)

    @property
    def workspace(self) -> WorkspaceController | None:
        return self._main.workspace

    def _all(self) -> list[Member]:
        """All members that have a server, the main one first."""
        return [*([self._main] if self._state.facts.serves else []), *self._members.values()]

    # The further servers.

    def _add(self, first: FirstStart, config: Config | None) -> None:
        name, state = str(first.options.server), ProxyState(first.options)
        state.subscribe(self._state.learn)
        lists = self._publisher.lists_of(name, state)
        context = copy_context()  # whose tasks write the server's name into the log
        member = context.run(Member, self, first, state, self._publisher, lists)
        self._members[name] = member
        self._service.add(name, member.forwarding)
        if config is not None and first.workspace is not None:
            member.configure(config.entry(name))
        if self._client is not None:
            member.met(self._client)
        self._state.members = tuple(each.state for each in self._members.values())
        self._loop.call_later(NAMES_SECONDS + 0.1, self._publisher.name_servers)
        context.run(member.follow_start)
        context.run(member.begin)

    def workspace_changed(self) -> None:
        self._listeners.open_if_wanted()
        self._tasks.start(self._update_members())

    async def _reconsider(self) -> None:
        """Check what the user has agreed to by now, without waiting for the watcher."""
        if self._refused:
            await self._update_members()
        for member in (self._main, *self._members.values()):
            if member.state.facts.awaits_agreement:
                await member.reconsider()

    async def _update_members(self) -> None:
        async with self._updating:
            try:
                await self._follow_config()
            except Exception:  # a bug in the proxy; what is served goes on
                log.write(ERROR, f"the servers of the config could not be updated:\n{traceback.format_exc()}")

    async def _follow_config(self) -> None:
        """Start, restart and stop further servers as the config says now, if the user has agreed to it."""
        # The engine of a typed command does not need it.
        from .workspace.controller import has_new_variables, is_outdated

        workspace = self._state.workspace
        wanted, config, refusal = await run_in_thread(lambda: further_servers(self._options, workspace))
        if not config.readable:
            return  # it is being written
        self._report_refusal(config, refusal)
        if refusal:
            return
        names = [str(options.server) for options in wanted]
        for name, member in list(self._members.items()):
            if name not in names or not member.is_of(workspace):
                self._remove(name)
        self._publisher.serve(names)
        for options in wanted:
            known = self._members.get(str(options.server))
            if known is None:
                first = await run_in_thread(partial(start_further, options, workspace))
                self._add(first, config)
            elif isinstance(upstream := known.keeper.upstream, ConfiguredUpstream) and workspace is not None:
                entry = config.entry(str(options.server))
                known.state.workspace = workspace
                known.configure(entry)
                if is_outdated(upstream, entry) or await has_new_variables(upstream, known.forwarding):
                    changed = f"{known.keeper.named} is started again: its settings were changed."
                    known.announcements.say("info", changed)
                    another = workspace_upstream(options, workspace, known.first.channel_name)
                    self._tasks.start(known.replace(another))
                known.update_reloader()
        self._members = {name: self._members[name] for name in names}
        self._state.members = tuple(each.state for each in self._members.values())
        self._state.learn()

    def _remove(self, name: str) -> None:
        member = self._members.pop(name)
        member.state.unsubscribe(self._state.learn)
        del self._service.members[name]
        log.info(f"The server '{name}' is not served any more: the config has no such entry, or it is disabled.")
        self._tasks.start(member.leave())

    def _report_refusal(self, config: Config | None, refusal: str) -> None:
        """Report why further servers are not served: the user has not agreed to them, or the config has none such."""
        names = [str(entry.name) for entry in config.servers if entry.enabled] if config is not None else []
        missing = [name for name in self._options.entries or () if name not in names]
        nothing_else = not self._members and not self._state.facts.serves
        issues: list[Issue] = []
        if refusal and config is not None:
            running = ", ".join(self._members)
            stay = f"; those that run stay ({running})" if running else ""
            what = f"What {config.path} says of its servers ({', '.join(names)})"
            issues.append(not_run(what, refusal + stay, nothing_else=nothing_else))
        if missing:
            message = f"There is no config with valid entries in 'servers' for: {', '.join(missing)}."
            issues.append((fatal if nothing_else else warning)("ConfigInvalid", message))
        for issue in issues:
            if issue not in self._refused:
                log.warn(f"{issue.message} {issue.remediation}")
        self._refused = issues
        self._state.blame("servers", tuple(issues))

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
        for member in (self._main, *self._members.values()):
            member.met(client)
        clients = dict.fromkeys((*self._state.facts.clients, (client.name or "unknown")[:NAME_CHARACTERS]))
        self._state.learn(clients=tuple(clients)[-MOST_CLIENTS:])
        if client.protocol_version in MODERN_VERSIONS:
            self._roots_changed(None)
        elif self._unready is None:
            self._unready = self._loop.call_later(READY_SECONDS, self._client_ready)

    def list_read(self, tools: bytes | None) -> None:
        for member in self._all():
            member.keeper.list_read()
            member.forwarding.list_read()
        if tools is not None and (session := self.client_session()) is not None:
            self._service.tools_listed(session, tools)

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
        for endpoint in self._endpoints:
            endpoint.broadcast(method, params)

    # For the members. Implements `member.Owner`.

    def resource_updated(self, uri: str) -> None:
        for endpoint in self._endpoints:
            endpoint.resource_updated(uri)

    def client_session(self) -> Session | None:
        """The session of the client on stdio, if it is known."""
        client = self._client
        modern = client is not None and client.protocol_version in MODERN_VERSIONS
        return ModernSession(client) if client is not None and modern else self._session.session

    async def inspector_url(self, port: int | None = None) -> str | Issue:
        return await self._listeners.inspector_url(port)

    def lists_were_read(self) -> None:
        """Save the catalogue soon."""
        self._unsaved = True
        if not self._saving:
            self._saving = True
            self._tasks.start(self._save_catalogue_later())

    def start_settled(self) -> None:
        self._publisher.name_servers()
        if all(member.settled for member in self._all()):
            self._release_tools()
        self.lists_were_read()
        self._listeners.start_settled()

    # After the first calls.

    def _release_tools(self) -> None:
        self._state.holds_tools = False

    async def _save_catalogue_later(self) -> None:
        await asyncio.sleep(FIRST_CALLS_SECONDS)
        while self._unsaved:
            self._unsaved = False
            await self._save_catalogue()
        self._saving = False

    async def _save_catalogue(self) -> None:
        if any(member.state.facts.lists_fresh for member in self._all()):
            save = self._publisher.saver()
            global_json = self.workspace.workspace.global_json if self.workspace else None

            def save_for_sdk() -> tuple[float, str | None]:
                sdk = read_global_json(global_json).uno_sdk if global_json else None
                version = sdk.version if sdk else None
                return save(version), version

            written, version = await run_in_thread(save_for_sdk)
            self._state.learn(catalogue_written=written, catalogue_sdk=version)


async def _until_connected(member: Member) -> bool:
    keeper = member.keeper
    startup_seconds = keeper.upstream.startup_seconds if keeper.upstream is not None else 0.0
    seconds = CATALOGUE_SECONDS + keeper.limits.additional_seconds(startup_seconds)
    return keeper.upstream is not None and await keeper.until_connected(seconds)
