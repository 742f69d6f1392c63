"""One client on the IDE channel.

Sending never waits. A client that does not read keeps its connection, but what it leaves unread is limited: beyond
that, messages to it are dropped, and its own are not read. The time for closing is limited too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...system.event_loop import in_loop
from ...system.log import log
from ...system.values import Value
from . import framing, json_rpc, message_types
from .json_rpc import IdeMessage

READ_BYTES = 64 * 1024


class IdeChannelLimits(Value):
    keep_alive_seconds: float = 10.0  # the interval that IDE extensions expect
    takeover_seconds: float = 0.25  # an IDE that reconnects may arrive before its old connection ends
    close_seconds: float = 0.5  # for a client to read the rest; then the connection is aborted
    max_unsent_bytes: int = 16 * 1024 * 1024  # a few large hot reload messages for an IDE that hangs for a moment


class IdeConnection:
    """The connection of a client that is served or refused."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: IdeChannelLimits) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._assembly = json_rpc.ASSEMBLY
        self._dropping = False
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()

    async def serve(self, status: Mapping[str, Any], deliver: Callable[[IdeMessage], Awaitable[None]]) -> None:
        """Serve the client until it disconnects; raises FramingProblem or RpcProblem if it violates the protocol."""
        self.send(message_types.KEEP_ALIVE, message_types.keep_alive())
        self.send(message_types.STATUS, status)
        keeping_alive = asyncio.create_task(self._keep_alive())
        try:
            await self._read(deliver)
        except ConnectionError:
            pass
        finally:
            keeping_alive.cancel()
            self.ended.set()

    def send(self, type_name: str, body: Mapping[str, Any]) -> None:
        """Send a message without waiting. Safe from any thread."""
        content = json_rpc.message_to_ide(type_name, message_types.with_scope(type_name, body), self._assembly)
        in_loop(self._loop, self._send, type_name, content)

    async def close(self) -> None:
        """Close the connection; before that, send what is unsent if the client reads it within the limit."""
        self._writer.close()
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._writer.wait_closed()
        except (TimeoutError, ConnectionError):
            self._writer.transport.abort()

    async def _read(self, deliver: Callable[[IdeMessage], Awaitable[None]]) -> None:
        decoder = framing.FrameDecoder()
        while data := await self._reader.read(READ_BYTES):
            for content in decoder.feed(data):
                received = json_rpc.receive(content)
                if received.reply is not None:
                    self._write(received.reply)
                if received.message is not None:
                    self._learn(received.message)
                    await deliver(received.message)
            await self._writer.drain()
        if decoder.unfinished:
            log.warn("The IDE disconnected in the middle of a message.")

    def _learn(self, message: IdeMessage) -> None:
        """Use the assembly name of the IDE's messages from now on, because the IDE can certainly resolve it."""
        if message.assembly.partition(",")[0].strip() == json_rpc.ASSEMBLY:
            self._assembly = message.assembly

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._limits.keep_alive_seconds)
            self.send(message_types.KEEP_ALIVE, message_types.keep_alive())

    def _send(self, type_name: str, content: bytes) -> None:
        unsent = self._writer.transport.get_write_buffer_size()
        if unsent + len(content) > self._limits.max_unsent_bytes:
            if not self._dropping:
                log.warn(f"The IDE does not read its messages: {type_name} and those that follow are dropped.")
            self._dropping = True
            return
        self._dropping = False
        self._write(content)

    def _write(self, content: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(framing.encode_message(content))
