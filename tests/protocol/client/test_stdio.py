"""Conversations over lines: requests and answers, progress, cancellation, what is told, and how it ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.mcp_peers import TestPeer
from uno_devserver.protocol.client.connection import AnswerTooLong, ConnectionLost, Peer
from uno_devserver.protocol.client.stdio import ACKNOWLEDGE_SECONDS
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError
from uno_devserver.protocol.lines import LineTooLong
from uno_devserver.system.log import DEBUG, log

from .pending_calls import RecordedCall
from .wires import Wire, handshake_wire, modern_wire

META = "io.modelcontextprotocol/"


def _call(wire: Wire, peer: Peer, name: str = "t", **params: Any) -> asyncio.Task[msgspec.Raw]:
    return asyncio.ensure_future(wire.connection.request("tools/call", {"name": name, **params}, peer))


async def one_call() -> tuple[Wire, asyncio.Task[msgspec.Raw], dict[str, Any]]:
    wire = await handshake_wire(TestPeer())
    call = _call(wire, TestPeer())
    return wire, call, await wire.next()


# requests and answers, of coroutines and of calls without a task


class Call:
    """A `tools/call` of either kind."""

    def __init__(self, wire: Wire, relayed: bool, **peer: Any) -> None:
        self.peer = RecordedCall(**peer)
        self._wire = wire
        self._task = None if relayed else _call(wire, self.peer)
        if relayed:
            assert wire.connection.send(self.peer, "t", b'{"name":"t"}')
            wire.connection.flush()

    async def outcome(self) -> bytes:
        return self.peer.result_bytes if self._task is None else bytes(await self._task)

    async def cancel(self) -> None:
        if self._task is None:
            self._wire.connection.cancel(self.peer)
        else:
            self._task.cancel()
            await asyncio.wait([self._task])
            assert self._task.cancelled() or not self._task.exception()


async def called(wire: Wire, relayed: bool, **peer: Any) -> tuple[Call, dict[str, Any]]:
    return Call(wire, relayed, **peer), await wire.next()


KINDS = pytest.mark.parametrize("relayed", [False, True], ids=["coroutine", "relayed"])


@KINDS
async def test_an_answer_reaches_its_request_once_with_the_bytes_that_came(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    (one, first), (two, second) = [await called(wire, relayed) for _ in range(2)]

    wire.write_out(b'{"id":%d,"future":1,"result": {"b" : 1.50, "a":"\\u00e4"} ,"jsonrpc":"2.0"}' % second["id"])
    wire.answer(first, {"n": 1})
    wire.answer(first, {"n": 2})

    assert first["id"] != second["id"]
    assert await one.outcome() == b'{"n": 1}'
    assert await two.outcome() == b'{"b" : 1.50, "a":"\\u00e4"}'
    assert wire.strays == []


@KINDS
async def test_an_error_is_the_servers_own(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    call, request = await called(wire, relayed)

    wire.refuse(request, -32010, "busy", data={"after": 3})

    with pytest.raises(RpcError) as caught:
        await call.outcome()
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32010, "busy", {"after": 3})


@KINDS
async def test_an_error_without_a_number_is_for_the_only_request(relayed: bool) -> None:
    """Servers write it when they could not read the request; nothing else would ever come."""
    wire = await handshake_wire(TestPeer())
    call, _ = await called(wire, relayed, token=b'"p"')

    wire.say(id=None, error={"code": -32700, "message": "Parse error"})
    wire.say(method="notifications/progress", params={"progressToken": "p"})

    with pytest.raises(RpcError, match="Parse error"):
        await call.outcome()
    assert call.peer.heard == []


@KINDS
async def test_who_cancels_a_request_hears_nothing_more_and_the_server_is_told(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    call, request = await called(wire, relayed, token=b'"p"')

    await call.cancel()
    told = await wire.next()
    wire.say(method="notifications/progress", params={"progressToken": "p"})
    wire.answer(request, {})
    wire.connection.ended()

    assert (told["method"], told["params"]) == ("notifications/cancelled", {"requestId": request["id"]})
    assert (call.peer.outcomes, call.peer.turns, call.peer.heard) == ([], [], [])


@KINDS
async def test_a_request_that_was_answered_is_not_cancelled_any_more(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    call, request = await called(wire, relayed)

    wire.answer(request, {})
    await call.cancel()

    await wire.nothing()


@KINDS
async def test_a_request_that_the_pipe_has_not_taken_is_withdrawn_when_it_is_cancelled(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    wire.room = False
    call, request = await called(wire, relayed)

    await call.cancel()

    assert [json.loads(line.data)["id"] for line in wire.withdrawn] == [request["id"]]
    await wire.nothing()


@KINDS
async def test_a_question_goes_to_the_client_of_the_only_request_and_its_answer_back(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    call, request = await called(wire, relayed, answer=lambda method, params: {"role": "assistant"})

    wire.say(id=request["id"], method="sampling/createMessage", params={"maxTokens": 5})  # a number that we use, too

    assert await wire.next() == {"jsonrpc": "2.0", "id": request["id"], "result": {"role": "assistant"}}
    assert call.peer.asked == [("sampling/createMessage", {"maxTokens": 5}, None)]


@KINDS
async def test_a_modern_servers_log_is_told_to_the_only_request_that_wants_it(relayed: bool) -> None:
    peer = TestPeer()
    wire = await modern_wire(peer)
    watching = asyncio.ensure_future(wire.connection.watch(frozenset()))  # a request of our own
    await wire.next()
    (wants, _), (does_not, _) = [await called(wire, relayed, log_level=level) for level in ("info", None)]

    wire.say(method="notifications/message", params={"level": "info", "data": "x"})
    await called(wire, relayed, log_level="info")
    wire.say(method="notifications/message", params={"level": "info", "data": "y"})

    assert wants.peer.heard == [("notifications/message", {"level": "info", "data": "x"})]
    assert peer.heard == [("notifications/message", {"level": "info", "data": "y"})]
    assert does_not.peer.heard == []
    watching.cancel()


@KINDS
@pytest.mark.parametrize("answers", [False, True])
async def test_who_waits_when_the_server_goes_learns_whether_it_may_have_seen_the_request(
    relayed: bool, answers: bool
) -> None:
    wire = await handshake_wire(TestPeer())
    seen, request = await called(wire, relayed)
    wire.room = False
    unseen, _ = await called(wire, relayed, token=b'"p"')

    if answers:  # it listens no more, but it may still answer what it has
        wire.connection.output_lost()
        wire.answer(request, {"last": "words"})
        assert await seen.outcome() == b'{"last": "words"}'
    wire.connection.ended()
    wire.connection.ended()

    for call, sent in ((unseen, False), *(() if answers else ((seen, True),))):
        with pytest.raises(ConnectionLost) as lost:
            await call.outcome()
        assert lost.value.sent is sent


@KINDS
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te', "cannot be read"),
        (b'{"jsonrpc": "2.0", "id": %d, "error": {"code": -1', "cannot be read"),
        (b'{"jsonrpc":"2.0","id":%d,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "cannot be read"),
        (b'{"result":{"a": nonsense},"jsonrpc":"2.0","id":%d}\r', "cannot be read"),
        (b'{"result":{"a": nonsense},"id":%d,"jsonrpc":"2.0"}', "cannot be read"),
        ("result", "64 MiB"),
        ("error", "64 MiB"),
    ],
    ids=range(7),
)
async def test_an_answer_that_cannot_be_read_keeps_nobody_waiting(line: bytes | str, why: str, relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    (call, request), (other, next_one) = [await called(wire, relayed) for _ in range(2)]

    if isinstance(line, str):
        wire.write_out(LineTooLong({"jsonrpc": "2.0", "id": request["id"], line: None}))
    else:
        wire.write_out(line % request["id"])

    with pytest.raises(RpcError, match=why) as failed:
        await call.outcome()
    assert failed.value.code == INTERNAL_ERROR
    assert (call.peer.turns, other.peer.outcomes) == ([1] if relayed else [], [])
    wire.answer(next_one, {})
    await other.outcome()


@KINDS
async def test_an_answer_that_is_too_long_may_spell_its_number_as_text(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    (call, request), (other, next_one) = [await called(wire, relayed) for _ in range(2)]

    wire.write_out(LineTooLong({"result": None, "id": str(request["id"]), "jsonrpc": "2.0"}))

    with pytest.raises(AnswerTooLong):
        await call.outcome()
    wire.answer(next_one, {})
    await other.outcome()


@KINDS
async def test_an_answer_that_is_too_long_and_hides_its_number_fails_the_request_that_is_left(relayed: bool) -> None:
    # given: three requests, and another one later
    wire = await handshake_wire(TestPeer())
    (first, one), (lost, _), (last, three) = [await called(wire, relayed) for _ in range(3)]
    wire.answer(one, {})
    await first.outcome()

    # when
    wire.write_out(LineTooLong({"result": None}))
    later, four = await called(wire, relayed)
    wire.answer(four, {})
    await later.outcome()
    assert not lost.peer.outcomes
    wire.answer(three, {})

    # then
    await last.outcome()
    with pytest.raises(AnswerTooLong):
        await lost.outcome()


@KINDS
async def test_a_request_that_was_cancelled_is_not_confused_with_one_whose_answer_was_too_long(relayed: bool) -> None:
    wire = await handshake_wire(TestPeer())
    (gone, _), (call, request) = [await called(wire, relayed) for _ in range(2)]
    wire.write_out(LineTooLong({"result": None}))

    await gone.cancel()
    wire.answer(request, {"n": 1})

    assert await call.outcome() == b'{"n": 1}'


# requests of coroutines


async def test_answers_that_nobody_waits_for_are_dropped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "level", DEBUG)
    wire = await handshake_wire(TestPeer())
    cancelled, call = _call(wire, TestPeer()), _call(wire, TestPeer())
    late, request = await wire.next(), await wire.next()
    cancelled.cancel()
    assert (await wire.next())["method"] == "notifications/cancelled"

    wire.answer(late, {"too": "late"})
    wire.say(id="of somebody else", result={})
    wire.say(id=99, result={})
    wire.answer(request, {"first": 1})
    wire.answer(request, {"second": 2})

    assert bytes(await call) == b'{"first": 1}'
    assert capsys.readouterr().err.count("does not wait for an answer") == 4


async def test_several_messages_in_one_line_count_one_by_one() -> None:
    wire = await handshake_wire(TestPeer())
    calls = [_call(wire, TestPeer()) for _ in range(2)]
    numbers = [(await wire.next())["id"] for _ in calls]

    batch = [{"jsonrpc": "2.0", "id": number, "result": {"n": number}} for number in numbers]
    wire.write_out(json.dumps(batch).encode())

    assert [json.loads(bytes(await call))["n"] for call in calls] == numbers


# the eras


async def test_a_modern_server_is_told_with_each_request_who_asks() -> None:
    wire = await modern_wire(TestPeer("first"))
    peer = TestPeer("second", log_level="debug", elicitation={})

    call = _call(wire, peer, _meta={"own": 1, f"{META}protocolVersion": "2099-01-01"})
    request = await wire.next()
    wire.answer(request, {})
    await call

    assert request["params"]["_meta"] == {
        f"{META}clientCapabilities": {"elicitation": {}},
        f"{META}clientInfo": {"name": "second", "version": "1.0"},
        f"{META}logLevel": "debug",
        "own": 1,
        f"{META}protocolVersion": "2026-07-28",
    }


async def test_a_handshake_server_never_sees_a_modern_envelope() -> None:
    wire = await handshake_wire(TestPeer())

    _call(wire, TestPeer(modern=True), _meta={"own": 1, f"{META}protocolVersion": "2026-07-28"})

    assert (await wire.next())["params"] == {"name": "t", "_meta": {"own": 1}}


async def test_a_modern_servers_questions_are_asked_of_a_handshake_client_and_the_call_is_made_again() -> None:
    wire = await modern_wire(TestPeer())
    peer = TestPeer(answer=lambda method, params: {"answer": params["q"]})
    call = _call(wire, peer, arguments={"a": 1})

    first = await wire.next()
    question = {"method": "elicitation/create", "params": {"q": "why"}}
    wire.answer(first, {"resultType": "input_required", "inputRequests": {"x": question}, "requestState": "s"})
    again = await wire.next()
    wire.answer(again, {"resultType": "complete"})
    await call

    assert peer.asked == [("elicitation/create", {"q": "why"}, "x")]
    assert again["id"] != first["id"]
    assert again["params"]["arguments"] == {"a": 1}
    assert again["params"]["inputResponses"] == {"x": {"answer": "why"}}
    assert again["params"]["requestState"] == "s"


async def test_a_modern_client_gets_the_questions_of_a_modern_server_as_they_are() -> None:
    wire = await modern_wire(TestPeer(modern=True))
    call = _call(wire, TestPeer(modern=True))

    wire.answer(await wire.next(), {"resultType": "input_required", "inputRequests": {}})

    assert json.loads(bytes(await call))["resultType"] == "input_required"


# progress


async def test_clients_that_use_the_same_progress_token_hear_of_their_own_requests_only() -> None:
    wire = await handshake_wire(TestPeer())
    one, two = TestPeer(), TestPeer()
    for peer, token in ((one, 7), (two, "7")):
        _call(wire, peer, _meta={"progressToken": token})
    first, second = await wire.next(), await wire.next()

    for request in (second, first):
        token = request["params"]["_meta"]["progressToken"]
        wire.say(method="notifications/progress", params={"progressToken": token, "progress": request["id"]})

    assert first["params"]["_meta"]["progressToken"] != second["params"]["_meta"]["progressToken"]
    assert one.heard == [("notifications/progress", {"progressToken": 7, "progress": first["id"]})]
    assert two.heard == [("notifications/progress", {"progressToken": "7", "progress": second["id"]})]


@pytest.mark.parametrize("token", [99, "x", None, [1], {"a": 1}])
async def test_progress_of_nothing_is_dropped(token: object) -> None:
    peer = TestPeer()
    wire = await handshake_wire(peer)
    caller = TestPeer()
    call = _call(wire, caller)  # which wants no progress
    request = await wire.next()

    wire.say(method="notifications/progress", params={"progressToken": token, "progress": 1})
    wire.say(method="notifications/progress", params={"progressToken": request["id"], "progress": 1})
    wire.answer(request, {})

    await call
    assert peer.heard == caller.heard == []


# what belongs to no request


@pytest.mark.parametrize(
    "method",
    ["notifications/tools/list_changed", "notifications/message", "notifications/resources/updated", "odd/unknown"],
)
async def test_what_belongs_to_no_request_is_told_to_the_peer_of_the_connection(method: str) -> None:
    peer = TestPeer()
    wire = await handshake_wire(peer)
    caller = TestPeer(log_level="debug")
    _call(wire, caller)
    await wire.next()

    wire.say(method=method, params={"level": "info", "uri": "u", "more": [1]})

    assert peer.heard == [(method, {"level": "info", "uri": "u", "more": [1]})]
    assert caller.heard == []


async def test_a_peer_that_fails_does_not_stop_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(TestPeer):
        def notify(self, method: str, params: Any) -> None:
            raise ValueError("a bug")

    wire = await handshake_wire(Failing())
    call = _call(wire, TestPeer())
    request = await wire.next()

    wire.say(method="notifications/tools/list_changed")
    wire.answer(request, {})

    await call
    assert "a bug" in capsys.readouterr().err


async def test_a_handshake_server_is_told_of_everything_but_foreign_cancellations() -> None:
    wire = await handshake_wire(TestPeer())

    await wire.connection.notify("notifications/cancelled", {"requestId": 1})
    await wire.connection.notify("notifications/roots/list_changed", {})

    assert (await wire.next())["method"] == "notifications/roots/list_changed"
    await wire.nothing()


async def test_a_modern_server_is_not_told_what_its_era_does_not_know() -> None:
    wire = await modern_wire(TestPeer())

    await wire.connection.notify("notifications/initialized", {})
    await wire.connection.notify("notifications/roots/list_changed", {})
    await wire.connection.notify("notifications/of/the/future", {"a": 1})

    assert (await wire.next())["params"] == {"a": 1}
    await wire.nothing()


async def test_what_cannot_be_told_any_more_is_nobodys_failure() -> None:
    wire = await handshake_wire(TestPeer())
    wire.gone = True

    await wire.connection.notify("notifications/roots/list_changed", {})


# questions


@pytest.mark.parametrize("requests", [0, 2])
async def test_a_question_that_could_be_anybodys_goes_to_the_peer_of_the_connection(requests: int) -> None:
    peer = TestPeer(answer=lambda method, params: {"roots": []})
    wire = await handshake_wire(peer)
    for _ in range(requests):
        _call(wire, TestPeer())
        await wire.next()

    wire.say(id="r", method="roots/list")

    assert await wire.next() == {"jsonrpc": "2.0", "id": "r", "result": {"roots": []}}


async def test_our_own_requests_do_not_count_when_it_is_to_be_known_who_is_asked() -> None:
    wire = await modern_wire(TestPeer())
    following = asyncio.ensure_future(wire.connection.watch(frozenset()))
    await wire.next()
    caller = TestPeer(answer=lambda method, params: {"roots": []})
    _call(wire, caller)
    await wire.next()

    wire.say(id="r", method="roots/list")

    await wire.next()
    assert caller.asked == [("roots/list", {}, None)]
    following.cancel()


async def test_a_question_that_is_refused_is_answered_with_that_error() -> None:
    wire = await handshake_wire(TestPeer())

    wire.say(id=5, method="roots/list", params={})

    error = {"code": -32601, "message": "The test does not answer 'roots/list'."}
    assert await wire.next() == {"jsonrpc": "2.0", "id": 5, "error": error}


async def test_a_ping_is_answered_at_once_and_nobody_is_asked() -> None:
    peer = TestPeer()
    wire = await handshake_wire(peer)

    wire.say(id="p", method="ping")

    assert await wire.next() == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert peer.asked == []


@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list", "tools/call", "resources/read"])
async def test_what_only_clients_ask_is_asked_of_no_client(method: str) -> None:
    peer = TestPeer()
    wire = await handshake_wire(peer)

    wire.say(id=5, method=method, params={})

    answer = await wire.next()
    assert (answer["id"], answer["error"]["code"]) == (5, -32601)
    assert peer.asked == []


class Thinking(TestPeer):
    """Never comes to an end by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def ask(self, method: str, params: Any, name: str | None = None) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_a_question_that_the_server_takes_back_is_not_answered() -> None:
    peer = Thinking()
    wire = await handshake_wire(peer)
    wire.say(id=3, method="elicitation/create")
    await peer.begun.wait()

    wire.say(method="notifications/cancelled", params={"requestId": 3})

    await peer.ended.wait()
    await wire.nothing()


async def test_nobody_thinks_about_the_questions_of_a_server_that_has_gone() -> None:
    peer = Thinking()
    wire = await handshake_wire(peer)
    wire.say(id=3, method="elicitation/create")
    await peer.begun.wait()

    wire.connection.ended()

    await peer.ended.wait()
    await wire.nothing()


# following


async def test_a_handshake_server_is_told_of_each_resource_once() -> None:
    wire = await handshake_wire(TestPeer())

    async def told(uris: set[str], count: int) -> list[tuple[str, str]]:
        following = asyncio.ensure_future(wire.connection.watch(frozenset(uris)))
        messages = []
        for _ in range(count):
            messages.append(await wire.next())
            wire.answer(messages[-1], {})
        await following
        await wire.nothing()
        return sorted((message["method"], message["params"]["uri"]) for message in messages)

    assert await told(set(), 0) == []
    assert await told({"a", "b"}, 2) == [("resources/subscribe", "a"), ("resources/subscribe", "b")]
    assert await told({"b", "c"}, 2) == [("resources/subscribe", "c"), ("resources/unsubscribe", "a")]
    assert await told(set(), 2) == [("resources/unsubscribe", "b"), ("resources/unsubscribe", "c")]


async def test_a_resource_that_cannot_be_followed_is_refused_and_can_be_tried_again() -> None:
    wire = await handshake_wire(TestPeer())
    for _ in range(2):
        following = asyncio.ensure_future(wire.connection.watch(frozenset({"a"})))
        wire.refuse(await wire.next(), -32602, "no such resource")
        refusals = await following
        assert {uri: refusal.message for uri, refusal in refusals.items()} == {"a": "no such resource"}


async def test_a_resource_that_is_refused_keeps_no_other_from_being_followed_or_left() -> None:
    wire = await handshake_wire(TestPeer())
    told: list[tuple[str, str]] = []

    async def follow(uris: set[str], count: int, refused: str) -> dict[str, RpcError]:
        following = asyncio.ensure_future(wire.connection.watch(frozenset(uris)))
        for _ in range(count):
            message = await wire.next()
            told.append((message["method"].removeprefix("resources/"), message["params"]["uri"]))
            if told[-1][1] == refused:
                wire.refuse(message, -32602)
            else:
                wire.answer(message, {})
        return dict(await following)

    assert set(await follow({"a", "b", "c"}, 3, refused="b")) == {"b"}
    assert await follow({"d"}, 3, refused="a") == {}
    assert await follow({"d"}, 0, refused="") == {}

    assert sorted(told[:3]) == [("subscribe", "a"), ("subscribe", "b"), ("subscribe", "c")]
    assert sorted(told[3:]) == [("subscribe", "d"), ("unsubscribe", "a"), ("unsubscribe", "c")]


async def test_a_question_with_an_id_that_no_number_can_hold_is_answered() -> None:
    wire = await handshake_wire(TestPeer())

    wire.write_out(b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}')

    assert await wire.next() == {"jsonrpc": "2.0", "id": float("inf"), "result": {}}


async def test_a_modern_subscription_ends_only_when_its_successor_counts() -> None:
    peer = TestPeer()
    wire = await modern_wire(peer)

    async def acknowledged(uris: set[str]) -> dict[str, Any]:
        following = asyncio.ensure_future(wire.connection.watch(frozenset(uris)))
        listen = await wire.next()
        await wire.nothing()  # until it is acknowledged
        for number in (99, listen["id"]):
            assert not following.done()
            params = {"_meta": {f"{META}subscriptionId": number}}
            wire.say(method="notifications/subscriptions/acknowledged", params=params)
            await wire.turn()
        await asyncio.wait_for(following, ACKNOWLEDGE_SECONDS / 2)
        return listen

    first = await acknowledged(set())
    second = await acknowledged({"u"})

    assert first["method"] == second["method"] == "subscriptions/listen"
    lists = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    assert second["params"]["notifications"] == {**lists, "resourceSubscriptions": ["u"]}
    cancelled = await wire.next()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", first["id"])
    assert peer.heard == []


async def test_who_gives_up_on_a_subscription_cancels_it() -> None:
    wire = await modern_wire(TestPeer())
    following = asyncio.ensure_future(wire.connection.watch(frozenset({"u"})))
    listen = await wire.next()
    await wire.nothing()

    following.cancel()

    cancelled = await wire.next()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", listen["id"])
    await asyncio.wait([following])
    assert following.cancelled()


async def test_what_a_subscription_brings_is_told_without_our_number() -> None:
    peer = TestPeer()
    wire = await modern_wire(peer)
    number = f"{META}subscriptionId"

    wire.say(method="notifications/tools/list_changed", params={"_meta": {number: 2}})
    wire.say(method="notifications/resources/updated", params={"uri": "u", "_meta": {number: 2, "own": 1}})

    assert peer.heard == [
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "u", "_meta": {"own": 1}}),
    ]


async def test_a_modern_server_without_subscriptions_matters_only_to_those_who_follow_a_resource(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "level", DEBUG)
    wire = await modern_wire(TestPeer())
    tasks = len(asyncio.all_tasks())

    lists = asyncio.ensure_future(wire.connection.watch(frozenset()))
    wire.refuse(await wire.next(), -32601)
    await lists
    resource = asyncio.ensure_future(wire.connection.watch(frozenset({"u"})))
    wire.refuse(await wire.next(), -32601, "no subscriptions here")

    assert [refusal.message for refusal in (await resource).values()] == ["no subscriptions here"]
    assert capsys.readouterr().err.count("has ended the notifications of changes") == 2
    await wire.nothing()
    assert len(asyncio.all_tasks()) == tasks


async def test_a_handshake_server_is_told_the_level_of_its_log_and_a_modern_one_is_not() -> None:
    wire = await handshake_wire(TestPeer())
    setting = asyncio.ensure_future(wire.connection.set_level("debug"))
    request = await wire.next()
    wire.answer(request, {})
    await setting
    assert (request["method"], request["params"]) == ("logging/setLevel", {"level": "debug"})

    modern = await modern_wire(TestPeer(), logging={})
    await modern.connection.set_level("debug")
    await modern.nothing()


async def test_a_server_that_does_not_log_is_not_told_a_level() -> None:
    wire = await handshake_wire(TestPeer(), logs=False)

    await wire.connection.set_level("debug")

    await wire.nothing()


async def test_closing_is_the_owners_business() -> None:
    """Others may speak in the same conversation."""
    wire, call, request = await one_call()

    await wire.connection.close()
    wire.answer(request, {})

    await call
    await wire.nothing()


# bad input

GARBAGE = [
    b"hello", b"\xff\xfe\x00", b"[1, 2]", b'"text"', b"null", b"{", b'{"jsonrpc": "2.0", "id"', b"{}", b'{"id": 3}',
    b'{"jsonrpc":"2.0","id":null}', b'{"method":5}', b'{"method":"x","params":[1]}', b'{"id":[1],"method":"ping"}',
    b'{"method":"notifications/cancelled","params":{"requestId":{"a":[1]}}}', b"[" * 100_000, b"\xef\xbb\xbf",
    b'{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"%ssubscriptionId":[]}}}' % META.encode(),
]  # fmt: skip


@pytest.mark.parametrize("line", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_is_skipped(line: bytes) -> None:
    wire, call, request = await one_call()

    wire.write_out(line)
    wire.answer(request, {"a": 1})

    assert json.loads(bytes(await call)) == {"a": 1}


async def test_a_text_that_was_cut_in_the_middle_of_an_emoji_arrives() -> None:
    """Node writes such texts; as Unicode they do not exist."""
    wire = await handshake_wire(TestPeer())
    call = _call(wire, TestPeer())
    number = (await wire.next())["id"]

    said = rb'{"a":"\ud83d","b":"\ud83d\ude00\ud83d","c":"\\ud83d","d":"\uDE00x"}'
    wire.write_out(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (number, said))

    assert bytes(await call) == rb'{"a":"\ufffd","b":"\ud83d\ude00\ufffd","c":"\\ud83d","d":"\ufffdx"}'


@pytest.mark.parametrize(
    "line",
    [
        b'received {"jsonrpc":"2.0","id":%d,"result":{}',
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{',
        b'{"jsonrpc":"2.0","id":%d9,"result":{',
    ],
    ids=range(3),
)
async def test_what_only_looks_like_an_answer_is_none(line: bytes) -> None:
    wire, call, request = await one_call()

    wire.write_out(line % request["id"])
    wire.answer(request, {"real": 1})

    assert json.loads(bytes(await call)) == {"real": 1}


async def test_garbage_is_logged_in_short(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "level", DEBUG)
    wire = await handshake_wire(TestPeer())

    wire.write_out(b"Downloading " + b"." * 1_000_000)

    said = capsys.readouterr().err
    assert "Downloading ....." in said
    assert len(said) < 1000


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
METHODS = ("ping", "roots/list", "notifications/progress", "notifications/cancelled", "notifications/message", "x")
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": values.filter(lambda value: value not in (2, 3)),  # those that are waited for
        "method": st.sampled_from(METHODS) | values,
        "params": st.fixed_dictionaries(
            {}, optional={"progressToken": values, "requestId": values, "_meta": values, "level": values}
        )
        | values,
        "result": values,
        "error": values,
    },
)


@settings(max_examples=80, deadline=None)
@given(st.lists(messages.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30), max_size=5))
def test_whatever_a_server_writes_the_conversation_goes_on(lines: list[bytes]) -> None:
    async def conversation() -> None:
        wire = await handshake_wire(TestPeer())
        calls = [_call(wire, TestPeer()) for _ in range(2)]  # so that an error without a number is nobody's
        requests = [await wire.next() for _ in calls]
        for line in lines:
            wire.write_out(line)
        for request in requests:
            wire.answer(request, {"a": request["id"]})
        assert [json.loads(bytes(await call)) for call in calls] == [{"a": request["id"]} for request in requests]

    asyncio.run(asyncio.wait_for(conversation(), 10))
