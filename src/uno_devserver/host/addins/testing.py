"""For tests of add-ins: a client that speaks with them in process, without a Host, a port or a wait.

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
    """Load and start add-ins, and stop them at the end; RuntimeError when one does not work."""
    addins = AddInManager(workspace=os.path.abspath(workspace), settings=settings)
    client = Client(addins)
    addins.load([os.path.abspath(path) for path in paths])
    await addins.start()
    try:
        for status in addins.status.addins:
            if not status.well:
                raise RuntimeError(f"{status.path}: {status.error}")
        yield client
    finally:
        await addins.stop()


class Client:
    """Calls what the add-ins offer, hears what they tell, and answers what they ask."""

    def __init__(self, addins: AddInManager, version: str = VERSION) -> None:
        self.told: list[tuple[str, Params | None]] = []  # progress and log of all calls, in order
        self.announced: list[tuple[str, Params | None]] = []  # changes that concern every client
        self.asked: list[tuple[str, Params]] = []
        self.log_level: str | None = "debug"
        self.answers: Answers = _no_answer  # what the client says to sampling, elicitation and roots
        self.addins = addins
        self.session = InProcessSession(version)
        addins.announce = lambda method, params: self.announced.append((method, params))
        self._service = HostService(
            addins, ServerInfo("tests", "1"), lambda: health_report(addins.status, version="1", ide_connected=False)
        )

    async def request(self, method: str, params: Params | None = None) -> Result:
        """Any request of MCP; RpcError when it is refused."""
        return await self._service.answer(InProcessCall(self, method, params or {}))

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The descriptions of all tools, by name."""
        return {tool["name"]: tool for tool in (await self.request("tools/list"))["tools"]}


class InProcessSession:
    def __init__(self, version: str) -> None:
        self.client = ClientInfo("tests", "1.0", CAPABILITIES, version)

    def notify(self, method: str, params: Params | None = None) -> None:
        pass  # a test's client keeps no stream open beside its calls

    async def ask(self, method: str, params: Params) -> Result:  # noqa: ARG002
        raise RpcError(METHOD_NOT_FOUND, "A test's client is asked during its calls only.")


class InProcessCall:
    """One request of the client."""

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
