"""An IDE's end of the channel, and a channel to connect it to.

Written from the protocol's description, and not with the code under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Self

from support.machine import WINDOWS
from uno_devserver.host.ide import message_types
from uno_devserver.host.ide.channel import IdeChannel
from uno_devserver.host.ide.connection import IdeChannelLimits
from uno_devserver.system import pipe_clients
from uno_devserver.system.pipes import pipe_path

SECONDS = 10  # more than anything here takes on a busy machine
NAMESPACE = "Uno.UI.RemoteControl.Messaging.IdeChannel"
ASSEMBLY = "Uno.UI.RemoteControl.Messaging"
Received = list[tuple[str, dict[str, Any]]]


def of_this_process(channel_id: str | None) -> str | None:
    """Windows keeps all pipes in one place, where each process that runs tests needs its own."""
    return f"{channel_id}-{os.getpid()}" if WINDOWS and channel_id else channel_id


@contextlib.asynccontextmanager
async def open_channel(channel_id: str | None = "one", **options: Any) -> AsyncIterator[tuple[IdeChannel, Received]]:
    """A channel that is bound, and the list of what IDEs have sent to it."""
    received: Received = []
    limits = IdeChannelLimits(
        **{name: options.pop(name) for name in tuple(options) if name in IdeChannelLimits.__annotations__}
    )
    options.setdefault("on_message", lambda name, body: received.append((name, body)))
    options.setdefault("status", message_types.environment_status)
    channel = IdeChannel(limits=limits, **options)
    await channel.bind(of_this_process(channel_id))
    try:
        async with asyncio.timeout(SECONDS):
            yield channel, received
    finally:
        await channel.close()
        for ide in Ide.connected:
            ide.writer.transport.abort()
            await ide.leave()
        Ide.connected.clear()


class Ide:
    connected: ClassVar[list[Ide]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.connected.append(self)

    @classmethod
    async def connect(cls, channel_id: str = "one") -> Self:
        if WINDOWS:
            return cls(*await pipe_clients.connect(pipe_path(of_this_process(channel_id) or "")))
        return cls(*await asyncio.open_unix_connection(f"{os.environ['TMPDIR']}/CoreFxPipe_{channel_id}"))

    @classmethod
    async def greeted(cls, channel_id: str = "one") -> Self:
        """Connected, with the two messages that everyone gets out of the way."""
        ide = await cls.connect(channel_id)
        assert (await ide.message())[0] == "KeepAliveIdeMessage"
        assert (await ide.message())[0] == "DevelopmentEnvironmentStatusIdeMessage"
        return ide

    def send(self, frame: str | bytes) -> None:
        self.writer.write(frame.encode() if isinstance(frame, str) else frame)

    def send_json(self, content: object) -> None:
        data = json.dumps(content).encode()
        self.send(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def call(self, call_id: int | str, type_name: str, body: object, assembly: str = ASSEMBLY) -> None:
        envelope = {"MessageType": f"{NAMESPACE}.{type_name}, {assembly}", "MessageBody": json.dumps(body)}
        self.send_json({"jsonrpc": "2.0", "id": call_id, "method": "SendToDevServerAsync", "params": [envelope]})

    async def frame(self) -> bytes:
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"Content-Length: ")
        return head + await self._reader.readexactly(int(head.split()[1]))

    async def content(self) -> Any:
        return json.loads((await self.frame()).partition(b"\r\n\r\n")[2])

    async def envelope(self) -> dict[str, str]:
        content = await self.content()
        assert content["method"] == "MessageFromDevServer"
        [envelope] = content["params"]
        assert isinstance(envelope, dict)
        return envelope

    async def message(self) -> tuple[str, dict[str, Any]]:
        envelope = await self.envelope()
        return envelope["MessageType"].partition(",")[0].rpartition(".")[2], json.loads(envelope["MessageBody"])

    async def rest(self) -> bytes:
        """Everything until the Host ends the connection."""
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""

    async def leave(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()
