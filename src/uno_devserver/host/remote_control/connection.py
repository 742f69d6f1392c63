"""One app on `/rc`: its frames to the processors, theirs to the app.

The frames of a scope are handled one after the other; the scopes do not wait for each other. An app that sends faster
than its frames are handled is read more slowly; only the frames behind a processor that hangs are dropped. Whatever a
frame holds, and whatever a handler does, the connection lives on; it ends only when the app leaves, or does not read
what it is sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...protocol.http.messages import WebSocket
from ...system.log import log
from .frames import ContentProblem, Frame, FrameProblem, decode_frame, encode_frame, write_content

if TYPE_CHECKING:  # the add-ins' interface costs time to import, and only its types are needed
    from ..addins.handlers import App

MAX_WAITING_FRAMES = 256  # of one scope; an app sends a few in a second
PATIENCE_SECONDS = 5.0  # without one frame handled, and more waiting than allowed: the processor hangs
MAX_UNSENT_BYTES = 64 * 1024 * 1024  # a status is some KB; an app that lets this much lie is stopped or gone
DRAIN_SECONDS = 5.0  # for what an app asked for before it left
END_SECONDS = 0.5  # for handlers to clean up; they belong to add-ins and may refuse
TRY_AGAIN_LATER = 1013  # the code of the close frame

Handle = Callable[[Frame, "App"], Awaitable[None]]


class AppConnection:
    def __init__(self, socket: WebSocket, handler_of: Callable[[str], Handle | None]) -> None:
        self._socket = socket
        self._handler_of = handler_of
        self._lanes: dict[str, ScopeQueue] = {}
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._open = True
        self._closing: asyncio.Task[None] | None = None  # held here, or it could be collected before it has run

    async def run(self) -> None:
        """Until the app leaves."""
        writer = asyncio.create_task(self._write())
        try:
            while (data := await self._socket.receive()) is not None:
                await self._dispatch(data)
            await self._drain()
        finally:
            self._open = False
            await _end([writer, *(lane.task for lane in self._lanes.values())])

    def send(self, frame: Frame) -> None:
        """Send a frame when the app reads; never waits. Safe from any thread."""
        data = encode_frame(frame)
        if threading.get_ident() == self._thread:
            self._enqueue(data)
            return
        try:
            self._loop.call_soon_threadsafe(self._enqueue, data)
        except RuntimeError:  # the Host has stopped
            pass

    async def _dispatch(self, data: bytes) -> None:
        try:
            frame = decode_frame(data)
        except FrameProblem as problem:
            log.debug(f"/rc: a message of {len(data):,} bytes is no frame: {problem}")
            return
        handle = self._handler_of(frame.scope)
        if handle is None:
            log.debug(f"/rc: no processor for [{frame.scope[:100]} / {frame.name[:100]}]")
            return
        if frame.scope not in self._lanes:
            self._lanes[frame.scope] = ScopeQueue(ConnectedApp(self, frame.scope))
        await self._lanes[frame.scope].put(frame, handle)

    async def _drain(self) -> None:
        """Finish what the app asked for before it left."""
        waiting = [lane.frames.join() for lane in self._lanes.values()]
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.gather(*waiting)
        except TimeoutError:
            log.warn("/rc: an app left, and a processor did not finish what it had asked for")

    def _enqueue(self, data: bytes) -> None:
        if not self._open:
            return
        if self._unsent_bytes + len(data) > MAX_UNSENT_BYTES:
            log.warn(f"/rc: an app does not read what it is sent ({self._unsent_bytes:,} bytes wait); it is let go")
            self._open = False
            self._closing = asyncio.create_task(self._socket.close(TRY_AGAIN_LATER))
            return
        self._unsent_bytes += len(data)
        self._outgoing.put_nowait(data)

    async def _write(self) -> None:
        try:
            while True:
                data = await self._outgoing.get()
                await self._socket.send(data)
                self._unsent_bytes -= len(data)
        except ConnectionError:
            self._open = False  # what is received is still handled


class ScopeQueue:
    """The frames of one scope, one after the other."""

    def __init__(self, app: App) -> None:
        self.frames: asyncio.Queue[tuple[Frame, Handle]] = asyncio.Queue(MAX_WAITING_FRAMES)
        self._app = app
        self._patience = PATIENCE_SECONDS
        self.task = asyncio.create_task(self._run())

    async def put(self, frame: Frame, handle: Handle) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self.frames.put((frame, handle))
        except TimeoutError:
            self._patience = 0.0  # the other scopes are not held up again before it moves
            log.warn(f"/rc: [{frame.scope} / {frame.name}] is dropped: {MAX_WAITING_FRAMES} frames wait before it")

    async def _run(self) -> None:
        while True:
            frame, handle = await self.frames.get()
            try:
                await handle(frame, self._app)
            except ContentProblem as problem:
                log.warn(f"/rc: the content of [{frame.scope} / {frame.name}] could not be read: {problem}")
            except Exception as error:
                log.warn(f"/rc: [{frame.scope} / {frame.name}] failed: {type(error).__name__}: {error}")
            finally:
                self._patience = PATIENCE_SECONDS
                self.frames.task_done()


class ConnectedApp:
    """What a processor sees of an app."""

    def __init__(self, connection: AppConnection, scope: str) -> None:
        self._connection = connection
        self._scope = scope

    def send(self, name: str, content: object, scope: str | None = None) -> None:
        self._connection.send(Frame(scope or self._scope, name, write_content(content)))


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=END_SECONDS)
