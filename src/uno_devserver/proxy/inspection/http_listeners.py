"""The HTTP listeners of a proxy: MCP on a port that the user named, and the inspector with its page.

They do not delay the first start: the inspector is opened when the start is over, or takes long. Their clients share
the upstream of the client on stdio, and get the same notifications.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from ...issues import Issue, warning
from ...system.event_loop import Tasks, run_in_thread
from ...system.folders import folders
from ...system.log import log
from ...workspace.devtools_folder import find_config
from ..health.status_file import inspector_page
from ..options import INSPECTOR_PORT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...inspector.access import PageKeys
    from ...inspector.server import Inspector
    from ...protocol.http.messages import Answer, Request
    from ...protocol.server.streamable_http import StreamableHttp
    from ...protocol.service import Params
    from ...workspace.resolver import Workspace
    from ..calls.service import ProxyService
    from ..options import ProxyOptions
    from ..state import ProxyState
    from .page_events import PageEvents


LONG_SECONDS = 1.0  # if the first start takes longer, the inspector is opened during it
BEHIND_SECONDS = 0.2  # first calls come as soon as the upstream is connected; the inspector can wait
# Each may have two connections to the upstream. Sessions that a client never closes must not use up the open files of a
# process: 1024 as a rule, or 256.
MOST_SESSIONS = 50


class HttpListeners:
    def __init__(self, options: ProxyOptions, service: ProxyService, state: ProxyState) -> None:
        self._options = options
        self._service = service
        self._state = state
        self._endpoints: list[StreamableHttp] = []
        self._close_ports: list[Callable[[], Awaitable[None]]] = []
        self._page_events: PageEvents | None = None
        self._inspector: Inspector | None = None
        self._opening = asyncio.Lock()
        self._refused_port: int | None = None  # the last port that could not be opened, nor one of the next
        self._open_timer: asyncio.TimerHandle | None = None
        self._start_over = False  # whether the first start is over, or takes long
        self._tasks = Tasks()

    async def open(self) -> None:
        """Open the MCP port that an option names; the inspector follows later."""
        self._open_after(LONG_SECONDS)
        if self._options.http_port is not None:
            await self._serve_mcp(self._options.http_port)

    def start_settled(self) -> None:
        """A start has succeeded, or failed for good."""
        self._open_after(BEHIND_SECONDS)

    def open_if_wanted(self) -> None:
        """Open the inspector if the config asks for it now; the config, or the user's trust, may have changed."""
        if self._start_over and self._inspector is None:
            self._tasks.start(self._open_if_wanted())

    async def open_inspector(self, port: int | None = None) -> Inspector | Issue:
        """Open the inspector if it is not open; return it, or the issue if that fails."""
        async with self._opening:
            if self._inspector is not None:
                return self._inspector
            port = INSPECTOR_PORT if port is None else port
            workspace = self._state.workspace
            keys = await run_in_thread(
                partial(_page_keys, workspace.working_directory if workspace else self._options.directory)
            )
            from ...inspector.server import open_inspector
            from .page_events import PageEvents

            if self._page_events is None:
                self._page_events = PageEvents(self._state, self._service)
            mcp, feed = self._mcp_endpoint(), self._page_events.feed
            opened = await open_inspector(
                port, keys, mcp=mcp.handle, health=self._state.report, feed=feed, other_page=page_of_proxy
            )
            if isinstance(opened, Issue):
                self._refused_port = port
                self._refuse("inspector", opened)
                return opened
            self._endpoints.append(mcp)
            self._close_ports.append(opened.close)
            self._state.blame("inspector", ())
            self._inspector = opened
            self._state.learn(inspector=opened.address, inspector_token=opened.token)
            log.info(f"Inspector: {opened.address} ('uno-devserver inspect' opens it)")
            return opened

    async def inspector_url(self, port: int | None = None) -> str | Issue:
        """Open the inspector if it is not open; return a URL by which a browser opens its page, once, or the issue."""
        opened = await self.open_inspector(port)
        return opened if isinstance(opened, Issue) else opened.new_url()

    def broadcast(self, method: str, params: Params | None = None) -> None:
        for endpoint in self._endpoints:
            endpoint.broadcast(method, params)
        if self._page_events is not None:
            self._page_events.lists_changed(method)

    def resource_updated(self, uri: str) -> None:
        for endpoint in self._endpoints:
            endpoint.resource_updated(uri)

    async def close(self) -> None:
        """Answer open calls and close the ports; takes milliseconds."""
        if self._open_timer is not None:
            self._open_timer.cancel()
        self._tasks.cancel()
        if self._page_events is not None:
            self._page_events.close()
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints))
        await asyncio.gather(*(close() for close in self._close_ports))

    def _open_after(self, seconds: float) -> None:
        if self._open_timer is not None:
            self._open_timer.cancel()
        self._open_timer = asyncio.get_running_loop().call_later(seconds, self._open_first)

    def _open_first(self) -> None:
        self._start_over = True
        self.open_if_wanted()

    async def _serve_mcp(self, port: int) -> None:
        """Serve `/mcp` and `/health`. A port that cannot be opened is only reported as an issue."""
        # Imported here because few proxies need it.
        from ...inspector.server import GRACE_SECONDS, HEALTH, JSON, MCP, health_answer, only_read, reads
        from ...protocol.http.guard import guard_for
        from ...protocol.http.messages import Response
        from ...protocol.http.server import HttpServer, ListenProblem, open_sockets
        from ...system.ports import PortTaken

        mcp = self._mcp_endpoint()

        async def handle(request: Request) -> Answer:
            path = request.path.lower().rstrip("/")
            if path == MCP:
                return await mcp.handle(request)
            if path == HEALTH:
                return health_answer(self._state.report()) if reads(request) else only_read()
            return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', JSON)

        try:
            server = HttpServer(handle, open_sockets(port), guard=guard_for(None))
        except (PortTaken, ListenProblem) as problem:
            why = f"port {port} is taken by another program" if isinstance(problem, PortTaken) else str(problem)
            self._refuse("http", warning("HttpNotServed", f"MCP is not served over HTTP: {why}."))
            return
        await server.start()
        self._endpoints.append(mcp)
        self._close_ports.append(partial(server.stop, GRACE_SECONDS))
        address = f"http://localhost:{server.port}{MCP}"
        log.info(f"Serving MCP over HTTP at {address}")
        self._state.learn(http_endpoint=address)

    def _refuse(self, part: str, issue: Issue) -> None:
        log.warn(f"{issue.message} {issue.remediation}")
        self._state.blame(part, (issue,))

    async def _open_if_wanted(self) -> None:
        workspace = self._state.workspace
        port = await run_in_thread(lambda: wanted_port(self._options, workspace, os.environ))
        if port is not None and port != self._refused_port:
            await self.open_inspector(port)
        if self._state.facts.inspector_undecided:
            self._state.learn(inspector_undecided=False)

    def _mcp_endpoint(self) -> StreamableHttp:
        from ...protocol.server.limits import DEFAULT_ENDPOINT_LIMITS
        from ...protocol.server.streamable_http import StreamableHttp

        return StreamableHttp(self._service, DEFAULT_ENDPOINT_LIMITS.replace(sessions=MOST_SESSIONS))


def wanted_port(options: ProxyOptions, workspace: Workspace | None, environ: Mapping[str, str]) -> int | None:
    """The inspector's port, from an option or the config (without a workspace: the nearest one); None if not wanted."""
    if options.inspector_port is not None:
        return options.inspector_port
    path = workspace.config if workspace else find_config(options.directory)
    if path is None:
        return None
    from ...workspace.config import read_config
    from ...workspace.trust import is_trusted

    folder = workspace.working_directory if workspace else os.path.dirname(os.path.dirname(path))
    page = read_config(path).inspector
    if not page.enabled or not is_trusted(environ, folder):  # the page gives access to the tools
        return None
    return INSPECTOR_PORT if page.port is None else page.port


def page_of_proxy(pid: int) -> str | None:
    """The URL by which a browser opens the page of another proxy, once; None if that has no page. Blocks."""
    from ...inspector.access import page_url

    page = inspector_page(folders().state, pid)
    return None if page is None else page_url(*page)


def _page_keys(folder: str) -> PageKeys:
    """The keys of pages. Also imports, in this thread, modules that the loop needs next, which takes a few ms."""
    from ...inspector import server  # noqa: F401
    from ...inspector.access import PageKeys
    from ...protocol.server import streamable_http  # noqa: F401
    from . import page_events  # noqa: F401

    return PageKeys(folders().state, folder)
