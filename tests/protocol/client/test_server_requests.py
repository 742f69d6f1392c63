"""Questions of a modern server, asked on behalf of a client that does not call again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from support.mcp_peers import TestPeer
from support.waiting import until
from uno_devserver.protocol.client import server_requests
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.client.server_requests import call_until_complete
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import Params, Result

DONE = {"resultType": "complete", "content": []}


def question(name: str, method: str = "elicitation/create", **params: Any) -> dict[str, Any]:
    return {name: {"method": method, "params": params}}


def asking(questions: object, **more: Any) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": questions, **more}


class Server:
    """Answers call after call with what it was given, and remembers what it was called with."""

    def __init__(self, *results: Mapping[str, Any]) -> None:
        self._results = list(results)
        self.calls: list[Params] = []

    async def __call__(self, params: Params) -> msgspec.Raw:
        self.calls.append(params)
        result = self._results.pop(0) if len(self._results) > 1 else self._results[0]
        return msgspec.Raw(json.dumps(result).encode())


def peer(**options: Any) -> TestPeer:
    return TestPeer(answer=lambda method, params: {"method": method, **params}, **options)


async def test_a_result_that_is_complete_is_handed_over_as_it_came() -> None:
    server = Server({**DONE, "text": 'says "input_required" without meaning it'})

    result = await call_until_complete({"name": "t"}, peer(), server)

    assert json.loads(bytes(result)) == {**DONE, "text": 'says "input_required" without meaning it'}
    assert server.calls == [{"name": "t"}]


async def test_the_call_is_made_again_with_the_answers_until_it_is_complete() -> None:
    asked = peer()
    server = Server(
        asking({**question("who", message="?"), **question("where", "roots/list")}, requestState="one"),
        asking(question("why"), requestState="two"),
        DONE,
    )

    result = await call_until_complete({"name": "t", "arguments": {"a": 1}}, asked, server)

    assert json.loads(bytes(result)) == DONE
    base = {"name": "t", "arguments": {"a": 1}}
    first = {"who": {"method": "elicitation/create", "message": "?"}, "where": {"method": "roots/list"}}
    assert server.calls == [
        base,
        {**base, "inputResponses": first, "requestState": "one"},
        {**base, "inputResponses": {"why": {"method": "elicitation/create"}}, "requestState": "two"},
    ]
    assert asked.asked == [
        ("elicitation/create", {"message": "?"}, "who"),
        ("roots/list", {}, "where"),
        ("elicitation/create", {}, "why"),
    ]


async def test_a_modern_client_gets_the_questions_themselves() -> None:
    asked = peer(modern=True)
    server = Server(asking(question("who")))

    result = await call_until_complete({}, asked, server)

    assert json.loads(bytes(result)) == asking(question("who"))
    assert asked.asked == []


async def test_questions_are_asked_at_the_same_time_and_the_first_refusal_ends_the_others() -> None:
    waiting: list[str] = []
    ended: list[str] = []

    class Slow(TestPeer):
        async def ask(self, method: str, params: Params, name: str | None = None) -> Result:
            waiting.append(method)
            if method == "refused":
                await until(lambda: len(waiting) == 3)
                raise RpcError(-1, "not now")
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(method)
            return {}

    server = Server(asking({**question("a", "slow"), **question("b", "refused"), **question("c", "slow")}))

    with pytest.raises(RpcError, match="not now"):
        await call_until_complete({}, Slow(), server)

    await until(lambda: ended == ["slow", "slow"])
    assert len(server.calls) == 1


async def test_a_server_without_a_question_is_called_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_requests, "FIRST_PAUSE_SECONDS", 0.001)
    server = Server({"resultType": "input_required", "requestState": "s"}, asking({}), DONE)

    await call_until_complete({"name": "t"}, peer(), server)

    assert server.calls == [{"name": "t"}, {"name": "t", "requestState": "s"}, {"name": "t"}]


async def test_a_server_that_asks_for_ever_is_not_called_for_ever() -> None:
    server = Server(asking(question("again")))

    with pytest.raises(RpcError, match="100 times"):
        await call_until_complete({}, peer(), server)

    assert len(server.calls) == 101


async def test_an_answer_after_the_last_round_is_returned() -> None:
    server = Server(*[asking(question("again"))] * 100, DONE)

    assert json.loads(bytes(await call_until_complete({}, peer(), server))) == DONE


async def test_what_only_clients_ask_is_asked_of_no_client() -> None:
    asked = peer()

    with pytest.raises(RpcError, match="'tools/call' is what a client asks") as refused:
        await call_until_complete({}, asked, Server(asking(question("q", "tools/call"))))

    assert refused.value.code == -32601
    assert asked.asked == []


@pytest.mark.parametrize("odd", [{"q": 5}, {"q": {"params": {}}}, {"q": {"method": 5}}])
async def test_a_question_without_a_method_is_an_error(odd: object) -> None:
    with pytest.raises(RpcError, match="'q' has no method"):
        await call_until_complete({}, peer(), Server(asking(odd)))


async def test_a_server_that_goes_between_two_rounds_has_seen_the_call() -> None:
    async def send(params: Params) -> msgspec.Raw:
        if "requestState" in params:
            raise ConnectionLost("It refuses connections.", sent=False)
        return msgspec.Raw(json.dumps(asking(question("who"), requestState="one")).encode())

    with pytest.raises(ConnectionLost) as lost:
        await call_until_complete({"name": "t"}, peer(), send)

    assert lost.value.sent


async def test_a_server_that_cannot_be_reached_at_first_has_not_seen_the_call() -> None:
    async def send(params: Params) -> msgspec.Raw:
        raise ConnectionLost("It refuses connections.", sent=False)

    with pytest.raises(ConnectionLost) as lost:
        await call_until_complete({"name": "t"}, peer(), send)

    assert not lost.value.sent
