"""The proxy for those who speak HTTP: MCP at a port that the user named, and the inspector with its page.

Nothing of it stands in the way of the first start: the inspector is opened when that is through, or takes long. Both
see the same upstream as the client on stdio, and hear of the same changes. Either is closed within milliseconds.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ...issues import Issue
from ...protocol.running import Tasks
from ...system.folders import folders
from ...system.log import log
from ...system.threads import apart
from ...workspace.config_file import find_config
from ..options import INSPECTOR_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...inspector.server import Inspector
    from ...protocol.service import Params
    from ...protocol.streamable import StreamableHttp
    from ...workspace.resolver import Workspace
    from ..calls.service import ProxyService
    from ..options import Options
    from ..state import ProxyState
    from .http_server import HttpEndpoint
    from .page_events import PageEvents


LONG_SECONDS = 1.0  # a first start that takes longer may want to be looked at
# Each may hold two connections to the upstream. A client that never says goodbye, again and again, must not use up the
# files that a process may have open, of which there are 1024 as a rule, or 256.
MOST_SESSIONS = 50
BEHIND_SECONDS = 0.2  # the first calls come as soon as there is an upstream, and the inspector can wait


class HttpListeners:
    def __init__(self, options: Options, service: ProxyService, state: ProxyState) -> None:
        self._options = options
        self._service = service
        self._state = state
        self._endpoints: list[StreamableHttp] = []
        self._http: HttpEndpoint | None = None
        self._inspector: Inspector | None = None
        self._inspection: PageEvents | None = None
        self._opening = asyncio.Lock()
        self._refused: int | None = None  # the port at which, or behind which, there was no place
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None  # the next look whether the inspector is wanted
        self._through = False  # the first start is, or takes long
        self._tasks = Tasks()

    async def open(self) -> None:
        """What was asked for by an option; the inspector later."""
        self._look_in(LONG_SECONDS)
        if self._options.http_port is not None:
            await self._open_http(self._options.http_port)

    def start_settled(self) -> None:
        """A start has come to its end."""
        if self._due is not None:
            self._look_in(BEHIND_SECONDS)

    def look(self) -> None:
        """The workspace, its config, or whether the user trusts it, may be another."""
        if self._through and self._inspector is None:
            self._tasks.start(self._open_wanted())

    async def open_inspector(self, port: int | None = None) -> str | Issue:
        """Its URL, also where it is open already; the issue where it cannot be opened. `port`: None: the usual one."""
        async with self._opening:
            if self._inspector is None:
                problem = await self._open_inspector(INSPECTOR_PORT if port is None else port)
                self._state.blame("inspector", (problem,) if problem else ())
                if problem:
                    return problem
            assert self._inspector is not None
            return self._inspector.url

    # What goes to all clients.

    def broadcast(self, method: str, params: Params | None = None) -> None:
        for endpoint in self._endpoints:
            endpoint.broadcast(method, params)
        if self._inspection is not None:
            self._inspection.lists_changed(method)

    def resource_updated(self, uri: str) -> None:
        for endpoint in self._endpoints:
            endpoint.resource_updated(uri)

    async def close(self) -> None:
        """Calls get a last word, then the ports are free."""
        if self._due is not None:
            self._due.cancel()
        self._tasks.cancel()
        if self._inspection is not None:
            self._inspection.close()
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints))
        await asyncio.gather(*(face.close() for face in (self._http, self._inspector) if face is not None))

    # Opening.

    def _look_in(self, seconds: float) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._through = True
        self.look()

    async def _open_http(self, port: int) -> None:
        from .http_server import open_endpoint

        endpoint = self._endpoint()
        face = await open_endpoint(port, mcp=endpoint.handle, health=self._state.report)
        if isinstance(face, Issue):
            self._state.blame("http", (face,))
        else:
            self._http = face
            self._endpoints.append(endpoint)
            self._state.learn(http_endpoint=face.address)

    async def _open_wanted(self) -> None:
        workspace = self._workspace
        port = await apart(lambda: wanted_port(self._options, workspace, os.environ))
        if port is not None and port != self._refused:
            await self.open_inspector(port)

    async def _open_inspector(self, port: int) -> Issue | None:
        workspace = self._workspace
        folder = workspace.working_directory if workspace else self._options.directory
        token = await apart(lambda: _token(folder))
        from ...inspector.server import open_inspector
        from .page_events import PageEvents

        if self._inspection is None:
            self._inspection = PageEvents(self._state, self._service)
        endpoint, feed = self._endpoint(), self._inspection.feed
        opened = await open_inspector(port, token, mcp=endpoint.handle, health=self._state.report, feed=feed)
        if isinstance(opened, Issue):
            self._refused = port
            log.warn(f"{opened.message} {opened.remediation}")
            return opened
        self._inspector = opened
        self._endpoints.append(endpoint)
        self._state.learn(inspector=opened.url)
        log.info(f"Inspector: {opened.url}")
        return None

    @property
    def _workspace(self) -> Workspace | None:
        """None where the upstream does not depend on one."""
        return self._state.workspace

    def _endpoint(self) -> StreamableHttp:
        from ...protocol.policy import DEFAULT_POLICY
        from ...protocol.streamable import StreamableHttp

        return StreamableHttp(self._service, DEFAULT_POLICY.replace(sessions=MOST_SESSIONS))


def wanted_port(options: Options, workspace: Workspace | None, environ: Mapping[str, str]) -> int | None:
    """Where the inspector is to be opened by itself; None: nowhere. Looks at the disk.

    `workspace`: None where the upstream does not depend on one; then a config near it counts.
    """
    if options.inspector_port is not None:
        return options.inspector_port
    path = workspace.config if workspace else find_config(options.directory)
    if path is None:
        return None
    from ...workspace.config import read_config
    from ...workspace.trust import is_trusted

    folder = workspace.working_directory if workspace else os.path.dirname(os.path.dirname(path))
    page = read_config(path).inspector
    if not page.enabled or not is_trusted(environ, folder):  # a page that was not asked for opens the tools to others
        return None
    return INSPECTOR_PORT if page.port is None else page.port


def _token(folder: str) -> str:
    """Imports what the loop needs next, too: that takes some milliseconds, in which calls are relayed."""
    from ...inspector import server  # noqa: F401
    from ...inspector.token import token_for
    from ...protocol import streamable  # noqa: F401
    from . import page_events as inspection  # noqa: F401

    return token_for(folders().state, folder)
