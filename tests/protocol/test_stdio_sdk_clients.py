"""The official SDK's client against the endpoint over real pipes, in both eras."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

from .conversations import asynchronous, until
from .sdk_answers import ANSWERS

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # old eras are our topic

ROOT = Path(__file__).parents[2]
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
VERSION_OF = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


def launched(mode: str, **callbacks: Any) -> Client:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.protocol.stdio_server"], cwd=ROOT, env=dict(os.environ)
    )
    return Client(stdio_client(command), mode=mode, **callbacks)


def said(result: mcp_types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, mcp_types.TextContent)
    return content.text


@ERAS
@asynchronous
async def test_tools_are_listed_and_called(mode: str) -> None:
    async with launched(mode) as client:
        listed = await client.list_tools()
        results = await asyncio.gather(*(client.call_tool("echo", {"text": f"{n} é"}) for n in range(50)))

        assert client.protocol_version == VERSION_OF[mode]
        assert "echo" in [tool.name for tool in listed.tools]
        assert [said(result) for result in results] == [f"{n} é" for n in range(50)]
        with pytest.raises(MCPError) as refused:
            await client.list_prompts()
        assert refused.value.code == mcp_types.METHOD_NOT_FOUND


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@asynchronous
async def test_the_client_knows_who_it_talks_to(mode: str) -> None:
    async with launched(mode) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.instructions) == ("scripted", "Be nice.")
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed


@ERAS
@asynchronous
async def test_progress_arrives_before_the_answer(mode: str) -> None:
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with launched(mode) as client:
        result = await client.call_tool("work", {}, progress_callback=on_progress)

        assert said(result) == "worked"
        await until(lambda: seen == [0.0, 1.0, 2.0])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@asynchronous
async def test_log_messages_arrive_from_the_level_that_was_asked_for(mode: str) -> None:
    heard: list[object] = []

    async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    async with launched(mode, logging_callback=on_log, log_level="warning") as client:
        if mode == "legacy":
            await client.set_logging_level("warning")
        await client.call_tool("chat", {})

        await until(lambda: heard == ["warning", "error"])


@ERAS
@asynchronous
async def test_the_client_is_asked_for_input_samples_and_roots(mode: str) -> None:
    async with launched(mode, **ANSWERS) as client:
        result = await client.call_tool("curious", {})

        assert said(result) == "['Who? Ada', 'sampled', 'file:///work']"


@ERAS
@asynchronous
async def test_a_client_without_the_capability_is_not_asked(mode: str) -> None:
    async with launched(mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("curious", {})

        assert refused.value.code == mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY


@ERAS
@asynchronous
async def test_a_client_that_gives_up_cancels_the_call(mode: str) -> None:
    waiting = asyncio.Event()

    async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
        waiting.set()

    async with launched(mode, logging_callback=on_log, log_level="error") as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await waiting.wait()
        call.cancel()

        assert said(await client.call_tool("until_cancelled", {})) == "it was"


@asynchronous
async def test_changes_are_pushed_in_the_handshake_era() -> None:
    heard: list[str] = []

    async def on_message(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            heard.append("tools")
        elif isinstance(message, mcp_types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async with launched("legacy", message_handler=on_message) as client:
        await client.session.subscribe_resource("file:///a")
        await client.call_tool("change", {})

        await until(lambda: heard == ["tools", "file:///a"])


@asynchronous
async def test_changes_are_told_to_subscribers_in_the_modern_era() -> None:
    async with launched("auto") as client:
        async with client.listen(tools_list_changed=True, resource_subscriptions=["file:///a"]) as subscription:
            await client.call_tool("change", {})
            assert await anext(subscription) == ToolsListChanged()
            assert await anext(subscription) == ResourceUpdated(uri="file:///a")
        # Ended by the client; the next one is ended by the server, which says so.
        async with client.listen(tools_list_changed=True) as subscription:
            with pytest.raises(MCPError):
                await client.call_tool("leave", {})
            with pytest.raises(StopAsyncIteration):
                await anext(subscription)
