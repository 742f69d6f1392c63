"""The server asks the client, in the modern era: the call waits while the client comes back with answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from protocol.conversations import QUESTION, ask_who
from support.virtual_time import virtual
from uno_devserver.protocol.jsonrpc import BUSY, INVALID_PARAMS, INVALID_REQUEST
from uno_devserver.protocol.service import Call, Result

from ..conversations import (
    ModernClient,
    Reply,
    ScriptedService,
    endpoint_of,
    text,
    timers,
)

LOST = "Call again without requestState"


def _client(**tools: Any) -> ModernClient:
    return ModernClient(endpoint_of(ScriptedService(**tools)), elicitation={}, sampling={}, roots={})


def accepting(name: object) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def answer(client: ModernClient, asked: Reply, responses: object, tool: str = "who", **more: Any) -> Reply:
    """Call again, with answers."""
    state = asked.json["result"]["requestState"]
    return await client.ask("tools/call", {"name": tool, "inputResponses": responses, "requestState": state, **more})


async def test_a_question_is_the_result_and_the_answer_comes_with_the_next_call() -> None:
    client = _client(who=ask_who)

    asked = await client.ask("tools/call", {"name": "who"}, request_id=1)
    result = asked.json["result"]
    (name,) = result["inputRequests"]
    done = await answer(client, asked, {name: accepting("Ada")})

    assert (asked.status, asked.json["id"]) == (200, 1)
    assert result["resultType"] == "input_required"
    assert result["inputRequests"][name] == {"method": "elicitation/create", "params": QUESTION}
    assert len(result["requestState"]) >= 32
    assert "ttlMs" not in result
    assert done.json["id"] == 2
    assert done.json["result"]["content"] == text("Ada")["content"]
    assert done.json["result"]["resultType"] == "complete"


async def test_a_question_has_the_name_it_was_given_unless_the_call_has_used_it() -> None:
    async def interview(call: Call) -> Result:
        names = ("who", "question-2", None, "who")
        return text(await asyncio.gather(*(call.ask("elicitation/create", QUESTION, name) for name in names)))

    client = _client(who=interview)
    asked = await client.ask("tools/call", {"name": "who"})
    names = list(asked.json["result"]["inputRequests"])
    done = await answer(client, asked, {name: {"action": name} for name in names})

    assert names == ["who", "question-2", "question-3", "question-4"]
    assert done.json["result"]["content"] == text([{"action": name} for name in names])["content"]


async def test_a_client_that_knows_a_questions_name_may_bring_the_answer_at_once() -> None:
    async def twice(call: Call) -> Result:
        return text([(await call.ask("elicitation/create", QUESTION, "who"))["content"]["name"] for _ in range(2)])

    client = _client(who=twice)
    responses = {"who": accepting("Ada"), "unknown": accepting("x")}
    asked = await client.ask("tools/call", {"name": "who", "inputResponses": responses})
    done = await answer(client, asked, {"who": accepting("Bob")})

    assert list(asked.json["result"]["inputRequests"]) == ["who"]
    assert done.json["result"]["content"] == text(["Ada", "Bob"])["content"]


async def test_a_client_that_guesses_the_number_of_a_question_is_asked_all_the_same() -> None:
    client = _client(who=ask_who)

    asked = await client.ask("tools/call", {"name": "who", "inputResponses": {"question-1": accepting("x")}})

    assert asked.json["result"]["resultType"] == "input_required"


async def test_a_question_that_json_cannot_say_fails_where_it_is_asked() -> None:
    async def odd(call: Call) -> Result:
        try:
            return await call.ask("elicitation/create", {"message": object()})
        except TypeError:
            return text("told")

    reply = await _client(who=odd).ask("tools/call", {"name": "who"})

    assert reply.json["result"]["content"] == text("told")["content"]


async def test_several_rounds_continue_the_same_coroutine() -> None:
    runs = 0

    async def interview(call: Call) -> Result:
        nonlocal runs
        runs += 1
        names = [(await call.ask("elicitation/create", QUESTION))["content"]["name"] for _ in range(3)]
        return text("+".join(names))

    client = _client(who=interview)
    reply = await client.ask("tools/call", {"name": "who"})
    states = set()
    for name in ("a", "b", "c"):
        states.add(reply.json["result"]["requestState"])
        (question,) = reply.json["result"]["inputRequests"]
        reply = await answer(client, reply, {question: accepting(name)})

    assert reply.json["result"]["content"] == text("a+b+c")["content"]
    assert (runs, len(states)) == (1, 3)


async def test_questions_that_are_asked_together_travel_together() -> None:
    async def both(call: Call) -> Result:
        first, second = await asyncio.gather(call.ask("elicitation/create", QUESTION), call.ask("roots/list", {}))
        return text([first, second])

    client = _client(who=both)
    asked = await client.ask("tools/call", {"name": "who"})
    questions = asked.json["result"]["inputRequests"]
    one, two = questions
    done = await answer(client, asked, {two: {"roots": []}, one: {"action": "decline"}})

    assert [questions[name]["method"] for name in (one, two)] == ["elicitation/create", "roots/list"]
    assert done.json["result"]["content"] == text([{"action": "decline"}, {"roots": []}])["content"]


async def test_what_was_not_answered_is_asked_again() -> None:
    async def both(call: Call) -> Result:
        answers = await asyncio.gather(call.ask("elicitation/create", QUESTION), call.ask("roots/list", {}))
        return text(answers)

    client = _client(who=both)
    asked = await client.ask("tools/call", {"name": "who"})
    one, two = asked.json["result"]["inputRequests"]
    again = await answer(client, asked, {one: {"action": "decline"}, "unknown": {}})
    done = await answer(client, again, {two: {"roots": []}})

    assert list(again.json["result"]["inputRequests"]) == [two]
    assert done.json["result"]["content"] == text([{"action": "decline"}, {"roots": []}])["content"]


async def test_no_answers_at_all_means_asking_again() -> None:
    client = _client(who=ask_who)
    asked = await client.ask("tools/call", {"name": "who"})
    again = await answer(client, asked, None)
    (name,) = again.json["result"]["inputRequests"]

    assert (await answer(client, again, {name: accepting("x")})).json["result"]["content"] == text("x")["content"]


async def test_a_state_works_once() -> None:
    client = _client(who=ask_who)
    asked = await client.ask("tools/call", {"name": "who"})
    (name,) = asked.json["result"]["inputRequests"]
    await answer(client, asked, {name: accepting("once")})

    twice = await answer(client, asked, {name: accepting("twice")})

    assert (twice.status, twice.error) == (400, INVALID_PARAMS)
    assert LOST in twice.json["error"]["message"]


@pytest.mark.parametrize("state", ["", "guess", 5, {}, ["x"], "0" * 48])
async def test_a_state_that_we_did_not_give_is_refused(state: object) -> None:
    reply = await _client(who=ask_who).ask("tools/call", {"name": "who", "requestState": state})

    assert (reply.status, reply.error) == (400, INVALID_PARAMS)
    assert LOST in reply.json["error"]["message"]


async def test_a_state_belongs_to_its_call() -> None:
    client = _client(who=ask_who, other=ask_who)
    asked = await client.ask("tools/call", {"name": "who"})
    (name,) = asked.json["result"]["inputRequests"]

    wrong = await answer(client, asked, {name: accepting("x")}, tool="other")
    right = await answer(client, asked, {name: accepting("x")})

    assert (wrong.status, wrong.error) == (400, INVALID_PARAMS)
    assert right.json["result"]["content"] == text("x")["content"]


@pytest.mark.parametrize("responses", [5, [], "x", {"question-1": 5}, {"question-1": None}])
async def test_ill_formed_answers_are_refused_and_can_be_mended(responses: object) -> None:
    client = _client(who=ask_who)
    asked = await client.ask("tools/call", {"name": "who"})

    wrong = await answer(client, asked, responses)
    right = await answer(client, asked, {"question-1": accepting("mended")})

    assert (wrong.status, wrong.error) == (400, INVALID_PARAMS)
    assert right.json["result"]["content"] == text("mended")["content"]


def _asking() -> tuple[Callable[[Call], Awaitable[Result]], asyncio.Event]:
    """A tool that asks, and an event that tells when it has ended."""
    stopped = asyncio.Event()

    async def who(call: Call) -> Result:
        try:
            return await call.ask("elicitation/create", QUESTION)
        finally:
            stopped.set()

    return who, stopped


async def test_a_call_that_nobody_comes_back_for_is_cancelled() -> None:
    who, stopped = _asking()
    client = ModernClient(endpoint_of(ScriptedService(who=who), waiting_seconds=0.02), elicitation={})
    asked = await client.ask("tools/call", {"name": "who"})
    await asyncio.wait_for(stopped.wait(), 5)
    late = await answer(client, asked, {"question-1": accepting("late")})

    assert LOST in late.json["error"]["message"]


async def test_waiting_calls_are_bounded_and_the_oldest_makes_room() -> None:
    client = ModernClient(endpoint_of(ScriptedService(who=ask_who), waiting_calls=2), elicitation={})
    asked = [await client.ask("tools/call", {"name": "who"}) for _ in range(3)]

    done = [await answer(client, one, {"question-1": accepting("x")}) for one in asked]

    assert [one.status for one in done] == [400, 200, 200]


async def test_a_call_that_goes_on_without_the_answer_keeps_its_result_for_the_client() -> None:
    go = asyncio.Event()

    async def impatient(call: Call) -> Result:
        asked = asyncio.create_task(call.ask("elicitation/create", QUESTION))
        await go.wait()
        call.notify("notifications/progress", {"progress": 1})
        asked.cancel()
        return text("without")

    client = _client(who=impatient)
    asked = await client.ask("tools/call", {"name": "who"})
    go.set()
    await client.ask("tools/list")  # meanwhile the call comes to its end
    state = asked.json["result"]["requestState"]
    stream = await client.stream("tools/call", {"name": "who", "requestState": state}, request_id="later")
    messages = await stream.rest()

    assert messages[0]["params"] == {"progress": 1}
    assert (messages[1]["id"], messages[1]["result"]["content"]) == ("later", text("without")["content"])


async def test_an_answer_that_meets_the_withdrawal_of_its_question_does_no_harm() -> None:
    go = asyncio.Event()

    async def impatient(call: Call) -> Result:
        asked = asyncio.create_task(call.ask("elicitation/create", QUESTION))
        await go.wait()
        asked.cancel()
        return text("without")

    client = _client(who=impatient)
    asked = await client.ask("tools/call", {"name": "who"})
    go.set()
    done = await answer(client, asked, {"question-1": accepting("late")})

    assert done.json["result"]["content"] == text("without")["content"]


@virtual
async def test_a_call_is_parked_once_however_many_questions_it_asks() -> None:
    async def both(call: Call) -> Result:
        await asyncio.gather(*(call.ask("elicitation/create", QUESTION) for _ in range(2)))
        await asyncio.sleep(0.1)  # longer than a parked call would be waited for
        return text("done")

    client = ModernClient(endpoint_of(ScriptedService(who=both), waiting_seconds=0.05), elicitation={})
    asked = await client.ask("tools/call", {"name": "who"})
    done = await answer(client, asked, {"question-1": accepting(1), "question-2": accepting(2)})

    assert done.json["result"]["content"] == text("done")["content"]


async def test_a_question_of_a_call_that_is_over_is_not_asked() -> None:
    left: list[asyncio.Task[Result]] = []

    async def careless(call: Call) -> Result:
        left.append(asyncio.create_task(call.ask("elicitation/create", QUESTION)))
        return text("done")

    before = timers()
    reply = await _client(who=careless).ask("tools/call", {"name": "who"})

    assert reply.json["result"]["content"] == text("done")["content"]
    assert timers() == before
    left[0].cancel()


async def test_the_service_sees_the_client_as_it_came_back() -> None:
    async def who(call: Call) -> Result:
        await call.ask("elicitation/create", QUESTION)
        return text(call.session.client.name)

    client = _client(who=who)
    asked = await client.ask("tools/call", {"name": "who"})
    named = {"io.modelcontextprotocol/clientInfo": {"name": "renamed", "version": "2"}}
    done = await answer(client, asked, {"question-1": accepting("x")}, _meta=named)

    assert done.json["result"]["content"] == text("renamed")["content"]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_client_may_come_back_taking_only_one_kind_of_answer(accept: str) -> None:
    waiting, noted = asyncio.Event(), asyncio.Event()

    async def talkative(call: Call) -> Result:
        asked = asyncio.create_task(call.ask("elicitation/create", QUESTION))
        await waiting.wait()
        call.notify("notifications/progress", {"progress": 1})
        noted.set()
        return text((await asked)["content"]["name"])

    client = _client(who=talkative)
    asked = await client.ask("tools/call", {"name": "who"})
    waiting.set()
    await noted.wait()
    state = asked.json["result"]["requestState"]
    again = {"name": "who", "requestState": state, "inputResponses": {"question-1": accepting("x")}}
    messages = await client.messages("tools/call", again, accept=accept)

    assert messages[-1]["result"]["content"] == text("x")["content"]
    assert len(messages) == (1 if accept == "application/json" else 2)


async def test_progress_goes_to_the_token_of_the_present_request() -> None:
    async def work(call: Call) -> Result:
        token = call.params["_meta"]["progressToken"]
        call.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await call.ask("elicitation/create", QUESTION)
        call.notify("notifications/progress", {"progressToken": token, "progress": 2})
        call.notify("notifications/progress", {"progressToken": "other", "progress": 3})
        return text("worked")

    client = _client(who=work)
    first = await client.stream("tools/call", {"name": "who", "_meta": {"progressToken": "one"}})
    before, asked = await first.rest()
    state = asked["result"]["requestState"]
    responses = {"question-1": accepting("x")}
    second = await client.stream(
        "tools/call",
        {"name": "who", "requestState": state, "inputResponses": responses, "_meta": {"progressToken": 2}},
    )
    after = await second.rest()

    assert before["params"]["progressToken"] == "one"
    assert [message["params"]["progressToken"] for message in after[:-1]] == [2, "other"]


async def test_a_lost_connection_after_the_answer_cancels_the_call() -> None:
    stopped = asyncio.Event()

    async def work(call: Call) -> Result:
        await call.ask("elicitation/create", QUESTION)
        call.notify("notifications/progress", {"progress": 2})
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    client = _client(who=work)
    asked = await client.ask("tools/call", {"name": "who"})
    state = asked.json["result"]["requestState"]
    stream = await client.stream(
        "tools/call", {"name": "who", "requestState": state, "inputResponses": {"question-1": accepting("x")}}
    )
    await stream.message()
    await stream.lose()

    await asyncio.wait_for(stopped.wait(), 5)


async def test_only_some_requests_may_be_answered_with_a_question() -> None:
    service = ScriptedService()
    service.methods["completion/complete"] = ask_who
    client = ModernClient(endpoint_of(service), elicitation={})

    reply = await client.ask("completion/complete")

    assert (reply.status, reply.error) == (400, INVALID_REQUEST)


async def test_questions_of_a_call_are_bounded() -> None:
    async def curious(call: Call) -> Result:
        await asyncio.gather(*(call.ask("elicitation/create", QUESTION) for _ in range(3)))
        return {}

    client = ModernClient(endpoint_of(ScriptedService(who=curious), questions=2), elicitation={})

    asked = await client.ask("tools/call", {"name": "who"})

    assert len(asked.json["result"]["inputRequests"]) == 2
    reply = await answer(client, asked, {})
    while reply.error is None:  # asked once more, where the client is quicker than the end of the call
        reply = await answer(client, reply, {})
    assert reply.error == BUSY


async def test_closing_the_server_ends_waiting_calls() -> None:
    who, stopped = _asking()
    client = _client(who=who)
    await client.ask("tools/call", {"name": "who"})
    await client.endpoint.close()

    assert stopped.is_set()
