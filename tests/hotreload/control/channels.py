"""A control channel on a real socket, an authority that does as a test says, and a peer that writes what it likes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

from support.machine import WINDOWS
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Demand, RestartResult
from uno_devserver.hotreload.control.messages import NO_ANSWER
from uno_devserver.hotreload.control.server import ControlLimits, ControlServer
from uno_devserver.hotreload.watched_package import WatchedPackage
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.system import pipe_clients

SECONDS = 10.0  # more than anything here takes on a busy machine


class StandIn:
    """An authority whose checks and restarts end when the test lets them."""

    def __init__(self) -> None:
        self.result: CheckResult | Exception = UNCHANGED
        self.outcome: RestartResult | Exception = RestartResult(True)
        self.checks = 0
        self.restarts = 0
        self.goes_on = asyncio.Event()  # checks and restarts wait for it
        self.goes_on.set()
        self.tell: Callable[[str], None] = print
        self.demand = Demand.NEW_CODE  # of the last check

    def news(self) -> bool | None:
        return None

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        self.checks += 1
        self.demand = demand
        self.tell = tell
        await self.goes_on.wait()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def ready_to_restart(self) -> RestartResult:
        self.restarts += 1
        await self.goes_on.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def status(self) -> Mapping[str, Any]:
        return {"enabled": True, "checks": self.checks}

    async def mcp_ready(self) -> Mapping[str, Any]:
        return {"ready": True}


async def open_inspector(port: int | None) -> str:
    """There is a place for it everywhere but at port 1."""
    if port == 1:
        raise RpcError(NO_ANSWER, "Port 1 is taken.")
    return f"http://localhost:{port or 6274}/"


def channel_name(folder: str) -> str:
    """A pipe for this folder alone; Windows keeps them all in one place."""
    return f"uno-{os.path.basename(folder)}" if WINDOWS else f"{folder}/c"


class Opened:
    def __init__(self, channel: ControlServer, authority: StandIn, path: str) -> None:
        self.channel = channel
        self.authority = authority
        self.path = path


@contextlib.asynccontextmanager
async def open_channel(*packages: WatchedPackage, limits: ControlLimits | None = None) -> AsyncIterator[Opened]:
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        authority = StandIn()
        channel = ControlServer(channel_name(folder), authority, packages, open_inspector, limits)
        path = await channel.open()
        try:
            yield Opened(channel, authority, path)
        finally:
            await channel.close()


@contextlib.asynccontextmanager
async def connected(
    *packages: WatchedPackage, limits: ControlLimits | None = None
) -> AsyncIterator[tuple[Opened, Client]]:
    """A channel with one peer."""
    async with open_channel(*packages, limits=limits) as opened:
        yield opened, await Client.connect(opened.path)


class Client:
    """A peer, written from the description of the channel and not with the code under test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._last_id = 0

    @classmethod
    async def connect(cls, path: str) -> Self:
        if WINDOWS:
            return cls(*await pipe_clients.connect(path))
        return cls(*await asyncio.open_unix_connection(path, limit=2**26))

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def stop_reading(self) -> None:
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]

    def ask(self, method: str, params: object = None, **members: object) -> int:
        """The id of the request that was sent."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params, **members}
        self.write(json.dumps(message).encode() + b"\n")
        return self._last_id

    async def hear(self) -> dict[str, Any]:
        """The next message; an empty one at the end of the connection."""
        async with asyncio.timeout(SECONDS):
            line = await self.reader.readline()
        told = json.loads(line or b"{}")
        assert isinstance(told, dict)
        return told

    async def call(self, method: str, params: object = None) -> dict[str, Any]:
        """The answer, whatever else is heard before it."""
        number = self.ask(method, params)
        while (told := await self.hear()).get("id") != number:
            assert told, "the connection has ended"
        return told

    async def result(self, method: str, params: object = None) -> Any:
        return (await self.call(method, params))["result"]

    async def error(self, method: str, params: object = None) -> tuple[int, str]:
        error = (await self.call(method, params))["error"]
        return error["code"], error["message"]
