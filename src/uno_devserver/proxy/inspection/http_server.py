"""Serves `/mcp` and `/health` over HTTP on loopback. Apart from http_listeners.py, because few proxies import it.

A port that cannot be opened is an issue, and the proxy goes on without it: the client on stdio matters more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...inspector.server import GRACE_SECONDS, HEALTH, JSON, MCP, health_answer, only_read, reads
from ...issues import warning
from ...protocol.http.guard import guard_for
from ...protocol.http.listening import ListenProblem, PortTaken, open_sockets
from ...protocol.http.messages import Answer, Request, Response
from ...protocol.http.server import HttpServer
from ...system.log import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...issues import Issue
    from ...protocol.http.messages import Handler


class HttpEndpoint:
    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self.port = server.port
        self.address = f"http://localhost:{server.port}{MCP}"

    async def close(self) -> None:
        await self._server.stop(GRACE_SECONDS)


async def open_endpoint(port: int, *, mcp: Handler, health: Callable[[], dict[str, object]]) -> HttpEndpoint | Issue:
    """Serve at that port; the issue if that is not possible. Either is logged."""
    try:
        sockets = open_sockets(port)
    except (PortTaken, ListenProblem) as problem:
        why = f"port {port} is taken by another program" if isinstance(problem, PortTaken) else str(problem)
        issue = warning("HttpNotServed", f"MCP is not served over HTTP: {why}.")
        log.warn(f"{issue.message} {issue.remediation}")
        return issue

    async def handle(request: Request) -> Answer:
        path = request.path.lower().rstrip("/")
        if path == MCP:
            return await mcp(request)
        if path == HEALTH:
            return health_answer(health()) if reads(request) else only_read()
        return Response(404, b'{"error": "there is nothing here; MCP is at /mcp"}', JSON)

    server = HttpServer(handle, sockets, guard=guard_for(None))
    await server.start()
    endpoint = HttpEndpoint(server)
    log.info(f"Serving MCP over HTTP at {endpoint.address}")
    return endpoint
