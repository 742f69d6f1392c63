"""An app on `/rc`: the real client against the real server."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from uno_devserver.host.app_launches import LaunchMonitor
from uno_devserver.host.assemblies import assembly_reads
from uno_devserver.host.remote_control.endpoint import RemoteControl
from uno_devserver.host.remote_control.frames import Frame, decode_frame, encode_frame
from uno_devserver.protocol.http.messages import Answer, Request, Upgrade
from uno_devserver.protocol.http.server import HttpServer, open_sockets

VERSION = "6.0.0-real"  # of the recorded Host, so that answers can be compared byte for byte
ANSWER_SECONDS = 10.0
SERVER_SCOPE = "RemoteControlServer"

_markers = itertools.count(1_000_000)


class AppClient:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, scope: str, name: str, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        await self.socket.send(encode_frame(Frame(scope, name, text)))

    async def receive(self) -> Frame:
        return decode_frame(await self._receive_bytes())

    async def ask(self, scope: str, name: str, content: object) -> tuple[str, Any]:
        """Send a frame; name and content of the next one that comes."""
        await self.send(scope, name, content)
        frame = await self.receive()
        return frame.name, json.loads(frame.content)

    async def answers(self) -> list[bytes]:
        """Whatever the Host has sent: all that comes before the answer to one more question."""
        marker = next(_markers)
        await self.send(SERVER_SCOPE, "KeepAliveMessage", {"SequenceId": marker})
        received = []
        while f'"SequenceId":{marker}}}'.encode() not in (data := await self._receive_bytes()):
            received.append(data)
        return received

    async def _receive_bytes(self) -> bytes:
        data = await asyncio.wait_for(self.socket.recv(), ANSWER_SECONDS)
        assert isinstance(data, bytes)
        return data


def remote_control(**options: Any) -> RemoteControl:
    made = {"launches": LaunchMonitor(), "assembly_reads": assembly_reads()}
    return RemoteControl(version=VERSION, **{**made, **options})


@asynccontextmanager
async def served(control: RemoteControl) -> AsyncIterator[int]:
    """The port of a server whose `/rc` is this one."""

    async def handler(_: Request) -> Answer:
        return Upgrade(control.serve)

    server = HttpServer(handler, open_sockets(0))
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop(grace_seconds=0.1)


@asynccontextmanager
async def app_at(port: int) -> AsyncIterator[AppClient]:
    async with connect(f"ws://127.0.0.1:{port}/rc", max_size=None) as socket:
        yield AppClient(socket)


@asynccontextmanager
async def app_of(control: RemoteControl) -> AsyncIterator[AppClient]:
    async with served(control) as port, app_at(port) as app:
        yield app
