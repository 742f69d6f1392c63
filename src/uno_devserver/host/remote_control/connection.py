"""One app on `/rc`: passes its frames to the processors, and theirs to the app.

The frames of a scope are handled in order; scopes do not wait for each other. An app that sends faster than its frames
are handled is read more slowly; only frames for a processor that hangs are dropped. The connection survives malformed
frames and failing handlers; it ends when the app disconnects or does not read what it is sent. Frames count in the
server's memory budget until they are handled, and those for apps in a budget of all apps until they are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...protocol.http.messages import WebSocket
from ...system.event_loop import Tasks, in_loop
from ...system.log import log
from .frames import ContentProblem, Frame, FrameProblem, decode_frame, encode_frame, write_content

if TYPE_CHECKING:
    from ...protocol.http.transport import MemoryBudget
    from ..addins.handlers import App

MAX_WAITING_FRAMES = 256  # the most for one scope; an app sends a few per second
MAX_WAITING_BYTES = 4 * 1024 * 1024  # of them, unless the scope is idle: a frame of any size is then handled at once
PATIENCE_SECONDS = 5.0  # a processor with a full queue that handles no frame for this long hangs
MAX_UNSENT_BYTES = 64 * 1024 * 1024  # a status has a few KB; apps that leave this much unread have stopped
DRAIN_SECONDS = 5.0  # for the frames that an app sent before it disconnected
END_SECONDS = 0.5  # for cancelled handlers; those of add-ins may ignore the cancellation
TRY_AGAIN_LATER = 1013  # the code of the close frame

Handle = Callable[[Frame, "App"], Awaitable[None]]


class AppConnection:
    def __init__(self, socket: WebSocket, handler_of: Callable[[str], Handle | None], unsent: MemoryBudget) -> None:
        """`unsent` limits the frames that wait to be sent, of all apps."""
        self._unsent = unsent
        self._socket = socket
        self._handler_of = handler_of
        self._queues: dict[str, ScopeQueue] = {}
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._closing = Tasks()

    async def run(self) -> None:
        """Serve the app until it disconnects."""
        writer = asyncio.create_task(self._write())
        try:
            while (data := await self._socket.receive()) is not None:
                await self._dispatch(data)
            await self._drain()
        finally:
            self._open = False
            self._unsent_bytes = 0
            self._unsent.keep(self)
            await _end([writer, *(queue.task for queue in self._queues.values())])

    @property
    def size(self) -> int:
        return self._unsent_bytes

    def give_up(self) -> None:
        log.warn(f"/rc: an app does not read what it is sent ({self._unsent_bytes:,} bytes wait); it is disconnected")
        self._open = False
        self._closing.start(self._socket.close(TRY_AGAIN_LATER))

    def send(self, frame: Frame) -> None:
        """Queue a frame for the app; never waits. Safe from any thread."""
        in_loop(self._loop, self._enqueue, encode_frame(frame))

    async def _dispatch(self, data: bytes) -> None:
        try:
            frame = decode_frame(data)
        except FrameProblem as problem:
            log.debug(f"/rc: a message of {len(data):,} bytes is not a frame: {problem}")
            return
        handle = self._handler_of(frame.scope)
        if handle is None:
            log.debug(f"/rc: no processor for [{frame.scope[:100]} / {frame.name[:100]}]")
            return
        if frame.scope not in self._queues:
            self._queues[frame.scope] = ScopeQueue(ConnectedApp(self, frame.scope), self._socket)
        await self._queues[frame.scope].put(frame, handle, len(data))

    async def _drain(self) -> None:
        """Wait, within a limit, until the frames that the app sent before it disconnected are handled."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.gather(*(queue.frames.join() for queue in self._queues.values()))
        except TimeoutError:
            log.warn(f"/rc: an app disconnected, and its last frames were not handled within {DRAIN_SECONDS:g} s")

    def _enqueue(self, data: bytes) -> None:
        if not self._open:
            return
        if self._unsent_bytes + len(data) > MAX_UNSENT_BYTES:
            self.give_up()
            return
        self._unsent_bytes += len(data)
        self._outgoing.put_nowait(data)
        self._unsent.keep(self)

    async def _write(self) -> None:
        try:
            while True:
                data = await self._outgoing.get()
                await self._socket.send(data)
                self._unsent_bytes -= len(data)
        except ConnectionError:
            self._open = False  # frames that were received are still handled


class ScopeQueue:
    """Handles the frames of one scope in order."""

    def __init__(self, app: App, socket: WebSocket) -> None:
        self.frames: asyncio.Queue[tuple[Frame, Handle, int]] = asyncio.Queue(MAX_WAITING_FRAMES)
        self._app = app
        self._socket = socket
        self._waiting_bytes = 0
        self._idle = True
        self._progress = asyncio.Event()
        self._patience = PATIENCE_SECONDS
        self.task = asyncio.create_task(self._run())

    async def put(self, frame: Frame, handle: Handle, size: int) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while not self._idle and self._waiting_bytes + size > MAX_WAITING_BYTES:
                    self._progress.clear()
                    await self._progress.wait()
                await self.frames.put((frame, handle, size))
        except TimeoutError:
            self._patience = 0.0  # the app is not kept waiting again until a frame is handled
            waiting = f"{self.frames.qsize()} frames wait before it ({self._waiting_bytes + size:,} bytes with it)"
            log.warn(f"/rc: [{frame.scope} / {frame.name}] is dropped: {waiting}")
            return
        self._idle = False
        self._waiting_bytes += size
        self._socket.keep(size)

    async def _run(self) -> None:
        while True:
            frame, handle, size = await self.frames.get()
            self._waiting_bytes -= size
            try:
                await handle(frame, self._app)
            except ContentProblem as problem:
                log.warn(f"/rc: the content of [{frame.scope} / {frame.name}] could not be read: {problem}")
            except Exception as error:
                log.warn(f"/rc: [{frame.scope} / {frame.name}] failed: {type(error).__name__}: {error}")
            finally:
                del frame  # it may be long, and the next one may come much later
                self._patience = PATIENCE_SECONDS
                self._idle = self.frames.empty()
                self._progress.set()
                self._socket.handled(size)
                self.frames.task_done()


class ConnectedApp:
    """An app as a processor sees it: frames go to the processor's scope by default."""

    def __init__(self, connection: AppConnection, scope: str) -> None:
        self._connection = connection
        self._scope = scope

    def send(self, name: str, content: object, scope: str | None = None) -> None:
        self._connection.send(Frame(scope or self._scope, name, write_content(content)))


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=END_SECONDS)
