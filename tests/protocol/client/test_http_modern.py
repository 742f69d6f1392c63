"""Conversations of the modern era over HTTP, with servers that do what the test says, on real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.mcp_peers import MODERN, TestPeer
from support.raw_servers import Asked, RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.client import backoff
from uno_devserver.protocol.client.backoff import Backoff
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.client.http_modern import ToolMarks, argument_headers, marks_in, routing_headers
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError
from uno_devserver.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HEADER_MISMATCH,
    LOG_LEVEL_KEY,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
    decoded_header,
    encoded_header,
)

from ..conversations import WAIT_SECONDS
from .http_servers import ModernServer, answer_to, connected, never, note, read, refuse, say

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"


async def done(visitor: Visitor, asked: Asked) -> None:
    say(visitor, asked, {"resultType": "complete", "content": []})


# --- requests


async def test_every_request_stands_for_itself() -> None:
    server = ModernServer(call=done)
    connecting, calling = TestPeer("one", roots={}), TestPeer("two", modern=True, log_level="debug", sampling={})

    async with connected(server, connecting) as connection:
        assert connection.server.modern
        assert connection.server.instructions == "Do."
        await connection.request("tools/call", {"name": "t", "_meta": {"progressToken": 7}}, calling)

    discover, call = server.seen
    for asked, peer in ((discover, connecting), (call, calling)):
        meta = asked.json["params"]["_meta"]
        assert meta[VERSION_KEY] == MODERN
        assert meta[CLIENT_KEY] == {"name": peer.client.name, "version": "1.0"}
        assert meta[CAPABILITIES_KEY] == peer.client.capabilities
        assert asked.headers["mcp-protocol-version"] == MODERN
        assert asked.headers["mcp-method"] == asked.json["method"]
        assert "mcp-session-id" not in asked.headers
    assert "mcp-name" not in discover.headers
    assert call.headers["mcp-name"] == "t"
    assert call.json["params"]["_meta"][LOG_LEVEL_KEY] == "debug"
    assert call.json["params"]["_meta"]["progressToken"] == 7


@pytest.mark.parametrize("name", ["plain", "mit Leerzeichen", " edge", "Grüße 世界", "=?base64?eA==?=", "a\nb", ""])
async def test_any_name_travels_in_the_header(name: str) -> None:
    server = ModernServer(call=done)
    async with connected(server) as connection:
        await connection.request("tools/call", {"name": name}, TestPeer())

    assert decoded_header(server.seen[-1].headers["mcp-name"]) == name


async def test_what_is_said_on_the_way_to_an_answer_goes_to_the_one_who_asked() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event(note("notifications/message", level="info", data=1))
        visitor.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})  # which this era does not have
        visitor.event(answer_to(asked, {"resultType": "complete"}))
        visitor.end_events()

    server, asker, others = ModernServer(call=call), TestPeer(), TestPeer()
    async with connected(server, others) as connection:
        assert read(await connection.request("tools/call", {}, asker)) == {"resultType": "complete"}

    assert asker.heard == [("notifications/message", {"level": "info", "data": 1})]
    assert (asker.asked, others.heard) == ([], [])
    assert server.methods() == ["server/discover", "tools/call"]


async def test_a_request_is_cancelled_by_closing_its_connection() -> None:
    left = asyncio.Event()

    async def call(visitor: Visitor, asked: Asked) -> None:
        if asked.json["params"]["name"] == "events":
            visitor.begin_events()
        await visitor.gone()
        left.set()

    server = ModernServer(call=call)
    async with connected(server) as connection:
        for name in ("events", "nothing"):
            left.clear()
            calls = len(server.seen)
            asking = asyncio.create_task(connection.request("tools/call", {"name": name}, TestPeer()))
            await until(lambda calls=calls: len(server.seen) > calls)  # type: ignore[misc]
            asking.cancel()
            await asyncio.wait_for(left.wait(), WAIT_SECONDS)
            assert asking.cancelled() or asking.cancelling()

    assert server.methods() == ["server/discover", "tools/call", "tools/call"]


async def test_questions_are_asked_of_a_client_that_does_not_call_again() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        params = asked.json["params"]
        if "inputResponses" not in params:
            who = {"who": {"method": "elicitation/create", "params": {"message": "?"}}}
            say(visitor, asked, {"resultType": "input_required", "inputRequests": who, "requestState": "s"})
        else:
            say(visitor, asked, {"resultType": "complete", "back": [params["inputResponses"], params["requestState"]]})

    peer = TestPeer(answer=lambda *_: {"action": "accept"}, elicitation={})
    async with connected(ModernServer(call=call)) as connection:
        answered = read(await connection.request("tools/call", {"name": "t"}, peer))
        passed_on = read(await connection.request("tools/call", {"name": "t"}, TestPeer(modern=True)))

    assert answered["back"] == [{"who": {"action": "accept"}}, "s"]
    assert peer.asked == [("elicitation/create", {"message": "?"}, "who")]
    assert passed_on["resultType"] == "input_required"


async def test_a_method_that_no_header_can_carry_is_refused_here() -> None:
    async with connected(ModernServer()) as connection:
        with pytest.raises(RpcError, match="cannot be sent over HTTP"):
            await connection.request("a\nb", {}, TestPeer())


# --- arguments that headers repeat

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"fast": {"type": "boolean", "x-mcp-header": "Fast"}}},
    },
}


class Choosy(ModernServer):
    """Refuses calls whose headers do not repeat what the schema of the tool marks."""

    def __init__(self, *pages: list[dict[str, Any]]) -> None:
        super().__init__(list=self._list, call=self._call)
        self.pages = pages

    async def _list(self, visitor: Visitor, asked: Asked) -> None:
        page = int(asked.json["params"].get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page + 1 < len(self.pages) else {}
        say(visitor, asked, {"resultType": "complete", "tools": self.pages[page], **more})

    async def _call(self, visitor: Visitor, asked: Asked) -> None:
        if decoded_header(asked.headers.get("mcp-param-region", "")) == asked.json["params"]["arguments"]["region"]:
            await done(visitor, asked)
        else:
            refuse(visitor, asked, -32020, "header mismatch", status=400)


async def test_headers_that_a_tool_wants_are_learnt_when_it_wants_them() -> None:
    server = Choosy([{"name": "other"}], [{"name": "t", "inputSchema": SCHEMA}])
    call = {"name": "t", "arguments": {"region": "süd", "deep": {"fast": True}}}

    async with connected(server) as connection:
        await connection.request("tools/call", call, TestPeer())
        await connection.request("tools/call", call, TestPeer())

    assert server.methods() == ["server/discover", "tools/call", "tools/list", "tools/list", "tools/call", "tools/call"]
    last = server.seen[-1].headers
    assert decoded_header(last["mcp-param-region"]) == "süd"
    assert last["mcp-param-fast"] == "true"


@pytest.mark.parametrize("tools", [[], [{"name": "t"}], [{"name": "t", "inputSchema": {"properties": []}}], [5]])
async def test_a_tool_that_wants_no_headers_and_complains_is_called_once(tools: list[Any]) -> None:
    server = Choosy(tools)
    async with connected(server) as connection:
        with pytest.raises(RpcError, match="header mismatch"):
            await connection.request("tools/call", {"name": "t", "arguments": {"region": "x"}}, TestPeer())

    assert len(server.posts("tools/call")) == 1


async def test_a_server_that_goes_while_its_headers_are_looked_up_has_not_run_the_call() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        refuse(visitor, asked, HEADER_MISMATCH, "header mismatch", status=400)

    async def lists(visitor: Visitor, asked: Asked) -> None:
        visitor.close()

    async with connected(ModernServer(call=call, list=lists)) as connection:
        with pytest.raises(ConnectionLost) as lost:
            await connection.request("tools/call", {"name": "t"}, TestPeer())

    assert not lost.value.sent


# --- changes


class Telling(ModernServer):
    """Grants every subscription, and can say something on the last one."""

    def __init__(self) -> None:
        super().__init__(listen=self._listen)
        self.streams: list[Visitor] = []
        self.ids: list[int] = []

    async def _listen(self, visitor: Visitor, asked: Asked) -> None:
        self.streams.append(visitor)
        self.ids.append(asked.json["id"])
        visitor.begin_events()
        self.say(ACKNOWLEDGED, notifications=asked.json["params"]["notifications"])

    def say(self, method: str, _stream: int = -1, **params: Any) -> None:
        meta = {SUBSCRIPTION_KEY: self.ids[_stream]}
        self.streams[_stream].event(note(method, **params, _meta=meta))


async def test_changes_are_heard_over_a_subscription() -> None:
    server, peer = Telling(), TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset({"file:///b", "file:///a"}))
        server.say("notifications/resources/updated", uri="file:///a")
        server.streams[0].event(note(CHANGED, _meta={"x": 1, SUBSCRIPTION_KEY: 1}))
        await until(lambda: len(peer.heard) == 2)

    assert peer.heard == [("notifications/resources/updated", {"uri": "file:///a"}), (CHANGED, {"_meta": {"x": 1}})]
    assert server.posts("subscriptions/listen")[0].json["params"]["notifications"] == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["file:///a", "file:///b"],
    }
    assert VERSION_KEY in server.posts("subscriptions/listen")[0].json["params"]["_meta"]


async def test_a_new_subscription_replaces_the_one_before() -> None:
    server, peer = Telling(), TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset())
        await connection.watch(frozenset({"file:///a"}))
        await asyncio.wait_for(server.streams[0].left.wait(), WAIT_SECONDS)
        server.say("notifications/resources/updated", uri="file:///a")
        await until(lambda: peer.methods() == ["notifications/resources/updated"])
        assert not server.streams[1].left.is_set()

        await connection.close()
        await asyncio.wait_for(server.streams[1].left.wait(), WAIT_SECONDS)


@pytest.mark.parametrize("how", ["broken", "ended", "answered"])
async def test_a_subscription_that_ends_is_opened_again_and_changes_meanwhile_are_assumed(how: str) -> None:
    server, peer = Telling(), TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset())
        stream = server.streams[0]
        if how == "broken":
            stream.close()
        else:
            if how == "answered":
                stream.event({"jsonrpc": "2.0", "id": server.ids[0], "result": {"resultType": "complete"}})
            stream.end_events()
        await until(lambda: len(server.streams) == 2)
        await until(lambda: peer.methods() == [CHANGED, "notifications/resources/list_changed"])
        server.say(CHANGED)
        await until(lambda: len(peer.heard) == 3)


async def test_a_server_that_ends_each_subscription_at_once_is_asked_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Brief(Telling):
        async def _listen(self, visitor: Visitor, asked: Asked) -> None:
            await super()._listen(visitor, asked)
            visitor.end_events()

    pauses: list[float] = []
    backoff_next = Backoff.next

    def shortened(backoff: Backoff) -> float:
        pauses.append(backoff_next(backoff))
        return 0

    monkeypatch.setattr(backoff, "STEADY_SECONDS", 3600.0)  # however slow this machine is
    monkeypatch.setattr(Backoff, "next", shortened)
    async with connected(Brief()) as connection:
        await connection.watch(frozenset())
        await until(lambda: len(pauses) >= 4)

    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]


async def test_a_server_without_subscriptions_tells_nothing_and_that_is_fine() -> None:
    server = ModernServer()
    async with connected(server) as connection:
        await connection.watch(frozenset())
        refusals = await connection.watch(frozenset({"file:///a"}))
        assert [refusal.message for refusal in refusals.values()] == ["no subscriptions/listen"]

    assert len(server.posts("subscriptions/listen")) == 2


async def test_a_refused_subscription_leaves_the_one_before() -> None:
    class Limited(Telling):
        async def _listen(self, visitor: Visitor, asked: Asked) -> None:
            if asked.json["params"]["notifications"]["resourceSubscriptions"]:
                visitor.answer(b"<h1>", status=500, Content_Type="text/html")
            else:
                await super()._listen(visitor, asked)

    server, peer = Limited(), TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset())
        refusal = (await connection.watch(frozenset({"file:///a"})))["file:///a"]
        assert (refusal.code, "HTTP 500" in refusal.message) == (INTERNAL_ERROR, True)
        server.say(CHANGED)
        await until(lambda: peer.methods() == [CHANGED])

        await connection.watch(frozenset())
        await asyncio.wait_for(server.streams[0].left.wait(), WAIT_SECONDS)


async def test_who_gives_up_on_a_subscription_keeps_the_one_before_and_both_end_with_the_connection() -> None:
    class Slow(Telling):
        async def _listen(self, visitor: Visitor, asked: Asked) -> None:
            if asked.json["params"]["notifications"]["resourceSubscriptions"]:
                asked_twice.set()
                await visitor.gone()
                left.set()
            else:
                await super()._listen(visitor, asked)

    asked_twice, left = asyncio.Event(), asyncio.Event()
    server, peer = Slow(), TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset())
        following = asyncio.ensure_future(connection.watch(frozenset({"file:///a"})))
        await asyncio.wait_for(asked_twice.wait(), WAIT_SECONDS)
        following.cancel()
        await asyncio.wait_for(left.wait(), WAIT_SECONDS)
        server.say(CHANGED)
        await until(lambda: peer.methods() == [CHANGED])

        others = asyncio.all_tasks()
        await connection.close()
        await asyncio.wait_for(server.streams[0].left.wait(), WAIT_SECONDS)
        await until(lambda: not any("ModernConnection" in repr(task) for task in others if not task.done()))


async def test_a_server_that_never_tells_changes_is_not_listened_to() -> None:
    async def discover(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}})

    server = ModernServer(discover=discover)
    async with connected(server) as connection:
        await connection.watch(frozenset())

    assert server.methods() == ["server/discover"]


# --- what this era does not have


async def test_what_this_era_does_not_know_is_left_out() -> None:
    async def other(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(status=202)

    server = ModernServer(other=other)
    async with connected(server) as connection:
        for method in ("initialized", "cancelled", "roots/list_changed", "other"):
            await connection.notify(f"notifications/{method}", {"x": 1})
        await connection.set_level("debug")

    assert server.methods() == ["server/discover", "notifications/other"]
    assert server.seen[-1].headers["mcp-method"] == "notifications/other"


async def test_closing_loses_what_still_waits() -> None:
    server = ModernServer(call=never)
    async with RawServer(server) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=True)
        waiting = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
        await until(lambda: len(server.seen) == 2)
        await connection.close()

        with pytest.raises(ConnectionLost) as lost:
            await waiting
        assert lost.value.sent
        with pytest.raises(ConnectionLost) as closed:
            await connection.request("tools/call", {}, TestPeer())
        assert not closed.value.sent
        await until(lambda: all(visitor.left.is_set() for visitor in raw.visitors))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_a_header(text: str) -> None:
    value = encoded_header(text)

    assert decoded_header(value) == text
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()


def test_readable_names_stay_readable() -> None:
    assert encoded_header("file:///a b.txt") == "file:///a b.txt"
    assert encoded_header("=?base64?eA==?=") == "=?base64?PT9iYXNlNjQ/ZUE9PT89?="


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [
        ("tools/call", {"name": "t"}, b"Mcp-Method: tools/call\r\nMcp-Name: t\r\n"),
        ("prompts/get", {"name": "p"}, b"Mcp-Method: prompts/get\r\nMcp-Name: p\r\n"),
        ("resources/read", {"uri": "a:b"}, b"Mcp-Method: resources/read\r\nMcp-Name: a:b\r\n"),
        ("tools/list", {"name": "t"}, b"Mcp-Method: tools/list\r\n"),
        ("tools/call", {}, b"Mcp-Method: tools/call\r\n"),
        ("tools/call", {"name": 5}, b"Mcp-Method: tools/call\r\n"),
    ],
)
def test_headers_repeat_the_method_and_the_name(method: str, params: dict[str, Any], headers: bytes) -> None:
    assert routing_headers(method, params) == headers


@pytest.mark.parametrize("method", ["", "ü", "a\r\nX: y", " x"])
def test_a_method_that_no_header_can_carry_is_refused(method: str) -> None:
    with pytest.raises(RpcError):
        routing_headers(method, {})


def marked(kind: str, name: object) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


def test_marks_are_found_where_an_argument_certainly_is() -> None:
    schema = {
        "properties": {
            "a": marked("string", "A"),
            "b": {"properties": {"c": marked("integer", "C"), "d": {"items": marked("string", "D")}}},
            "x-mcp-header": marked("string", "X"),
        },
        "anyOf": [{"properties": {"g": marked("string", "G")}}],
        "x-mcp-header": "Root",
    }

    assert marks_in(schema) == ((("a",), "A"), (("b", "c"), "C"), (("x-mcp-header",), "X"))


@pytest.mark.parametrize(
    "properties",
    [
        {"a": marked("string", "not a token")},
        {"a": marked("string", "")},
        {"a": marked("string", 5)},
        {"a": marked("number", "A")},
        {"a": marked("object", "A")},
        {"a": marked("null", "A")},
        {"a": {"type": ["string", []], "x-mcp-header": "A"}},
        {"a": marked("string", "A"), "b": {"properties": {"c": marked("string", "a")}}},
    ],
)
def test_marks_that_mcp_does_not_allow_make_the_tool_unusable(properties: dict[str, Any]) -> None:
    assert marks_in({"properties": properties}) is None


async def test_a_tool_with_marks_that_are_not_allowed_is_not_listed_and_the_marks_of_others_are_shared() -> None:
    tools = [
        {"name": "good", "inputSchema": {"properties": {"a": marked("string", "Region")}}},
        {"name": "bad", "inputSchema": {"properties": {"a": marked("number", "Region")}}},
        {"name": "plain", "inputSchema": {}},
    ]

    async def tell(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {"tools": tools, "nextCursor": "2"})

    server = ModernServer(list=tell, call=done)
    marks: ToolMarks = {}
    async with RawServer(server) as raw:
        reader = await connect_http(raw.url, TestPeer(), modern_first=True, marks=marks)
        caller = await connect_http(raw.url, TestPeer(), modern_first=True, marks=marks)

        listed = read(await reader.request("tools/list", {}, TestPeer(modern=True)))
        await caller.request("tools/call", {"name": "good", "arguments": {"a": "east"}}, TestPeer(modern=True))

        assert ([tool["name"] for tool in listed["tools"]], listed["nextCursor"]) == (["good", "plain"], "2")
        assert server.posts("tools/call")[0].headers["mcp-param-region"] == "east"
        await reader.close()
        await caller.close()


async def test_a_server_that_refuses_a_version_and_then_names_it_is_asked_once_more() -> None:
    async def refuse_first(visitor: Visitor, asked: Asked) -> None:
        if len(server.posts("server/discover")) == 1:
            refuse(visitor, asked, -32022, status=400, data={"supported": [MODERN], "requested": MODERN})
        else:
            await server.otherwise(visitor, asked)

    server = ModernServer(discover=refuse_first)
    async with RawServer(server) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=True)
        await connection.close()

    assert connection.server.modern
    assert server.methods()[:2] == ["server/discover"] * 2


@pytest.mark.parametrize("schema", [None, [], {"properties": 5}, {"properties": {"a": 5}}])
def test_a_schema_that_is_none_has_no_marks(schema: object) -> None:
    assert marks_in(schema) == ()


def test_a_schema_without_an_end_is_not_followed_for_ever() -> None:
    schema: dict[str, Any] = {}
    schema["properties"] = {"a": schema}

    assert marks_in(schema) == ()


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"a": "x"}, b"Mcp-Param-A: x\r\n"),
        ({"a": "ü"}, b"Mcp-Param-A: =?base64?w7w=?=\r\n"),
        ({"a": True}, b"Mcp-Param-A: true\r\n"),
        ({"a": False}, b"Mcp-Param-A: false\r\n"),
        ({"a": 42}, b"Mcp-Param-A: 42\r\n"),
        ({"b": {"c": "x"}}, b"Mcp-Param-C: x\r\n"),
        ({"a": None}, b""),
        ({"a": ["x"], "b": "x"}, b""),
        ({}, b""),
        (None, b""),
    ],
)
def test_headers_repeat_marked_arguments(arguments: object, headers: bytes) -> None:
    assert argument_headers(((("a",), "A"), (("b", "c"), "C")), {"arguments": arguments}) == headers
