"""Servers made with the official SDK, handed over by an add-in and served in process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from support.addins import HANDSHAKE, MODERN, AddInFolder, health_of, text_of
from support.waiting import until
from uno_devserver.host.addins.manager import AddInLimits
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError

BOTH_ERAS = pytest.mark.parametrize("version", [HANDSHAKE, MODERN])

SERVER = '''
import warnings
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import Completion, PromptReference, SamplingMessage, TextContent
from pydantic import BaseModel

warnings.simplefilter("ignore")

class Name(BaseModel):
    name: str

@asynccontextmanager
async def lifespan(server):
    log = Path(__file__).with_name("lifespan")
    log.write_text("entered")
    try:
        yield {"greeting": "Hello"}
    finally:
        log.write_text("left")

server = MCPServer("theirs", version="9", lifespan=lifespan)

@server.tool(title="Greet someone")
async def greet(name: str, ctx: Context) -> str:
    """Greet."""
    return f"{ctx.request_context.lifespan_context['greeting']} {name}"

@server.tool()
def add(a: int, b: int = 1) -> int:
    return a + b

@server.tool()
def fail() -> str:
    raise ValueError("theirs")

@server.tool()
async def talk(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    await ctx.info("working")
    await ctx.debug("details")
    return ctx.request_id

@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who?", Name)
    return answer.data.name

def who() -> Elicit[Name]:
    return Elicit("Who, before anything else?", Name)

@server.tool()
async def resolved(name: Annotated[Name, Resolve(who)]) -> str:
    return name.name

@server.tool()
async def sample(ctx: Context) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="What?"))
    result = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    return result.content.text

@server.tool()
async def roots(ctx: Context) -> str:
    return str((await ctx.session.list_roots()).roots[0].uri)

@server.tool()
async def more(name: str, ctx: Context) -> None:
    server.add_tool(lambda: "new", name=name)
    await ctx.notify_tools_changed()
    await ctx.session.send_resource_list_changed()
    await ctx.notify_resource_updated("theirs://note")

@server.tool()
async def hang_up(ctx: Context) -> None:
    await ctx.close_sse_stream()

@server.resource("theirs://note", mime_type="text/markdown")
def note() -> str:
    return "# Note"

@server.resource("theirs://day/{day}")
def day(day: str) -> str:
    return f"day {day}"

@server.prompt()
def review(file: str) -> str:
    return f"Review {file}."

@server.completion()
async def complete(ref, argument, context):
    if isinstance(ref, PromptReference) and argument.name == "file":
        return Completion(values=[f"{argument.value}.py"])
    return None

def register(addin):
    addin.serve(server)
    addin.tool(name="own")(lambda: "ours")
'''


@pytest.fixture
def theirs(addins: AddInFolder) -> str:
    return addins.write("theirs.py", SERVER)


@BOTH_ERAS
async def test_their_offers_are_merged_with_ours(addins: AddInFolder, theirs: str, version: str) -> None:
    async with addins.serve(theirs, version=version) as client:
        tools = await client.tools()
        resources = (await client.request("resources/list"))["resources"]
        templates = (await client.request("resources/templates/list"))["resourceTemplates"]
        prompts = (await client.request("prompts/list"))["prompts"]

    assert list(tools)[:4] == ["uno_health", "own", "greet", "add"]
    assert tools["greet"]["title"] == "Greet someone"
    assert [resource["uri"] for resource in resources] == ["uno://health", "theirs://note"]
    assert [template["uriTemplate"] for template in templates] == ["theirs://day/{day}"]
    assert [prompt["name"] for prompt in prompts] == ["review"]


@BOTH_ERAS
async def test_their_tools_answer_and_fail_as_theirs_do(addins: AddInFolder, theirs: str, version: str) -> None:
    async with addins.serve(theirs, version=version) as client:
        greeted = await client.call("greet", name="Ada")
        added = await client.call("add", a=1)
        wrong = await client.call("add", a="x")
        failed = await client.call("fail")
        ours = await client.call("own")

    assert text_of(greeted) == "Hello Ada"
    assert added["structuredContent"] == {"result": 2}
    assert wrong["isError"]
    assert failed["isError"]
    assert text_of(ours) == "ours"
    assert "_meta" not in greeted  # the client speaks with the Host, not with a server called "theirs"


@BOTH_ERAS
async def test_what_they_tell_reaches_the_caller(addins: AddInFolder, theirs: str, version: str) -> None:
    meta: dict[str, Any] = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}
    async with addins.serve(theirs, version=version) as client:
        result = await client.request("tools/call", {"name": "talk", "arguments": {}, "_meta": meta})

    assert text_of(result) == "7"
    assert client.told[:2] == [
        ("notifications/progress", {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}),
        ("notifications/message", {"level": "info", "data": "working"}),
    ]
    # The SDK leaves the filter to the endpoint in the handshake era, and filters itself in the modern one.
    assert len(client.told) == (3 if version == HANDSHAKE else 2)


async def test_a_client_that_refuses_is_an_error_to_them(addins: AddInFolder, theirs: str) -> None:
    async with addins.serve(theirs) as client:
        with pytest.raises(RpcError) as raised:
            await client.call("sample")

    assert (raised.value.code, raised.value.message) == (
        -32601,
        "The test's client has no answer to 'sampling/createMessage'; set client.answers.",
    )


@BOTH_ERAS
async def test_their_resources_prompts_and_completions_answer(addins: AddInFolder, theirs: str, version: str) -> None:
    argument = {"name": "file", "value": "main"}
    async with addins.serve(theirs, version=version) as client:
        note = await client.request("resources/read", {"uri": "theirs://note"})
        day = await client.request("resources/read", {"uri": "theirs://day/7"})
        prompt = await client.request("prompts/get", {"name": "review", "arguments": {"file": "a.py"}})
        completion = await client.request(
            "completion/complete", {"ref": {"type": "ref/prompt", "name": "review"}, "argument": argument}
        )

    assert note["contents"] == [{"uri": "theirs://note", "mimeType": "text/markdown", "text": "# Note"}]
    assert day["contents"][0]["text"] == "day 7"
    assert prompt["messages"][0]["content"]["text"] == "Review a.py."
    assert completion["completion"]["values"] == ["main.py"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "none"}, INVALID_PARAMS),
        ("resources/read", {"uri": "theirs://none"}, RESOURCE_NOT_FOUND),
        ("prompts/get", {"name": "none"}, INVALID_PARAMS),
        ("prompts/get", {"name": "review", "arguments": {"file": 1}}, INVALID_PARAMS),
    ],
)
async def test_what_they_do_not_have_is_unknown_as_everywhere(
    addins: AddInFolder, theirs: str, method: str, params: dict[str, Any], code: int
) -> None:
    async with addins.serve(theirs) as client:
        with pytest.raises(RpcError) as raised:
            await client.request(method, params)

    assert raised.value.code == code


async def test_changes_they_publish_reach_all_clients(addins: AddInFolder, theirs: str) -> None:
    async with addins.serve(theirs) as client:
        await client.call("more", name="extra")
        await until(lambda: len(client.announced) == 3)
        said = await client.call("extra")

    assert text_of(said) == "new"
    assert client.announced == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/list_changed", None),
        ("notifications/resources/updated", {"uri": "theirs://note"}),
    ]


async def test_their_lifespan_lasts_as_long_as_the_host(addins: AddInFolder, theirs: str) -> None:
    log = addins.folder / "lifespan"
    async with addins.serve(theirs):
        assert log.read_text() == "entered"

    assert log.read_text() == "left"


@pytest.mark.parametrize("failure", ["OSError", "SystemExit"])
async def test_a_lifespan_that_fails_leaves_the_add_in_out(addins: AddInFolder, failure: str) -> None:
    path = addins.write("theirs.py", SERVER.replace('log.write_text("entered")', f'raise {failure}("no log")'))
    async with addins.serve(path) as client:
        tools = await client.tools()
        health = await health_of(client)

    assert list(tools) == ["uno_health"]
    assert health["addIns"][0]["error"].startswith(f"its start failed: {failure}: no log (")


async def test_a_lifespan_that_takes_too_long_is_given_up(addins: AddInFolder) -> None:
    source = SERVER.replace(
        "    try:\n        yield", "    try:\n        import asyncio\n        await asyncio.sleep(60)\n        yield"
    )
    log = addins.folder / "lifespan"
    async with addins.serve(addins.write("theirs.py", source), limits=AddInLimits(start=0.3)) as client:
        (status,) = client.addins.status.addins
        await until(lambda: log.read_text() == "left")

    assert status.error == "its start failed: it took more than 0.3 s"


async def test_a_lifespan_ends_when_the_rest_of_the_add_in_fails(addins: AddInFolder) -> None:
    path = addins.write("theirs.py", SERVER + "    addin.on_start(lambda: 1 / 0)\n")
    log = addins.folder / "lifespan"
    async with addins.serve(path) as client:
        await until(lambda: log.read_text() == "left")
        assert not client.addins.status.addins[0].loaded


async def test_names_they_share_with_others_go_to_the_first(addins: AddInFolder, theirs: str) -> None:
    before = addins.register("before.py", 'addin.tool(name="greet")(lambda: "before")')
    after = addins.register("after.py", 'addin.tool(name="add")(lambda: "after")')

    async with addins.serve(before, theirs, after) as client:
        said = [text_of(await client.call("greet")), text_of(await client.call("add", a=1))]
        names = list(await client.tools())
        _, second, third = client.addins.status.addins

    assert said == ["before", "2"]
    assert len(names) == len(set(names))
    assert second.error == f"the tool 'greet' is refused: add-in {before} offers it already"
    assert third.error == f"the tool 'add' is refused: add-in {theirs} offers it already"


async def test_a_name_that_an_add_in_offers_twice_is_its_own_functions(addins: AddInFolder) -> None:
    path = addins.write("theirs.py", SERVER + "    addin.tool(name='greet')(lambda: 'ours')\n")
    async with addins.serve(path) as client:
        said = await client.call("greet")
        names = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]

    assert text_of(said) == "ours"
    assert len(names) == len(set(names))


async def test_a_handler_of_theirs_that_exits_ends_its_call_only(addins: AddInFolder) -> None:
    path = addins.write("low.py", LOW_LEVEL.replace("RuntimeError('low failure')", "KeyboardInterrupt"))
    async with addins.serve(path) as client:
        with pytest.raises(RpcError) as raised:
            await client.call("low2")
        alive = text_of(await client.call("low1"))

    assert (raised.value.code, raised.value.message) == (INTERNAL_ERROR, "KeyboardInterrupt")
    assert alive == "low1"


async def test_a_resource_of_theirs_that_fails_is_not_called_unknown(addins: AddInFolder) -> None:
    source = """
import mcp_types as types
from mcp.server.lowlevel import Server

async def read(ctx, params):
    raise RuntimeError("no disk")

def register(addin):
    addin.serve(Server("low", on_read_resource=read))
"""
    async with addins.serve(addins.write("low.py", source)) as client:
        with pytest.raises(RpcError) as raised:
            await client.request("resources/read", {"uri": "x://y"})

    assert (raised.value.code, raised.value.message) == (INTERNAL_ERROR, "RuntimeError: no disk")


async def test_a_client_may_lose_its_stream_to_them(addins: AddInFolder, theirs: str) -> None:
    async with addins.serve(theirs) as client:
        await client.call("hang_up")

    assert client.told == [("close", None)]


LOW_LEVEL = """
import mcp_types as types
from mcp.server.lowlevel import Server

async def list_tools(ctx, params):
    page = int(params.cursor or 0) if params else 0
    tool = types.Tool(name=f"low{page}", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool], next_cursor=str(page + 1) if page < 2 else None)

async def call_tool(ctx, params):
    if params.name == "low2":
        raise RuntimeError('low failure')
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.name)])

def register(addin):
    addin.serve(Server("low", on_list_tools=list_tools, on_call_tool=call_tool))
"""


@BOTH_ERAS
async def test_a_low_level_server_is_served_with_all_its_pages(addins: AddInFolder, version: str) -> None:
    path = addins.write("low.py", LOW_LEVEL)
    async with addins.serve(path, version=version) as client:
        called = await client.call("low1")
        names = list(await client.tools())
        resources = (await client.request("resources/list"))["resources"]
        with pytest.raises(RpcError) as raised:
            await client.call("low2")

    assert text_of(called) == "low1"
    assert names == ["uno_health", "low0", "low1", "low2"]
    assert len(resources) == 1
    assert (raised.value.code, raised.value.message) == (INTERNAL_ERROR, "RuntimeError: low failure")


async def test_a_list_that_never_ends_is_cut(addins: AddInFolder) -> None:
    path = addins.write("low.py", LOW_LEVEL.replace("if page < 2 else None", ""))
    async with addins.serve(path) as client:
        names = list(await client.tools())

    assert len(names) == 101


async def test_tools_are_counted_as_they_are_listed(addins: AddInFolder) -> None:
    first = addins.register("a.py", "@addin.tool\ndef low1() -> None: pass\n\n@addin.tool\ndef more() -> None: pass")
    low = addins.write("low.py", LOW_LEVEL)
    high = addins.write(
        "high.py",
        """
        from mcp.server.mcpserver import MCPServer
        server = MCPServer("high")

        @server.tool()
        def add() -> None:
            server.add_tool(lambda: None, name="added")

        def register(addin):
            addin.serve(server)
        """,
    )
    async with addins.serve(first, low, high) as client:
        counts = []
        for _ in range(2):
            await health_of(client)
            counts.append((1 + client.addins.tool_count, len(await client.tools())))
            await client.call("add")

    assert counts == [(6, 6), (7, 7)]  # the second low1 is refused


async def test_a_server_that_does_not_list_holds_up_no_health_report(addins: AddInFolder) -> None:
    source = """
    import asyncio
    from mcp.server.lowlevel import Server
    asked = []

    async def list_tools(ctx, params):
        asked.append(1)
        await asyncio.Event().wait()

    def register(addin):
        addin.serve(Server("silent", on_list_tools=list_tools))
        addin.health(lambda: str(len(asked)))
    """
    async with addins.serve(addins.write("silent.py", source), limits=AddInLimits(health=0.05)) as client:
        for _ in range(3):
            report = await asyncio.wait_for(health_of(client), 30)

    assert report["addIns"][0]["detail"] == "1"  # it is not asked again
    assert [(call["kind"], call["name"]) for call in report["running"]] == [("request", "tools/list")]


async def test_something_else_than_a_server_is_refused(addins: AddInFolder) -> None:
    async with addins.serve_register("addin.serve('server')") as client:
        (status,) = client.addins.status.addins

    assert "TypeError: serve() takes an MCPServer or a low-level Server of the SDK, not str" in str(status.error)


async def test_a_cancelled_call_ends_theirs(addins: AddInFolder) -> None:
    source = SERVER.replace(
        "def register",
        """
@server.tool()
async def linger() -> None:
    import asyncio
    begun = Path(__file__).with_name("begun")
    begun.touch()
    try:
        await asyncio.sleep(60)
    finally:
        begun.with_name("ended").touch()

def register""",
    )
    path = addins.write("theirs.py", source)
    async with addins.serve(path) as client:
        call = asyncio.create_task(client.call("linger"))
        await until((addins.folder / "begun").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert (addins.folder / "ended").exists()


def test_the_sdk_is_imported_by_an_add_in_that_brings_it_and_by_nothing_else(addins: AddInFolder) -> None:
    path = addins.register("plain.py", 'addin.tool(name="plain")(lambda: 1)')
    program = f"""
import asyncio, sys
from uno_devserver.host.addins.manager import AddInManager
async def main():
    addins = AddInManager(workspace=".")
    addins.load([{path!r}])
    await addins.start()
    assert addins.status.well, addins.status
    await addins.stop()
asyncio.run(main())
print([name for name in ("mcp", "mcp_types", "pydantic", "anyio", "starlette") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (result.stdout, result.stderr) == ("[]\n", "Add-in plain is loaded: 1 tool.\n")
