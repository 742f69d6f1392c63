"""A client in the same process, for tests of add-ins without a Host or a port.

async with serve("notes.py") as client:
    result = await client.call("count_notes", folder="docs")
    assert result["structuredContent"] == {"notes": 3}
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ...protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from ...protocol.peer_info import ClientInfo, ServerInfo
from ...protocol.service import Params, Result
from ..health import health_report
from ..mcp_service import HostService
from .manager import AddInManager

VERSION = "2025-11-25"
CAPABILITIES: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}

Answers = Callable[[str, Params], Result]


@asynccontextmanager
async def serve(*paths: str, workspace: str = ".", **settings: str) -> AsyncIterator[Client]:
    """Load and start add-ins, and stop them at the end; RuntimeError if one does not work."""
    client = Client(workspace=os.path.abspath(workspace), settings=settings)
    client.addins.load([os.path.abspath(path) for path in paths])
    await client.addins.start()
    try:
        for status in client.addins.status.addins:
            if not status.well:
                raise RuntimeError(f"{status.path}: {status.error}")
        yield client
    finally:
        await client.addins.stop()


class Client:
    """Calls what the add-ins offer, records their notifications, and answers their requests."""

    def __init__(self, version: str = VERSION, **options: Any) -> None:
        """`options` are passed to `AddInManager`."""
        self.told: list[tuple[str, Params | None]] = []  # progress and log messages of all calls, in order
        self.announced: list[tuple[str, Params | None]] = []  # notifications to all clients
        self.asked: list[tuple[str, Params]] = []
        self.log_level: str | None = "debug"
        self.answers: Answers = _no_answer  # the client's answers to sampling, elicitation and roots
        self.session = InProcessSession(version)
        self.addins = AddInManager(
            announce=lambda method, params: self.announced.append((method, params)),
            **options,
        )
        self._service = HostService(self.addins, ServerInfo("tests", "1"), self._health)

    async def request(self, method: str, params: Params | None = None) -> Result:
        """Send any MCP request and return its result; RpcError if it is refused."""
        return await self._service.answer(InProcessCall(self, method, params or {}))

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The descriptions of all tools, by name."""
        return {tool["name"]: tool for tool in (await self.request("tools/list"))["tools"]}

    def _health(self) -> dict[str, Any]:
        return health_report(self.addins.status, version="1", ide_connected=False)


class InProcessSession:
    def __init__(self, version: str) -> None:
        self.client = ClientInfo("tests", "1.0", CAPABILITIES, version)

    def notify(self, method: str, params: Params | None = None) -> None:
        pass  # this client has no stream besides its calls

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(METHOD_NOT_FOUND, "A test's client is asked during its calls only.")


class InProcessCall:
    """One request of the client. Implements `protocol.service.Call`."""

    def __init__(self, client: Client, method: str, params: Params) -> None:
        self.id: int | str = 7
        self.session = client.session
        self.method = method
        self.params = params
        self.log_level = client.log_level
        self._client = client

    def notify(self, method: str, params: Params | None = None) -> None:
        self._client.told.append((method, params))

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:  # noqa: ARG002
        self._client.asked.append((method, params))
        return self._client.answers(method, params)

    def close_stream(self) -> None:
        self._client.told.append(("close", None))


def _no_answer(method: str, _params: Mapping[str, Any]) -> Result:
    raise RpcError(METHOD_NOT_FOUND, f"The test's client has no answer to '{method}'; set client.answers.")
