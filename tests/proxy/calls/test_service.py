"""What the relay answers itself, and that everything else passes as it came."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from support.relays import (
    CONNECTED,
    QUICK,
    RECONNECTING,
    Scene,
    ScriptedCall,
    ScriptedSession,
    said,
    state_of,
    tool_call,
)
from support.waiting import until
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, UNANSWERED, RpcError
from uno_devserver.protocol.service import Service
from uno_devserver.proxy.state import ConnectionState, Lists

LISTS = Lists(b'[{"name":"t"}]', b'[{"uri":"r"}]', b'[{"uriTemplate":"x"}]', b'[{"name":"p"}]')


async def test_it_is_a_service_with_the_name_and_the_capabilities_of_the_state() -> None:
    scene = Scene()
    service: Service = scene.service

    assert service.info is scene.state.server
    assert service.capabilities() is scene.state.capabilities
    assert service.relays


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tools/list", {"tools": [{"name": "t"}]}),
        ("resources/list", {"resources": [{"uri": "r"}]}),
        ("resources/templates/list", {"resourceTemplates": [{"uriTemplate": "x"}]}),
        ("prompts/list", {"prompts": [{"name": "p"}]}),
    ],
)
async def test_lists_come_from_the_state_whatever_the_upstream_does(method: str, expected: object) -> None:
    scene = Scene(RECONNECTING, state=state_of(LISTS))

    assert said(await scene.service.answer(ScriptedCall(method))) == expected
    assert scene.link.changes == 0


async def test_a_list_is_one_page() -> None:
    scene = Scene(state=state_of(LISTS))

    with pytest.raises(RpcError) as refused:
        await scene.service.answer(ScriptedCall("tools/list", {"cursor": "2"}))

    assert refused.value.code == INVALID_PARAMS


async def test_a_list_of_tools_that_is_held_waits_for_the_upstream() -> None:
    scene = Scene(ConnectionState.LAUNCHING, state=state_of(Lists(), wait_tools=True))

    listing = scene.start(ScriptedCall("tools/list"))
    await until(lambda: bool(scene.link.waited))
    scene.state.lists = LISTS
    scene.link.connect_anew()

    assert said(await listing) == {"tools": [{"name": "t"}]}


async def test_a_list_of_tools_is_held_for_a_while_only_and_the_others_are_not_held() -> None:
    scene = Scene(
        ConnectionState.LAUNCHING, state=state_of(LISTS, wait_tools=True), limits=QUICK.replace(tools_seconds=0.01)
    )

    assert said(await scene.service.answer(ScriptedCall("tools/list"))) == {"tools": [{"name": "t"}]}
    assert said(await scene.service.answer(ScriptedCall("prompts/list"))) == {"prompts": [{"name": "p"}]}
    assert scene.link.waited == [0.01]


async def test_the_health_is_told_by_tool_and_by_resource_whatever_the_upstream_does() -> None:
    report = {"status": "Degraded", "issues": []}
    scene = Scene(RECONNECTING, state=state_of(health=report))

    called = said(await scene.service.answer(tool_call("uno_health", arguments=None)))
    older = said(await scene.service.answer(tool_call("uno_health", ScriptedSession("2025-03-26"))))
    read = said(await scene.service.answer(ScriptedCall("resources/read", {"uri": "UNO://Health"})))

    assert called["structuredContent"] == report
    assert "structuredContent" not in older
    for each in (called, older):
        assert msgspec.json.decode(each["content"][0]["text"]) == report
    assert msgspec.json.decode(read["contents"][0]["text"]) == report


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "echo", "arguments": {"a": 1}, "_meta": {"x": {"y": [1, None]}}, "unknown": True}),
        ("resources/read", {"uri": "file:///a"}),
        ("prompts/get", {"name": "p"}),
        ("completion/complete", {"ref": {}}),
        ("somebody/else", {"any": "thing"}),
    ],
)
async def test_everything_else_passes_as_it_came_in_both_directions(method: str, params: dict[str, object]) -> None:
    scene = Scene()
    result = b'{"content": [ {"x":1.0} ],"unknown":12345678901234567890123}'

    answer = scene.start(ScriptedCall(method, params))
    asked = await scene.next_asked()
    asked.answer(result)

    assert (asked.method, asked.params) == (method, params)
    assert msgspec.json.encode(await answer) == result


async def test_a_tool_of_ours_that_the_upstream_has_too_is_the_upstreams() -> None:
    scene = Scene()  # the state names no tools as ours

    answer = scene.start(tool_call("uno_discover_tools"))
    (await scene.next_asked()).answer(b'{"from":"upstream"}')

    assert said(await answer) == {"from": "upstream"}


async def test_what_the_upstream_says_during_a_call_reaches_that_call() -> None:
    scene = Scene()
    call = tool_call()

    answer = scene.start(call)
    asked = await scene.next_asked()
    asked.peer.notify("notifications/progress", {"progress": 1})
    reply = await asked.peer.ask("elicitation/create", {"message": "?"}, "who")
    asked.answer()
    await answer

    assert call.heard == [("notifications/progress", {"progress": 1})]
    assert call.asked == [("elicitation/create", {"message": "?"}, "who")]
    assert reply == {"from": "the call"}
    assert asked.peer.client is call.session.client
    assert asked.peer.log_level == "info"


async def test_cancelling_a_call_cancels_it_at_the_upstream() -> None:
    scene = Scene()

    answer = scene.start(tool_call())
    asked = await scene.next_asked()
    answer.cancel()
    await asyncio.wait([answer])

    assert answer.cancelled()
    assert asked.cancelled


async def test_changed_roots_are_told_to_the_engine_and_to_the_upstream() -> None:
    scene = Scene()
    session = ScriptedSession(roots={})

    await scene.service.notified(session, "notifications/roots/list_changed", {})
    await scene.service.notified(session, "notifications/of_somebody", {"x": 1})

    assert scene.roots_changed == [session]
    assert [connection.told for connection in scene.link.connections] == [
        [("notifications/roots/list_changed", {}), ("notifications/of_somebody", {"x": 1})]
    ]


async def test_a_notification_that_nobody_can_hear_does_no_harm() -> None:
    scene = Scene(RECONNECTING)

    await scene.service.notified(ScriptedSession(), "notifications/of_somebody", {})
    scene.link.unreachable = ConnectionError()  # not even asked for
    await scene.service.notified(ScriptedSession(), "notifications/of_somebody", {})

    assert scene.link.eras_wanted == []
    assert scene.link.state is not CONNECTED


async def test_the_engine_learns_that_its_upstream_answers_but_not_from_one_that_goes() -> None:
    scene = Scene()

    lost = scene.start(tool_call())
    (await scene.next_asked()).lose()
    await lost
    proven_before = scene.link.proven
    answered = scene.start(tool_call())
    (await scene.next_asked()).answer()
    await answered

    assert (proven_before, scene.link.proven) == (0, scene.link.generation)


async def test_a_call_that_was_held_does_not_report_that_any_more_when_it_runs() -> None:
    scene = Scene(ConnectionState.LAUNCHING)
    scene.service.forwarding.waits = True
    call = tool_call(_meta={"progressToken": "tok"})
    others = asyncio.all_tasks()

    answer = scene.start(call)
    await until(lambda: bool(call.heard))
    scene.link.connect_anew()
    asked = await scene.next_asked()

    await until(lambda: asyncio.all_tasks() - others == {answer})
    asked.answer()
    await answer


async def test_a_client_that_did_not_answer_a_question_is_not_asked_anew_because_its_call_may_be_repeated() -> None:
    scene = Scene()
    scene.link.tools = {"look": {"name": "look", "annotations": {"readOnlyHint": True}}}

    answer = scene.start(tool_call("look"))
    (await scene.next_asked()).fail(UNANSWERED, "The client did not answer.")
    with pytest.raises(RpcError, match="did not answer"):
        await answer

    assert len(scene.link.asked) == 1
