"""Which era a conversation begins in, and what is said where it does not begin at all."""

from __future__ import annotations

import asyncio

import pytest

from support.mcp_peers import HANDSHAKE, MODERN, TestPeer
from support.raw_servers import Asked, RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.client.connection import ConnectionLost, UnusableServer
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.client.http_endpoint import MAX_REDIRECTS, Endpoint

from .http_servers import HandshakeServer, ModernServer, Server, answer_to, connected, refuse, say

BOTH_ORDERS = pytest.mark.parametrize("modern_first", [True, False])


class ServerOfBothEras(HandshakeServer):
    async def otherwise(self, visitor: Visitor, asked: Asked) -> None:
        if asked.json.get("method") == "server/discover":
            say(visitor, asked, {"supportedVersions": [MODERN], "capabilities": {}})
        else:
            await super().otherwise(visitor, asked)


@BOTH_ORDERS
async def test_a_server_of_both_eras_is_talked_to_in_the_preferred_one(modern_first: bool) -> None:
    server = ServerOfBothEras()
    async with connected(server, modern_first=modern_first) as connection:
        assert connection.server.modern == modern_first
    assert ("initialize" in server.methods()) != modern_first
    assert ("server/discover" in server.methods()) == modern_first


@pytest.mark.parametrize("how", ["unknown", "unsupported", "404", "400 text", "405", "html", "no version", "odd"])
async def test_a_handshake_server_is_found_whatever_it_answers_to_a_modern_question(how: str) -> None:
    async def discover(visitor: Visitor, asked: Asked) -> None:
        if how == "unknown":
            refuse(visitor, asked, -32601)
        elif how == "unsupported":
            refuse(visitor, asked, -32022, status=400, data={"supported": [HANDSHAKE], "requested": MODERN})
        elif how == "html":
            visitor.answer(b"<h1>?</h1>", Content_Type="text/html")
        elif how == "no version":
            say(visitor, asked, {"supportedVersions": [HANDSHAKE], "capabilities": {}})
        elif how == "odd":
            visitor.answer_json(
                {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request"}}, 400
            )
        else:
            visitor.answer(b"what?", status=int(how.split()[0]), Content_Type="text/plain")

    server = HandshakeServer(discover=discover)
    async with connected(server, modern_first=True) as connection:
        assert connection.server.version == HANDSHAKE

    hello = server.posts("initialize")[0]
    assert "mcp-protocol-version" not in hello.headers  # the one of the other era would confuse it
    assert "mcp-method" not in hello.headers


@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (-32022, 400), (-32602, 400), (-32000, 200)])
async def test_a_modern_server_is_found_whatever_it_answers_to_a_handshake(code: int, status: int) -> None:
    async def initialize(visitor: Visitor, asked: Asked) -> None:
        refuse(visitor, asked, code, status=status)

    server = ModernServer(initialize=initialize)
    async with connected(server, modern_first=False) as connection:
        assert connection.server.version == MODERN
    assert server.methods() == ["initialize", "server/discover"]


async def test_a_handshake_may_be_answered_by_events() -> None:
    async def initialize(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events(Mcp_Session_Id="s")
        visitor.event(answer_to(asked, server.hello()))
        visitor.end_events()

    server = HandshakeServer(initialize=initialize)
    async with connected(server):
        pass
    assert server.posts("notifications/initialized")[0].headers["mcp-session-id"] == "s"


# --- nobody to talk to


def always(body: bytes, status: int = 200, **headers: str) -> Server:
    async def answer(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(body, status, **headers)

    return Server(initialize=answer, discover=answer)


@BOTH_ORDERS
@pytest.mark.parametrize(
    ("body", "status", "kind", "why"),
    [
        (b"<h1>Not Found</h1>", 404, "text/html", "HTTP 404 and text/html"),
        (b"", 404, "", "HTTP 404 and nothing else"),
        (b"Bad Request", 400, "text/plain", "HTTP 400 and text/plain"),
        (b"", 405, "", "HTTP 405 and nothing else"),
        (b"<html>", 200, "text/html", "HTTP 200 and text/html"),
        (b'{"status": "ok"}', 200, "application/json", "does not answer the request"),
        (b'{"error": "no such page"}', 404, "application/json", "does not answer the request"),
        (b'{"error": {"code": 404, "message": "no such page"}}', 404, "application/json", "not answer the request"),
        (b'{"id":1,"result":' + b"[" * 100_000, 200, "application/json", "nested too deeply"),
    ],
)
async def test_what_is_no_mcp_server_is_told_with_what_it_did(
    modern_first: bool, body: bytes, status: int, kind: str, why: str
) -> None:
    async with RawServer(always(body, status, Content_Type=kind)) as raw:
        with pytest.raises(UnusableServer, match=why) as refusal:
            await connect_http(raw.url, TestPeer(), modern_first=modern_first)

        assert refusal.value.status == status
        assert raw.url in str(refusal.value)
        await until(lambda: all(visitor.left.is_set() for visitor in raw.visitors))


@BOTH_ORDERS
async def test_a_server_that_refuses_both_eras_is_told_by_its_answer_to_the_handshake(modern_first: bool) -> None:
    async def initialize(visitor: Visitor, asked: Asked) -> None:
        refuse(visitor, asked, -32603, "no licence")

    async with RawServer(HandshakeServer(initialize=initialize)) as raw:
        with pytest.raises(UnusableServer, match=r"refuses 'initialize': no licence \(code -32603\)") as refusal:
            await connect_http(raw.url, TestPeer(), modern_first=modern_first)

    assert refusal.value.status is None


async def test_a_server_of_an_unknown_version_is_refused() -> None:
    server = HandshakeServer()
    server.version = "2031-01-01"
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer, match="'2031-01-01'"):
            await connect_http(raw.url, TestPeer(), modern_first=False)


@BOTH_ORDERS
async def test_nobody_there_is_lost_and_not_refused(modern_first: bool) -> None:
    async with RawServer(HandshakeServer()) as raw:
        url = raw.url
    with pytest.raises(ConnectionLost, match="refuses connections") as lost:
        await connect_http(url, TestPeer(), modern_first=modern_first)
    assert not lost.value.sent


@BOTH_ORDERS
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"])
async def test_a_server_that_does_not_go_on_is_not_waited_for_long_nor_asked_twice(
    modern_first: bool, said: bytes
) -> None:
    seen = []

    async def script(visitor: Visitor) -> None:
        seen.append(await visitor.asked())
        visitor.say(said)
        await visitor.gone()

    async with RawServer(script) as raw:
        with pytest.raises(ConnectionLost, match=r"did not answer within 0\.1 s"):
            await connect_http(raw.url, TestPeer(), modern_first=modern_first, seconds=0.1)
        await until(lambda: raw.visitors[0].left.is_set())
    assert len(seen) == 1


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"])
async def test_a_server_that_breaks_off_is_lost(answer: bytes) -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(answer)

    async with RawServer(script) as raw:
        with pytest.raises(ConnectionLost):
            await connect_http(raw.url, TestPeer(), modern_first=False)


async def test_a_stream_that_ends_before_the_handshake_is_answered_is_lost() -> None:
    async def initialize(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.end_events()

    async with RawServer(HandshakeServer(initialize=initialize)) as raw:
        with pytest.raises(ConnectionLost, match="ended the stream before it had answered"):
            await connect_http(raw.url, TestPeer(), modern_first=False)


async def test_a_secret_in_the_url_is_used_and_not_told() -> None:
    server = always(b"no", 403, Content_Type="text/plain")
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer) as refusal:
            await connect_http(raw.url + "?token=secret", TestPeer(), modern_first=False)
    with pytest.raises(ConnectionLost) as lost:
        await connect_http(raw.url + "?token=secret", TestPeer(), modern_first=False)

    assert {asked.target for asked in server.seen} == {"/mcp?token=secret"}
    assert "secret" not in str(refusal.value)
    assert "secret" not in str(lost.value)


@pytest.mark.parametrize("url", ["", "localhost:5000", "file:///etc/passwd"])
async def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UnusableServer, match="is not the URL"):
        await connect_http(url, TestPeer(), modern_first=True)


async def test_giving_up_leaves_nothing_open() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.gone()

    async with RawServer(script) as raw:
        connecting = asyncio.create_task(connect_http(raw.url, TestPeer(), modern_first=True))
        await until(lambda: len(raw.visitors) == 1)
        connecting.cancel()
        await until(lambda: raw.visitors[0].left.is_set())
        assert connecting.cancelled()


# --- redirects


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_is_followed_and_remembered(status: int) -> None:
    server = HandshakeServer()

    async def script(visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            server.seen.append(asked)
            if asked.target == "/mcp":
                visitor.answer(status=status, Location="/mcp/")
            else:
                await server._answer(visitor, asked)

    async with RawServer(script) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=False)
        await connection.close()

    assert [asked.target for asked in server.seen].count("/mcp") == 1
    assert server.seen[1].json == server.seen[0].json


@pytest.mark.parametrize(("status", "times"), [(307, 3), (308, 1)])
async def test_only_a_permanent_redirect_moves_the_server(status: int, times: int) -> None:
    seen: list[str] = []

    async def script(visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            seen.append(asked.target)
            if asked.target == "/mcp":
                visitor.answer(status=status, Location="/new")
            else:
                visitor.answer()

    async with RawServer(script) as raw:
        endpoint = Endpoint(raw.url)
        for _ in range(3):
            (await endpoint.send("POST", b"", b"{}")).release()
        endpoint.close()

    assert (seen.count("/mcp"), seen.count("/new")) == (times, 3)


async def test_as_many_redirects_as_the_limit_are_followed() -> None:
    async def script(visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            if len(asked.target) < len("/mcp") + MAX_REDIRECTS:
                visitor.answer(status=307, Location=f"{asked.target}x")
            else:
                visitor.answer()

    async with RawServer(script) as raw:
        endpoint = Endpoint(raw.url)
        reply = await endpoint.send("POST", b"", b"{}")
        reply.release()
        endpoint.close()

    assert reply.status == 200


async def test_a_redirect_that_names_no_target_is_an_answer() -> None:
    server = always(b"", 307)
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer, match="answered with HTTP 307 and nothing else"):
            await connect_http(raw.url, TestPeer(), modern_first=False)

    assert len(server.seen) == 2  # in either era


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_of_a_get_is_followed_and_moves_nothing_else(status: int) -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        if asked.target == "/mcp":
            visitor.answer(status=status, Location="/")
        else:
            visitor.answer(b"<h1>Welcome</h1>", Content_Type="text/html")

    async def call(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {})

    server = HandshakeServer(get=get, call=call)
    async with connected(server) as connection:
        await until(lambda: len(server.gets()) == 2)
        await connection.watch(frozenset())  # the second one is answered
        await connection.request("tools/call", {}, TestPeer())

    assert [asked.target for asked in server.gets()] == ["/mcp", "/"]
    assert {asked.target for asked in server.seen if asked.method == "POST"} == {"/mcp"}


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://example.com/mcp?key=1", "http://example.com/mcp"),
        ("https://127.0.0.1/other", "https://127.0.0.1/other"),
        ("//x/other", "/…"),
        ("mailto:x", "…"),
    ],
)
async def test_a_redirect_to_another_server_is_not_followed(location: str, told: str) -> None:
    server = always(b"", 307, Location=location)
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer, match="redirects to") as refusal:
            await connect_http(raw.url, TestPeer(), modern_first=False)

    assert refusal.value.status == 307
    assert f"redirects to {told}, which is not followed" in str(refusal.value)
    assert [asked.target for asked in server.seen] == ["/mcp", "/mcp"]  # in either era


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_lose_the_message_is_not_followed(status: int) -> None:
    server = always(b"", status, Location="/elsewhere")
    async with RawServer(server) as raw:
        with pytest.raises(UnusableServer, match="redirects to /elsewhere, "):
            await connect_http(raw.url, TestPeer(), modern_first=False)

    assert [asked.target for asked in server.seen] == ["/mcp", "/mcp"]  # in either era


async def test_redirects_in_circles_end() -> None:
    async def script(visitor: Visitor) -> None:
        while True:
            asked = await visitor.asked()
            visitor.answer(status=308, Location=asked.target + "x")

    async with RawServer(script) as raw:
        with pytest.raises(UnusableServer, match=r"redirects to /mcpx+, "):
            await connect_http(raw.url, TestPeer(), modern_first=False)
