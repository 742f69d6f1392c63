"""The inspector's HTTP server: the page, its events, MCP, and health, on loopback, protected by a token.

If the port is taken, the next free one is used. When `close` returns, the port is free again.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from ..issues import warning
from ..protocol.http.messages import Answer, Request, Response
from ..protocol.http.server import HIGHEST_PORT, HttpServer, ListenProblem, open_sockets
from ..protocol.http.server_connection import HttpLimits
from ..system.files import FileProblem, read_bytes
from ..system.log import log
from ..system.ports import PortTaken
from .access import is_known, page_refusal

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ..issues import Issue
    from ..protocol.http.messages import Handler
    from .feed import Feed

LIMITS = HttpLimits(max_connections=128)  # enough for 20 pages with a few requests each
ATTEMPTS = 50  # how many ports are tried after the requested one
PAGE, MCP, HEALTH, EVENTS = "", "/mcp", "/health", "/events"
HEALTHY, NOT_HEALTHY = 200, 503
JSON = (("Content-Type", "application/json"),)
NOT_FOUND = Response(404, b'{"error": "there is nothing here"}', JSON)
NO_TOKEN = b'{"error": "the token is missing or wrong; uno-devserver inspect --no-open prints the URL that has it"}'
GRACE_SECONDS = 0.05  # the proxy has to end within 300 ms

PAGE_FOLDER = os.path.join(os.path.dirname(__file__), "page")
ASSETS_PREFIX = "/assets/"
# No script in a tool's answer can run, and nothing is loaded from other sites.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),  # the URL contains the token
    ("X-Content-Type-Options", "nosniff"),
)
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FRESH = ("Cache-Control", "no-store")  # another version may soon answer on this port
_NAME = re.compile(r"(?:[a-z][a-z0-9-]*/)?[a-z][a-z0-9-]*\.(?P<kind>css|js|svg)")


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
    """Serve on this port or the next free one, or on any if it is 0; return an issue if none can be opened."""
    try:
        sockets = _sockets(port)
    except (PortTaken, ListenProblem) as problem:
        return warning("InspectorNotServed", f"The inspector page is not served: {_reason(problem, port)}.")
    routes = _Routes(token, mcp, health, feed)
    server = HttpServer(routes.handle, sockets, guard=page_refusal, limits=LIMITS, extra_headers=HEADERS)
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
        return f"port {port} is taken by another program, and no port follows it"
    return f"port {port} and the {problem.port - port} after it are taken by other programs"


class _Routes:
    def __init__(self, token: str, mcp: Handler, health: Callable[[], dict[str, object]], feed: Feed) -> None:
        self._token = token
        self._mcp = mcp
        self._health = health
        self._feed = feed

    async def handle(self, request: Request) -> Answer:
        if request.path.startswith(ASSETS_PREFIX):  # public, so without a token
            return asset(request.path.removeprefix(ASSETS_PREFIX)) if reads(request) else only_read()
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
    """The health report, with a status code for monitors."""
    status = HEALTHY if report.get("status") == "Healthy" else NOT_HEALTHY
    return Response(status, json.dumps(report).encode(), JSON)


def reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def only_read() -> Response:
    return Response(405, headers=(("Allow", "GET, HEAD"),))


def page() -> Response:
    return _file("index.html", "html")


def refused_page() -> Response:
    return _file("refused.html", "html", 401)


def asset(name: str) -> Response:
    """The file with that path below the folder of the page."""
    found = _NAME.fullmatch(name)
    return _file(name, found["kind"]) if found else NOT_FOUND


def _file(name: str, kind: str, status: int = 200) -> Response:
    try:
        body = read_bytes(os.path.join(PAGE_FOLDER, name))
    except (FileNotFoundError, FileProblem):
        return NOT_FOUND
    return Response(status, body, (("Content-Type", MEDIA_TYPES[kind]), FRESH))
