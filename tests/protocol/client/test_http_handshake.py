"""Conversations of the handshake era over HTTP, with servers that do what the test says, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from functools import partial
from typing import Any

import pytest

from support.mcp_peers import HANDSHAKE, TestPeer
from support.raw_servers import Asked, RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.client import backoff, http_endpoint, http_handshake
from uno_devserver.protocol.client.backoff import Backoff
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.http_connect import connect_http
from uno_devserver.protocol.client.raw_messages import with_envelope
from uno_devserver.protocol.http.sse import EventReader
from uno_devserver.protocol.jsonrpc import BUSY, INTERNAL_ERROR, RpcError
from uno_devserver.protocol.service import Params, Result

from ..conversations import WAIT_SECONDS
from .http_servers import HandshakeServer, answer_to, connected, echo, never, note, open_events, read, refuse, say

PROGRESS = "notifications/progress"


# --- how it begins and ends


async def test_a_conversation_begins_with_a_handshake_and_ends_with_a_goodbye() -> None:
    server = HandshakeServer(call=echo)
    peer = TestPeer("c", roots={})

    async with connected(server, peer) as connection:
        assert connection.server.version == HANDSHAKE
        assert not connection.server.modern
        assert connection.server.info == {"name": "raw", "version": "1"}
        await connection.request("tools/call", {"name": "t"}, peer)

    hello, initialized, call, goodbye = [asked for asked in server.seen if asked.method != "GET"]
    assert hello.json["params"] == {
        "protocolVersion": HANDSHAKE,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "c", "version": "1.0"},
    }
    assert "mcp-session-id" not in hello.headers
    assert "mcp-protocol-version" not in hello.headers
    assert initialized.json == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert call.headers["accept"] == "application/json, text/event-stream"
    assert call.headers["content-type"] == "application/json"
    assert goodbye.method == "DELETE"
    for asked in (initialized, call, goodbye):
        assert asked.headers["mcp-session-id"] == "session-1"
        assert asked.headers["mcp-protocol-version"] == HANDSHAKE


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_the_server_chooses_the_version(version: str) -> None:
    server = HandshakeServer(call=echo)
    server.version = version

    async with connected(server) as connection:
        await connection.request("tools/call", {}, TestPeer())

    assert server.posts("tools/call")[0].headers["mcp-protocol-version"] == version


async def test_a_server_without_sessions_is_served_without() -> None:
    async def hello(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, server.hello())

    server = HandshakeServer(initialize=hello, call=echo)

    async with connected(server) as connection:
        await connection.request("tools/call", {}, TestPeer())

    assert "DELETE" not in server.methods()
    assert all("mcp-session-id" not in asked.headers for asked in server.seen)


async def test_closing_loses_what_still_waits_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_handshake, "CLOSE_SECONDS", 0.05)
    server = HandshakeServer(call=never, delete=never)

    async with connected(server) as connection:
        waiting = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
        await until(lambda: bool(server.posts("tools/call")))

        await asyncio.wait_for(connection.close(), 2)

        with pytest.raises(ConnectionLost) as lost:
            await waiting
        assert lost.value.sent
        with pytest.raises(ConnectionLost) as closed:
            await connection.request("tools/call", {}, TestPeer())
        assert not closed.value.sent


async def test_what_a_server_answers_to_the_goodbye_is_not_taken_for_the_outcome_of_a_call() -> None:
    goodbye = asyncio.Event()

    async def call(visitor: Visitor, asked: Asked) -> None:
        await goodbye.wait()
        refuse(visitor, asked, -32011, "The session ended.")

    async def delete(visitor: Visitor, asked: Asked) -> None:
        goodbye.set()
        for _ in range(10):
            await asyncio.sleep(0)
        visitor.answer()

    server = HandshakeServer(call=call, delete=delete)
    async with connected(server) as connection:
        waiting = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
        await until(lambda: bool(server.posts("tools/call")))
        await connection.close()
        with pytest.raises(ConnectionLost):
            await waiting


# --- requests and their answers


async def test_a_result_is_the_bytes_that_came() -> None:
    result = b'{"content" : [1.50, 123456789012345678901234567890],"unknown":{"\\u00e9":"\xc3\xa9"}}'

    async def call(visitor: Visitor, asked: Asked) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked.json["id"], result)
        visitor.answer(body, Content_Type="application/json; charset=utf-8")

    async with connected(HandshakeServer(call=call)) as connection:
        assert bytes(await connection.request("tools/call", {}, TestPeer())) == result


async def test_params_are_sent_as_they_are_but_for_the_modern_envelope() -> None:
    server = HandshakeServer(call=echo)
    params = {"name": "t", "arguments": {"é": [1, None]}, "x": 1, "_meta": {"progressToken": "p", "y": 2}}

    async with connected(server) as connection:
        answer = await connection.request("tools/call", with_envelope(params, TestPeer(modern=True)), TestPeer())

    assert read(answer) == {"echo": params}


async def test_what_is_said_on_the_way_to_an_answer_goes_to_the_one_who_asked() -> None:
    progress = {"progressToken": "p", "progress": 1, "unknown": [1]}

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.chunk(b": hello\n\n")
        visitor.event(None, "1-0")
        visitor.event(note(PROGRESS, **progress), "1-1")
        visitor.event(note("notifications/never/heard/of", a=1))
        visitor.chunk(b'event: other\ndata: {"method":"notifications/other"}\n\ndata: no message\n\n')
        visitor.event(answer_to(asked, {"done": True}), "1-2")
        visitor.end_events()

    server = HandshakeServer(call=call)
    asker, others = TestPeer(), TestPeer()
    async with connected(server, others) as connection:
        first = await connection.request("tools/call", {}, asker)
        second = await connection.request("tools/call", {}, TestPeer())

    assert read(first) == read(second) == {"done": True}
    assert asker.heard == [(PROGRESS, progress), ("notifications/never/heard/of", {"a": 1})]
    assert others.heard == []


async def test_several_messages_may_come_together() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        batch = [note(PROGRESS, progress=1), answer_to(asked, {"done": True})]
        visitor.answer(json.dumps(batch).encode(), Content_Type="application/json")

    peer = TestPeer()
    async with connected(HandshakeServer(call=call)) as connection:
        assert read(await connection.request("tools/call", {}, peer)) == {"done": True}
    assert peer.methods() == [PROGRESS]


async def test_many_requests_run_side_by_side() -> None:
    async with connected(HandshakeServer(call=echo)) as connection:
        answers = await asyncio.gather(*(connection.request("tools/call", {"n": n}, TestPeer()) for n in range(100)))

    assert [read(answer) for answer in answers] == [{"echo": {"n": n}} for n in range(100)]


async def test_a_request_that_is_cancelled_is_taken_back() -> None:
    server = HandshakeServer(call=never)
    async with connected(server) as connection:
        call = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
        await until(lambda: bool(server.posts("tools/call")))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        await until(lambda: bool(server.posts("notifications/cancelled")))
        told = server.posts("notifications/cancelled")[0].json["params"]
        assert told["requestId"] == server.posts("tools/call")[0].json["id"]


async def test_one_that_is_closed_before_it_takes_a_request_back_leaves_no_work_that_nobody_awaits() -> None:
    server = HandshakeServer(call=never)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        async with connected(server) as connection:
            call = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
            await until(lambda: bool(server.posts("tools/call")))
            call.cancel()
            await asyncio.create_task(connection.close())  # begins when the call has ended, and nothing else yet
            with pytest.raises(asyncio.CancelledError):
                await call
        gc.collect()

    assert [str(each.message) for each in seen if "never awaited" in str(each.message)] == []


async def test_a_notification_is_posted_unless_the_connection_says_it_itself() -> None:
    server = HandshakeServer()
    async with connected(server) as connection:
        await connection.notify("notifications/initialized", {})
        await connection.notify("notifications/cancelled", {"requestId": 5})
        await connection.notify("notifications/roots/list_changed", {})
        await connection.notify("notifications/unknown", {"x": 1})

    told = [method for method in server.methods() if method.startswith("notifications/")]
    assert told == ["notifications/initialized", "notifications/roots/list_changed", "notifications/unknown"]
    assert server.posts("notifications/unknown")[0].json["params"] == {"x": 1}


async def test_the_level_and_the_resources_to_watch_are_asked_for() -> None:
    server = HandshakeServer()
    async with connected(server) as connection:
        await connection.set_level("debug")
        await connection.watch(frozenset({"file:///a", "file:///b"}))
        await connection.watch(frozenset({"file:///b", "file:///c"}))

    asked = [
        (post.json["method"], post.json["params"])
        for post in server.seen
        if post.method == "POST" and post.json["method"].startswith(("logging/", "resources/"))
    ]
    assert asked == [
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "file:///a"}),
        ("resources/subscribe", {"uri": "file:///b"}),
        ("resources/unsubscribe", {"uri": "file:///a"}),
        ("resources/subscribe", {"uri": "file:///c"}),
    ]


async def test_a_resource_that_cannot_be_watched_is_told_and_the_others_are_watched() -> None:
    async def subscribe(visitor: Visitor, asked: Asked) -> None:
        if asked.json["params"]["uri"] == "file:///a":
            refuse(visitor, asked, -32002, "no such resource")
        else:
            say(visitor, asked, {})

    server = HandshakeServer(subscribe=subscribe)
    async with connected(server) as connection:
        refusals = await connection.watch(frozenset({"file:///a", "file:///b"}))
        assert {uri: refusal.message for uri, refusal in refusals.items()} == {"file:///a": "no such resource"}
        assert await connection.watch(frozenset({"file:///b"})) == {}

    assert len(server.posts("resources/subscribe")) == 2


async def test_an_event_that_is_too_long_fails_its_request_and_is_not_heard_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.chunk(b"data: " + b"x" * 1000)
        await visitor.gone()
        left.set()

    left = asyncio.Event()
    monkeypatch.setattr(http_endpoint, "EventReader", partial(EventReader, limit=100))
    async with connected(HandshakeServer(call=call)) as connection:
        with pytest.raises(RpcError, match="64 MiB"):
            await connection.request("tools/call", {}, TestPeer())
        await asyncio.wait_for(left.wait(), WAIT_SECONDS)


# --- questions of the server


async def asking_call(visitor: Visitor, asked: Asked, **question: Any) -> None:
    visitor.begin_events()
    visitor.event({"jsonrpc": "2.0", **question})
    visitor.event(answer_to(asked, {}))
    visitor.end_events()


async def answers_to(server: HandshakeServer) -> list[dict[str, Any]]:
    await until(lambda: "responded" in server.methods())
    return [post.json for post in server.seen if post.method == "POST" and "method" not in post.json]


@pytest.mark.parametrize("name", [7, "seven", "7"])
async def test_a_question_is_answered_by_the_one_whose_request_it_belongs_to(name: int | str) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        await asking_call(visitor, asked, id=name, method="sampling/createMessage", params={"q": 1})

    server = HandshakeServer(call=call)
    asker = TestPeer(answer=lambda _, params: {"a": params["q"]})
    async with connected(server) as connection:
        await connection.request("tools/call", {}, asker)
        answers = await answers_to(server)

    assert answers == [{"jsonrpc": "2.0", "id": name, "result": {"a": 1}}]
    assert asker.asked == [("sampling/createMessage", {"q": 1}, None)]


async def test_a_ping_is_answered_at_once() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        await asking_call(visitor, asked, id=1, method="ping")

    server, peer = HandshakeServer(call=call), TestPeer()
    async with connected(server) as connection:
        await connection.request("tools/call", {}, peer)
        assert await answers_to(server) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert peer.asked == []


async def test_a_question_that_is_refused_or_fails_is_answered_with_an_error() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        await asking_call(visitor, asked, id=1, method="roots/list")

    def fail(method: str, params: Params) -> Result:
        raise ZeroDivisionError

    for peer, code in ((TestPeer(), -32601), (TestPeer(answer=fail), INTERNAL_ERROR)):
        server = HandshakeServer(call=call)
        async with connected(server) as connection:
            await connection.request("tools/call", {}, peer)
            assert (await answers_to(server))[0]["error"]["code"] == code


async def test_a_question_that_is_taken_back_is_not_answered() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Slow(TestPeer):
        async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return {}

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await begun.wait()
        visitor.event(note("notifications/cancelled", requestId="q"))
        await ended.wait()
        visitor.event(note("notifications/cancelled", requestId="never asked"))
        visitor.event(answer_to(asked, {}))
        visitor.end_events()

    server, peer = HandshakeServer(call=call), Slow()
    async with connected(server) as connection:
        await asyncio.wait_for(connection.request("tools/call", {}, peer), WAIT_SECONDS)

    assert "responded" not in server.methods()
    assert peer.heard == []  # it knows its questions by other ids, and could take that for one of them


class Patient(TestPeer):
    """Never answers, and remembers the questions that were given up."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up = 0

    async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
        self.asked.append((method, params, name))
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up += 1
        return {}


async def test_a_question_that_is_told_twice_is_asked_once_and_too_many_are_refused() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        for number in (*range(100), 7, 100):
            visitor.event({"jsonrpc": "2.0", "id": number, "method": "roots/list"})
        visitor.event(answer_to(asked, {}))
        visitor.end_events()

    server, peer = HandshakeServer(call=call), Patient()
    async with connected(server) as connection:
        await connection.request("tools/call", {}, peer)
        (answer,) = await answers_to(server)

    assert (answer["id"], answer["error"]["code"]) == (100, BUSY)
    assert len(peer.asked) == 100
    await until(lambda: peer.given_up == 100)


# --- what belongs to no request


async def test_what_the_server_says_by_itself_goes_to_the_peer_of_the_connection() -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event(note("notifications/tools/list_changed"), "s-1")
        visitor.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, "s-2")
        await visitor.gone()

    peer = TestPeer(answer=lambda _method, _params: {"roots": []})
    server = HandshakeServer(get=get)
    async with connected(server, peer):
        await until(lambda: peer.methods() == ["notifications/tools/list_changed"])
        assert await answers_to(server) == [{"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}]

    assert server.gets()[0].headers["mcp-session-id"] == "session-1"


async def test_following_means_that_the_server_has_us_on_its_stream() -> None:
    open_streams: list[Visitor] = []

    async def get(visitor: Visitor, asked: Asked) -> None:
        open_streams.append(visitor)
        await open_events(visitor, asked)

    peer = TestPeer()
    async with connected(HandshakeServer(get=get), peer) as connection:
        await connection.watch(frozenset())
        open_streams[0].event(note("notifications/prompts/list_changed"))
        await until(lambda: peer.methods() == ["notifications/prompts/list_changed"])


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_that_says_nothing_by_itself_is_not_asked_again(status: int) -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(b"Cannot GET /mcp", status=status, Content_Type="text/html")

    server = HandshakeServer(call=echo, get=get)
    async with connected(server) as connection:
        await connection.watch(frozenset())
        for _ in range(3):
            await connection.request("tools/call", {}, TestPeer())

    assert len(server.gets()) == 1
    assert server.sessions == 1


@pytest.mark.parametrize("broken", [True, False])
async def test_the_stream_is_taken_up_again_where_it_was_cut(broken: bool) -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        if len(server.gets()) == 1:
            visitor.chunk(b"retry: 10\n\n")
            visitor.event(note("notifications/one"), "s-1")
            if broken:
                visitor.close()
            else:
                visitor.end_events()
        else:
            visitor.event(note("notifications/two"), "s-2")
            await visitor.gone()

    peer = TestPeer()
    server = HandshakeServer(get=get)
    async with connected(server, peer):
        await until(lambda: peer.methods() == ["notifications/one", "notifications/two"])

    assert [asked.headers.get("last-event-id") for asked in server.gets()] == [None, "s-1"]


async def test_changes_that_could_not_be_heard_are_assumed() -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        if len(server.gets()) == 1:
            visitor.begin_events()
            visitor.close()
        else:
            await open_events(visitor, asked)

    peer = TestPeer()
    server = HandshakeServer(get=get)
    async with connected(server, peer):
        changed = ["notifications/tools/list_changed", "notifications/resources/list_changed"]
        await until(lambda: peer.methods() == changed)


async def test_an_event_that_the_server_does_not_know_any_more_is_given_up() -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        if "last-event-id" in asked.headers:
            visitor.answer(b"too old", status=400)
        else:
            visitor.begin_events()
            visitor.event(note("notifications/one"), "s-1")
            if len(server.gets()) == 1:
                visitor.close()
            else:
                await visitor.gone()

    peer = TestPeer()
    server = HandshakeServer(get=get)
    async with connected(server, peer):
        await until(lambda: peer.methods().count("notifications/one") == 2)

    assert "notifications/tools/list_changed" in peer.methods()
    assert [asked.headers.get("last-event-id") for asked in server.gets()] == [None, "s-1", None]


# --- sessions that the server forgot


def forgetful(server: HandshakeServer, how: str) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        if asked.headers["mcp-session-id"] != "session-1":
            say(visitor, asked, {"session": asked.headers["mcp-session-id"]})
        elif how == "404":
            refuse(visitor, asked, -32001, "Session not found", status=404)
        elif how == "404 without a message":
            visitor.answer(b"Not Found", status=404, Content_Type="text/plain")
        elif how == "400 without an id":
            refuse_unread(visitor, "Bad Request: Server not initialized")
        else:
            refuse(visitor, asked, -32000, "Bad Request: No valid session ID provided", status=400)

    server.answers["call"] = call


def refuse_unread(visitor: Visitor, message: str) -> None:
    """As the official SDKs do before they look at the request."""
    visitor.answer_json({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}, 400)


@pytest.mark.parametrize("how", ["404", "404 without a message", "400 without an id", "400 about the session"])
async def test_a_forgotten_session_is_opened_anew_and_the_request_sent_again(how: str) -> None:
    server = HandshakeServer()
    forgetful(server, how)
    peer = TestPeer()
    async with connected(server, peer) as connection:
        await connection.set_level("error")
        await connection.watch(frozenset({"file:///a"}))
        answers = await asyncio.gather(*(connection.request("tools/call", {}, TestPeer()) for _ in range(5)))
        await until(lambda: "notifications/tools/list_changed" in peer.methods())

    assert [read(answer) for answer in answers] == [{"session": "session-2"}] * 5
    assert server.sessions == 2
    assert [post.headers["mcp-session-id"] for post in server.posts("logging/setLevel")] == ["session-1", "session-2"]
    assert [post.headers["mcp-session-id"] for post in server.posts("resources/subscribe")] == [
        "session-1",
        "session-2",
    ]
    assert [asked.headers["mcp-session-id"] for asked in server.gets()] == ["session-1", "session-2"]


async def test_a_resource_that_is_followed_when_the_session_turns_out_to_be_forgotten_stays_followed() -> None:
    async def subscribe(visitor: Visitor, asked: Asked) -> None:
        if asked.json["params"]["uri"] == "file:///a" or not server.forget(visitor, asked):
            say(visitor, asked, {})

    server = HandshakeServer(subscribe=subscribe)
    peer = TestPeer()
    async with connected(server, peer) as connection:
        await connection.watch(frozenset({"file:///a"}))
        await connection.watch(frozenset({"file:///a", "file:///b"}))
        await until(lambda: "notifications/tools/list_changed" in peer.methods())

    told = [
        (post.headers["mcp-session-id"], post.json["params"]["uri"]) for post in server.posts("resources/subscribe")
    ]
    assert sorted(told[-2:]) == [("session-2", "file:///a"), ("session-2", "file:///b")]
    assert server.posts("resources/unsubscribe") == []


async def test_a_server_that_goes_while_a_forgotten_session_is_renewed_has_not_run_the_request() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        server.forget(visitor, asked)

    async def initialize(visitor: Visitor, asked: Asked) -> None:
        if server.sessions:
            visitor.close()
        else:
            await server.otherwise(visitor, asked)

    server = HandshakeServer(call=call, initialize=initialize)
    async with connected(server) as connection:
        with pytest.raises(ConnectionLost) as lost:
            await connection.request("tools/call", {}, TestPeer())

    assert not lost.value.sent


async def test_a_session_that_was_forgotten_while_nothing_happened_is_opened_anew() -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        if asked.headers["mcp-session-id"] == "session-2":
            await open_events(visitor, asked)
        elif len(server.gets()) == 1:
            visitor.begin_events()
            visitor.close()
        else:
            visitor.answer(status=404)

    peer = TestPeer()
    server = HandshakeServer(get=get)
    async with connected(server, peer):
        await until(lambda: server.sessions == 2)
        await until(lambda: "notifications/tools/list_changed" in peer.methods())


@pytest.mark.parametrize("what", ["stream", "level"])
async def test_a_server_that_forgets_every_session_is_asked_less_and_less(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(visitor: Visitor, asked: Asked) -> None:
        asked_before = [other.headers["mcp-session-id"] for other in server.gets()[:-1]]
        if what == "level" or asked.headers["mcp-session-id"] in asked_before:
            visitor.answer(status=404)
        else:
            visitor.begin_events()
            visitor.chunk(b"retry: 0\n\n")
            visitor.end_events()

    async def level(visitor: Visitor, asked: Asked) -> None:
        server.forget(visitor, asked, asked.headers["mcp-session-id"])

    pauses: list[float] = []
    backoff_next = Backoff.next

    def shortened(backoff: Backoff) -> float:
        pauses.append(backoff_next(backoff))
        return 0

    monkeypatch.setattr(backoff, "STEADY_SECONDS", 3600.0)  # however slow this machine is
    monkeypatch.setattr(Backoff, "next", shortened)
    server = HandshakeServer(get=get, setLevel=level)
    async with connected(server) as connection:
        if what == "level":
            with pytest.raises(ConnectionLost):
                await connection.set_level("debug")
        await until(lambda: server.sessions > 5 and len(pauses) >= 4)

    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]


async def test_a_server_that_opens_no_new_session_is_lost() -> None:
    async def hello(visitor: Visitor, asked: Asked) -> None:
        if server.sessions:
            visitor.answer(b"<h1>Gone</h1>", status=404, Content_Type="text/html")
        else:
            await server.otherwise(visitor, asked)

    server = HandshakeServer(initialize=hello)
    forgetful(server, "404")
    async with connected(server) as connection:
        with pytest.raises(ConnectionLost, match="HTTP 404 and text/html") as lost:
            await connection.request("tools/call", {}, TestPeer())

    assert not lost.value.sent


# --- streams that are cut


@pytest.mark.parametrize("broken", [True, False])
async def test_an_answer_whose_stream_was_cut_is_taken_up_again(broken: bool) -> None:
    calls: list[Asked] = []

    async def call(visitor: Visitor, asked: Asked) -> None:
        calls.append(asked)
        visitor.begin_events()
        visitor.chunk(b"id: 5-0\nretry: 10\ndata:\n\n")
        visitor.event(note(PROGRESS, progress=1), "5-1")
        if broken:
            visitor.close()
        else:
            visitor.end_events()

    async def get(visitor: Visitor, asked: Asked) -> None:
        if "last-event-id" not in asked.headers:
            visitor.answer(status=405)
            return
        visitor.begin_events()
        if asked.headers["last-event-id"] == "5-1":
            visitor.event(note(PROGRESS, progress=2), "5-2")  # and cut again
        else:
            visitor.event(answer_to(calls[0], {"done": True}), "5-3")
        visitor.end_events()

    peer = TestPeer()
    server = HandshakeServer(call=call, get=get)
    async with connected(server) as connection:
        assert read(await connection.request("tools/call", {}, peer)) == {"done": True}

    assert len(calls) == 1
    assert [params["progress"] for _, params in peer.heard] == [1, 2]
    assert [asked.headers.get("last-event-id") for asked in server.gets()][-2:] == ["5-1", "5-2"]


async def test_a_stream_that_breaks_again_and_again_without_a_word_is_given_up() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.chunk(b"id: 5-0\nretry: 1\ndata:\n\n")
        visitor.close()

    async def get(visitor: Visitor, asked: Asked) -> None:
        if "last-event-id" not in asked.headers:
            visitor.answer(status=405)
        else:
            visitor.begin_events()
            visitor.close()

    server = HandshakeServer(call=call, get=get)
    async with connected(server) as connection:
        with pytest.raises(ConnectionLost) as lost:
            await connection.request("tools/call", {}, TestPeer())

    assert lost.value.sent
    assert len(server.gets()) == 1 + 1 + 5


async def test_a_server_that_died_during_a_call_is_noticed_at_once() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.chunk(b"id: 5-0\nretry: 60000\ndata:\n\n")
        await visitor.gone()

    server = HandshakeServer(call=call)
    async with RawServer(server) as raw:
        connection = await connect_http(raw.url, TestPeer(), modern_first=False)
        waiting = asyncio.create_task(connection.request("tools/call", {}, TestPeer()))
        await until(lambda: bool(server.posts("tools/call")))

    with pytest.raises(ConnectionLost) as lost:
        await asyncio.wait_for(waiting, 5)
    assert lost.value.sent
    with pytest.raises(ConnectionLost, match="refuses connections") as refused:
        await connection.request("tools/call", {}, TestPeer())
    assert not refused.value.sent
    await connection.close()


# --- answers that are none


async def test_an_answer_of_the_wrong_type_counts_if_it_is_one() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.answer(json.dumps(answer_to(asked, {"a": 1}), indent=2).encode(), Content_Type="text/plain")

    async with connected(HandshakeServer(call=call)) as connection:
        assert bytes(await connection.request("tools/call", {}, TestPeer())) == b'{"a":1}'


@pytest.mark.parametrize("in_events", [True, False])
async def test_an_answer_that_is_too_long_is_an_error_and_no_loss(
    in_events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uno_devserver.protocol.http.sse.EventReader.__init__.__defaults__", (10_000,))
    monkeypatch.setattr("uno_devserver.protocol.http.client_connection.Reply.read.__defaults__", (10_000,))

    async def call(visitor: Visitor, asked: Asked) -> None:
        long = answer_to(asked, {"text": "x" * 20_000})
        if in_events:
            visitor.begin_events()
            visitor.event(long)
            await visitor.gone()
        else:
            visitor.answer_json(long)

    async with connected(HandshakeServer(call=call)) as connection:
        with pytest.raises(RpcError, match="64 MiB"):
            await connection.request("tools/call", {}, TestPeer())


async def test_a_peer_that_fails_does_not_end_the_conversation() -> None:
    class Broken(TestPeer):
        def notify(self, method: str, params: Params) -> None:
            raise ZeroDivisionError

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event(note(PROGRESS, progress=1))
        visitor.event(answer_to(asked, {"done": True}))
        visitor.end_events()

    async with connected(HandshakeServer(call=call)) as connection:
        assert read(await connection.request("tools/call", {}, Broken())) == {"done": True}
