"""Calls that are made over HTTP without a task: over a kept connection, with servers that do what the test says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from support.raw_servers import Asked, Visitor
from support.waiting import until
from uno_devserver.protocol.client.connection import ConnectionLost

from ..conversations import WAIT_SECONDS
from .http_servers import (
    HandshakeServer,
    ModernServer,
    Server,
    answer_to,
    connected,
    echo,
    never,
    note,
    plain,
    refuse,
    say,
)
from .pending_calls import RecordedCall, send, sent

PROGRESS = "notifications/progress"
PARAMS = b'{"name":"t", "arguments":{"n":1e400,"text":"\\u00e9"}}'
ERAS = pytest.mark.parametrize("server", [HandshakeServer, ModernServer])


async def asked_for(server: Server, count: int = 1) -> list[Asked]:
    await until(lambda: len(server.posts("tools/call")) == count)
    return server.posts("tools/call")


# --- plain JSON


@ERAS
async def test_a_call_is_posted_with_the_clients_own_bytes(server: type[Server]) -> None:
    scripted = server(call=plain(b'{"jsonrpc":"2.0","id":%d,"result":{}}'))

    async with connected(scripted) as connection:
        call = await sent(connection, PARAMS)
        assert call.sent
        await call.settled()

    [asked] = scripted.posts("tools/call")
    assert asked.body == b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}' % (asked.json["id"], PARAMS)
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["accept"] == "application/json, text/event-stream"
    if server is HandshakeServer:
        assert asked.headers["mcp-session-id"] == "session-1"
    else:
        assert (asked.headers["mcp-method"], asked.headers["mcp-name"]) == ("tools/call", "t")


@ERAS
async def test_a_plain_answer_settles_the_call_without_a_task(server: type[Server]) -> None:
    result = b'{"content" : [1.50, 123456789012345678901234567890],"unknown":{"\\u00e9":"\xc3\xa9"}}'

    class InNoTask(RecordedCall):
        def settle(self, outcome: Any) -> None:
            assert asyncio.current_task() is None
            super().settle(outcome)

    call = InNoTask()
    async with connected(server(call=plain(b'{"jsonrpc":"2.0","id":%d,"result":' + result + b"}"))) as connection:
        await send(connection, call)
        await call.settled()

    assert call.result_bytes == result
    assert call.turns == [1]


async def test_calls_go_over_connections_of_their_own_at_the_same_time() -> None:
    together = asyncio.Event()

    async def call(visitor: Visitor, asked: Asked) -> None:
        await together.wait()
        await echo(visitor, asked)

    server = HandshakeServer(call=call)
    async with connected(server) as connection:
        # Each request of a coroutine opens a connection where none is kept, and leaves it behind.
        waiting = [asyncio.ensure_future(connection.request("tools/call", {}, TestPeer())) for _ in range(5)]
        await asked_for(server, 5)
        together.set()
        await asyncio.gather(*waiting)
        together.clear()
        calls = [RecordedCall() for _ in range(5)]
        for number, one in enumerate(calls):
            assert connection.send(one, "t", b'{"name":"t","n":%d}' % number)
        await asked_for(server, 10)
        together.set()

        answers = [await one.settled() for one in calls]

    assert [answer["echo"]["n"] for answer in answers] == list(range(5))


async def test_without_a_kept_connection_a_call_is_not_taken_and_hears_nothing() -> None:
    server = HandshakeServer(call=never)
    async with connected(server) as connection:
        taken = 0
        calls: list[RecordedCall] = []
        while True:  # every kept connection is in use then
            calls.append(RecordedCall())
            if not connection.send(calls[-1], "t", b"{}"):
                break
            taken += 1
        assert taken < 5

        refused = calls[-1]
        assert not refused.sent
    assert refused.outcomes == []


async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_used() -> None:
    async def ping(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {})
        await visitor.writer.drain()
        visitor.close()

    server = HandshakeServer(call=echo, ping=ping)
    async with connected(server) as connection:
        for _ in range(3):
            await connection.request("ping", {}, TestPeer())
        await until(lambda: not connection.send(RecordedCall(), "t", b"{}"))

    assert all(asked.json["params"] == {} for asked in server.posts("tools/call"))


async def test_a_connection_that_is_closed_takes_no_call() -> None:
    async with connected(HandshakeServer(call=echo)) as connection:
        await (await sent(connection)).settled()
        await connection.close()

        assert not connection.send(RecordedCall(), "t", b"{}")


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/json;"])
async def test_a_type_with_a_character_set_is_plain_json_too(content_type: str) -> None:
    answer = plain(b'{"jsonrpc":"2.0","id":%d,"result":{"n":1}}', content_type)

    async with connected(HandshakeServer(call=answer)) as connection:
        assert await (await sent(connection)).settled() == {"n": 1}


@pytest.mark.parametrize(
    "body",
    [
        b'{\n  "jsonrpc": "2.0",\n  "id": %d,\n  "result": {\n    "n": 1\n  }\n}\n',
        b'{\r\n  "jsonrpc": "2.0",\r\n  "id": %d,\r\n  "result": {\r\n    "n": 1\r\n  }\r\n}\r\n',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"result":{"n":1}}',
        b'{"jsonrpc":"2.0","id":%d,"result":{"n":1},"odd":"\xff"}',
        b'[{"jsonrpc":"2.0","id":%d,"result":{"n":1}}]',
    ],
    ids=["indented", "indented on Windows", "byte order mark", "no UTF-8", "batch"],
)
async def test_a_result_is_on_one_line_in_utf_8_however_the_server_writes_its_answer(body: bytes) -> None:
    async with connected(HandshakeServer(call=plain(body))) as connection:
        call = await sent(connection)
        assert await call.settled() == {"n": 1}

    assert b"\n" not in call.result_bytes
    assert b"\r" not in call.result_bytes
    assert call.turns == [1]


@pytest.mark.parametrize("size", [2_000_000, 5_000_000])
async def test_a_long_answer_arrives(size: int) -> None:
    answer = plain(b'{"jsonrpc":"2.0","id":%d,"result":{"text":"' + b"x" * size + b'"}}')

    async with connected(HandshakeServer(call=answer)) as connection:
        for _ in range(2):  # the connection can be used again
            assert len((await (await sent(connection)).settled())["text"]) == size


# --- other answers


@ERAS
async def test_what_an_event_stream_says_before_the_answer_is_heard_by_the_call(server: type[Server]) -> None:
    more = asyncio.Event()

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event(note(PROGRESS, progressToken="p", progress=1))
        await more.wait()
        visitor.event(answer_to(asked, {"done": True}))
        visitor.end_events()

    peer = TestPeer()
    async with connected(server(call=call), peer) as connection:
        pending = await sent(connection)
        await until(lambda: bool(pending.heard))
        assert pending.outcomes == []
        more.set()
        assert await pending.settled() == {"done": True}
        await until(lambda: pending.turns == [1])

    assert pending.heard == [(PROGRESS, {"progressToken": "p", "progress": 1})]
    assert peer.methods() == []


async def test_the_type_of_an_event_stream_may_be_written_in_any_case() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.say(
            b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        visitor.event(answer_to(asked, {"done": True}))
        await visitor.gone()

    async with connected(HandshakeServer(call=call)) as connection:
        assert await (await sent(connection)).settled() == {"done": True}


async def test_a_question_in_an_event_stream_is_asked_of_the_call() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Who?"}})
        await until(lambda: "responded" in server.methods())
        visitor.event(answer_to(asked, {"done": True}))
        visitor.end_events()

    server = HandshakeServer(call=call)
    async with connected(server) as connection:
        pending = RecordedCall(answer=lambda method, params: {"action": "accept"})
        await send(connection, pending)
        assert await pending.settled() == {"done": True}

    assert pending.asked == [("elicitation/create", {"message": "Who?"}, None)]


@pytest.mark.parametrize("status", [307, 308])
@ERAS
async def test_a_call_that_is_sent_elsewhere_is_made_there_and_so_are_the_next(
    server: type[Server], status: int
) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        if asked.target == "/mcp":
            visitor.answer(status=status, Location="mcp/")
        else:
            await echo(visitor, asked)

    scripted = server(call=call)
    async with connected(scripted) as connection:
        for number in range(2):
            pending = RecordedCall(modern=True)
            await send(connection, pending, b'{"name":"t","n":%d}' % number)
            assert (await pending.settled())["echo"]["n"] == number

    made = [asked.json["params"]["n"] for asked in scripted.posts("tools/call") if asked.target != "/mcp"]
    assert made == [0, 1]
    assert scripted.posts("tools/call")[-1].target == "/mcp/"


async def test_a_forgotten_session_is_renewed_and_the_call_made_again() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        if not server.forget(visitor, asked):
            await echo(visitor, asked)

    server = HandshakeServer(call=call)
    async with connected(server) as connection:
        pending = await sent(connection, b'{"name":"t","arguments":{"n":[1]}}')

        assert await pending.settled() == {"echo": {"name": "t", "arguments": {"n": [1]}}}
        await until(lambda: pending.turns == [1])
        assert await (await sent(connection)).settled() == {"echo": {"name": "t"}}

    assert [asked.headers["mcp-session-id"] for asked in server.posts("tools/call")] == [
        "session-1", "session-2", "session-2",
    ]  # fmt: skip
    assert len(pending.outcomes) == 1


async def test_a_cut_stream_is_taken_up_where_the_server_allows_it() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        ids.append(asked.json["id"])
        visitor.begin_events()
        visitor.event(None, "1-0")
        visitor.chunk(b"retry: 1\n\n")
        visitor.end_events()

    async def get(visitor: Visitor, asked: Asked) -> None:
        if asked.headers.get("last-event-id") != "1-0":
            visitor.answer(status=405)
            return
        visitor.begin_events()
        visitor.event({"jsonrpc": "2.0", "id": ids[0], "result": {"done": True}}, "1-1")
        visitor.end_events()

    ids: list[int] = []
    async with connected(HandshakeServer(call=call, get=get)) as connection:
        assert await (await sent(connection)).settled() == {"done": True}


async def test_a_modern_tool_that_wants_its_arguments_in_headers_is_called_again_with_them() -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string", "x-mcp-header": "Who"}}}

    async def call(visitor: Visitor, asked: Asked) -> None:
        if "mcp-param-who" in asked.headers:
            say(visitor, asked, {"resultType": "complete", "who": asked.headers["mcp-param-who"]})
        else:
            refuse(visitor, asked, -32020, "HeaderMismatch", status=400)

    async def listed(visitor: Visitor, asked: Asked) -> None:
        say(visitor, asked, {"resultType": "complete", "tools": [{"name": "t", "inputSchema": schema}]})

    server = ModernServer(call=call, list=listed)
    async with connected(server) as connection:
        pending = RecordedCall(modern=True)
        await send(connection, pending, b'{"name":"t","arguments":{"who":"Ada"}}')

        assert (await pending.settled())["who"] == "Ada"
        assert not connection.send(RecordedCall(modern=True), "t", b"{}"), "its headers are known to be wanted"


@ERAS
async def test_closing_the_connection_loses_the_calls_that_wait(server: type[Server]) -> None:
    scripted = server(call=never)
    async with connected(scripted) as connection:
        pending = await sent(connection)
        await asked_for(scripted)

        await connection.close()

        with pytest.raises(ConnectionLost) as lost:
            await pending.settled()
    assert lost.value.sent


# --- cancellation


@ERAS
async def test_a_call_that_is_cancelled_closes_its_connection_and_hears_nothing(server: type[Server]) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        await visitor.gone()
        left.set()

    left = asyncio.Event()
    scripted = server(call=call)
    async with connected(scripted) as connection:
        pending = await sent(connection)
        [asked] = await asked_for(scripted)

        connection.cancel(pending)

        await asyncio.wait_for(left.wait(), WAIT_SECONDS)
        if server is HandshakeServer:
            await until(lambda: bool(scripted.posts("notifications/cancelled")))
            told = scripted.posts("notifications/cancelled")[0].json["params"]
            assert told["requestId"] == asked.json["id"]
    assert (pending.outcomes, pending.turns) == ([], [])


@pytest.mark.parametrize("moment", ["heard", "began"])
@ERAS
async def test_a_call_that_is_cancelled_in_its_event_stream_closes_it(server: type[Server], moment: str) -> None:
    """Also in the very turn of the loop in which the stream began."""

    async def call(visitor: Visitor, asked: Asked) -> None:
        visitor.begin_events()
        visitor.event(note(PROGRESS, progressToken="p", progress=1))
        await visitor.gone()
        left.set()

    left = asyncio.Event()
    async with connected(server(call=call)) as connection:
        pending = await sent(connection)
        if moment == "heard":
            await until(lambda: bool(pending.heard))
        else:
            http_call: Any = pending.ticket
            replied, began = type(http_call).replied, asyncio.Event()

            def cancel_at_once(self: Any, reply: Any) -> None:
                replied(self, reply)
                connection.cancel(pending)
                began.set()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(http_call), "replied", cancel_at_once)
                await asyncio.wait_for(began.wait(), WAIT_SECONDS)
        if moment == "heard":
            connection.cancel(pending)

        await asyncio.wait_for(left.wait(), WAIT_SECONDS)
    assert (pending.outcomes, pending.turns) == ([], [])


async def test_a_call_that_is_cancelled_while_it_is_made_again_is_taken_back() -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        if not server.forget(visitor, asked):
            await visitor.gone()

    server = HandshakeServer(call=call)
    async with connected(server) as connection:
        pending = await sent(connection)
        _, again = await asked_for(server, 2)

        connection.cancel(pending)

        def told() -> list[object]:
            return [asked.json["params"]["requestId"] for asked in server.posts("notifications/cancelled")]

        await until(lambda: again.json["id"] in told())
    assert pending.outcomes == []


async def test_other_calls_are_not_disturbed_by_one_that_is_cancelled_after_its_refusal_came() -> None:
    """The connection of the refusal is free by then, and may be in use again."""
    learning = asyncio.Event()

    async def call(visitor: Visitor, asked: Asked) -> None:
        if asked.json["params"].get("n") == 1:
            refuse(visitor, asked, -32020, "HeaderMismatch", status=400)
        else:
            await learning.wait()
            say(visitor, asked, {"n": asked.json["params"]["n"]})

    async def listed(visitor: Visitor, asked: Asked) -> None:
        learning.set()
        await visitor.gone()

    server = ModernServer(call=call, list=listed)
    async with connected(server) as connection:
        first = RecordedCall(modern=True)
        await send(connection, first, b'{"name":"t","n":1}')
        await until(lambda: bool(server.posts("tools/list")))
        second = RecordedCall(modern=True)
        sent_second = connection.send(second, "t", b'{"name":"t","n":2}')

        connection.cancel(first)

        if sent_second:
            assert await second.settled() == {"n": 2}
    assert first.outcomes == []


async def test_nothing_of_a_call_is_left_when_it_is_over() -> None:
    async with connected(HandshakeServer(call=echo)) as connection:
        tasks = len(asyncio.all_tasks())
        for _ in range(20):
            call = await sent(connection)
            await call.settled()
            assert call.ticket is None or json.dumps(call.result)
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
