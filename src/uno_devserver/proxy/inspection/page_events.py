"""The other servers of this machine, for whoever looks on: the Hosts in the registry, and the proxies.

The registry is not changed by looking: stale entries stay, for those whose business they are. Waits for the disk.

What a page is told of this proxy: a snapshot when it comes, and every change while it looks.

While nobody looks, nothing runs: no timer, no task, and calls are not followed; only the log remembers its last lines.
Nothing here takes the loop for more than a few milliseconds, and nobody whose call is relayed waits for it.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import TYPE_CHECKING

from ... import __version__
from ...inspector.feed import LINGER_SECONDS, Feed
from ...instances.host_kind import host_kind
from ...instances.membership import of_workspace
from ...instances.survey import survey
from ...protocol.running import Tasks
from ...system.folders import folders
from ...system.log import log
from ...system.processes import command_line, process_started
from ...system.threads import apart
from ..health.status_file import running_proxies
from .call_recorder import Recorder
from .log_feed import LogFeed, OutputTail

if TYPE_CHECKING:
    from ...instances.entries import Server
    from ...system.folders import Folders
    from ...workspace.resolver import Workspace
    from ..calls.service import ProxyService
    from ..health.status_file import Status
    from ..state import ProxyState


MOST = 100  # of each; nobody has that many, but a folder may be full of anything
_SHOWN = ("processId", "state", "status", "directory", "solution", "clients", "toolCount", "inspector")


def machine_servers(folders: Folders, workspace: Workspace | None) -> dict[str, object]:
    """`workspace`: the present one, whose Hosts are marked."""
    found = survey(folders.registry, removing=False).running[:MOST]
    ours = of_workspace(found, workspace) if workspace is not None else ()
    return {
        "servers": [_server(server, server in ours) for server in found],
        "proxies": [_proxy(status) for status in running_proxies(folders.state)[:MOST]],
    }


def _server(server: Server, in_workspace: bool) -> dict[str, object]:
    """As `list --json` has it, without the chain of processes."""
    return {
        "processId": server.process_id,
        "port": server.port,
        "mcpEndpoint": server.mcp_endpoint,
        "startTime": server.started,
        "solutionPath": server.solution,
        "workspaceDirectory": server.workspace,
        "isInWorkspace": in_workspace,
        "hostKind": host_kind(command_line(server.process_id)),
    }


def _proxy(status: Status) -> dict[str, object]:
    return {**{name: status.get(name) for name in _SHOWN}, "own": status.get("processId") == os.getpid()}


HEALTH_SECONDS = 0.1  # between two reports; a start passes five states in less
SERVERS_SECONDS = 5.0  # between two looks at the machine's other servers
OUTPUT_SECONDS = 1.0  # between two looks at what the server prints
DISK_SECONDS = 2.0  # a disk that does not answer keeps no page from what is known without it

_NONE: dict[str, object] = {"servers": [], "proxies": []}
_LIST = "notifications/{}/list_changed"
_LISTS = {_LIST.format(name): name for name in ("tools", "resources", "prompts")}


class PageEvents:
    def __init__(self, state: ProxyState, service: ProxyService, *, linger_seconds: float = LINGER_SECONDS) -> None:
        self._state = state
        self._service = service
        self._loop = asyncio.get_running_loop()
        self.feed = Feed(self._snapshot, self._looked, linger_seconds)
        self._calls = Recorder(lambda call: self.feed.tell("call", call))
        self._journal = LogFeed(lambda lines: self.feed.tell("log", lines))
        self._output = OutputTail()
        self._tasks = Tasks()
        self._started_at: float | None = None
        self._look: asyncio.Future[tuple[float | None, dict[str, object]]] | None = None  # at them, under way
        self._others: dict[str, object] | None = None  # the servers of this machine, as they were told last
        self._next_health: asyncio.TimerHandle | None = None
        self._last_health = 0.0
        self._closed = False

    def lists_changed(self, method: str) -> None:
        """What clients are notified of."""
        if method in _LISTS:
            self.feed.tell("lists", {"changed": [_LISTS[method]]})

    def close(self) -> None:
        """Nothing is followed any more, whoever still looks."""
        self._looked(False)
        self._closed = True
        self._journal.close()

    async def _snapshot(self) -> dict[str, object]:
        """All but what the disk knows as of the moment that it is asked for: the rest is told behind it."""
        workspace, now = self._workspace(), time.time()
        known = {
            "version": __version__,
            "processId": os.getpid(),
            "home": os.path.expanduser("~"),
            "directory": workspace.working_directory if workspace else self._state.facts.options.directory,
            "solution": workspace.solution if workspace else None,
            "name": self._state.facts.upstream_name,
            "now": now,
            "health": self._state.report(),
            "calls": self._calls.documents(),
            "log": self._journal.lines(),
        }
        others = self._others or await self._look_around()
        return {**known, "startedAt": self._started_at or now, **others}

    # Who looks.

    def _looked(self, somebody: bool) -> None:
        if self._closed:
            return
        self._service.forwarding.observe(self._calls if somebody else None)
        (self._state.subscribe if somebody else self._state.unsubscribe)(self._learned)
        self._calls.live = somebody
        self._journal.live = somebody
        if somebody:
            self._tasks.start(self._watch_others())
            self._tasks.start(self._follow_output())
            return
        self._tasks.cancel()
        self._others = None
        if self._next_health is not None:
            self._next_health.cancel()
            self._next_health = None

    # How it is.

    def _learned(self) -> None:
        if self._next_health is None:
            self._next_health = self._loop.call_at(self._last_health + HEALTH_SECONDS, self._tell_health)

    def _tell_health(self) -> None:
        self._next_health = None
        self._last_health = self._loop.time()
        self.feed.tell("health", self._state.report())

    # What lies on disk.

    async def _watch_others(self) -> None:
        while True:
            await asyncio.sleep(SERVERS_SECONDS)
            before = self._others or _NONE
            if await self._look_around() != before:
                self.feed.tell("servers", self._others)

    async def _look_around(self) -> dict[str, object]:
        """What was known before, where the disk does not answer."""
        if self._look is None:  # one at a time: each is a thread, which hangs as long as the disk
            self._look = asyncio.ensure_future(apart(partial(_looked_around, self._workspace())))
        look = self._look
        await asyncio.wait([look], timeout=DISK_SECONDS)
        if look.done():
            if self._look is look:
                self._look = None
            try:
                self._started_at, self._others = look.result()
            except Exception as error:  # whatever lies there: the page shows the rest
                log.debug(f"the servers of this machine cannot be told: {error!r}")
        return self._others or _NONE

    async def _follow_output(self) -> None:
        known = self._state.facts.last_end
        while True:
            upstream, ending = self._state.facts.upstream, self._state.facts.last_end
            if upstream is not None and upstream.log_file is not None:
                last_words = ending.last_lines if ending is not None and ending is not known else ()
                self._journal.printed(await apart(partial(self._output.read, upstream.log_file, last_words)))
                if upstream.process_id is not None:  # the next one has its file
                    known = ending
            await asyncio.sleep(OUTPUT_SECONDS)

    def _workspace(self) -> Workspace | None:
        return self._state.workspace


def _looked_around(workspace: Workspace | None) -> tuple[float | None, dict[str, object]]:
    """When this process started, and the servers of the machine."""
    return process_started(os.getpid()), machine_servers(folders(), workspace)
