"""The inspector's HTTP server: the page, its events, MCP, and health, on loopback, behind a token.

A port that is taken is no reason to fail: the next free one is used. When `close` returns, the port is free again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..issues import warning
from ..protocol.http.listening import HIGHEST_PORT, ListenProblem, PortTaken, open_sockets
from ..protocol.http.messages import Answer, Request, Response
from ..protocol.http.server import HttpServer
from ..system.log import log
from .access import is_known, stranger
from .assets import HEADERS, NOT_FOUND, PREFIX, asset, page, refused_page

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ..issues import Issue
    from ..protocol.http.messages import Handler
    from .feed import Feed

MAX_CONNECTIONS = 128  # some pages with some requests each; the proxy may serve MCP over HTTP beside it
ATTEMPTS = 50  # ports that are tried behind the wanted one
PAGE, MCP, HEALTH, EVENTS = "", "/mcp", "/health", "/events"
HEALTHY, NOT_HEALTHY = 200, 503
JSON = (("Content-Type", "application/json"),)
NO_TOKEN = b'{"error": "the token is missing or wrong; uno-devserver inspect --no-open prints the URL that has it"}'
GRACE_SECONDS = 0.05  # the proxy has to be gone within 300 ms, with everything that it holds


class Inspector:
    def __init__(self, server: HttpServer, token: str, feed: Feed) -> None:
        self._server = server
        self._feed = feed
        self.port = server.port
        self.address = f"http://localhost:{server.port}"
        self.url = f"{self.address}/?token={token}"

    async def close(self) -> None:
        self._feed.close()
        await self._server.stop(GRACE_SECONDS)


async def open_inspector(
    port: int, token: str, *, mcp: Handler, health: Callable[[], dict[str, object]], feed: Feed
) -> Inspector | Issue:
    """Serve there, or on the next free port; 0: on any. The issue where that is not possible."""
    try:
        sockets = _sockets(port)
    except (PortTaken, ListenProblem) as problem:
        return warning("InspectorNotServed", f"The inspector page is not served: {_reason(problem, port)}.")
    routes = _Routes(token, mcp, health, feed)
    server = HttpServer(routes.handle, sockets, guard=stranger, max_connections=MAX_CONNECTIONS, extra_headers=HEADERS)
    await server.start()
    if port not in (0, server.port):
        log.info(f"Port {port} is taken: the inspector uses {server.port}.")
    return Inspector(server, token, feed)


def _sockets(port: int) -> list[socket.socket]:
    last = min(port + ATTEMPTS, HIGHEST_PORT) if port else 0
    while True:
        try:
            return open_sockets(port)
        except PortTaken:
            if port >= last:
                raise
            port += 1


def _reason(problem: OSError, port: int) -> str:
    if not isinstance(problem, PortTaken):
        return str(problem)
    if problem.port == port:
        return f"port {port} is taken by another program, and there is none behind it"
    return f"port {port} and the {problem.port - port} behind it are taken by other programs"


class _Routes:
    def __init__(self, token: str, mcp: Handler, health: Callable[[], dict[str, object]], feed: Feed) -> None:
        self._token = token
        self._mcp = mcp
        self._health = health
        self._feed = feed

    async def handle(self, request: Request) -> Answer:
        if request.path.startswith(PREFIX):  # the same for everybody, and no secret
            return asset(request.path.removeprefix(PREFIX)) if reads(request) else only_read()
        place = request.path.lower().rstrip("/")
        if not is_known(request, self._token):
            return refused_page() if place == PAGE else Response(401, NO_TOKEN, JSON)
        if place == MCP or place.startswith(f"{MCP}/"):
            return await self._mcp(request)
        if place not in (PAGE, HEALTH, EVENTS):
            return NOT_FOUND
        if not reads(request):
            return only_read()
        if place == PAGE:
            return page()
        return self._feed.answer() if place == EVENTS else health_answer(self._health())


def health_answer(report: dict[str, object]) -> Response:
    """With a status that monitors understand."""
    status = HEALTHY if report.get("status") == "Healthy" else NOT_HEALTHY
    return Response(status, json.dumps(report).encode(), JSON)


def reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def only_read() -> Response:
    return Response(405, headers=(("Allow", "GET, HEAD"),))
