"""The Host's end of the IDE channel: a pipe that always listens and serves one IDE at a time.

The channel can be bound to another pipe at any time; the new one listens before the old one closes. An IDE's messages
reach `on_message` in order, even if the IDE has disconnected meanwhile; messages to the IDE are dropped while none is
connected. A client can end only its own connection, and `close` leaves neither tasks nor sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...system.log import log
from ...system.pipes import WINDOWS_FOLDER, Listener, PipeProblem, listen
from . import message_types
from .connection import IdeChannelLimits, IdeConnection
from .framing import FramingProblem
from .json_rpc import IdeMessage, RpcProblem

MAX_WAITING_MESSAGES = 256  # if there are more, the IDE is not read until a handler has finished
MAX_CLIENTS = 8  # one is served; the others are being refused

REFUSAL = message_types.error_notification(
    "Uno Dev Server",
    "Another IDE is connected to this dev server. Close the solution there, or start a dev server for this IDE.",
)

OnMessage = Callable[[str, dict[str, Any]], Awaitable[None] | None]


class ChannelProblem(Exception):
    """The channel cannot be bound; the text says why and what to do. The previous binding stays."""


class IdeChannel:
    def __init__(
        self,
        *,
        on_message: OnMessage,
        status: Callable[[], Mapping[str, Any]],
        limits: IdeChannelLimits | None = None,
    ) -> None:
        """`status` returns the body of the environment status, which is sent to each IDE when it connects."""
        self._on_message = on_message
        self._status = status
        self._limits = limits or IdeChannelLimits()
        self._pipe: IdePipe | None = None
        self._binding_lock = asyncio.Lock()
        self._closed = False
        self._inbox: asyncio.Queue[IdeMessage] = asyncio.Queue(MAX_WAITING_MESSAGES)
        self._handling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # replaced at each change
        self._had_ide = False
        self._away_since: float | None = None

    @property
    def channel_id(self) -> str | None:
        return self._pipe.channel_id if self._pipe else None

    @property
    def connected(self) -> bool:
        return self._pipe is not None and self._pipe.ide is not None

    @property
    def state(self) -> str:
        """The state as the banner shows it, with the pipe's Windows path on every system, as in the .NET Host."""
        if self._pipe is None:
            return "Not configured"
        return f"{'Connected' if self.connected else 'Configured'}: {WINDOWS_FOLDER}{self._pipe.channel_id}"

    async def bind(self, channel_id: str | None) -> None:
        """Listen on this pipe instead of the current one, or on none if the id is blank; raises ChannelProblem."""
        async with self._binding_lock:
            if self._closed:
                raise ChannelProblem("The IDE channel is closed, because the Host is stopping. Start it again.")
            try:
                await self._bind(channel_id if channel_id and not channel_id.isspace() else None)
            except PipeProblem as problem:
                raise ChannelProblem(str(problem)) from problem

    async def ready(self) -> None:
        """Wait until an IDE has connected to the current pipe, or there is no pipe."""
        while self._pipe is not None and not self._pipe.had_ide:
            await self._changed.wait()

    def send(self, type_name: str, body: Mapping[str, Any]) -> bool:
        """Send a message without waiting; return False if no IDE is connected. Safe from any thread.

        Raises ValueError or TypeError if the body has no JSON form.
        """
        pipe = self._pipe
        ide = pipe.ide if pipe else None
        if ide is None:
            log.debug(f"No IDE is connected: {type_name} is dropped.")
            return False
        ide.send(type_name, body)
        return True

    async def wait_disconnected_for(self, seconds: float) -> None:
        """Wait until an IDE that was connected has been away for this long; binding another pipe restarts the time."""
        loop = asyncio.get_running_loop()
        while True:
            left = None if self._away_since is None else self._away_since + seconds - loop.time()
            if left is not None and left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def close(self) -> None:
        async with self._binding_lock:
            self._closed = True
            await self._bind(None)
        if self._handling is not None:
            self._handling.cancel()
            await asyncio.gather(self._handling, return_exceptions=True)

    async def _bind(self, channel_id: str | None) -> None:
        current = self._pipe
        if current is not None and current.channel_id == channel_id:
            if not current.listening:
                await current.open()
            return
        new = None
        if channel_id is not None:
            new = IdePipe(
                channel_id, status=self._status, deliver=self._take, on_change=self._note_change, limits=self._limits
            )
            await new.open()
        self._pipe = new
        self._note_change()
        if current is not None:
            await current.close()

    def _note_change(self) -> None:
        self._had_ide = self._had_ide or self.connected
        waiting_for_ide = self._had_ide and self._pipe is not None and not self.connected
        self._away_since = asyncio.get_running_loop().time() if waiting_for_ide else None
        self._changed.set()
        self._changed = asyncio.Event()

    async def _take(self, message: IdeMessage) -> None:
        if message.type_name == message_types.KEEP_ALIVE:
            return  # the reader notices the end of a connection
        if self._handling is None:
            self._handling = asyncio.create_task(self._handle())
        await self._inbox.put(message)

    async def _handle(self) -> None:
        while True:
            message = await self._inbox.get()
            log.debug(f"From the IDE: {message.type_name}")
            try:
                handled = self._on_message(message.type_name, message.body)
                if handled is not None:
                    await handled
            except Exception as error:
                log.warn(f"{message.type_name} from the IDE could not be handled: {type(error).__name__}: {error}")


class IdePipe:
    """Listens on one pipe, serves the first IDE, and refuses others while it is connected."""

    def __init__(
        self,
        channel_id: str,
        *,
        status: Callable[[], Mapping[str, Any]],
        deliver: Callable[[IdeMessage], Awaitable[None]],
        on_change: Callable[[], None],
        limits: IdeChannelLimits,
    ) -> None:
        self.channel_id = channel_id
        self.ide: IdeConnection | None = None
        self.had_ide = False
        self._status = status
        self._deliver = deliver
        self._on_change = on_change
        self._limits = limits
        self._closed = False
        self._listener: Listener | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @property
    def listening(self) -> bool:
        return self._listener is not None and self._listener.reachable

    async def open(self) -> None:
        """Listen, or listen again if the socket was removed; PipeProblem on failure."""
        previous, self._listener = self._listener, await listen(self.channel_id, self._accept)
        log.info(f"IDE channel {self.channel_id}: waiting for an IDE on {self._listener.path}")
        if previous is not None:
            await previous.close()

    async def close(self) -> None:
        self._closed = True  # for clients that connect while the listener is being closed
        if self._listener is not None:
            await self._listener.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed or len(self._clients) >= MAX_CLIENTS:
            writer.transport.abort()
            return
        client = asyncio.create_task(self._attend(IdeConnection(reader, writer, self._limits)))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _attend(self, connection: IdeConnection) -> None:
        try:
            if self.ide is not None:
                await _wait_for_end(self.ide, self._limits.takeover_seconds)
            if self.ide is not None:
                log.warn(f"IDE channel {self.channel_id}: a second IDE was refused; one is connected.")
                connection.send(message_types.NOTIFICATION, REFUSAL)
            else:
                await self._serve(connection)
        finally:
            await connection.close()

    async def _serve(self, connection: IdeConnection) -> None:
        self.ide = connection
        self.had_ide = True
        log.info(f"IDE channel {self.channel_id}: an IDE connected.")
        try:
            self._on_change()
            await connection.serve(self._status(), self._deliver)
            log.info(f"IDE channel {self.channel_id}: the IDE disconnected.")
        except (FramingProblem, RpcProblem) as problem:
            log.warn(f"IDE channel {self.channel_id}: the connection was closed, because the client sent {problem}.")
        finally:
            self.ide = None
            self._on_change()


async def _wait_for_end(connection: IdeConnection, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await connection.ended.wait()
    except TimeoutError:
        pass
