"""Commands as upstreams, in tests: started, spoken to, and ended with the test."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from support.hosts import is_running
from support.mcp_peers import TestPeer
from uno_devserver.protocol.client.connection import Connection
from uno_devserver.proxy.upstream.command_launch import CommandUpstream
from uno_devserver.proxy.upstream.command_process import CommandLimits, CommandProcess
from uno_devserver.proxy.upstream.launcher import UpstreamObserver


class Observer(UpstreamObserver):
    def __init__(self) -> None:
        self.launched: list[tuple[str, int | None]] = []
        self.strays: list[str] = []
        self.wanted = True

    def launching(self, what: str, process_id: int | None) -> None:
        self.launched.append((what, process_id))

    def said(self, message: str, *, warning: bool = False) -> None:
        raise AssertionError(f"nothing is to be said: {message}")

    def strayed(self, line: str) -> None:
        self.strays.append(line)

    def go_on(self) -> bool:
        return self.wanted


def upstream(command: Iterable[str], folder: Path, path: str | None = None, **limits: Any) -> CommandUpstream:
    environ = os.environ if path is None else {**os.environ, "PATH": path}
    return CommandUpstream(tuple(command), str(folder), environ, str(folder / "state"), CommandLimits(**limits))


@asynccontextmanager
async def started(source: CommandUpstream, observer: Observer | None = None) -> AsyncIterator[CommandProcess]:
    running = source.start(observer or Observer())
    assert isinstance(running, CommandProcess)
    try:
        yield running
    finally:
        await running.stop()
        assert not is_running(running.process_id)


async def call(connection: Connection, name: str, peer: TestPeer | None = None, **arguments: Any) -> dict[str, Any]:
    """The result of a call."""
    raw = await connection.request("tools/call", {"name": name, "arguments": arguments}, peer or TestPeer())
    return decoded(raw)


async def text(connection: Connection, name: str, peer: TestPeer | None = None, **arguments: Any) -> str:
    """What a tool says."""
    return str((await call(connection, name, peer, **arguments))["content"][0]["text"])


def decoded(raw: msgspec.Raw) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(bytes(raw))
    return value
