"""Credentials of a server at a URL: sent with each request, renewed once after a refusal, and shown nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from support.mcp_peers import TestPeer
from support.raw_servers import Asked, RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.client import http_endpoint
from uno_devserver.protocol.client.connection import AccessDenied
from uno_devserver.protocol.client.credentials import FixedHeaders, expanded_headers
from uno_devserver.protocol.client.http_connect import connect_http

from .http_servers import HandshakeServer, ModernServer, Server, say
from .pending_calls import RecordedCall, send
from .test_streamable_servers import ask

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])


class Renewed:
    """Each renewal gives the next token, as long as there is one. Implements `Credentials`."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.refused: list[str] = []
        self.use(self.tokens.pop(0))

    def use(self, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}

    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        self.refused.append(refused["Authorization"])
        if refused != self._headers:  # another request was faster
            return True
        if not self.tokens:
            return False
        self.use(self.tokens.pop(0))
        return True


class Guarded:
    """A server that wants one of its tokens for every request."""

    def __init__(self, server: Server, *tokens: str) -> None:
        self.server = server
        self.tokens = set(tokens)
        self.refusals = 0
        self._answer, server._answer = server._answer, self.answer  # type: ignore[method-assign]

    async def answer(self, visitor: Visitor, asked: Asked) -> None:
        if asked.headers.get("authorization", "").removeprefix("Bearer ") in self.tokens:
            await self._answer(visitor, asked)
        else:
            self.refusals += 1
            visitor.answer(b"{}", status=401, WWW_Authenticate='Bearer error="invalid_token", scope="read write"')


def guarded(modern: bool, *tokens: str) -> Guarded:
    async def answer(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {"tools": [], "content": []})

    kind = ModernServer if modern else HandshakeServer
    return Guarded(kind(list=answer, call=answer), *tokens)


@ERAS
async def test_every_request_carries_the_headers(modern: bool) -> None:
    door = guarded(modern, "right")
    async with RawServer(door.server) as raw:
        connection = await connect_http(
            raw.url,
            TestPeer(modern=modern),
            modern_first=modern,
            credentials=FixedHeaders({"Authorization": "Bearer right"}),
        )
        await ask(connection, "tools/list")
        pending = RecordedCall(modern=modern)
        await send(connection, pending)
        await pending.settled()
        await connection.watch(frozenset())
        await connection.close()

    assert door.refusals == 0
    assert len(door.server.seen) >= 4


@ERAS
@pytest.mark.parametrize(
    ("token", "what"),
    [(None, "asks for credentials"), ("no", "does not accept the Authorization header that it was given")],
)
async def test_a_refusal_is_named_and_no_other_request_is_tried(modern: bool, token: str | None, what: str) -> None:
    door = guarded(modern, "right")
    given = FixedHeaders({} if token is None else {"Authorization": f"Bearer {token}"})
    async with RawServer(door.server) as raw:
        with pytest.raises(AccessDenied) as denied:
            await connect_http(raw.url, TestPeer(), modern_first=modern, credentials=given)

    message = f"The server at {raw.url} {what} (HTTP 401); it asks for the scope 'read write'."
    assert str(denied.value) == message
    assert denied.value.status == 401
    assert door.refusals == 1


@ERAS
async def test_credentials_are_renewed_once_and_the_request_is_repeated(modern: bool) -> None:
    door = guarded(modern, "second")
    credentials = Renewed("first", "second")
    async with RawServer(door.server) as raw:
        connection = await connect_http(raw.url, TestPeer(modern=modern), modern_first=modern, credentials=credentials)
        door.tokens, credentials.tokens = {"third"}, ["third"]
        pending = RecordedCall(modern=modern)
        await send(connection, pending)  # without a task
        await pending.settled()
        door.tokens, credentials.tokens = {"fourth"}, ["fourth"]
        await ask(connection, "tools/list")
        await connection.close()

    assert list(dict.fromkeys(credentials.refused)) == ["Bearer first", "Bearer second", "Bearer third"]
    if isinstance(door.server, HandshakeServer):
        assert door.server.sessions == 1, "the session is kept"


@ERAS
async def test_credentials_that_are_refused_in_the_middle_end_the_call(modern: bool) -> None:
    door = guarded(modern, "right")
    credentials = Renewed("right")
    async with RawServer(door.server) as raw:
        connection = await connect_http(raw.url, TestPeer(modern=modern), modern_first=modern, credentials=credentials)
        door.tokens = set()
        pending = RecordedCall(modern=modern)
        await send(connection, pending)
        with pytest.raises(AccessDenied):
            await pending.settled()
        with pytest.raises(AccessDenied):
            await ask(connection, "tools/list")
        await connection.close()

    assert credentials.refused == ["Bearer right"] * len(credentials.refused)


async def test_a_403_without_a_message_is_a_refusal_and_one_with_a_message_is_the_servers_answer() -> None:
    async def forbid(visitor: Visitor, asked: Asked) -> None:
        if asked.json["params"] == {}:
            challenge = 'Bearer error="insufficient_scope", scope="admin"'
            visitor.answer(b'{"error": "insufficient_scope"}', status=403, WWW_Authenticate=challenge)
        else:
            error = {"code": -32000, "message": "Invalid Origin header"}
            visitor.answer_json({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}, status=403)

    server = HandshakeServer(list=forbid)
    async with RawServer(server) as raw:
        credentials = FixedHeaders({"X-Key": "k"})
        connection = await connect_http(raw.url, TestPeer(), modern_first=False, credentials=credentials)
        with pytest.raises(AccessDenied, match=r"not allowed to do this \(HTTP 403\); it asks for the scope 'admin'"):
            await ask(connection, "tools/list")
        with pytest.raises(Exception, match="Invalid Origin header"):
            await ask(connection, "tools/list", cursor="x")
        await connection.close()


@pytest.mark.parametrize("called", [False, True], ids=["idle", "a call is first to use them"])
async def test_the_stream_of_notifications_waits_for_other_credentials(
    monkeypatch: pytest.MonkeyPatch, called: bool
) -> None:
    monkeypatch.setattr(http_endpoint, "CREDENTIAL_SECONDS", 0.01)
    opened = asyncio.Event()

    async def get(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        opened.set()
        await visitor.gone()

    door = guarded(False, "first")
    door.server.answers["get"] = get
    credentials = Renewed("first")
    async with RawServer(door.server) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=False, credentials=credentials)
        await opened.wait()
        opened.clear()
        door.tokens = set()
        next(visitor for visitor in reversed(raw.visitors)).abort()
        for visitor in raw.visitors:
            visitor.abort()
        await until(lambda: bool(credentials.refused))
        refusals = door.refusals
        await asyncio.sleep(0.1)
        assert door.refusals == refusals, "nothing is sent while nothing has changed"

        door.tokens = {"second"}
        credentials.use("second")
        if called:
            await ask(connection, "tools/list")

        await asyncio.wait_for(opened.wait(), 10)
        await connection.close()


# --- headers that the user gives


def test_variables_are_replaced_by_their_values() -> None:
    headers = {"Authorization": "Bearer ${TOKEN}", "X-Both": "${A}-${B}$", "X-Plain": "$HOME"}

    assert expanded_headers(headers, {"TOKEN": "t", "A": "${B}", "B": "b"}) == {
        "Authorization": "Bearer t",
        "X-Both": "${B}-b$",
        "X-Plain": "$HOME",
    }


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"A": "${UNSET}"}, "the variable UNSET is not set, or empty"),
        ({"A": "${EMPTY}"}, "the variable EMPTY is not set, or empty"),
        ({"Host": "x"}, "the header Host is set by the transport itself"),
        ({"content-LENGTH": "5"}, "the header content-LENGTH is set by the transport itself"),
        ({"A B": "x"}, "HTTP does not allow a header with the name 'A B'"),
        ({"A": "${BREAK}"}, "the value of the header 'A' has characters that HTTP does not allow"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_values(headers: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        expanded_headers(headers, {"EMPTY": "", "BREAK": "secret\r\nX-Other: 1"})

    assert str(refused.value) == problem
