"""The proxy for clients that speak HTTP: `/mcp` and `/health` on loopback, beside the client on stdio.

A port that cannot be had is an issue, and the proxy goes on without: the client on stdio matters more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...issues import warning
from ...protocol.http.guard import guard_for
from ...protocol.http.listening import ListenProblem, PortTaken, open_sockets
from ...protocol.http.messages import Answer, Request, Response
from ...protocol.http.server import HttpServer
from ...protocol.streamable import StreamableHttp
from ...system.log import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...issues import Issue
    from ...protocol.service import Params, Service

MCP, HEALTH = "/mcp", "/health"
JSON = (("Content-Type", "application/json"),)
WELL, UNWELL = 200, 503
GRACE_SECONDS = 0.05  # the proxy has to be gone within 300 ms, with everything that it holds


class HttpFace:
    def __init__(self, endpoint: StreamableHttp, server: HttpServer) -> None:
        self._endpoint = endpoint
        self._server = server

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def address(self) -> str:
        return f"http://localhost:{self.port}{MCP}"

    def broadcast(self, method: str, params: Params | None = None) -> None:
        """Tell every client."""
        self._endpoint.broadcast(method, params)

    def resource_updated(self, uri: str) -> None:
        self._endpoint.resource_updated(uri)

    async def close(self) -> None:
        await self._endpoint.close()
        await self._server.stop(GRACE_SECONDS)


async def open_face(port: int, service: Service, health: Callable[[], dict[str, object]]) -> HttpFace | Issue:
    """Serve there; the issue where that is not possible. Either is told in the log, too."""
    try:
        sockets = open_sockets(port)
    except (PortTaken, ListenProblem) as problem:
        why = f"port {port} is taken by another program" if isinstance(problem, PortTaken) else str(problem)
        issue = warning("HttpNotServed", f"MCP is not served over HTTP: {why}.")
        log.warn(f"{issue.message} {issue.remediation}")
        return issue
    endpoint = StreamableHttp(service)
    server = HttpServer(_Routes(endpoint, health).handle, sockets, guard=guard_for(None))
    await server.start()
    face = HttpFace(endpoint, server)
    log.info(f"Serving MCP over HTTP at {face.address}")
    return face


class _Routes:
    def __init__(self, endpoint: StreamableHttp, health: Callable[[], dict[str, object]]) -> None:
        self._endpoint = endpoint
        self._health = health

    async def handle(self, request: Request) -> Answer:
        place = request.path.lower().rstrip("/")
        if place == MCP:
            return await self._endpoint.handle(request)
        if place == HEALTH:
            return self._answer_health(request)
        return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', JSON)

    def _answer_health(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, headers=(("Allow", "GET"),))
        report = self._health()
        status = UNWELL if report.get("status") == "Unhealthy" else WELL
        return Response(status, json.dumps(report).encode(), JSON)
