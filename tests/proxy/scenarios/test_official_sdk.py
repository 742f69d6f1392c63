"""The official SDK at both ends: its client in front of the proxy, its server behind it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters

from support.machine import COMMAND
from support.proxies import Proxies

from .conftest import Workbench

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # old eras are our topic

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
VERSION_OF = {"legacy": "2025-11-25", "auto": "2026-07-28"}

SERVER = '''
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("weather", instructions="Ask for the weather.")


class Place(BaseModel):
    city: str


@server.tool()
async def forecast(city: str, ctx: Context) -> str:
    """Tomorrow's weather."""
    await ctx.report_progress(1, 2, "looking")
    return f"Sun in {city}"


@server.tool()
async def where(ctx: Context) -> str:
    """Ask the user for a place."""
    answer = await ctx.elicit("Where?", Place)
    return f"{answer.action}: {answer.data.city}"


@server.resource("weather://today")
def today() -> str:
    return "rain"


@server.prompt()
def pack(city: str) -> str:
    return f"What do I need in {city}?"


server.run()
'''


@asynccontextmanager
async def connected(proxies: Proxies, mode: str, *options: str, **callbacks: Any) -> AsyncIterator[Client]:
    machine = proxies.machine
    words = ["mcp", "start", "--mcp-wait-tools-list", "--wait-calls", *options]
    server = StdioServerParameters(command=COMMAND, args=words, env=machine.variables(), cwd=machine.workspace)
    async with Client(server, mode=mode, **callbacks) as client:
        yield client


def said(result: mcp_types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, mcp_types.TextContent)
    return content.text


async def elicit(_: ClientRequestContext, params: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"city": f"{params.message} Rome"})


async def sample(_: ClientRequestContext, params: Any) -> mcp_types.CreateMessageResult:
    content = mcp_types.TextContent(type="text", text=f"{len(params.messages)} messages")
    return mcp_types.CreateMessageResult(role="assistant", content=content, model="m")


@ERAS
async def test_the_sdks_client_works_with_the_host_behind_the_proxy(
    proxies: Proxies, bench: Workbench, mode: str
) -> None:
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with connected(proxies, mode, sampling_callback=sample) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(20)))
        await client.call_tool("progress", {"steps": 3}, progress_callback=on_progress)
        message = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9}
        asked = await client.call_tool("ask", {"method": "sampling/createMessage", "params": message})
        note = await client.read_resource("bench://note")
        prompt = await client.get_prompt("greet", {"who": "Ada"})

        assert client.protocol_version == VERSION_OF[mode]
        assert {"echo", "uno_health"} <= tools
        assert [said(result) for result in results] == [str(n) for n in range(20)]
        assert seen == [1, 2, 3]
        assert "1 messages" in said(asked)
        assert note.contents[0].text == "nothing"  # type: ignore[union-attr]
        assert prompt.messages[0].content.text == "Hello, Ada!"  # type: ignore[union-attr]


@ERAS
async def test_the_sdks_server_works_behind_the_proxy(proxies: Proxies, tmp_path: Path, mode: str) -> None:
    file = tmp_path / "weather.py"
    file.write_text(SERVER, "utf-8")

    async with connected(proxies, mode, "--", sys.executable, "-P", str(file), elicitation_callback=elicit) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        forecast = await client.call_tool("forecast", {"city": "Montréal"})
        today = await client.read_resource("weather://today")
        prompt = await client.get_prompt("pack", {"city": "Oslo"})

        assert {"forecast", "where", "uno_health"} <= tools
        assert said(forecast) == "Sun in Montréal"
        if mode == "legacy":  # in the modern era the SDK's servers cannot ask in the midst of a call
            assert said(await client.call_tool("where", {})) == "accept: Where? Rome"
        assert today.contents[0].text == "rain"  # type: ignore[union-attr]
        assert "Oslo" in prompt.messages[0].content.text  # type: ignore[union-attr]
