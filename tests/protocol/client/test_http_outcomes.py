"""What a call over HTTP comes to when the server does not answer it well: in both eras, with and without a task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from support.mcp_peers import TestPeer
from support.raw_servers import Asked, Visitor
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError

from .http_servers import Answer, HandshakeServer, ModernServer, Server, note, plain, refusing
from .http_servers import connected as conversation
from .pending_calls import sent

HANDSHAKE, MODERN = (HandshakeServer,), (ModernServer,)
PROGRESS = note("notifications/progress", progress=1)


def saying(data: bytes, end: Callable[[Visitor], None] = Visitor.close) -> Answer:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.say(data)
        end(visitor)

    return call


def streaming(*events: Any, event_id: str | None = None, end: Callable[[Visitor], None] = Visitor.end_events) -> Answer:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        for event in events:
            visitor.chunk(event) if isinstance(event, bytes) else visitor.event(event, event_id)
        await visitor.writer.drain()
        end(visitor)

    return call


def answering(status: int, **headers: Any) -> Answer:
    async def answer(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(status=status if "last-event-id" in asked.headers or asked.method == "POST" else 405, **headers)

    return answer


class Case(NamedTuple):
    name: str
    call: Answer
    match: str  # what is said
    code: int | None = INTERNAL_ERROR  # of the error; None: the connection is lost
    sent: bool = True  # the server may have run a call that is lost
    eras: tuple[type[Server], ...] = (HandshakeServer, ModernServer)
    posts: int = 1
    sessions: int = 1
    get: Answer = answering(405)


ERRORS = [
    *(Case(f"error {n}", refusing(-32601, "no such tool", n), "no such tool", -32601) for n in (200, 400, 404, 500)),
    Case("html", plain(b"<html>", "text/html"), "HTTP 200 and text/html"),
    Case("half an object", plain(b"{"), "answered, but it is not a JSON-RPC message"),
    Case("half a message", plain(b'{"jsonrpc":"2.0","id":%d,"result":'), "answered, but"),
    Case("another id", plain(b'{"jsonrpc":"2.0","id":12345,"result":{}}'), "does not answer the request"),
    Case("another id alone", plain(b'{"id":99,"result":{}}'), "does not answer the request"),
    Case("a list", plain(b'{"jsonrpc":"2.0","id":%d,"result":[]}'), "neither a result object"),
    Case("empty", plain(b""), "HTTP 200 and nothing else"),
    Case("accepted", answering(202), "HTTP 202 and nothing else"),
    Case(
        "no type", saying(b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nOops"), "HTTP 500 and something that has no"
    ),
    Case("gateway", plain(b"<h1>", "text/html", 502), "HTTP 502 and text/html"),
    Case(
        "elsewhere", answering(307, Location="http://example.com/mcp"), r"redirects to http://example\.com/mcp, which"
    ),
    *(  # an error of its own, that only looks like that of a forgotten session
        Case(f"own error {code}", refusing(code, "The payment was declined.", 400), "declined", code, eras=HANDSHAKE)
        for code in (-32000, -32001)
    ),
    Case("unread", refusing(-32000, "Bad Request: no", 400, unread=True), "no", -32000, True, HANDSHAKE, 2, 2),
]
LOST = [
    Case("hung up", saying(b""), "hung up without an answer", None),
    Case("reset", saying(b"", Visitor.abort), "", None),
    Case("half a body", saying(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "broke off", None),
    Case("no HTTP", saying(b"what?\r\n\r\n"), "does not speak HTTP", None),
    Case("stream ended", streaming(PROGRESS), "before it had answered", None),
    Case("stream broken", streaming(PROGRESS, end=Visitor.close), "broke off", None),
    Case("modern stream ended", streaming(PROGRESS, event_id="of no use"), "before it had answered", None, eras=MODERN),
    Case("modern stream reset", streaming(PROGRESS, end=Visitor.abort), "", None, eras=MODERN),
    Case("stopping", refusing(-32011, "The server is stopping.", 503), "stops: The server is stopping", None, False),
    Case("other version", refusing(-32022, "Bad Request", 400), "any more: Bad Request", None, False),
    *(
        Case(f"other era {status}", refusing(code, "Bad", status, unread=True), "any more: Bad", None, False, MODERN)
        for status, code in ((400, -32000), (404, -32001))
    ),
    Case("forgetful", refusing(-32001, "Gone", 404), "forgets its sessions: Gone", None, False, HANDSHAKE, 2, 2),
    *(
        Case(f"not kept {n}", streaming(b"id: 5-0\nretry: 10\ndata:\n\n"), f"HTTP {n}", None, True, HANDSHAKE, get=kept)
        for n, kept in ((n, answering(n)) for n in (400, 404, 405, 500))
    ),
]


@pytest.mark.parametrize("relayed", [False, True], ids=["coroutine", "relayed"])
@pytest.mark.parametrize(
    ("server", "case"),
    [pytest.param(era, case, id=f"{case.name} {era.__name__}") for case in ERRORS + LOST for era in case.eras],
)
async def test_a_call_that_is_not_answered_well_fails_and_says_why(
    server: type[Server], case: Case, relayed: bool
) -> None:
    scripted = server(call=case.call, get=case.get)

    async with conversation(scripted) as connection:
        call = await sent(connection) if relayed else None
        answer = call.settled() if call else connection.request("tools/call", {"name": "t"}, TestPeer(modern=True))
        with pytest.raises((RpcError, ConnectionLost)) as failed:
            await answer

    outcome = failed.value
    assert call is None or len(call.outcomes) == 1
    assert re.search(case.match, str(outcome))
    if isinstance(outcome, RpcError):
        assert (outcome.code, outcome.data) == (case.code, {"x": 1} if case.name.startswith("error") else None)
    else:
        assert isinstance(outcome, ConnectionLost)
        assert (case.code, outcome.sent) == (None, case.sent)
    again = relayed and case.name == "elsewhere"  # the general way follows redirects
    assert len(scripted.posts("tools/call")) == case.posts + again
    if isinstance(scripted, HandshakeServer):
        assert scripted.sessions == case.sessions
