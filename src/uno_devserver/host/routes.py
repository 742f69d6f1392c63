"""Which part of the Host answers which path. Paths ignore case, as in the .NET Host."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ..protocol.http.messages import Answer, Request, Response, Upgrade
from ..protocol.streamable import StreamableHttp
from .ide.channel import IdeChannel
from .ide.http import rebind
from .launch_routes import PREFIX as APPLAUNCH
from .launch_routes import applaunch
from .launches import LaunchMonitor
from .rc.endpoint import RemoteControl

IDE_CHANNEL = "/devserver/idechannel/"
JSON = (("Content-Type", "application/json"),)


class Routes:
    def __init__(
        self,
        mcp: StreamableHttp,
        remote_control: RemoteControl,
        launches: LaunchMonitor,
        ide: IdeChannel,
        rebound: Callable[[str], None],
        health: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        self._mcp = mcp
        self._remote_control = remote_control
        self._applaunch = applaunch(launches)
        self._ide = ide
        self._rebound = rebound
        self._health = health

    async def handle(self, request: Request) -> Answer:
        path = request.path.lower()
        place = path.rstrip("/")
        if place == "/mcp":
            return await self._mcp.handle(request)
        if place == "/rc":
            return Upgrade(self._remote_control.serve)
        if place == "/health":
            return await self._answer_health(request)
        if path.startswith(APPLAUNCH):
            return await self._applaunch(request)
        if path.startswith(IDE_CHANNEL):
            return await rebind(request, request.path[len(IDE_CHANNEL) :], self._ide, self._rebound)
        return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', JSON)

    async def _answer_health(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, headers=(("Allow", "GET"),))
        return Response(200, json.dumps(await self._health()).encode(), JSON)
