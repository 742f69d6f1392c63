"""The inspector's HTTP server: the page, its events, MCP, and health, on loopback.

Everybody gets the files of the page, which are the same everywhere; the rest needs a credential (see access.py).

If the port is taken, the next free one is used. When `close` returns, the port is free again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from functools import partial
from typing import TYPE_CHECKING

from ..issues import warning
from ..protocol.http.messages import Answer, Request, Response, Streaming
from ..protocol.http.server import HIGHEST_PORT, HttpServer, ListenProblem, open_sockets
from ..protocol.http.server_connection import HttpLimits
from ..system.event_loop import run_in_thread
from ..system.files import FileProblem, read_bytes
from ..system.log import log
from ..system.ports import PortTaken
from .access import CODE, RECORD_SECONDS, OneTimeCodes, has_token, host_of, new_secret, page_refusal, sent_key, url_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ..issues import Issue
    from ..protocol.http.messages import Handler, Sink
    from .access import PageKeys
    from .feed import Feed

LIMITS = HttpLimits(max_connections=128)  # enough for 20 pages with a few requests each
ATTEMPTS = 50  # how many ports are tried after the requested one
PAGE, MCP, HEALTH, EVENTS = "", "/mcp", "/health", "/events"
KEY = "/key"  # exchanges a one-time code for the key of a page
REFUSED = "/refused"  # shown by a page that has no key
OTHER_PAGE = "/other-page"  # opens the page of another proxy
HEALTHY, NOT_HEALTHY = 200, 503
JSON = (("Content-Type", "application/json"),)
NOT_FOUND = Response(404, b'{"error": "there is nothing here"}', JSON)
NOT_ALLOWED = Response(
    401,
    b'{"error": "the token is missing or wrong: uno-devserver inspect --json prints the present one"}',
    JSON,
)
NO_CODE = Response(
    401,
    b'{"error": "this code is wrong, was used, or is too old: run uno-devserver inspect again"}',
    JSON,
)
NO_OTHER_PAGE = Response(404, b'{"error": "this proxy has no page, or does not run any more"}', JSON)
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
    ("Referrer-Policy", "no-referrer"),  # the URL may contain a code or the token
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
    def __init__(self, server: HttpServer, token: str, codes: OneTimeCodes, feed: Feed) -> None:
        self._server = server
        self._codes = codes
        self._feed = feed
        self.port = server.port
        self.address = f"http://localhost:{server.port}/"
        self.token = token

    def new_url(self) -> str:
        """A URL by which a browser opens the page, once."""
        code, host = self._codes.new()
        return url_of(host, self.port, code)

    async def close(self) -> None:
        self._feed.close()
        await self._server.stop(GRACE_SECONDS)


async def open_inspector(
    port: int,
    keys: PageKeys,
    *,
    mcp: Handler,
    health: Callable[[], dict[str, object]],
    feed: Feed,
    other_page: Callable[[int], str | None],
) -> Inspector | Issue:
    """Serve on this port or the next free one, or on any if it is 0; return an issue if none can be opened.

    `other_page` returns the URL that opens the page of another proxy, given its process id; it may block.
    """
    try:
        sockets = _sockets(port)
    except (PortTaken, ListenProblem) as problem:
        return warning("InspectorNotServed", f"The inspector page is not served: {_reason(problem, port)}.")
    token, codes = new_secret(), OneTimeCodes()
    routes = _Routes(token, codes, keys, mcp, health, feed, other_page)
    server = HttpServer(routes.handle, sockets, guard=page_refusal, limits=LIMITS, extra_headers=HEADERS)
    await server.start()
    if port not in (0, server.port):
        log.info(f"Port {port} is taken: the inspector uses {server.port}.")
    return Inspector(server, token, codes, feed)


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
    def __init__(
        self,
        token: str,
        codes: OneTimeCodes,
        keys: PageKeys,
        mcp: Handler,
        health: Callable[[], dict[str, object]],
        feed: Feed,
        other_page: Callable[[int], str | None],
    ) -> None:
        self._token = token
        self._codes = codes
        self._keys = keys
        self._mcp = mcp
        self._health = health
        self._feed = feed
        self._other_page = other_page

    async def handle(self, request: Request) -> Answer:
        if request.path.startswith(ASSETS_PREFIX):
            return asset(request.path.removeprefix(ASSETS_PREFIX)) if reads(request) else only_read()
        place = request.path.lower().rstrip("/")
        if place in (PAGE, REFUSED):
            return only_read() if not reads(request) else page() if place == PAGE else refused_page()
        if place == KEY:
            return await self._new_key(request)
        is_program, key, host = has_token(request, self._token), sent_key(request), host_of(request)
        if not is_program and not await self._is_page(key, host):
            return NOT_ALLOWED
        if place == MCP or place.startswith(f"{MCP}/"):
            return await self._mcp(request)
        if place == CODE:
            return self._new_code(request) if is_program else NOT_ALLOWED
        if place == OTHER_PAGE:
            return await self._open_other(request)
        if place not in (HEALTH, EVENTS):
            return NOT_FOUND
        if not reads(request):
            return only_read()
        if place == HEALTH:
            return health_answer(self._health())
        return self._feed.answer() if is_program else self._events_of_page(key, host)

    async def _is_page(self, key: str, host: str) -> bool:
        if not key:
            return False
        return self._keys.was_just_used(key, host) or await run_in_thread(partial(self._keys.use, key, host))

    async def _new_key(self, request: Request) -> Response:
        if request.method != "POST":
            return only_post()
        host = host_of(request)
        if not self._codes.redeem(request.body, host):
            return NO_CODE
        return _json({"key": await run_in_thread(partial(self._keys.new, host))})

    def _new_code(self, request: Request) -> Response:
        if request.method != "POST":
            return only_post()
        code, host = self._codes.new()
        return _json({"code": code, "host": host})

    async def _open_other(self, request: Request) -> Response:
        if request.method != "POST":
            return only_post()
        pid = request.body.decode("ascii", "replace")
        known = re.fullmatch(r"[1-9][0-9]{0,9}", pid)
        url = await run_in_thread(partial(self._other_page, int(pid))) if known else None
        return NO_OTHER_PAGE if url is None else _json({"url": url})

    def _events_of_page(self, key: str, host: str) -> Answer:
        """The events; while they are read, the page is in use, although it sends no requests."""
        answer = self._feed.answer()
        if not isinstance(answer, Streaming):
            return answer

        async def record() -> None:
            while True:
                await asyncio.sleep(RECORD_SECONDS)
                await run_in_thread(partial(self._keys.use, key, host))

        async def run(sink: Sink) -> None:
            recording = asyncio.create_task(record())
            try:
                await answer.run(sink)
            finally:
                recording.cancel()

        return answer.replace(run=run)


def _json(members: dict[str, object]) -> Response:
    return Response(200, json.dumps(members).encode(), (*JSON, FRESH))


def health_answer(report: dict[str, object]) -> Response:
    """The health report, with a status code for monitors."""
    status = HEALTHY if report.get("status") == "Healthy" else NOT_HEALTHY
    return Response(status, json.dumps(report).encode(), JSON)


def reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def only_read() -> Response:
    return Response(405, headers=(("Allow", "GET, HEAD"),))


def only_post() -> Response:
    return Response(405, headers=(("Allow", "POST"),))


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
