"""The session of the client on standard input and output, in the handshake era."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import msgspec
import pytest

from protocol.conversations import QUESTION, ScriptedService, ask_who, echo, text
from protocol.line_clients import LineClient, connected
from support.waiting import until
from uno_devserver.protocol.jsonrpc import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    STOPPED,
    UNANSWERED,
    RpcError,
)
from uno_devserver.protocol.peer_info import ClientInfo
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import HANDSHAKE_VERSIONS, MISSING_CAPABILITY


class Waiting:
    """A tool that waits, and knows what became of it."""

    def __init__(self) -> None:
        self.started, self.go, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, call: Call) -> Result:
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        return text("waited")


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_a_client_that_is_introduced_has_a_session_of_which_the_service_hears(version: str) -> None:
    service = ScriptedService()
    client = LineClient(service)

    client.endpoint.introduce(ClientInfo("c", "1", {}, version))

    assert client.endpoint.session is service.sessions[0]
    assert client.endpoint.session.client == ClientInfo("c", "1", {}, version)
    assert client.silent


async def test_a_second_handshake_changes_the_client_and_keeps_the_session() -> None:
    service = ScriptedService()
    client = await connected(service)

    await client.initialize("2025-06-18", roots={})

    assert len(service.sessions) == 1
    assert service.sessions[0].client == ClientInfo("c", "1", {"roots": {}}, "2025-06-18")


async def test_a_modern_client_that_is_introduced_has_no_session() -> None:
    service = ScriptedService()
    client = LineClient(service)
    client.endpoint.introduce(ClientInfo("modern", "1", {}, "2026-07-28"))
    client.endpoint.broadcast("notifications/tools/list_changed")

    assert client.endpoint.session is None
    assert service.sessions == []
    assert client.silent


async def test_requests_are_answered_without_a_handshake() -> None:
    service = ScriptedService(echo=echo)
    client = LineClient(service)

    called = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})

    assert called["result"] == text("hi")
    assert service.sessions[0].client == ClientInfo(None, None, {}, "2025-11-25")


async def test_calls_run_beside_each_other_and_ids_keep_their_type() -> None:
    first, second = Waiting(), Waiting()
    client = await connected(ScriptedService(first=first, second=second))
    client.call("first", request_id=1)
    client.call("second", request_id="1")
    await first.started.wait()
    await second.started.wait()

    second.go.set()
    await client.message()  # progress
    after_second = await client.message()
    first.go.set()
    await client.message()
    after_first = await client.message()

    assert (after_second["id"], after_first["id"]) == ("1", 1)


async def test_what_a_call_says_comes_before_its_answer_from_any_thread() -> None:
    async def chat(call: Call) -> Result:
        def talk() -> None:
            for level in ("debug", "info", "error"):
                call.notify("notifications/message", {"level": level, "data": level})

        talk()
        await asyncio.to_thread(talk)
        return text("done")

    client = await connected(ScriptedService(chat=chat))
    client.call("chat", request_id=7)
    messages = [await client.message() for _ in range(5)]

    assert [message["params"]["level"] for message in messages[:4]] == ["info", "error"] * 2
    assert messages[4] == {"jsonrpc": "2.0", "id": 7, "result": text("done")}


async def test_what_a_thread_says_comes_before_the_answer_also_when_the_loop_had_no_turn_meanwhile() -> None:
    async def chat(call: Call) -> Result:
        talking = threading.Thread(target=call.notify, args=("notifications/message", {"level": "info", "data": "hi"}))
        talking.start()
        talking.join()  # from Python 3.14 on, `asyncio.to_thread` returns as soon if its thread is that quick
        return text("done")

    client = await connected(ScriptedService(chat=chat))
    client.call("chat", request_id=7)
    messages = [await client.message() for _ in range(2)]

    assert [message.get("method") or message["id"] for message in messages] == ["notifications/message", 7]


async def test_nothing_is_said_for_a_call_after_its_answer() -> None:
    calls: list[Call] = []

    async def leave(call: Call) -> Result:
        calls.append(call)
        return text("left")

    client = await connected(ScriptedService(leave=leave), elicitation={})
    client.call("leave")
    await client.message()
    calls[0].notify("notifications/progress", {"progressToken": 1, "progress": 1})
    calls[0].close_stream()

    assert client.silent


async def test_a_cancelled_call_is_stopped_and_not_answered_and_its_id_is_free() -> None:
    wait = Waiting()
    client = await connected(ScriptedService(wait=wait, echo=echo))
    client.call("wait", request_id=1)
    await wait.started.wait()

    client.cancel(1)
    again = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "again"}}, request_id=1)
    await wait.stopped.wait()

    assert again == {"jsonrpc": "2.0", "id": 1, "result": text("again")}
    assert (await client.ask("ping", request_id=2))["id"] == 2
    assert client.silent


async def test_the_end_of_a_cancelled_call_does_not_free_the_id_that_was_used_again() -> None:
    begun, go, ended, wait = asyncio.Event(), asyncio.Event(), asyncio.Event(), Waiting()

    async def stubborn(call: Call) -> Result:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await go.wait()
        ended.set()
        return {}

    client = await connected(ScriptedService(stubborn=stubborn, wait=wait))
    client.call("stubborn", request_id=1)
    await begun.wait()
    client.cancel(1)
    client.call("wait", request_id=1)
    await wait.started.wait()
    go.set()
    await ended.wait()
    await client.ask("tools/list")

    assert (await client.ask("tools/list", request_id=1))["error"]["code"] == INVALID_REQUEST


async def test_a_call_that_is_cancelled_before_it_has_begun_is_not_answered() -> None:
    wait = Waiting()
    client = await connected(ScriptedService(wait=wait, echo=echo))
    client.call("wait", request_id=1)
    client.cancel(1)
    answer = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, request_id=2)

    assert answer["id"] == 2
    assert not wait.started.is_set()


async def test_a_cancelled_call_that_goes_on_is_not_heard() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def stubborn(call: Call) -> Result:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        ended.set()
        return text("done all the same")

    client = await connected(ScriptedService(stubborn=stubborn))
    client.call("stubborn", request_id=1)
    await started.wait()
    client.cancel(1)
    await ended.wait()
    await client.ask("ping")

    assert client.silent


@pytest.mark.parametrize("wrong", ["1", True, 1.0, None, [1], {"a": 1}, 2])
async def test_only_the_id_itself_cancels(wrong: object) -> None:
    wait = Waiting()
    client = await connected(ScriptedService(wait=wait))
    client.call("wait", request_id=1)
    await wait.started.wait()

    client.cancel(wrong)
    client.tell("notifications/cancelled")
    wait.go.set()
    await client.message()

    assert (await client.message())["result"] == text("waited")


async def test_the_id_of_a_running_call_cannot_be_used_again_and_the_call_goes_on() -> None:
    wait = Waiting()
    client = await connected(ScriptedService(wait=wait, echo=echo))
    client.call("wait", request_id=1)
    await wait.started.wait()

    twice = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, request_id=1)
    wait.go.set()
    await client.message()
    answer = await client.message()
    later = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, request_id=1)

    assert (twice["id"], twice["error"]["code"]) == (1, INVALID_REQUEST)
    assert answer["result"] == text("waited")
    assert later["result"] == text("x")


async def test_the_client_is_asked_under_an_id_of_ours() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    client.call("who", request_id="server-1")
    question = await client.message()
    client.respond(question["id"], result={"action": "accept", "content": {"name": "Ada"}})

    assert question == {"jsonrpc": "2.0", "id": "server-1", "method": "elicitation/create", "params": QUESTION}
    assert await client.message() == {"jsonrpc": "2.0", "id": "server-1", "result": text("Ada")}


@pytest.mark.parametrize("relays", [True, False])
async def test_a_client_is_not_asked_for_what_it_cannot_do(relays: bool) -> None:
    service = ScriptedService(who=ask_who)
    service.relays = relays
    client = await connected(service, sampling={})
    client.call("who")

    assert (await client.message())["error"]["code"] == MISSING_CAPABILITY


@pytest.mark.parametrize("relays", [True, False])
async def test_only_a_server_behind_the_service_may_ask_what_we_do_not_know(relays: bool) -> None:
    async def odd(call: Call) -> Result:
        return await call.ask("acme/ask", {"x": 1})

    service = ScriptedService(odd=odd)
    service.relays = relays
    client = await connected(service)
    client.call("odd")
    message = await client.message()

    if relays:
        client.respond(message["id"], result={"y": 2})
        assert (message["method"], message["params"]) == ("acme/ask", {"x": 1})
        assert (await client.message())["result"] == {"y": 2}
    else:
        assert message["error"]["code"] == METHOD_NOT_FOUND


async def test_a_cancelled_call_takes_its_question_back() -> None:
    client = await connected(ScriptedService(who=ask_who), elicitation={})
    client.call("who", request_id=1)
    question = await client.message()
    client.cancel(1)
    withdrawn = await client.message()
    client.respond(question["id"], result={"action": "accept", "content": {"name": "late"}})
    await client.ask("ping")

    assert (withdrawn["method"], withdrawn["params"]) == ("notifications/cancelled", {"requestId": question["id"]})
    assert client.silent


async def test_a_question_that_nobody_answers_fails_after_its_time() -> None:
    client = LineClient(ScriptedService(who=ask_who), question_seconds=0.01)
    await client.initialize(elicitation={})
    client.call("who")
    _, withdrawn, answer = [await client.message() for _ in range(3)]

    assert (withdrawn["method"], answer["error"]["code"]) == ("notifications/cancelled", UNANSWERED)


async def test_the_client_can_be_asked_outside_any_call() -> None:
    client = await connected(ScriptedService(), roots={})
    session = client.endpoint.session
    assert session is not None
    roots = asyncio.create_task(session.ask("roots/list", {}))
    question = await client.message()
    client.respond(question["id"], result={"roots": []})

    assert question["method"] == "roots/list"
    assert await roots == {"roots": []}
    with pytest.raises(RpcError, match="capability"):
        await session.ask("sampling/createMessage", {})


async def test_a_question_outside_any_call_ends_with_the_server() -> None:
    client = await connected(ScriptedService(), roots={})
    session = client.endpoint.session
    assert session is not None
    roots = asyncio.create_task(session.ask("roots/list", {}))
    await client.message()
    await client.endpoint.close()

    with pytest.raises(RpcError) as ended:
        await roots
    assert ended.value.code == STOPPED


@pytest.mark.parametrize(
    "nothing",
    [
        {"jsonrpc": "2.0", "id": "server-9", "result": {}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m"}},
    ],
)
@pytest.mark.parametrize("introduced", [True, False])
async def test_answers_that_nobody_waits_for_are_dropped(nothing: dict[str, Any], introduced: bool) -> None:
    client = LineClient(ScriptedService())
    if introduced:
        await client.initialize()
    client.take(nothing)

    assert (await client.ask("ping", request_id=1))["id"] == 1
    assert client.silent


@pytest.mark.parametrize("introduced", [True, False])
async def test_other_notifications_are_the_services(introduced: bool) -> None:
    service = ScriptedService()
    client = LineClient(service)
    if introduced:
        await client.initialize()
    client.tell("notifications/initialized")
    client.tell("notifications/roots/list_changed", {"x": 1})

    await until(lambda: service.told == [("notifications/roots/list_changed", {"x": 1})])


async def test_changes_are_told_from_any_thread_and_updates_to_who_watches() -> None:
    service = ScriptedService()
    client = await connected(service)
    assert (await client.ask("resources/subscribe", {"uri": "file:///a"}))["result"] == {}

    def change() -> None:
        client.endpoint.broadcast("notifications/tools/list_changed")
        client.endpoint.resource_updated("file:///b")
        client.endpoint.resource_updated("file:///a")

    thread = threading.Thread(target=change)
    thread.start()
    changed, updated = await client.message(), await client.message()
    thread.join()
    await client.ask("resources/unsubscribe", {"uri": "file:///a"})
    client.endpoint.resource_updated("file:///a")

    assert changed == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert (updated["method"], updated["params"]) == ("notifications/resources/updated", {"uri": "file:///a"})
    assert client.silent


async def test_the_service_hears_of_the_level_that_the_client_chose() -> None:
    service = ScriptedService()
    client = await connected(service)

    assert (await client.ask("logging/setLevel", {"level": "debug"}))["result"] == {}
    assert service.levels == ["debug"]


async def test_a_service_that_cannot_say_what_it_is_fails_one_request() -> None:
    class Broken(ScriptedService):
        def capabilities(self) -> dict[str, Any]:
            raise KeyError("capabilities")

    client = LineClient(Broken(echo=echo))
    failed = await client.ask("logging/setLevel", {"level": "info"}, request_id=1)
    client.call("echo", arguments={"text": "works"})

    assert (failed["id"], failed["error"]["code"]) == (1, INTERNAL_ERROR)
    assert (await client.message())["result"] == text("works")


async def test_a_result_that_is_json_already_is_written_as_it_is_on_one_line() -> None:
    async def raw(call: Call) -> msgspec.Raw:
        return msgspec.Raw(b'{"b":1,\r\n "a" : "x\\ny",\n"n": 1.50}')

    client = await connected(ScriptedService(raw=raw))
    client.call("raw", request_id="r")

    assert await client.raw() == b'{"jsonrpc":"2.0","id":"r","result":{"b":1,   "a" : "x\\ny", "n": 1.50}}'


async def test_calls_are_bounded() -> None:
    wait = Waiting()
    client = LineClient(ScriptedService(wait=wait), calls=1)
    await client.initialize()
    client.call("wait", request_id=1)
    client.call("wait", request_id=2)

    refused = await client.message()
    assert (refused["id"], refused["error"]["code"]) == (2, BUSY)


async def test_closing_answers_every_call_and_tells_the_service() -> None:
    wait = Waiting()

    async def stubborn(call: Call) -> Result:
        for _ in range(8):  # longer than it is waited for
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                call.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        return text("at last")

    service = ScriptedService(wait=wait, stubborn=stubborn)
    client = LineClient(service, close_seconds=0.02)
    await client.initialize()
    client.call("wait", request_id=1)
    client.call("stubborn", request_id=2)
    await wait.started.wait()

    session = client.endpoint.session
    assert session is not None
    await client.endpoint.close()
    answers = {message["id"]: message["error"] for message in client.rest() if "id" in message}
    late = await client.ask("ping", request_id=3)
    client.tell("notifications/odd")
    client.endpoint.broadcast("notifications/tools/list_changed")
    session.notify("notifications/message", {"level": "error", "data": "late"})
    await asyncio.create_task(asyncio.sleep(0))  # behind anything that was begun for it

    assert sorted(answers) == [1, 2]
    assert {error["code"] for error in answers.values()} == {STOPPED}
    assert all("unknown" in error["message"] for error in answers.values())
    assert wait.stopped.is_set()
    assert late["error"]["code"] == STOPPED
    assert client.endpoint.session is None
    assert (service.sessions, service.told) == ([], [])
    assert client.silent


async def test_closing_without_a_client_is_nothing() -> None:
    client = LineClient(ScriptedService())
    await client.endpoint.close()

    assert client.silent
