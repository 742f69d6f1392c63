"""Serves `/rc`: connects each app with the processors, one per scope.

If an IDE is expected, the frames of an app wait a few seconds for it, because processors may send to it; after that the
app is served without an IDE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...protocol.http.messages import WebSocket
from ...protocol.http.transport import MemoryBudget
from ...system.event_loop import WorkQueue
from ...system.log import log
from ..addins.manager import HOT_RELOAD_SCOPE, SERVER_SCOPE
from ..app_launches import LaunchMonitor
from .connection import MAX_UNSENT_BYTES, AppConnection, Handle
from .frames import Frame, read_content
from .hot_reload_scope import HotReloadScope
from .server_scope import ServerScope

if TYPE_CHECKING:
    from ..addins.handlers import App, Processor

IDE_WAIT_SECONDS = 5.0  # an IDE connects within a second of starting its Host; apps give up after 30


class IdeArrival(Protocol):
    async def ready(self) -> None:
        """Wait until an IDE has connected; return at once if none is expected."""


class RemoteControl:
    def __init__(
        self,
        *,
        version: str,
        launches: LaunchMonitor,
        assembly_reads: WorkQueue,
        workspace: str | None = None,
        processors: Callable[[], Sequence[Processor]] = tuple,
        ide: IdeArrival | None = None,
        ide_wait_seconds: float = IDE_WAIT_SECONDS,
    ) -> None:
        """Apps may edit files in `workspace`; `processors` returns the processors of the add-ins."""
        self._version = version
        self._launches = launches
        self._assembly_reads = assembly_reads
        self._processors = processors
        self._ide = ide
        self._ide_wait_seconds = ide_wait_seconds
        self._hot_reload = HotReloadScope(workspace)
        self._connections: set[AppConnection] = set()
        self._unsent = MemoryBudget(MAX_UNSENT_BYTES)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def serve(self, socket: WebSocket) -> None:
        """Serve one app until it disconnects."""
        server = ServerScope(self._version, self._launches, self._processors, self._assembly_reads)
        connection = AppConnection(socket, lambda scope: self._handler_of(scope, server), self._unsent)
        self._connections.add(connection)
        try:
            await self._await_ide()
            await connection.run()
        except ConnectionError as error:
            log.debug(f"/rc: an app disconnected: {error}")
        finally:
            self._connections.discard(connection)

    async def _await_ide(self) -> None:
        if self._ide is None:
            return
        try:
            async with asyncio.timeout(self._ide_wait_seconds):
                await self._ide.ready()
        except TimeoutError:
            log.debug(f"/rc: no IDE connected within {self._ide_wait_seconds:g} s; the app is served without one")

    def _handler_of(self, scope: str, server: ServerScope) -> Handle | None:
        if scope == SERVER_SCOPE:
            return _by_name(server.actions)
        if scope == HOT_RELOAD_SCOPE:
            return _by_name(self._hot_reload.actions)
        for processor in self._processors():
            if processor.scope == scope:
                return _of_addin(processor)
        return None


def _by_name(actions: Mapping[str, Handle]) -> Handle:
    async def handle(frame: Frame, app: App) -> None:
        action = actions.get(frame.name)
        if action is None:
            log.debug(f"/rc: '{frame.name}' is unknown in scope {frame.scope}")
        else:
            await action(frame, app)

    return handle


def _of_addin(processor: Processor) -> Handle:
    async def handle(frame: Frame, app: App) -> None:
        await processor.handler(frame.name, read_content(frame.content), app)

    return handle
