"""A server made with the official SDK, over Streamable HTTP; prints its port. Arguments: `stateless`, `json`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import CreateMessageResult, JSONRPCMessage, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = MCPServer("official", version="9", instructions="Read me.")


class Colour(BaseModel):
    name: str


async def ask_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


async def ask_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="hi"))], max_tokens=5)


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def paint(wall: str, colour: Annotated[Colour, Resolve(ask_colour)]) -> str:
    return f"{wall} in {colour.name}"


@server.tool()
async def ask_all(
    colour: Annotated[Colour, Resolve(ask_colour)],
    said: Annotated[CreateMessageResult, Resolve(ask_model)],
    roots: Annotated[ListRootsResult, Resolve(ask_roots)],
) -> str:
    assert isinstance(said.content, TextContent)
    return f"{colour.name}, {said.content.text}, {len(roots.roots)}"


@server.tool()
async def steps(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
    await ctx.info("half way")
    return "done"


@server.tool()
async def forever(folder: str) -> str:
    (Path(folder) / "begun").touch()
    try:
        await anyio.sleep_forever()
    finally:
        (Path(folder) / "ended").touch()
    return ""


@server.tool()
async def polled(ctx: Context) -> str:
    await ctx.report_progress(1)
    await ctx.close_sse_stream()
    await anyio.sleep(0.05)
    await ctx.report_progress(2)
    return "polled"


@server.tool()
async def routed(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], fast: bool) -> str:
    return f"{region} {fast}"


@server.tool()
async def fail() -> str:
    raise ValueError("on purpose")


@server.tool()
async def change(ctx: Context) -> str:
    await ctx.notify_tools_changed()  # by subscription
    await ctx.notify_resource_updated("note://one")
    if (ctx.protocol_version or "") < "2026":
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_updated("note://one")
    return "changed"


@server.resource("note://one")
def note() -> str:
    return "noted"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello, {name}!"


class Store(EventStore):
    """Keeps everything."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self._events[int(last_event_id) - 1][0]
        for number, (name, message) in enumerate(self._events, 1):
            if number > int(last_event_id) and name == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    plain = "stateless" in sys.argv
    app = server.streamable_http_app(
        json_response="json" in sys.argv,
        stateless_http=plain,
        event_store=None if plain else Store(),
        retry_interval=None if plain else 20,
    )
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
