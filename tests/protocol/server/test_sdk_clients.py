"""The official SDK's client against the endpoint on real sockets, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types
import pytest
from mcp.client import Client
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata

from protocol.conversations import echo
from support.waiting import until
from uno_devserver.protocol.http.server import HttpServer, open_sockets
from uno_devserver.protocol.server.limits import DEFAULT_ENDPOINT_LIMITS
from uno_devserver.protocol.server.streamable_http import StreamableHttp
from uno_devserver.protocol.service import Call, Result

from ..conversations import WAIT_SECONDS, ScriptedService, text

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # old eras are our topic


async def _elicit(context: ClientRequestContext, params: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"name": f"{params.message} Ada"})


async def _sample(context: ClientRequestContext, params: Any) -> mcp_types.CreateMessageResult:
    return mcp_types.CreateMessageResult(
        role="assistant", model="m", content=mcp_types.TextContent(type="text", text="sampled")
    )


async def _roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})


ANSWERS: dict[str, Any] = {
    "elicitation_callback": _elicit,
    "sampling_callback": _sample,
    "list_roots_callback": _roots,
}


ERAS = pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
VERSION_OF = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def serving(service: ScriptedService, **limits: Any) -> AsyncIterator[tuple[StreamableHttp, str]]:
    endpoint = StreamableHttp(service, DEFAULT_ENDPOINT_LIMITS.replace(**limits))
    server = HttpServer(endpoint.handle, open_sockets(0))
    await server.start()
    try:
        yield endpoint, f"http://127.0.0.1:{server.port}/mcp"
    finally:
        await endpoint.close()
        await server.stop()


def said(result: mcp_types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, mcp_types.TextContent)
    return content.text


@ERAS
async def test_tools_are_listed_and_called(mode: str) -> None:
    async with serving(ScriptedService(echo=echo)) as (endpoint, url), Client(url, mode=mode) as client:
        listed = await client.list_tools()
        results = await asyncio.gather(*(client.call_tool("echo", {"text": f"{n} é"}) for n in range(20)))

        assert client.protocol_version == VERSION_OF[mode]
        assert [tool.name for tool in listed.tools] == ["echo"]
        assert [said(result) for result in results] == [f"{n} é" for n in range(20)]
        assert endpoint.session_count == (1 if mode == "legacy" else 0)
    assert endpoint.session_count == 0


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_client_knows_who_it_talks_to(mode: str) -> None:
    async with serving(ScriptedService()) as (_, url), Client(url, mode=mode) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("scripted", "1.2.3")
        assert client.instructions == "Be nice."
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed


@ERAS
async def test_an_unknown_method_is_told_as_such(mode: str) -> None:
    async with serving(ScriptedService()) as (_, url), Client(url, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.list_prompts()

    assert refused.value.code == mcp_types.METHOD_NOT_FOUND


@ERAS
async def test_progress_arrives_before_the_answer(mode: str) -> None:
    async def work(call: Call) -> Result:
        for step in range(3):
            token = call.params["_meta"]["progressToken"]
            call.notify(
                "notifications/progress", {"progressToken": token, "progress": step, "total": 3, "message": "m"}
            )
        return text("worked")

    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with serving(ScriptedService(work=work)) as (_, url), Client(url, mode=mode) as client:
        result = await client.call_tool("work", {}, progress_callback=on_progress)

        assert said(result) == "worked"
        await until(lambda: seen == [(0.0, 3.0, "m"), (1.0, 3.0, "m"), (2.0, 3.0, "m")])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_log_messages_arrive_from_the_level_that_was_asked_for(mode: str) -> None:
    async def chat(call: Call) -> Result:
        for level in ("debug", "warning", "error"):
            call.notify("notifications/message", {"level": level, "data": level})
        return text("chatted")

    heard: list[object] = []

    async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    async with (
        serving(ScriptedService(chat=chat)) as (_, url),
        Client(url, mode=mode, logging_callback=on_log, log_level="warning") as client,
    ):
        if mode == "legacy":
            await client.set_logging_level("warning")
        await client.call_tool("chat", {})

        await until(lambda: heard == ["warning", "error"])


QUESTION = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}


@ERAS
async def test_the_client_is_asked_for_input_samples_and_roots(mode: str) -> None:
    async def curious(call: Call) -> Result:
        elicited = await call.ask("elicitation/create", QUESTION)
        sampled = await call.ask("sampling/createMessage", SAMPLING)
        roots = await call.ask("roots/list", {})
        return text([elicited["content"]["name"], sampled["content"]["text"], roots["roots"][0]["uri"]])

    async with (
        serving(ScriptedService(curious=curious)) as (_, url),
        Client(url, mode=mode, **ANSWERS) as client,
    ):
        result = await client.call_tool("curious", {})

    assert said(result) == "['Who? Ada', 'sampled', 'file:///work']"


@ERAS
async def test_a_client_without_the_capability_is_not_asked(mode: str) -> None:
    async def curious(call: Call) -> Result:
        return await call.ask("elicitation/create", QUESTION)

    async with serving(ScriptedService(curious=curious)) as (_, url), Client(url, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("curious", {})

    assert refused.value.code == mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_changes_are_pushed_in_the_handshake_era() -> None:
    heard: list[str] = []

    async def on_message(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            heard.append("tools")
        elif isinstance(message, mcp_types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))

    async with (
        serving(ScriptedService()) as (endpoint, url),
        Client(url, mode="legacy", message_handler=on_message) as client,
    ):
        await client.session.subscribe_resource("file:///a")
        endpoint.broadcast("notifications/tools/list_changed")
        endpoint.resource_updated("file:///a")
        endpoint.resource_updated("file:///b")

        await until(lambda: heard == ["tools", "file:///a"])


async def test_changes_are_told_to_subscribers_in_the_modern_era() -> None:
    async with (
        serving(ScriptedService()) as (endpoint, url),
        Client(url) as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["file:///a"]) as subscription,
    ):
        endpoint.broadcast("notifications/prompts/list_changed")
        endpoint.broadcast("notifications/tools/list_changed")
        endpoint.resource_updated("file:///a")

        assert await anext(subscription) == ToolsListChanged()
        assert await anext(subscription) == ResourceUpdated(uri="file:///a")
        await endpoint.close()
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)


@ERAS
async def test_a_client_that_gives_up_cancels_the_call(mode: str) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> Result:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    service = ScriptedService(wait=wait, echo=echo)
    async with serving(service, plain_answer_seconds=0.05) as (_, url), Client(url, mode=mode) as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await started.wait()
        call.cancel()

        await asyncio.wait_for(stopped.wait(), WAIT_SECONDS)
        assert said(await client.call_tool("echo", {"text": "still here"})) == "still here"


async def test_a_call_that_closes_its_connection_is_polled() -> None:
    async def poll(call: Call) -> Result:
        call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        call.close_stream()
        return text("polled")

    async def silent(call: Call) -> Result:
        call.close_stream()
        await asyncio.sleep(0.05)
        return text("polled")

    async with (
        serving(ScriptedService(poll=poll, silent=silent), retry_ms=10) as (_, url),
        Client(url, mode="legacy") as client,
    ):
        assert said(await client.call_tool("poll", {})) == "polled"
        assert said(await client.call_tool("silent", {})) == "polled"


async def test_a_client_resumes_what_it_had_lost() -> None:
    go = asyncio.Event()

    async def slow(call: Call) -> Result:
        call.notify("notifications/message", {"level": "info", "data": "begun"})
        await go.wait()
        call.notify("notifications/message", {"level": "info", "data": "ended"})
        return text("resumed")

    tokens: list[str] = []
    heard: list[object] = []

    async def on_token(token: str) -> None:
        tokens.append(token)

    async def on_log(params: mcp_types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    service = ScriptedService(slow=slow)
    request = mcp_types.CallToolRequest(params=mcp_types.CallToolRequestParams(name="slow", arguments={}))
    async with serving(service) as (_, url):
        transport = streamable_http_client(url, terminate_on_close=False)
        async with Client(transport, mode="legacy", logging_callback=on_log) as client:
            metadata = ClientMessageMetadata(on_resumption_token_update=on_token)
            lost = asyncio.create_task(
                client.session.send_request(request, mcp_types.CallToolResult, metadata=metadata)
            )
            await until(lambda: heard == ["begun"] and len(tokens) == 2)
            lost.cancel()
        go.set()

        session_id = service.sessions[0].id  # type: ignore[attr-defined]
        async with (
            httpx2.AsyncClient(headers={"mcp-session-id": session_id}) as http,
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(*streams, logging_callback=on_log) as session,
        ):
            metadata = ClientMessageMetadata(resumption_token=tokens[-1])
            result = await session.send_request(request, mcp_types.CallToolResult, metadata=metadata)

    assert said(result) == "resumed"
    assert heard == ["begun", "ended"]


async def test_clients_of_both_eras_work_side_by_side() -> None:
    async with (
        serving(ScriptedService(echo=echo)) as (_, url),
        Client(url, mode="legacy") as old,
        Client(url) as new,
        Client(url, mode="legacy") as older,
    ):
        calls: list[Callable[[], Awaitable[mcp_types.CallToolResult]]] = [
            lambda client=client, n=n: client.call_tool("echo", {"text": f"{n}"})  # type: ignore[misc]
            for n, client in enumerate([old, new, older] * 10)
        ]
        results = await asyncio.gather(*(call() for call in calls))

    assert [said(result) for result in results] == [str(n) for n in range(30)]
