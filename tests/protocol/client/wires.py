"""A conversation over lines without a process: what the client writes can be read, and what it hears is said here."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from support.mcp_peers import MODERN
from uno_devserver.protocol.client.connection import ConnectionLost, Peer
from uno_devserver.protocol.client.pipe_lines import OutgoingLine, Sendable
from uno_devserver.protocol.client.stdio import StdioConnection
from uno_devserver.protocol.jsonrpc import BUSY, RpcError
from uno_devserver.protocol.lines import LineTooLong

WAIT_SECONDS = 10  # longer than any step takes on a busy machine


class Wire:
    """The server's end. Stands in for `PipeLines`."""

    def __init__(self, peer: Peer) -> None:
        self.strays: list[bytes] = []
        lines: Any = self
        self.connection = StdioConnection(peer, lines, self.strays.append)
        self.room = True  # else lines wait, and are not sent
        self.gone = False
        self.busy = False  # too much waits already
        self.withdrawn: list[Sendable] = []
        self._queued: list[Sendable] = []
        self._lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def begin(self, *, modern_first: bool) -> None:
        await self.connection.begin(modern_first=modern_first)

    def queue(self, line: Sendable) -> None:
        if self.gone:
            raise ConnectionLost("it is gone", sent=False)
        if self.busy:
            raise RpcError(BUSY, "it does not read")
        assert line.data.endswith(b"\n")
        self._queued.append(line)

    def flush(self) -> None:
        queued, self._queued = self._queued, []
        for line in queued:
            line.sent = self.room
            self._lines.put_nowait(json.loads(line.data))

    def write(self, data: bytes) -> OutgoingLine:
        line = OutgoingLine(data + b"\n")
        self.queue(line)
        self.flush()
        return line

    def withdraw(self, line: Sendable) -> bool:
        assert line not in self._queued, "what is queued is flushed first"
        if not line.sent:
            self.withdrawn.append(line)
        return not line.sent

    async def next(self) -> dict[str, Any]:
        """The next message of the client."""
        return await asyncio.wait_for(self._lines.get(), WAIT_SECONDS)

    async def nothing(self) -> None:
        """Holds when the client, having had its turn, has written nothing more."""
        await self.turn()
        assert self._lines.empty(), self._lines.get_nowait()

    async def turn(self) -> None:
        """Let the client do what it has to do."""
        for _ in range(5):
            await asyncio.sleep(0)

    def say(self, **message: Any) -> None:
        self.write_out(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write_out(self, *lines: bytes | LineTooLong) -> None:
        """What the server writes to its output at once."""
        self.connection.received(list(lines))

    def answer(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        self.say(id=request["id"], result=result)

    def refuse(self, request: dict[str, Any], code: int, message: str = "no", **more: Any) -> None:
        self.say(id=request["id"], error={"code": code, "message": message, **more})


DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": "Be nice."}


def initialized(version: str = "2025-11-25", *, logs: bool = True) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"logging": {}} if logs else {}
    return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "s", "version": "2"}}


async def handshake_wire(peer: Peer, *, logs: bool = True) -> Wire:
    """A conversation that has begun in the handshake era."""
    wire = Wire(peer)
    begin = asyncio.ensure_future(wire.begin(modern_first=False))
    wire.answer(await wire.next(), initialized(logs=logs))
    await begin
    assert (await wire.next())["method"] == "notifications/initialized"
    return wire


async def modern_wire(peer: Peer, **capabilities: Any) -> Wire:
    wire = Wire(peer)
    begin = asyncio.ensure_future(wire.begin(modern_first=True))
    wire.answer(await wire.next(), {**DISCOVERED, "capabilities": capabilities})
    await begin
    return wire
