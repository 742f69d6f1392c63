"""One pipe of the IDE channel, and who is on it: one IDE at a time, any number one after the other.

The pipe listens for as long as it is open, whatever its clients do. While an IDE is connected, another one is told so
in a notification that it can show, and let go; the first does not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...system.log import log
from ...system.pipes import Listener, listen
from . import messages
from .connection import Connection, Policy
from .envelopes import Message
from .framing import FramingProblem
from .rpc import RpcProblem

MAX_CLIENTS = 8  # one is served; the others are being told to go

REFUSAL = messages.error_notification(
    "Uno Dev Server",
    "Another IDE is connected to this dev server. Close the solution there, or start a dev server for this IDE.",
)


class Binding:
    def __init__(
        self,
        channel_id: str,
        *,
        status: Callable[[], Mapping[str, Any]],
        deliver: Callable[[Message], Awaitable[None]],
        on_change: Callable[[], None],
        policy: Policy,
    ) -> None:
        self.channel_id = channel_id
        self.ide: Connection | None = None
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
        client = asyncio.create_task(self._attend(Connection(reader, writer, self._policy)))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _attend(self, connection: Connection) -> None:
        try:
            if self.ide is not None:
                await _wait_for_end(self.ide, self._policy.takeover_seconds)
            if self.ide is not None:
                log.warn(f"IDE channel {self.channel_id}: a second IDE was refused; one is connected.")
                connection.send(messages.NOTIFICATION, REFUSAL)
            else:
                await self._serve(connection)
        finally:
            await connection.close()

    async def _serve(self, connection: Connection) -> None:
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


async def _wait_for_end(connection: Connection, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await connection.ended.wait()
    except TimeoutError:
        pass
