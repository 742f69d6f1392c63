"""A sign-in and its renewal against servers that answer anything. Apart from the others, because the SDK is large."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from unittest.mock import patch

import httpx2
from mcp.client.auth import AuthorizationCodeResult

from uno_devserver.proxy.upstream import oauth_sign_in
from uno_devserver.proxy.upstream.access_tokens import header_token
from uno_devserver.proxy.upstream.oauth_sign_in import Client, SignInProblem

from ..documents import ODD
from ..pieces import Pieces
from ..target import Target, told
from .answers import LOOP

SERVER, ISSUER = "https://mcp.example/mcp", "https://login.example"
MOST_REQUESTS = 60  # the SDK looks for metadata at a dozen places
NEAR = ("127.0.0.1", "localhost", "::1", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]", "x.localhost")
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "response_types_supported": ["code"],
    "code_challenge_methods_supported": ["S256"],
    "scopes_supported": ["a", "b"],
}
# By the end of the path: what is answered where nothing is changed.
ANSWERS: dict[str, dict[str, Any]] = {
    "/.well-known/oauth-protected-resource/mcp": {"resource": SERVER, "authorization_servers": [ISSUER]},
    "/.well-known/oauth-authorization-server": METADATA,
    "/.well-known/openid-configuration": METADATA,
    "/register": {"client_id": "one", "client_secret": "two", "redirect_uris": ["http://127.0.0.1:1/callback"]},
    "/token": {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r", "scope": "a"},
}
MEMBERS = tuple(dict.fromkeys(name for answer in ANSWERS.values() for name in answer))
VALUES = (
    *(json.dumps(f"{scheme}://{host}/x") for scheme in ("http", "https") for host in (*NEAR, "elsewhere.example")),
    *('"https://user:pw@x.example"', '"javascript:1"', '"file:///etc/passwd"', '"https://x.example/?a=b#c"', '"none"'),
    *('["https://127.0.0.1/x"]', '["http://x.example"]', '["none"]', '"client_secret_basic"', "1e400", "0", "-5"),
    *(json.dumps(word) for word in ("a b", "é", "a\r\nb", "x" * 3000, ISSUER, SERVER)),
    *ODD,
)
CHALLENGES = (
    f'Bearer resource_metadata="https://mcp.example{next(iter(ANSWERS))}"',
    *("Bearer", 'Bearer scope="a b"', 'Bearer scope="', 'Basic realm="x"', "", "Bearer error=invalid_token, scope=a"),
    *(f'Bearer resource_metadata="{address}"' for address in ("http://10.0.0.1/x", "https://x.example/y", "/z", "\\")),
)
STATUSES = (200, 201, 204, 302, 307, 400, 401, 403, 404, 429, 500, 503)


class _World:
    """The server, its authorization server, and everything else at a URL."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.asked = 0

    def client(self, _url: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        assert self.asked < MOST_REQUESTS, request.url
        check_address(str(request.url))
        pieces, path = self._pieces, request.url.path
        headers: dict[str, str] = {}
        answer: dict[str, Any] = {}
        if path == "/mcp" and "authorization" not in request.headers:
            status, headers = 401, {"WWW-Authenticate": CHALLENGES[0]}
        else:
            status, answer = (200, ANSWERS[path]) if path in ANSWERS else (200 if path == "/mcp" else 404, {})
        odd = pieces.number(8)  # zero where the input is over: all is well then
        if odd == 1:
            status = pieces.choice(STATUSES)
        elif odd == 2:
            headers = {"WWW-Authenticate": pieces.choice(CHALLENGES), "mcp-session-id": "s"}
        body = json.dumps(answer)
        if odd in (3, 4, 5):
            member, value = pieces.choice(MEMBERS), pieces.choice(VALUES)
            members = {**answer, member: None}
            body = ", ".join(f"{json.dumps(name)}: {json.dumps(it)}" for name, it in members.items() if name != member)
            body = "{" + body + (", " if body else "") + f"{json.dumps(member)}: {value}" + "}"
        elif odd == 6:
            body = pieces.choice(VALUES)
        elif odd == 7 and answer:
            body = json.dumps({name: value for name, value in answer.items() if name != pieces.choice(tuple(answer))})
        if status in (302, 307):
            headers["Location"] = json.loads(VALUES[pieces.number(14)])
        return httpx2.Response(status, headers=headers, content=body.encode("utf-8", "surrogatepass"))


def check_address(url: str) -> None:
    parts = httpx2.URL(url)
    assert parts.scheme == "https", url
    assert parts.host not in NEAR, url


class _Browser:
    """In the place of a `Redirect`."""

    uri = "http://127.0.0.1:1/callback"

    def __init__(self, issuer: str | None) -> None:
        self._issuer = issuer

    async def show(self, page: str) -> None:
        check_address(page)

    async def answer(self, state: str, _seconds: float) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code="c", state=state, iss=self._issuer)


def check_sign_in(data: bytes) -> None:
    """Tokens that a header can carry, or a sentence; nothing is sent in the clear, or from elsewhere to here."""
    pieces = Pieces(data)
    LOOP.run_until_complete(_sign_in(pieces))


async def _sign_in(pieces: Pieces) -> None:
    scope = pieces.choice((None, None, "a b"))
    client = pieces.choice((Client(None, None), Client("one", "two"), Client("https://me.example/client", None)))
    browser: Any = _Browser(pieces.choice((None, None, ISSUER, "x")))
    world = _World(pieces)
    with patch.object(oauth_sign_in, "_http_client", world.client):
        try:
            record = await asyncio.wait_for(oauth_sign_in.sign_in(SERVER, client, scope, browser, browser.show), 60)
            assert header_token(record.tokens["access_token"])
            world.asked = 0
            renewed = await oauth_sign_in._renewed(record) if record.renewable else record
        except SignInProblem as problem:
            told(problem)
            return
    assert header_token(renewed.tokens["access_token"])
    json.dumps(renewed.__dict__, allow_nan=False)


logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks take longer than all else

TARGETS = (
    Target(
        "oauth",
        "tokens that a header can carry, or a sentence; nothing is sent in the clear, or from elsewhere to here",
        check_sign_in,
        lambda: [
            b"",
            *(bytes([0, 0, 0, *([0] * calm), odd, 1, 7]) for calm in range(7) for odd in range(1, 8)),
            bytes(range(60)),
        ],
        max_bytes=100,
    ),
)
