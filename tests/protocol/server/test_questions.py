"""The server asks the client, in the handshake era."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protocol.conversations import QUESTION, ask_who
from support.waiting import until
from uno_devserver.protocol.jsonrpc import BUSY, INVALID_REQUEST, METHOD_NOT_FOUND, UNANSWERED
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import MISSING_CAPABILITY

from ..conversations import Client, ScriptedService, connected, text


async def test_a_question_travels_on_the_calls_stream_and_its_answer_by_post() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    stream = await client.stream("tools/call", {"name": "who"}, request_id=1)

    question = await stream.message()
    posted = await client.respond(question["id"], result={"action": "accept", "content": {"name": "Ada"}})
    rest = await stream.rest()

    assert question["method"] == "elicitation/create"
    assert question["params"] == QUESTION
    assert isinstance(question["id"], str)
    assert (posted.status, posted.body) == (202, b"")
    assert rest == [{"jsonrpc": "2.0", "id": 1, "result": text("Ada")}]


async def test_what_is_said_before_a_question_arrives_before_it() -> None:
    async def talk(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 1})
        return await call.ask("elicitation/create", QUESTION)

    client = await connected(ScriptedService(talk=talk), elicitation={})
    stream = await client.stream("tools/call", {"name": "talk"})

    assert [(await stream.message())["method"] for _ in range(2)] == ["notifications/progress", "elicitation/create"]
    await stream.lose()


async def test_a_client_that_refuses_makes_the_question_fail() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    stream = await client.stream("tools/call", {"name": "who"})

    question = await stream.message()
    await client.respond(question["id"], error={"code": -1, "message": "the user is away"})

    assert (await stream.rest())[-1]["error"] == {"code": -1, "message": "the user is away"}


@pytest.mark.parametrize(
    ("method", "params", "capabilities", "required"),
    [
        ("elicitation/create", QUESTION, {}, {"elicitation": {}}),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        ("sampling/createMessage", {}, {"elicitation": {}}, {"sampling": {}}),
        ("sampling/createMessage", {"tools": []}, {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("roots/list", {}, {"sampling": {}}, {"roots": {}}),
        ("roots/list", {}, {"roots": None}, {"roots": {}}),
    ],
)
async def test_a_client_is_not_asked_for_what_it_cannot_do(
    method: str, params: Any, capabilities: Any, required: Any
) -> None:
    async def ask(call: Call) -> Result:
        return await call.ask(method, params)

    client = await connected(ScriptedService(ask=ask), **capabilities)
    reply = await client.ask("tools/call", {"name": "ask"})

    assert reply.error == MISSING_CAPABILITY
    assert reply.json["error"]["data"] == {"requiredCapabilities": required}


@pytest.mark.parametrize(
    ("method", "params", "capabilities"),
    [
        ("elicitation/create", {"mode": "url"}, {"elicitation": {"url": {}}}),
        ("elicitation/create", {"mode": "form"}, {"elicitation": {}}),
        ("sampling/createMessage", {"tools": []}, {"sampling": {"tools": {}}}),
        ("roots/list", {}, {"roots": {}}),
    ],
)
async def test_an_empty_capability_is_a_capability(method: str, params: Any, capabilities: Any) -> None:
    async def ask(call: Call) -> Result:
        return await call.ask(method, params)

    client = await connected(ScriptedService(ask=ask), **capabilities)
    stream = await client.stream("tools/call", {"name": "ask"})
    question = await stream.message()
    await client.respond(question["id"], result={"answered": True})

    assert (await stream.rest())[-1]["result"] == {"answered": True}


async def test_there_are_three_things_to_ask_for() -> None:
    async def ask(call: Call) -> Result:
        return await call.ask("tools/list", {})

    client = await connected(ScriptedService(ask=ask), tools={})

    assert (await client.ask("tools/call", {"name": "ask"})).error == METHOD_NOT_FOUND


async def test_a_client_that_takes_json_only_cannot_be_asked() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})

    reply = await client.ask("tools/call", {"name": "who"}, accept="application/json")

    assert reply.error == INVALID_REQUEST


async def test_a_question_is_not_asked_for_ever_and_then_taken_back() -> None:
    client = await connected(ScriptedService(who=ask_who), limits={"question_seconds": 0.02}, elicitation={})
    stream = await client.stream("tools/call", {"name": "who"})

    question, taken_back, answer = await stream.message(), await stream.message(), await stream.message()
    late = await client.respond(question["id"], result={"content": {"name": "late"}})

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert answer["error"]["code"] == UNANSWERED
    assert late.status == 202


async def test_cancelling_the_call_takes_its_question_back() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    stream = await client.stream("tools/call", {"name": "who"}, request_id="w")
    question = await stream.message()

    await client.tell("notifications/cancelled", {"requestId": "w"})
    rest = await stream.rest()

    assert [message["method"] for message in rest] == ["notifications/cancelled"]
    assert rest[0]["params"] == {"requestId": question["id"]}


async def test_answers_to_nothing_and_from_others_are_ignored() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    other = Client(client.endpoint)
    await other.initialize()
    stream = await client.stream("tools/call", {"name": "who"})
    question = await stream.message()

    for wrong in (1, "server-99", None, [question["id"]]):
        assert (await client.respond(wrong, result={"content": {"name": "no"}})).status == 202
    assert (await other.respond(question["id"], result={"content": {"name": "no"}})).status == 202
    await client.respond(question["id"], result={"content": {"name": "yes"}})
    await client.respond(question["id"], result={"content": {"name": "twice"}})

    assert (await stream.rest())[-1]["result"] == text("yes")


async def test_questions_of_several_calls_do_not_get_mixed_up() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    streams = [await client.stream("tools/call", {"name": "who"}) for _ in range(5)]
    questions = [await stream.message() for stream in streams]

    for number in (3, 0, 4, 1, 2):
        await client.respond(questions[number]["id"], result={"content": {"name": number}})

    assert [(await stream.rest())[-1]["result"] for stream in streams] == [text(number) for number in range(5)]
    assert len({question["id"] for question in questions}) == 5


async def test_a_question_outlives_a_lost_connection() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    stream = await client.stream("tools/call", {"name": "who"})
    opening = await stream.event()
    await stream.lose()

    resumed = await client.listen(last_event_id=opening.id)
    question = await resumed.message()
    await client.respond(question["id"], result={"content": {"name": "back"}})

    assert (await resumed.rest())[-1]["result"] == text("back")


async def test_a_question_that_is_answered_twice_at_once_is_answered_once() -> None:
    client = await connected(ScriptedService(who=ask_who), "2025-03-26", elicitation={})
    stream = await client.stream("tools/call", {"name": "who"})
    question = await stream.message()

    answers = [{"jsonrpc": "2.0", "id": question["id"], "result": {"content": {"name": n}}} for n in ("one", "two")]
    taken = await client.post(answers)

    assert taken.status == 202
    assert (await stream.rest())[-1]["result"] == text("one")


async def test_questions_that_were_answered_make_room() -> None:
    client = await connected(ScriptedService(who=ask_who), limits={"questions": 1}, elicitation={})
    for name in ("a", "b"):
        stream = await client.stream("tools/call", {"name": "who"})
        question = await stream.message()
        await client.respond(question["id"], result={"content": {"name": name}})

        assert (await stream.rest())[-1]["result"] == text(name)


async def test_open_questions_are_bounded() -> None:
    client = await connected(ScriptedService(who=ask_who), limits={"questions": 1}, elicitation={})
    stream = await client.stream("tools/call", {"name": "who"})
    await stream.message()

    refused = await client.ask("tools/call", {"name": "who"})

    assert refused.error == BUSY
    await stream.lose()


async def test_questions_and_answers_are_kept_when_notifications_are_too_many() -> None:
    started = asyncio.Event()

    async def chatty(call: Call) -> Result:
        call.notify("notifications/progress", {"progress": 0})
        started.set()
        asked = asyncio.create_task(call.ask("elicitation/create", QUESTION))
        await asyncio.sleep(0)
        for number in range(20):
            call.notify("notifications/progress", {"progress": number})
        return text((await asked)["content"]["name"])

    limits = {"stream_events": 4}
    client = await connected(ScriptedService(chatty=chatty), limits=limits, elicitation={})
    stream = await client.stream("tools/call", {"name": "chatty"})
    await until(started.is_set)
    question = await stream.message()
    while "id" not in question:
        question = await stream.message()
    await client.respond(question["id"], result={"content": {"name": "kept"}})

    assert (await stream.rest())[-1]["result"] == text("kept")
