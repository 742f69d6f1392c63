"""The events of the inspector page: a snapshot of this proxy when a page opens, and every change while it is open.

While no page is open, nothing runs and calls are not recorded; only the last lines of the log are kept. Nothing here
occupies the loop for more than a few milliseconds, and relayed calls do not wait for it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from ... import __version__
from ...inspector.feed import LINGER_SECONDS, Feed
from ...instances.host_kind import HostKind
from ...instances.registry import scan_registry
from ...instances.workspace_servers import of_workspace
from ...system.event_loop import Tasks, run_in_thread
from ...system.folders import folders
from ...system.log import log
from ...system.processes import command_line, process_started
from ..health.status_file import running_proxies
from ..own_tools import OWN_TOOLS
from .call_recorder import CallRecorder
from .log_feed import LogFeed, OutputTail

if TYPE_CHECKING:
    from ...system.folders import Folders
    from ...workspace.resolver import Workspace
    from ..calls.forwarder import Forwarder
    from ..calls.service import ProxyService
    from ..state import ProxyState
    from ..upstream.base import Ending


HEALTH_SECONDS = 0.1  # between two reports; a start passes five states in less
SERVERS_SECONDS = 5.0  # between two reads of the machine's other servers
CODE_SECONDS = 0.5  # an edited file is saved by then, as a rule with those that belong to it
LONGEST_CODE_SECONDS = 60.0  # between two reloads of a server that writes its own sources, while nobody calls it
OUTPUT_SECONDS = 1.0  # between two reads of the server's output
DISK_SECONDS = 2.0  # a page does not wait longer for a disk that does not answer
MOST_SERVERS = 100  # and proxies; no machine has as many, but the folder may contain other files

_NO_SERVERS: dict[str, object] = {"servers": [], "proxies": []}
_LISTS = {f"notifications/{name}/list_changed": name for name in ("tools", "resources", "prompts")}
_PROXY_MEMBERS = ("processId", "state", "status", "directory", "solution", "clients", "toolCount", "inspector")


class _Pace:
    """Decides when changed code is run without a call.

    A server may write one of its own sources when it starts, so each pause is twice the one before. It begins anew when
    a tool was called, or the sources were left alone for LONGEST_CODE_SECONDS.
    """

    def __init__(self) -> None:
        self._pause = 0.0
        self._last = self._edited = -inf  # when the code was run, and when it differed

    def is_due(self, now: float, called_at: float) -> bool:
        if called_at > self._last or now - self._edited >= LONGEST_CODE_SECONDS:
            self._pause = 0.0
        self._edited = now
        if now - self._last < self._pause:
            return False
        self._last, self._pause = now, min(max(2 * self._pause, CODE_SECONDS), LONGEST_CODE_SECONDS)
        return True


class PageEvents:
    def __init__(self, state: ProxyState, service: ProxyService, *, linger_seconds: float = LINGER_SECONDS) -> None:
        self._state = state
        self._service = service
        self._loop = asyncio.get_running_loop()
        self.feed = Feed(self._snapshot, self._set_watched, linger_seconds)
        self._calls = CallRecorder(lambda call: self.feed.tell("call", call))
        self._log = LogFeed(lambda lines: self.feed.tell("log", lines))
        self._output = OutputTail()
        self._tasks = Tasks()
        self._reading: asyncio.Future[dict[str, object]] | None = None  # the running read of servers and proxies
        self._servers: dict[str, object] | None = None  # and proxies of this machine, as sent to pages last
        self._next_health: asyncio.TimerHandle | None = None
        self._last_health = 0.0

    def lists_changed(self, method: str) -> None:
        """Notify pages of changed lists, if `method`, which was sent to clients, is such a notification."""
        if method in _LISTS:
            self.feed.tell("lists", {"changed": [_LISTS[method]]})

    def close(self) -> None:
        """Stop following; open pages are notified."""
        self.feed.close()
        self._log.close()

    async def _snapshot(self) -> dict[str, object]:
        """The present state, except for servers on disk, which may be older; later changes follow as events."""
        workspace, now = self._state.workspace, time.time()
        known = {
            "version": __version__,
            "processId": os.getpid(),
            "home": os.path.expanduser("~"),
            "directory": workspace.working_directory if workspace else self._state.facts.options.directory,
            "solution": workspace.solution if workspace else None,
            "name": self._state.facts.upstream_name,
            "now": now,
            "startedAt": process_started(os.getpid()) or now,
            "ownTools": sorted(OWN_TOOLS),
            "health": self._state.report(),
            "calls": self._calls.documents(),
            "log": self._log.lines(),
        }
        return {**known, **(self._servers or await self._read_servers())}

    def _set_watched(self, watched: bool) -> None:
        """Called when the first page was opened, or the last one was closed a while ago."""
        self._service.observe(self._calls if watched else None)
        (self._state.subscribe if watched else self._state.unsubscribe)(self._tell_health_soon)
        self._calls.live = watched
        self._log.set_live(watched)
        if watched:
            self._tasks.start(self._watch_servers())
            self._tasks.start(self._follow_output())
            self._tasks.start(self._follow_code())
            return
        self._tasks.cancel()
        self._servers = None
        if self._next_health is not None:
            self._next_health.cancel()
            self._next_health = None

    # Health.

    def _tell_health_soon(self) -> None:
        if self._next_health is None:
            self._next_health = self._loop.call_at(self._last_health + HEALTH_SECONDS, self._tell_health)

    def _tell_health(self) -> None:
        self._next_health = None
        self._last_health = self._loop.time()
        self.feed.tell("health", self._state.report())

    # Code.

    async def _follow_code(self) -> None:
        """Have edits run without a call: as when a client reads a list, which is what the page shows."""
        edited: set[Forwarder] = set()
        paces: defaultdict[Forwarder, _Pace] = defaultdict(_Pace)
        while True:
            await asyncio.sleep(CODE_SECONDS)
            before = edited
            edited = {to for to in self._service.servers if to.queue is not None and to.queue.knows_news}
            for to in edited & before:
                if paces[to].is_due(self._loop.time(), self._calls.called_at):
                    to.list_read()

    # Servers and output, from disk.

    async def _watch_servers(self) -> None:
        while True:
            await asyncio.sleep(SERVERS_SECONDS)
            before = self._servers or _NO_SERVERS
            if await self._read_servers() != before:
                self.feed.tell("servers", self._servers)

    async def _read_servers(self) -> dict[str, object]:
        """The servers and proxies of this machine; the last known ones if the disk does not answer."""
        if self._reading is None:  # one at a time: each is a thread, which hangs as long as the disk
            workspace = self._state.workspace
            self._reading = asyncio.ensure_future(run_in_thread(lambda: machine_servers(folders(), workspace)))
        reading = self._reading
        await asyncio.wait([reading], timeout=DISK_SECONDS)
        if reading.done():
            if self._reading is reading:
                self._reading = None
            try:
                self._servers = reading.result()
            except Exception as error:  # the page shows the rest
                log.debug(f"the servers of this machine cannot be read: {error!r}")
        return self._servers or _NO_SERVERS

    async def _follow_output(self) -> None:
        followed: dict[ProxyState, tuple[OutputTail, Ending | None]] = {}
        while True:
            for state in (self._state, *self._state.members):
                tail, known = followed.setdefault(state, (self._tail_of(state), state.facts.last_end))
                upstream, ending = state.facts.upstream, state.facts.last_end
                if upstream is not None and upstream.log_file is not None:
                    last_words = ending.last_lines if ending is not None and ending is not known else ()
                    arrivals = upstream.arrivals or list
                    lines = await run_in_thread(partial(tail.read, upstream.log_file, last_words, arrivals))
                    self._log.printed(lines, state.facts.options.server)
                    if upstream.process_id is not None:  # the next server writes to the file now
                        followed[state] = tail, ending
            await asyncio.sleep(OUTPUT_SECONDS)

    def _tail_of(self, state: ProxyState) -> OutputTail:
        return self._output if state is self._state else OutputTail()


def machine_servers(folders: Folders, workspace: Workspace | None) -> dict[str, object]:
    """The Hosts (marked if of `workspace`) and proxies of this machine. Reads the disk, removes no stale entries."""
    found = scan_registry(folders.registry, removing=False).running[:MOST_SERVERS]
    ours = of_workspace(found, workspace) if workspace is not None else ()
    servers = [
        {  # as in `list --json`, without the chain of processes
            "processId": server.process_id,
            "port": server.port,
            "mcpEndpoint": server.mcp_endpoint,
            "startTime": server.started,
            "solutionPath": server.solution,
            "workspaceDirectory": server.workspace,
            "isInWorkspace": server in ours,
            "hostKind": kind.value if (kind := HostKind.of_command_line(command_line(server.process_id))) else None,
        }
        for server in found
    ]
    proxies = [
        {**{name: status.get(name) for name in _PROXY_MEMBERS}, "own": status.get("processId") == os.getpid()}
        for status in running_proxies(folders.state)[:MOST_SERVERS]
    ]
    return {"servers": servers, "proxies": proxies}
