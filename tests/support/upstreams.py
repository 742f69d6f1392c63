"""An upstream that does what a test says, and a keeper with everything around it; no process, no socket, no waiting."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from support.mcp_peers import TestPeer
from support.waiting import until
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.protocol.client.connection import Connection, ConnectionLost, Peer, PendingCall, ServerDescription
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import Params
from uno_devserver.proxy.announcements import Announcements
from uno_devserver.proxy.calls.service import ProxyService
from uno_devserver.proxy.lists.catalogue import own_tool_facts
from uno_devserver.proxy.lists.merge import Offered, merged
from uno_devserver.proxy.lists.publisher import ListPublisher
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.reload.reloader import Reloader
from uno_devserver.proxy.reload.restart_or_swap import Restarter
from uno_devserver.proxy.state import ProxyState
from uno_devserver.proxy.upstream.base import Ending, RunningUpstream, StartFailure, Upstream
from uno_devserver.proxy.upstream.keeper import Keeper
from uno_devserver.proxy.upstream.launcher import Launcher, UpstreamObserver
from uno_devserver.proxy.upstream.lifecycle import Lifecycle, Start, UpstreamLimits
from uno_devserver.proxy.workspace.controller import WorkspaceController

SWIFT = UpstreamLimits(
    backoff_seconds=(0.0, 0.001, 0.002),
    retry_seconds=0.0,
    find_again_seconds=0.01,
    hello_seconds=0.001,
    end_seconds=0.01,
)


class Lists:
    """What a scripted server answers to each list: pages of names, or an exception."""

    def __init__(self, **names: list[str]) -> None:
        self.names: dict[str, list[str] | Exception] = {"tools": ["one"], **names}
        self.reads = 0

    def answer(self, method: str, params: Params) -> dict[str, Any]:
        assert params == {}
        self.reads += method == "tools/list"
        member = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
        key = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(member, "name")
        found = self.names.get(member, [])
        if isinstance(found, Exception):
            raise found
        return {member: [{key: name} for name in found]}


class ScriptedConnection:
    def __init__(self, running: ScriptedRunning, peer: Peer, modern_first: bool) -> None:
        capabilities: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
        version = "2026-07-28" if modern_first else "2025-11-25"
        self.server = ServerDescription({"name": "scripted", "version": "9"}, capabilities, "Use it well.", version)
        self.peer = peer
        self.modern_first = modern_first
        self.closed = False
        self._running = running

    async def request(self, method: str, params: Params, peer: Peer) -> msgspec.Raw:
        await asyncio.sleep(0)
        if self._running.gone.done() or self.closed:
            raise ConnectionLost("It is gone.", sent=True)
        return msgspec.Raw(json.dumps(self._running.lists.answer(method, params)).encode())

    def send(self, call: PendingCall, name: str, params: bytes) -> bool:
        return False

    def flush(self) -> None: ...

    def cancel(self, call: PendingCall) -> None: ...

    async def notify(self, method: str, params: Params) -> None: ...

    async def watch(self, uris: frozenset[str]) -> dict[str, RpcError]:
        return {}

    async def set_level(self, level: str) -> None: ...

    async def close(self) -> None:
        self.closed = True


class ScriptedRunning(RunningUpstream):
    def __init__(self, lists: Lists | None = None, kind: HostKind = HostKind.BUNDLED) -> None:
        self.lists = lists or Lists()
        self.kind = kind
        self.process_id = 4711
        self.endpoint: str | None = None if kind is HostKind.COMMAND else "http://localhost:1/mcp"
        self.owned = True
        self.connections: list[ScriptedConnection] = []
        self.refusals: list[Exception] = []  # what the next attempts to connect meet
        self.gone: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.stops = 0
        self.checks = 0

    async def connect(self, peer: Peer, *, modern_first: bool) -> Connection:
        if self.refusals:
            raise self.refusals.pop(0)
        self.connections.append(ScriptedConnection(self, peer, modern_first))
        return self.connections[-1]

    async def ended(self) -> Ending:
        return await asyncio.shield(self.gone)

    def check_now(self) -> None:
        self.checks += 1

    async def stop(self, *, patient: bool = False) -> None:
        self.stops += 1

    def lacking(self, folder: str, environ: Mapping[str, str]) -> list[str]:
        """The add-ins of the workspace that it has not been told; a Host is asked this."""
        return []

    def die(self, reason: str = "it ended with exit code 3") -> None:
        self.gone.set_result(Ending(reason, 3, ("its last line",)))


class ScriptedUpstream(Upstream):
    """Each start takes the next outcome; the last one counts for all that follow."""

    def __init__(self, *outcomes: ScriptedRunning | StartFailure, stubborn: bool = False, remote: bool = False) -> None:
        self.outcomes = list(outcomes)
        self.remote = remote
        self.stubborn = stubborn  # cannot be given up
        self.starts = 0
        self.observers: list[UpstreamObserver] = []  # of each start
        self.renegotiations = 0
        self.gate = threading.Event()  # a start waits for it, or until it is given up
        self.gate.set()

    def start(self, observer: UpstreamObserver) -> ScriptedRunning:
        self.starts += 1
        self.observers.append(observer)
        observer.launching("a scripted server", 4711)
        while not self.gate.wait(0.005):
            if not self.stubborn and not observer.go_on():
                raise StartFailure()
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, StartFailure):
            raise outcome
        return outcome

    def renegotiate(self) -> None:
        self.renegotiations += 1


class Kept:
    """A keeper and its owner, which records what the keeper reports. Implements `upstream.keeper.Owner`.

    What a test puts beside the keeper (`service`, `reloader`, `workspace`) hears of it as the engine would tell it.
    """

    def __init__(
        self,
        folder: Path,
        upstream: ScriptedUpstream | None,
        options: ProxyOptions | None = None,
        *,
        limits: UpstreamLimits = SWIFT,
        begins: bool = True,
    ) -> None:
        options = options or ProxyOptions(str(folder), command=("serve",))
        self.broadcasts: list[str] = []
        self.messages: list[tuple[str, str]] = []
        self.changes = self.launches = 0
        self.ends_on_purpose_now = False
        self.shared_peer: Peer = TestPeer()
        self.service: ProxyService | None = None
        self.reloader: Reloader | None = None
        self.workspace: WorkspaceController | None = None
        lists, own_tools = merged(Offered(), own_tool_facts(options, None))
        self.state = ProxyState(options, lists=lists, own_tools=own_tools)
        self.publisher = ListPublisher(
            options, self.state, str(folder / "state"), broadcast=self.broadcasts.append, changed=lambda: None
        )
        self.announcements = Announcements(self._heard)
        self.lifecycle = Lifecycle(limits)
        self.launcher = Launcher(self.state.timeline)
        begun = upstream if begins else None
        self.keeper = Keeper(
            self,
            self.lifecycle,
            self.launcher,
            self.state,
            self.publisher,
            self.announcements,
            begun,
            named="The server",
            limits=limits,
        )
        self.restarter = Restarter(self.keeper)
        self.launcher.report_to(asyncio.get_running_loop(), self.keeper.reported)
        if begun is not None:
            for action in self.lifecycle.begin(asyncio.get_running_loop().time()):
                assert isinstance(action, Start)
                self.launcher.start(action.attempt, begun)

    @property
    def facts(self) -> Any:  # whose parts a test knows to be there
        return self.state.facts

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in json.loads(self.state.lists.tools) if tool["name"][:4] != "uno_"]

    async def until_state(self, name: str) -> None:
        await until(lambda: self.keeper.state.value == name, name)

    # What the keeper says.

    async def reconsider(self) -> None:
        if self.workspace is not None:
            await self.workspace.reconsider()

    def upstream_changed(self) -> None:
        self.changes += 1
        if self.service is not None:
            self.service.conversations.renew()

    def upstream_replaced(self) -> None:
        if self.service is not None:
            self.service.conversations.renew(old_answers=True)

    async def until_unused(self, generation: int) -> None:
        if self.service is not None:
            await self.service.conversations.until_unused(generation)

    async def before_launch(self) -> None:
        self.launches += 1
        if self.reloader is not None:
            await self.reloader.before_launch()

    async def runs_current_code(self) -> bool:
        return True

    def ends_on_purpose(self) -> bool:
        return self.ends_on_purpose_now or (self.reloader is not None and self.reloader.ends_on_purpose())

    def launched(self, running: RunningUpstream | None) -> None:
        if self.workspace is not None:
            self.workspace.launched(running)

    def lists_were_read(self) -> None: ...

    def start_settled(self) -> None:
        if self.reloader is not None:
            self.reloader.start_settled()

    def _heard(self, method: str, params: Mapping[str, Any]) -> None:
        assert method == "notifications/message"
        self.messages.append((params["level"], params["data"]))
