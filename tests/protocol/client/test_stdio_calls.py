"""Calls that are made over lines without a task: sent with `flush`, answered with `settle`, cancelled, and lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.mcp_peers import TestPeer
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.lines import LineTooLong

from .pending_calls import RecordedCall
from .wires import Wire, handshake_wire, modern_wire

PROGRESS = "notifications/progress"
PARAMS = b'{"name":"t", "arguments":{"n":1e400,"text":"\\u00e9"}}'


def send(wire: Wire, *calls: RecordedCall, params: bytes = b'{"name":"t"}') -> list[bool]:
    taken = [wire.connection.send(call, "t", params) for call in calls]
    wire.connection.flush()
    return taken


async def sent(wire: Wire, *calls: RecordedCall) -> list[dict[str, Any]]:
    """The requests that the server sees."""
    assert all(send(wire, *calls))
    return [await wire.next() for _ in calls]


async def one_call() -> tuple[Wire, RecordedCall, dict[str, Any]]:
    wire, call = await handshake_wire(TestPeer()), RecordedCall()
    [request] = await sent(wire, call)
    return wire, call, request


def progress(wire: Wire, token: Any, number: int = 1) -> None:
    wire.say(method=PROGRESS, params={"progressToken": token, "progress": number})


# there and back


async def test_a_call_is_written_with_the_clients_own_bytes_when_it_is_flushed() -> None:
    wire = await handshake_wire(TestPeer())
    call = RecordedCall()

    assert wire.connection.send(call, "t", PARAMS)
    await wire.nothing()
    wire.connection.flush()
    request = await wire.next()

    assert call.data == b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}\n' % (request["id"], PARAMS)
    assert call.sent
    assert call.outcomes == []


async def test_calls_and_requests_of_coroutines_share_the_connection() -> None:
    wire = await handshake_wire(TestPeer())
    call = RecordedCall()
    [own] = await sent(wire, call)
    waiting = asyncio.ensure_future(wire.connection.request("tools/list", {}, TestPeer()))
    other = await wire.next()

    wire.answer(other, {"tools": []})
    wire.answer(own, {"n": 1})

    assert own["id"] != other["id"]
    assert json.loads(bytes(await waiting)) == {"tools": []}
    assert call.result == {"n": 1}


async def test_the_turn_is_over_when_all_answers_that_came_together_are_settled() -> None:
    wire = await handshake_wire(TestPeer())
    calls = [RecordedCall() for _ in range(3)]
    requests = await sent(wire, *calls)

    wire.write_out(*(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % request["id"] for request in requests))

    assert [call.result for call in calls] == [{}] * 3
    assert [call.turns for call in calls] == [[], [], [1]]


@pytest.mark.parametrize(
    "line",
    [
        b'[{"jsonrpc":"2.0","id":%d,"result":{"n":1}}]',
        b'listening on 5000 {"jsonrpc":"2.0","id":%d,"result":{"n":1}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"result":{"n":1}}',
        b'{"jsonrpc":"2.0","id":%d,"result":{"n":1},"odd":"\xff"}',
    ],
    ids=["batch", "behind text", "byte order mark", "no UTF-8"],
)
async def test_a_turn_with_an_unusual_answer_is_over_too(line: bytes) -> None:
    wire, call, request = await one_call()

    wire.write_out(line % request["id"])

    assert call.result == {"n": 1}
    assert call.turns == [1]


async def test_an_error_without_a_number_is_for_nobody_where_two_wait() -> None:
    wire = await handshake_wire(TestPeer())
    calls = [RecordedCall(), RecordedCall()]
    await sent(wire, *calls)

    wire.say(id=None, error={"code": -32700, "message": "Parse error"})

    assert [call.outcomes for call in calls] == [[], []]


async def test_a_modern_server_gets_the_call_as_its_client_wrote_it() -> None:
    wire = await modern_wire(TestPeer())
    call = RecordedCall(modern=True)

    assert send(wire, call, params=b'{"name":"t","_meta":{"own":1}}') == [True]
    request = await wire.next()
    wire.answer(request, {"resultType": "input_required", "inputRequests": {}})

    assert request["params"] == {"name": "t", "_meta": {"own": 1}}
    assert call.result["resultType"] == "input_required"


# what cannot be sent


@pytest.mark.parametrize("why", ["gone", "busy"])
async def test_a_call_that_cannot_be_sent_is_not_taken_and_hears_nothing(why: str) -> None:
    wire = await handshake_wire(TestPeer())
    setattr(wire, why, True)
    call = RecordedCall(b'"p"')

    assert send(wire, call) == [False]

    wire.connection.ended()
    assert (call.sent, call.outcomes) == (False, [])


async def test_a_call_that_was_not_taken_leaves_its_token_free() -> None:
    wire = await handshake_wire(TestPeer())
    wire.busy = True
    send(wire, RecordedCall(b'"p"'))
    wire.busy = False
    call = RecordedCall(b'"p"')

    await sent(wire, call)
    progress(wire, "p")

    assert call.methods() == [PROGRESS]


# progress


@pytest.mark.parametrize("token", [7, "7", "", "p", "café", "a/b", 2**53, -1])
async def test_progress_reaches_the_call_under_its_clients_own_token(token: int | str) -> None:
    wire = await handshake_wire(TestPeer())
    call, other = RecordedCall(json.dumps(token, ensure_ascii=False).encode()), RecordedCall(b'"other"')
    [request, _] = await sent(wire, call, other)

    progress(wire, token)
    wire.answer(request, {})
    progress(wire, token, 2)

    assert call.heard == [(PROGRESS, {"progressToken": token, "progress": 1})]
    assert other.heard == []


@pytest.mark.parametrize("token", [b'"caf\\u00e9"', b'"a\\/b"', b'"\\n"'])
async def test_a_token_that_the_server_may_spell_differently_is_not_taken_here(token: bytes) -> None:
    """Python's `json` writes escapes where Node and .NET write the characters."""
    wire = await handshake_wire(TestPeer())

    assert send(wire, RecordedCall(token)) == [False]


async def test_a_token_that_another_call_uses_needs_a_number_of_ours_and_is_not_taken_here() -> None:
    wire = await handshake_wire(TestPeer())
    first, second = RecordedCall(b"1"), RecordedCall(b"1")
    [request] = await sent(wire, first)

    assert send(wire, second, RecordedCall(b'"1"')) == [False, True]

    wire.answer(request, {})
    assert send(wire, second) == [True]
    progress(wire, 1)
    assert (first.heard, second.methods()) == ([], [PROGRESS])


async def test_a_call_that_wants_no_progress_shares_that_with_others() -> None:
    wire = await handshake_wire(TestPeer())

    assert send(wire, RecordedCall(), RecordedCall()) == [True, True]


async def test_requests_of_coroutines_do_not_take_the_tokens_of_calls() -> None:
    wire = await handshake_wire(TestPeer())
    call, peer = RecordedCall(b"1"), TestPeer()
    await sent(wire, call)
    params = {"name": "t", "_meta": {"progressToken": 1}}
    waiting = asyncio.ensure_future(wire.connection.request("tools/call", params, peer))
    token = (await wire.next())["params"]["_meta"]["progressToken"]

    progress(wire, 1, 1)
    progress(wire, token, 2)

    assert call.heard == [(PROGRESS, {"progressToken": 1, "progress": 1})]
    assert peer.heard == [(PROGRESS, {"progressToken": 1, "progress": 2})]
    waiting.cancel()


# cancellation


async def test_the_token_of_a_cancelled_call_is_free() -> None:
    wire = await handshake_wire(TestPeer())
    call, again = RecordedCall(b'"p"'), RecordedCall(b'"p"')
    await sent(wire, call)
    wire.connection.cancel(call)

    assert send(wire, again) == [True]


async def test_a_call_that_is_cancelled_before_it_is_flushed_is_sent_before_its_cancellation() -> None:
    """Both may stand in one read of the client's lines."""
    wire = await handshake_wire(TestPeer())
    call = RecordedCall()
    wire.connection.send(call, "t", b'{"name":"t"}')

    wire.connection.cancel(call)

    request, told = await wire.next(), await wire.next()
    assert (request["method"], told["method"]) == ("tools/call", "notifications/cancelled")
    assert told["params"] == {"requestId": request["id"]}


# the end


async def test_what_a_call_does_when_it_is_lost_may_be_another_call() -> None:
    """It is answered the general way then, which may use the connection."""

    class Again(RecordedCall):
        def settle(self, outcome: Any) -> None:
            super().settle(outcome)
            assert not wire.connection.send(RecordedCall(), "t", b"{}")

    wire = await handshake_wire(TestPeer())
    calls = [Again(), Again()]
    await sent(wire, *calls)
    wire.gone = True

    wire.connection.ended()

    assert [len(call.outcomes) for call in calls] == [1, 1]


# bad input


async def test_a_line_that_is_too_long_and_answers_nothing_is_skipped() -> None:
    wire, call, request = await one_call()

    wire.write_out(
        LineTooLong({}), LineTooLong({"id": request["id"], "method": "x", "params": None}), LineTooLong({"id": None})
    )
    wire.answer(request, {"n": 1})

    assert call.result == {"n": 1}


async def test_text_before_a_message_does_not_hide_it_and_is_a_stray_line() -> None:
    peer = TestPeer()
    wire = await handshake_wire(peer)
    call = RecordedCall()
    [request] = await sent(wire, call)

    wire.write_out(b'Loading {model} {"a":1} {"jsonrpc":"2.0","id":%d,"result":{"n":1}}' % request["id"])
    wire.write_out(b'INFO: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')

    assert call.result == {"n": 1}
    assert peer.methods() == ["notifications/tools/list_changed"]
    assert wire.strays == [b'Loading {model} {"a":1} ', b"INFO: "]


async def test_messages_without_a_line_end_between_them_all_count() -> None:
    wire = await handshake_wire(TestPeer())
    calls = [RecordedCall() for _ in range(3)]
    requests = await sent(wire, *calls)

    answers = [b'{"jsonrpc":"2.0","id":%d,"result":{"n":{"o":{}}}}' % request["id"] for request in requests]
    wire.write_out(answers[0] + answers[1] + b" " + answers[2] + b" and more")

    assert [call.result for call in calls] == [{"n": {"o": {}}}] * 3
    assert wire.strays == [b"and more"]


async def test_a_defect_that_one_answer_meets_costs_no_other() -> None:
    class Defective(RecordedCall):
        def settle(self, outcome: object) -> None:
            raise ValueError("a defect")

    wire = await handshake_wire(TestPeer())
    calls = [Defective(), RecordedCall()]
    requests = await sent(wire, *calls)

    wire.write_out(*(b'{"jsonrpc":"2.0","id":%d,"result":{"n":1}}' % request["id"] for request in requests))

    assert calls[1].result == {"n": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"Listening on http://localhost:5000",
        b'{"level":"info","msg":"started"}',
        b'{"level":"info","id":%d}',
        b'{"level":"info","id":null}',
        b'{"jsonrpc":"2.0","id":null}',
        b'{"jsonrpc":"2.0"}',
        b'["a list"]',
        b"{",
        b'request {"id":%d',
    ],
    ids=range(9),
)
async def test_what_is_no_message_is_a_stray_line_and_settles_nothing(line: bytes) -> None:
    wire, call, request = await one_call()
    line = line % request["id"] if b"%d" in line else line

    wire.write_out(line)

    assert wire.strays == [line]
    assert call.outcomes == []


async def test_messages_are_no_stray_lines_but_answers_that_cannot_be_read_are() -> None:
    wire = await handshake_wire(TestPeer())

    wire.say(id=99, result={})
    wire.say(method="notifications/progress", params={"progressToken": "x"})
    wire.write_out(b'[{"jsonrpc":"2.0","method":"odd"}]', b'{"jsonrpc":"2.0","id":98,"result":')

    assert wire.strays == [b'{"jsonrpc":"2.0","id":98,"result":'], "people look for it in the server's log"


@pytest.mark.parametrize(
    "rest",
    [b',"result":[]', b',"result":"text"', b',"result":5', b',"result":null', b',"error":{}', b',"error":5', b""],
)
async def test_an_answer_without_a_result_object_settles_its_call(rest: bytes) -> None:
    wire, call, request = await one_call()

    wire.write_out(b'{"jsonrpc":"2.0","id":%d%s}' % (request["id"], rest))

    with pytest.raises(RpcError):
        _ = call.result
