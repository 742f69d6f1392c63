"""The session of the client on standard input and output, in the modern era, alone and beside the other one."""

from __future__ import annotations

import asyncio
from typing import Any

from protocol.conversations import QUESTION, ScriptedService, ask_who, echo, text
from protocol.line_clients import SUBSCRIPTION, ModernLineClient
from support.waiting import until
from uno_devserver.protocol.jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    STOPPED,
)
from uno_devserver.protocol.service import Call, Result

SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1.2.3", "title": "A scripted service"}}
TOOLS = {"notifications": {"toolsListChanged": True}}


async def _wait(call: Call) -> Result:
    await asyncio.Event().wait()
    return {}


def watching(*uris: str) -> dict[str, Any]:
    return {"notifications": {"resourceSubscriptions": list(uris)}}


async def test_a_call_needs_no_session() -> None:
    service = ScriptedService(echo=echo)
    client = ModernLineClient(service)

    called = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})

    assert called["result"] == {"resultType": "complete", **text("hi"), "_meta": SERVER}
    assert client.endpoint.session is None
    assert service.sessions == []


async def test_a_question_is_the_result_and_the_next_request_brings_the_answer() -> None:
    async def interview(call: Call) -> Result:
        names = [(await call.ask("elicitation/create", QUESTION, "who"))["content"]["name"] for _ in range(2)]
        return text("+".join(names))

    client = ModernLineClient(ScriptedService(who=interview))
    answer = await client.ask("tools/call", {"name": "who"}, request_id="q0")
    for number, name in enumerate(("Ada", "Bob")):
        result = answer["result"]
        ((question, asked),) = result["inputRequests"].items()
        responses = {question: {"action": "accept", "content": {"name": name}}}
        assert (result["resultType"], asked) == (
            "input_required",
            {"method": "elicitation/create", "params": QUESTION},
        )
        again = {"name": "who", "requestState": result["requestState"], "inputResponses": responses}
        answer = await client.ask("tools/call", again, request_id=f"q{number + 1}")

    assert (answer["id"], answer["result"]["content"]) == ("q2", text("Ada+Bob")["content"])


async def test_what_is_said_while_the_client_thinks_comes_with_its_next_request() -> None:
    thinking, noted = asyncio.Event(), asyncio.Event()

    async def talkative(call: Call) -> Result:
        asked = asyncio.create_task(call.ask("elicitation/create", QUESTION))
        await thinking.wait()
        call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        noted.set()
        return text((await asked)["action"])

    client = ModernLineClient(ScriptedService(who=talkative))
    asked = await client.ask("tools/call", {"name": "who"})
    thinking.set()
    await noted.wait()
    before = client.silent
    client.call("who", requestState=asked["result"]["requestState"], inputResponses={"question-1": {"action": "x"}})

    assert before
    assert (await client.message())["method"] == "notifications/progress"
    assert (await client.message())["result"]["content"] == text("x")["content"]


async def test_a_client_is_asked_during_its_calls_only() -> None:
    async def outside(call: Call) -> Result:
        return await call.session.ask("roots/list", {})

    client = ModernLineClient(ScriptedService(outside=outside))

    assert (await client.ask("tools/call", {"name": "outside"}))["error"]["code"] == INVALID_REQUEST


async def test_a_cancelled_call_is_stopped_and_nothing_more_is_said_for_it() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> Result:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
            stopped.set()
        return await call.ask("elicitation/create", QUESTION)

    client = ModernLineClient(ScriptedService(wait=wait, echo=echo))
    client.call("wait", request_id=1)
    await started.wait()
    client.cancel(1)
    await stopped.wait()
    again = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, request_id=1)

    assert again["result"]["content"] == text("x")["content"]
    assert client.silent


async def test_cancelling_a_request_that_was_answered_with_a_question_changes_nothing() -> None:
    client = ModernLineClient(ScriptedService(who=ask_who))
    asked = await client.ask("tools/call", {"name": "who"}, request_id=1)
    client.cancel(1)
    accepted = {"question-1": {"action": "accept", "content": {"name": "Ada"}}}
    client.call("who", requestState=asked["result"]["requestState"], inputResponses=accepted)

    assert (await client.message())["result"]["content"] == text("Ada")["content"]


async def test_an_id_that_runs_cannot_be_used_again_in_either_era() -> None:
    service = ScriptedService(who=ask_who, wait=_wait)
    client = ModernLineClient(service)
    client.call("wait", request_id=1)
    client.send("subscriptions/listen", TOOLS, request_id="s")
    await client.message()

    for request_id in (1, "s"):
        client.call("wait", request_id=request_id)
        client.take({"jsonrpc": "2.0", "id": request_id, "method": "tools/list"})
        answers = [await client.message() for _ in range(2)]
        assert [(one["id"], one["error"]["code"]) for one in answers] == [(request_id, INVALID_REQUEST)] * 2


async def test_both_eras_are_spoken_on_one_line() -> None:
    service = ScriptedService(echo=echo)
    client = ModernLineClient(service)
    await client.initialize("2025-06-18")
    client.send("subscriptions/listen", TOOLS, request_id="s")
    await client.message()

    modern = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "new"}})
    client.take({"jsonrpc": "2.0", "id": 6, "method": "tools/list"})
    handshake = await client.message()
    client.endpoint.broadcast("notifications/tools/list_changed")
    changes = [await client.message() for _ in range(2)]

    assert modern["result"]["resultType"] == "complete"
    assert "resultType" not in handshake["result"]
    assert ["params" in change for change in changes] == [False, True]


async def test_a_subscription_is_acknowledged_and_tells_what_it_was_asked_for() -> None:
    service = ScriptedService()
    client = ModernLineClient(service)
    wish = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"], "later": True}}
    acknowledged = await client.ask("subscriptions/listen", wish, request_id="listen-1")
    for name in ("prompts", "tools"):
        client.endpoint.broadcast(f"notifications/{name}/list_changed")
    for uri in ("file:///b", "file:///a"):
        client.endpoint.resource_updated(uri)

    assert acknowledged == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]},
            "_meta": {SUBSCRIPTION: "listen-1"},
        },
    }
    assert client.rest() == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {SUBSCRIPTION: "listen-1"}},
        },
        {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "file:///a", "_meta": {SUBSCRIPTION: "listen-1"}},
        },
    ]


async def test_a_cancelled_subscription_is_silent_and_its_id_is_free() -> None:
    service = ScriptedService()
    client = ModernLineClient(service)
    wish = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}}
    await client.ask("subscriptions/listen", wish, request_id=1)
    client.cancel(1)
    client.endpoint.broadcast("notifications/tools/list_changed")
    client.endpoint.resource_updated("file:///a")
    await until(lambda: service.follows == [("file:///a", True), ("file:///a", False)])

    assert client.silent
    assert (await client.ask("subscriptions/listen", TOOLS, request_id=1))["params"]["_meta"] == {SUBSCRIPTION: 1}


async def test_closing_ends_subscriptions_with_a_result_and_calls_with_an_error() -> None:
    started = asyncio.Event()

    async def wait(call: Call) -> Result:
        started.set()
        await asyncio.Event().wait()
        return {}

    service = ScriptedService(wait=wait, who=ask_who)
    client = ModernLineClient(service)
    await client.ask("subscriptions/listen", watching("file:///a"), request_id="s")
    await client.ask("tools/call", {"name": "who"})  # it is parked
    client.call("wait", request_id="w")
    await started.wait()

    await client.endpoint.close()
    messages = {message["id"]: message for message in client.rest()}
    late = await client.ask("tools/list", request_id="late")

    assert sorted(messages) == ["s", "w"]
    assert messages["s"]["result"] == {"resultType": "complete", "_meta": {**SERVER, SUBSCRIPTION: "s"}}
    assert messages["w"]["error"]["code"] == STOPPED
    assert late["error"]["code"] == STOPPED
    assert service.follows == [("file:///a", True), ("file:///a", False)]


async def test_a_subscription_that_is_still_being_opened_is_ended_or_cancelled() -> None:
    asked = asyncio.Event()

    class Slow(ScriptedService):
        async def watched(self, uri: str, wanted: bool) -> None:
            self.follows.append((uri, wanted))
            if wanted:
                asked.set()
                await asyncio.Event().wait()

    service = Slow()
    client = ModernLineClient(service)
    client.send("subscriptions/listen", watching("file:///a"), request_id="cancelled")
    await asked.wait()
    client.cancel("cancelled")
    client.send("subscriptions/listen", watching("file:///b"), request_id="ended")
    await until(lambda: ("file:///b", True) in service.follows)
    await client.endpoint.close()

    (ended,) = client.rest()
    assert (ended["id"], ended["error"]["code"]) == ("ended", STOPPED)
    assert [one for one in service.follows if not one[1]] == [("file:///a", False), ("file:///b", False)]


async def test_subscriptions_that_are_being_opened_count() -> None:
    class Slow(ScriptedService):
        async def watched(self, uri: str, wanted: bool) -> None:
            await asyncio.Event().wait()

    client = ModernLineClient(Slow(), subscriptions=1)
    client.send("subscriptions/listen", watching("file:///a"), request_id=1)
    refused = await client.ask("subscriptions/listen", TOOLS, request_id=2)

    assert (refused["id"], refused["error"]["code"]) == (2, BUSY)


async def test_whatever_a_service_does_becomes_an_answer() -> None:
    async def fails(call: Call) -> Result:
        raise ValueError("oops")

    class Broken(ScriptedService):
        def capabilities(self) -> dict[str, Any]:
            raise KeyError("capabilities")

    client = ModernLineClient(Broken(fails=fails))

    for method, params in (("tools/call", {"name": "fails"}), ("subscriptions/listen", TOOLS)):
        assert (await client.ask(method, params))["error"]["code"] == INTERNAL_ERROR
