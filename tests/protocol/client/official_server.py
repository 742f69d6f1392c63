"""A server made with the official SDK, over Streamable HTTP; prints its port. Arguments: `stateless`, `json`, `port=…`.

With `sse` it speaks the older HTTP+SSE instead. `guard=<file>`: requests need a token that the file has; the answer is
the status in its first line otherwise. `tls=<file>`: with the certificate and key in that file.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CreateMessageResult, JSONRPCMessage, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

ANY_HOST = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # also one that only a proxy knows
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


class Guard:
    """Counts requests by lines of a file beside the one with the tokens."""

    def __init__(self, app: ASGIApp, file: Path) -> None:
        self._app, self._file = app, file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, *tokens = self._file.read_text().split()
        given = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        with self._file.with_suffix(".asked").open("a") as asked:
            asked.write(f"{scope['method']} {scope['path']}\n")
        if given in tokens:
            await self._app(scope, receive, send)
        else:
            challenge = 'Bearer error="insufficient_scope", scope="admin"' if status == "403" else "Bearer"
            await Response("no", int(status), {"WWW-Authenticate": challenge})(scope, receive, send)


def argument(name: str) -> str | None:
    return next((word.removeprefix(f"{name}=") for word in sys.argv if word.startswith(f"{name}=")), None)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(argument("port") or 0)))
    plain = "stateless" in sys.argv
    app = (
        server.sse_app(transport_security=ANY_HOST)
        if "sse" in sys.argv
        else server.streamable_http_app(
            transport_security=ANY_HOST,
            json_response="json" in sys.argv,
            stateless_http=plain,
            event_store=None if plain else Store(),
            retry_interval=None if plain else 20,
        )
    )
    print(listener.getsockname()[1], flush=True)
    guard, tls = argument("guard"), argument("tls")
    served: ASGIApp = Guard(app, Path(guard)) if guard else app
    uvicorn.Server(uvicorn.Config(served, log_level="warning", ssl_certfile=tls)).run(sockets=[listener])


if __name__ == "__main__":
    main()
