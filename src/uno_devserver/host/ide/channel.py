"""The Host's end of the IDE channel: always listening where the IDE expects it, whatever comes and goes there.

The pipe can be exchanged at any time; the new one listens before the old one goes. What an IDE sends reaches
`on_message` in order, also when the IDE has left meanwhile; what is sent to nobody is dropped. Nothing that a client
does ends more than its own connection, and `close` leaves neither task nor socket.
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

MAX_WAITING_MESSAGES = 256  # then the IDE has to wait until a handler has finished

OnMessage = Callable[[str, dict[str, Any]], Awaitable[None] | None]


class ChannelProblem(Exception):
    """The channel cannot be bound; says why, and what to do. What was bound before stays."""


class IdeChannel:
    def __init__(
        self,
        *,
        on_message: OnMessage,
        status: Callable[[], Mapping[str, Any]],
        policy: IdeChannelLimits | None = None,
    ) -> None:
        """`status` is asked for the body of the environment status at each connection."""
        self._on_message = on_message
        self._status = status
        self._policy = policy or IdeChannelLimits()
        self._binding: IdePipe | None = None
        self._binding_lock = asyncio.Lock()
        self._closed = False
        self._inbox: asyncio.Queue[IdeMessage] = asyncio.Queue(MAX_WAITING_MESSAGES)
        self._handling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # replaced at each change
        self._had_ide = False
        self._away_since: float | None = None

    @property
    def channel_id(self) -> str | None:
        return self._binding.channel_id if self._binding else None

    @property
    def connected(self) -> bool:
        return self._binding is not None and self._binding.ide is not None

    @property
    def state(self) -> str:
        """For the banner, in the words of the .NET Host, which names pipes so on every system."""
        if self._binding is None:
            return "Not configured"
        return f"{'Connected' if self.connected else 'Configured'}: {WINDOWS_FOLDER}{self._binding.channel_id}"

    async def bind(self, channel_id: str | None) -> None:
        """Listen on that pipe instead of the current one; on none when it is blank. ChannelProblem when it cannot."""
        async with self._binding_lock:
            if self._closed:
                raise ChannelProblem("The IDE channel is closed, because the Host is stopping. Start it again.")
            try:
                await self._bind(channel_id if channel_id and not channel_id.isspace() else None)
            except PipeProblem as problem:
                raise ChannelProblem(str(problem)) from problem

    async def ready(self) -> None:
        """Returns when there is no channel, or an IDE has connected to it: before that, nobody would hear an app."""
        while self._binding is not None and not self._binding.visited:
            await self._changed.wait()

    def send(self, type_name: str, body: Mapping[str, Any]) -> None:
        """To the IDE, without waiting, from any thread. ValueError or TypeError when JSON cannot hold the body."""
        binding = self._binding
        ide = binding.ide if binding else None
        if ide is None:
            log.debug(f"No IDE is connected: {type_name} is dropped.")
        else:
            ide.send(type_name, body)

    async def wait_disconnected_for(self, seconds: float) -> None:
        """Returns when an IDE that had connected has been away for that long; another pipe starts the time anew."""
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
        current = self._binding
        if current is not None and current.channel_id == channel_id:
            if not current.listening:
                await current.open()
            return
        new = None
        if channel_id is not None:
            new = IdePipe(
                channel_id,
                status=self._status,
                deliver=self._take,
                on_change=self._note_change,
                policy=self._policy,
            )
            await new.open()
        self._binding = new
        self._note_change()
        if current is not None:
            await current.close()

    def _note_change(self) -> None:
        self._had_ide = self._had_ide or self.connected
        waiting_for_ide = self._had_ide and self._binding is not None and not self.connected
        self._away_since = asyncio.get_running_loop().time() if waiting_for_ide else None
        self._changed.set()
        self._changed = asyncio.Event()

    async def _take(self, message: IdeMessage) -> None:
        if message.type_name == message_types.KEEP_ALIVE:
            return  # a client's end is noticed without it
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


MAX_CLIENTS = 8  # one is served; the others are being told to go

REFUSAL = message_types.error_notification(
    "Uno Dev Server",
    "Another IDE is connected to this dev server. Close the solution there, or start a dev server for this IDE.",
)


class IdePipe:
    def __init__(
        self,
        channel_id: str,
        *,
        status: Callable[[], Mapping[str, Any]],
        deliver: Callable[[IdeMessage], Awaitable[None]],
        on_change: Callable[[], None],
        policy: IdeChannelLimits,
    ) -> None:
        self.channel_id = channel_id
        self.ide: IdeConnection | None = None
        self.visited = False  # whether an IDE has ever connected
        self._status = status
        self._deliver = deliver
        self._on_change = on_change
        self._policy = policy
        self._closed = False
        self._listener: Listener | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @property
    def listening(self) -> bool:
        return self._listener is not None and self._listener.reachable

    async def open(self) -> None:
        """Listen, or listen again where the socket was removed; PipeProblem when that cannot be."""
        previous, self._listener = self._listener, await listen(self.channel_id, self._arrived)
        log.info(f"IDE channel {self.channel_id}: waiting for an IDE on {self._listener.path}")
        if previous is not None:
            await previous.close()

    async def close(self) -> None:
        self._closed = True  # for those who arrive while the pipe is being closed
        if self._listener is not None:
            await self._listener.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed or len(self._clients) >= MAX_CLIENTS:
            writer.transport.abort()
            return
        client = asyncio.create_task(self._attend(IdeConnection(reader, writer, self._policy)))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _attend(self, connection: IdeConnection) -> None:
        try:
            if self.ide is not None:
                await _wait_for_end(self.ide, self._policy.takeover_seconds)
            if self.ide is not None:
                log.warn(f"IDE channel {self.channel_id}: a second IDE was refused; one is connected.")
                connection.send(message_types.NOTIFICATION, REFUSAL)
            else:
                await self._serve(connection)
        finally:
            await connection.close()

    async def _serve(self, connection: IdeConnection) -> None:
        self.ide = connection
        self.visited = True
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
