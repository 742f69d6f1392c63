"""Add-ins behind a real Host, called with the official SDK's client, in both eras."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from support.addins import AddInFolder
from support.bundled import BundledHost

from .test_sdk import SERVER

BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])

OURS = """
class Name(Struct):
    name: str

@addin.tool
async def our_ask(ctx: Context) -> str:
    return (await ctx.elicit("Who?", Name)).content.name

@addin.tool
async def our_sample(ctx: Context) -> str:
    return (await ctx.sample("What?"))["content"]["text"]

@addin.tool
async def our_roots(ctx: Context) -> str:
    return (await ctx.roots())[0]["uri"]

@addin.tool
def our_talk(ctx: Context) -> str:
    ctx.progress(1, 2, "half")
    ctx.log("info", "working")
    return str(ctx.request_id)

@addin.resource("ours://note")
def note() -> str:
    return "ours"
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundledHost]:
    folder: Path = tmp_path_factory.mktemp("host")
    addins = AddInFolder(folder)
    paths = [addins.register("ours.py", OURS), addins.write("their server.py", SERVER)]
    with BundledHost(folder, "--addins", ";".join(paths)) as host:
        yield host


async def _elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def _sample(context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="That."))


async def _roots(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult(roots=[Root.model_validate({"uri": "file:///a"})])


def client_of(host: BundledHost, mode: str, **options: Any) -> Client:
    warnings.simplefilter("ignore")  # the SDK finds sampling, roots and logging old-fashioned
    return Client(
        host.url,
        mode=mode,
        elicitation_callback=_elicit,
        sampling_callback=_sample,
        list_roots_callback=_roots,
        **options,
    )


@BOTH_ERAS
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("our_ask", "Ada"),
        ("our_sample", "That."),
        ("our_roots", "file:///a"),
        ("ask", "Ada"),
        ("resolved", "Ada"),
        ("sample", "That."),
        ("roots", "file:///a"),
    ],
)
async def test_a_tool_asks_its_client(host: BundledHost, mode: str, tool: str, said: str) -> None:
    async with client_of(host, mode) as client:
        result = await client.call_tool(tool)

    assert [block.text for block in result.content if isinstance(block, TextContent)] == [said]
    assert not result.is_error


@BOTH_ERAS
@pytest.mark.parametrize("tool", ["our_talk", "talk"])
async def test_a_tool_tells_its_client(host: BundledHost, mode: str, tool: str) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    logged: list[tuple[str, Any]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def on_log(params: Any) -> None:
        logged.append((params.level, params.data))

    async with client_of(host, mode, logging_callback=on_log, log_level="info") as client:
        await client.call_tool(tool, progress_callback=on_progress)

    assert steps == [(1, 2, "half")]
    assert logged == [("info", "working")]


@BOTH_ERAS
async def test_everything_is_listed_once_and_can_be_read(host: BundledHost, mode: str) -> None:
    async with client_of(host, mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        ours = await client.read_resource("ours://note")
        theirs = await client.read_resource("theirs://note")
        prompt = await client.get_prompt("review", {"file": "a.py"})

    assert tools[:5] == ["uno_health", "our_ask", "our_sample", "our_roots", "our_talk"]
    assert len(tools) == len(set(tools))
    assert resources == ["uno://health", "ours://note", "theirs://note"]
    assert [contents.contents[0].text for contents in (ours, theirs)] == ["ours", "# Note"]  # type: ignore[union-attr]
    assert isinstance(prompt.messages[0].content, TextContent)


def test_health_counts_the_tools_that_clients_see(host: BundledHost) -> None:
    report = host.health()
    listed = host.mcp("tools/list", session=host.open_session()).json["result"]["tools"]

    assert report["toolCount"] == len(listed)
