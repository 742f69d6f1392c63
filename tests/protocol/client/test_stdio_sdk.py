"""The official SDK's server on pipes, in both eras: everything that it does reaches whoever is meant."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from support.waiting import until
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.pipe_lines import PipeLines
from uno_devserver.protocol.client.stdio import StdioConnection
from uno_devserver.protocol.jsonrpc import RpcError

if sys.platform == "win32":
    from asyncio.windows_utils import Popen  # an event loop can wait for the pipes of this class
else:
    from subprocess import Popen

SERVER = """
from typing import Annotated
import anyio
from pydantic import BaseModel
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve

server = MCPServer("official", version="9", instructions="Read me.")


class Colour(BaseModel):
    name: str


async def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
async def paint(wall: str, colour: Annotated[Colour, Resolve(ask_colour)]) -> str:
    return f"{wall} in {colour.name}"


@server.tool()
async def steps(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
    await ctx.info("half way")
    return "done"


@server.tool()
async def forever() -> str:
    await anyio.sleep_forever()


@server.tool()
async def change(ctx: Context) -> str:
    await ctx.notify_tools_changed()  # by subscription
    await ctx.notify_resource_updated("note://one")
    if ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_updated("note://one")
    return "changed"


@server.resource("note://one")
def note() -> str:
    return "noted"


server.run()
"""


@pytest.mark.parametrize("modern", [False, True])
async def test_the_official_server_is_understood(tmp_path: Path, modern: bool) -> None:
    process = Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, bufsize=0
    )
    try:
        await _conversation(process, modern)
    finally:
        process.kill()
        process.wait()


async def _conversation(process: subprocess.Popen[bytes], modern: bool) -> None:
    assert process.stdin
    assert process.stdout
    peer = TestPeer("ide", modern=modern, elicitation={"form": {}})
    lines = PipeLines(lambda: None)
    connection = StdioConnection(peer, lines)
    await lines.open(process.stdout, process.stdin, connection)
    await connection.begin(modern_first=modern)
    caller = TestPeer(
        log_level="info",
        elicitation={"form": {}},
        answer=lambda method, params: {"action": "accept", "content": {"name": f"red ({params['message']})"}},
    )

    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "mine"}}
        return dict(json.loads(bytes(await connection.request("tools/call", params, caller))))

    # who it is, and what it has
    assert connection.server.modern is modern
    assert (connection.server.info["name"], connection.server.instructions) == ("official", "Read me.")
    tools = json.loads(bytes(await connection.request("tools/list", {}, caller)))["tools"]
    assert [tool["name"] for tool in tools] == ["paint", "steps", "forever", "change"]

    # it asks: by a request, or by a result
    painted = await call("paint", wall="north")
    assert painted["content"][0]["text"] == "north in red (Which colour?)"
    assert [method for method, _, _ in caller.asked] == ["elicitation/create"]

    # it tells
    assert (await call("steps"))["content"][0]["text"] == "done"
    heard = [params for method, params in caller.heard if method == "notifications/progress"]
    assert [(params["progressToken"], params["progress"]) for params in heard] == [
        ("mine", 0),
        ("mine", 1),
        ("mine", 2),
    ]
    logged = caller if modern else peer  # only a modern request says that it wants a log
    assert [params["data"] for method, params in logged.heard if method == "notifications/message"] == ["half way"]

    # what changes
    peer.heard.clear()
    await connection.watch(frozenset({"note://one"} if modern else ()))
    await call("change")
    changes = ["notifications/tools/list_changed", "notifications/resources/updated"]
    await until(lambda: peer.methods() == changes)

    # refusals and cancellation
    with pytest.raises(RpcError):
        await connection.request("no/such", {}, caller)
    forever = asyncio.ensure_future(call("forever"))
    await asyncio.sleep(0)
    forever.cancel()
    assert (await call("paint", wall="south"))["content"][0]["text"].startswith("south")

    # the end
    forever = asyncio.ensure_future(call("forever"))
    await asyncio.sleep(0)
    lines.close_output()
    with pytest.raises((ConnectionLost, RpcError)):  # it finds the time to say that it closes, or not
        await forever
    await lines.over.wait()
    lines.close()
