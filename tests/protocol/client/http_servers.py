"""MCP servers over HTTP that behave, but for what a test tells them to do otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from support.mcp_peers import HANDSHAKE, MODERN, TestPeer
from support.raw_servers import Asked, RawServer, Visitor
from uno_devserver.protocol.client.connection import Connection
from uno_devserver.protocol.client.http_connect import connect_http

Answer = Callable[[Visitor, Asked], Awaitable[None]]

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
}


class Server:
    """Answers methods by the functions it was given (`on`), and remembers what it was asked."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers  # by the last part of the method, or `get`, `delete`, `responded`
        self.seen: list[Asked] = []

    async def __call__(self, visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            self.seen.append(asked)
            await self._answer(visitor, asked)

    async def _answer(self, visitor: Visitor, asked: Asked) -> None:
        if asked.method != "POST":
            await self.answers.get(asked.method.lower(), self.without_post)(visitor, asked)
            return
        method = asked.json.get("method")
        name = "responded" if method is None else method.rpartition("/")[2]
        await self.answers.get(name, self.otherwise)(visitor, asked)

    async def without_post(self, visitor: Visitor, asked: Asked) -> None:
        visitor.answer(status=200 if asked.method == "DELETE" else 405)

    async def otherwise(self, visitor: Visitor, asked: Asked) -> None:
        refuse(visitor, asked, -32601, f"no {asked.json['method']}")

    def methods(self) -> list[str]:
        """Everything that was posted, or asked for."""
        return [
            asked.json.get("method", "responded") if asked.method == "POST" else asked.method for asked in self.seen
        ]

    def posts(self, method: str) -> list[Asked]:
        return [asked for asked in self.seen if asked.method == "POST" and asked.json.get("method") == method]

    def gets(self) -> list[Asked]:
        return [asked for asked in self.seen if asked.method == "GET"]


class HandshakeServer(Server):
    def __init__(self, **answers: Answer) -> None:
        super().__init__(**answers)
        self.version = HANDSHAKE
        self.sessions = 0

    async def otherwise(self, visitor: Visitor, asked: Asked) -> None:
        message = asked.json
        if message.get("method") == "initialize":
            self.sessions += 1
            visitor.answer_json(answer_to(asked, self.hello()), Mcp_Session_Id=f"session-{self.sessions}")
        elif "id" not in message or "method" not in message:
            visitor.answer(status=202)
        elif message["method"] in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
            say(visitor, asked, {})
        else:
            await super().otherwise(visitor, asked)

    def hello(self) -> dict[str, Any]:
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "raw", "version": "1"},
        }

    def forget(self, visitor: Visitor, asked: Asked, session: str = "session-1") -> bool:
        """Refuse a request of that session, as a server does that was started anew."""
        if asked.headers.get("mcp-session-id") == session:
            refuse(visitor, asked, -32001, "Session not found", status=404)
            return True
        return False


class ModernServer(Server):
    async def otherwise(self, visitor: Visitor, asked: Asked) -> None:
        message = asked.json
        if message.get("method") == "server/discover":
            say(visitor, asked, {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "instructions": "Do."})
        elif message.get("method") == "initialize":
            refuse(visitor, asked, -32601, "no initialize", status=404)
        else:
            await super().otherwise(visitor, asked)


def answer_to(asked: Asked, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.json["id"], "result": result}


def say(visitor: Visitor, asked: Asked, result: dict[str, Any]) -> None:
    visitor.answer_json(answer_to(asked, result))


def refuse(visitor: Visitor, asked: Asked, code: int, message: str = "no", status: int = 200, **more: Any) -> None:
    error = {"code": code, "message": message, **more}
    visitor.answer_json({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}, status)


def refusing(code: int, message: str, status: int, *, unread: bool = False) -> Answer:
    """`unread`: as the official SDKs do before they look at the request, and so without its id."""

    async def call(visitor: Visitor, asked: Asked) -> None:
        error = (
            {"code": code, "message": message, "data": {"x": 1}}
            if code == -32601
            else {"code": code, "message": message}
        )
        visitor.answer_json({"jsonrpc": "2.0", "id": None if unread else asked.json["id"], "error": error}, status)

    return call


def plain(body: bytes, content_type: str = "application/json", status: int = 200) -> Answer:
    """Answers with this, in which %d is the id."""

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(body.replace(b"%d", b"%d" % asked.json["id"]), status=status, Content_Type=content_type)

    return call


async def echo(visitor: Visitor, asked: Asked) -> None:
    say(visitor, asked, {"echo": asked.json["params"]})


async def never(visitor: Visitor, asked: Asked) -> None:
    await visitor.gone()


def read(raw: Any) -> Any:
    return json.loads(bytes(raw))


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def open_events(visitor: Visitor, asked: Asked) -> None:
    """A stream on which nothing happens."""
    visitor.begin_events()
    await visitor.gone()


@asynccontextmanager
async def connected(
    server: Server, peer: TestPeer | None = None, *, modern_first: bool | None = None
) -> AsyncIterator[Connection]:
    """A connection in the server's era."""
    modern = isinstance(server, ModernServer) if modern_first is None else modern_first
    async with RawServer(server) as raw:
        connection = await connect_http(raw.url, peer or TestPeer(), modern_first=modern)
        try:
            yield connection
        finally:
            await asyncio.wait_for(connection.close(), 10)
