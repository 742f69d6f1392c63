"""What a browser is told, so that a page on another port of this machine can use the server."""

from __future__ import annotations

import pytest

from uno_devserver.protocol.http.messages import Answer, Request, Response, Sink, Streaming

from .serving import Serve


def test_a_page_may_read_the_answer_and_its_session(serve: Serve, page: str) -> None:
    reply = serve().client().ask("POST", "/mcp", b"{}", Origin=page)

    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == page
    assert reply.headers["access-control-expose-headers"] == "Mcp-Session-Id, MCP-Protocol-Version"
    assert reply.headers["vary"] == "Origin"


def test_streams_and_failures_can_be_read_too(serve: Serve, page: str) -> None:
    async def run(sink: Sink) -> None:
        await sink.write(b"bit")

    async def handler(request: Request) -> Answer:
        if request.path == "/bad":
            raise LookupError
        return Streaming(200, (("X-Own", "1"),), run)

    client = serve(handler).client()

    stream, failure = client.ask(Origin=page), client.ask("GET", "/bad", Origin=page)

    assert (stream.headers["access-control-allow-origin"], stream.headers["x-own"]) == (page, "1")
    assert (failure.status, failure.headers["access-control-allow-origin"]) == (500, page)


def test_a_program_is_told_nothing_of_this(serve: Serve) -> None:
    assert not [name for name in serve().client().ask().headers if name.startswith("access-control")]


def test_a_foreign_page_cannot_even_read_its_refusal(serve: Serve) -> None:
    reply = serve().client().ask(Origin="https://evil.example")

    assert reply.status == 403
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_preflight_is_answered_without_the_handler(serve: Serve, page: str, method: str) -> None:
    asked: list[str] = []

    async def handler(request: Request) -> Answer:
        asked.append(request.method)
        return Response(200)

    client = serve(handler).client()
    wanted = "content-type, mcp-session-id,mcp-protocol-version"

    reply = client.ask(
        "OPTIONS",
        "/mcp",
        Origin=page,
        Access_Control_Request_Method=method,
        Access_Control_Request_Headers=wanted,
    )

    assert (reply.status, reply.body, asked) == (204, b"", [])
    assert reply.headers["access-control-allow-origin"] == page
    assert reply.headers["access-control-allow-methods"] == "GET, POST, DELETE, OPTIONS"
    assert reply.headers["access-control-allow-headers"] == wanted
    assert int(reply.headers["access-control-max-age"]) > 0
    assert client.ask("POST", "/mcp", b"{}", Origin=page).status == 200


def test_a_preflight_for_no_special_headers_allows_none(serve: Serve, page: str) -> None:
    reply = serve().client().ask("OPTIONS", "/", Origin=page, Access_Control_Request_Method="POST")

    assert reply.status == 204
    assert "access-control-allow-headers" not in reply.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Access_Control_Request_Method": "POST"},
        {"Origin": "null", "Access_Control_Request_Method": "POST"},
        {"Access_Control_Request_Method": "TRACE"},
        {"Access_Control_Request_Method": "post"},
        {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "a b"},
        {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "a,,b:"},
        {"Access_Control_Request_Method": "POST", "Host": "evil.example"},
    ],
)
def test_a_wrong_preflight_is_refused(serve: Serve, page: str, headers: dict[str, str]) -> None:
    reply = serve().client().ask("OPTIONS", "/", b"", **{"Origin": page, **headers})

    assert reply.status == 403
    assert "access-control-allow-methods" not in reply.headers


def test_options_that_is_no_preflight_is_the_handlers(serve: Serve, page: str) -> None:
    client = serve().client()

    assert b'"OPTIONS"' in client.ask("OPTIONS", "/").body
    assert b'"OPTIONS"' in client.ask("OPTIONS", "/", Origin=page).body
