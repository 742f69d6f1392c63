"""Which client speaks to the upstream over which connection, and what each hears there."""

from __future__ import annotations

import asyncio

import pytest

from support.relays import (
    MODERN,
    QUICK,
    RECONNECTING,
    Asked,
    Scene,
    ScriptedCall,
    ScriptedLink,
    ScriptedSession,
    said,
    tool_call,
)
from support.waiting import until
from uno_devserver.protocol.client.connection import ConnectionLost, UnusableServer
from uno_devserver.protocol.jsonrpc import METHOD_NOT_FOUND, RpcError
from uno_devserver.proxy.calls.upstream_link import Unavailable


def _answering(scene: Scene) -> ScriptedLink:
    """Its server answers everything at once."""
    scene.link.answers = Asked.answer
    return scene.link


async def test_nothing_is_opened_for_a_client_that_does_not_call() -> None:
    scene = Scene()

    scene.service.opened(ScriptedSession())
    scene.service.conversations.renew()

    assert scene.link.eras_wanted == []


async def test_each_session_has_a_connection_of_its_own_in_its_era_for_all_its_calls() -> None:
    scene = Scene()
    link = _answering(scene)
    one, other = ScriptedSession(), ScriptedSession()

    for session in (one, other, one):
        await scene.service.answer(tool_call(session=session))

    assert [connection.peer.client for connection in link.connections] == [one.client, other.client]
    assert [len(connection.asked) for connection in link.connections] == [2, 1]
    assert link.eras_wanted == [False, False]


async def test_modern_requests_of_the_same_client_share_a_connection() -> None:
    scene = Scene(modern=True)
    link = _answering(scene)

    for session in (ScriptedSession(MODERN), ScriptedSession(MODERN), ScriptedSession(MODERN, sampling={})):
        await scene.service.answer(tool_call(session=session))

    assert [len(connection.asked) for connection in link.connections] == [2, 1]
    assert link.eras_wanted == [True, True]


async def test_modern_clients_that_are_not_seen_again_make_room_but_not_those_who_wait() -> None:
    scene = Scene(modern=True, limits=QUICK.replace(modern_clients=2))

    waiting = scene.start(tool_call(session=ScriptedSession(MODERN, "waits")))
    asked = await scene.next_asked()
    _answering(scene)
    for name in ("b", "c", "b"):
        await scene.service.answer(tool_call(session=ScriptedSession(MODERN, name)))
    asked.answer()
    await waiting

    names = [connection.peer.client.name for connection in scene.link.connections]
    assert names == ["waits", "b", "c", "b"]
    await until(lambda: [one.closed for one in scene.link.connections] == [False, True, True, False])


async def test_the_modern_client_that_was_longest_not_seen_makes_room() -> None:
    scene = Scene(modern=True, limits=QUICK.replace(modern_clients=2))
    _answering(scene)

    for name in ("a", "b", "a", "c"):
        await scene.service.answer(tool_call(session=ScriptedSession(MODERN, name)))

    await until(lambda: [one.closed for one in scene.link.connections] == [False, True, False])


async def test_modern_clients_that_all_waited_at_once_make_room_when_they_do_not_wait_any_more() -> None:
    scene = Scene(modern=True, limits=QUICK.replace(modern_clients=2))

    waiting = [scene.start(tool_call(session=ScriptedSession(MODERN, name))) for name in "abcde"]
    await until(lambda: len(scene.link.asked) == 5)
    for asked in scene.link.asked:
        asked.answer()
    await asyncio.gather(*waiting)
    _answering(scene)
    await scene.service.answer(tool_call(session=ScriptedSession(MODERN, "f")))

    await until(lambda: [one.closed for one in scene.link.connections] == [True, True, True, True, False, False])


async def test_calls_that_come_together_wait_for_one_opening_and_a_cancelled_one_does_not_stop_it() -> None:
    scene = Scene()
    scene.link.gate = asyncio.Event()
    session = ScriptedSession()

    first, second = scene.start(tool_call(session=session)), scene.start(tool_call(session=session))
    await until(lambda: bool(scene.link.eras_wanted))
    first.cancel()
    await asyncio.wait([first])
    scene.link.gate.set()
    (await scene.next_asked()).answer()
    await second

    assert first.cancelled()
    assert len(scene.link.connections) == 1


async def test_a_failed_opening_is_tried_again() -> None:
    scene = Scene()
    link = _answering(scene)
    session = ScriptedSession()
    link.unreachable = UnusableServer("no")
    await scene.service.answer(tool_call(session=session))

    link.unreachable = None

    assert said(await scene.service.answer(tool_call(session=session))) == {"content": []}


async def test_the_end_of_a_session_ends_its_connection() -> None:
    scene = Scene()
    link = _answering(scene)
    session, other = ScriptedSession(), ScriptedSession()
    for one in (session, other):
        await scene.service.answer(tool_call(session=one))

    scene.service.closed(session)
    scene.service.closed(ScriptedSession())  # who has never called

    await until(lambda: link.connections[0].closed)
    assert not link.connections[1].closed


async def test_a_session_that_ends_while_its_connection_opens_leaves_none() -> None:
    scene = Scene(limits=QUICK.replace(again_seconds=0.01))
    scene.link.gate = asyncio.Event()
    session = ScriptedSession()

    call = scene.start(tool_call(session=session))
    await until(lambda: bool(scene.link.eras_wanted))
    scene.service.closed(session)
    call.cancel()
    await asyncio.wait([call])
    scene.link.gate.set()
    await scene.service.close()

    assert scene.link.connections == []


async def test_at_the_end_nothing_is_opened_only_to_say_that_nobody_follows_any_more() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)

    await scene.service.close()
    await scene.service.watched("file:///a", False)

    assert [connection.closed for connection in scene.link.connections] == [True]
    assert len(scene.link.eras_wanted) == 1


async def test_a_new_upstream_is_never_spoken_to_over_an_old_connection() -> None:
    scene = Scene()
    link = _answering(scene)
    session = ScriptedSession()
    await scene.service.answer(tool_call(session=session))

    link.connect_anew()  # and nobody has told the conversations
    await scene.service.answer(tool_call(session=session))

    assert [asked.connection.generation for asked in link.asked] == [1, 2]
    await until(lambda: link.connections[0].closed)


async def test_a_connection_that_opens_too_late_is_not_used() -> None:
    scene = Scene()
    link = _answering(scene)
    link.gate = asyncio.Event()

    call = scene.start(tool_call())
    await until(lambda: len(link.eras_wanted) == 1)
    link.generation += 1
    link.gate.set()
    await call

    assert [(connection.generation, len(connection.asked)) for connection in link.connections] == [(1, 0), (2, 1)]
    await until(lambda: link.connections[0].closed)


async def test_who_waits_for_an_opening_to_an_upstream_that_is_gone_waits_for_the_next() -> None:
    scene = Scene()
    link = _answering(scene)
    link.gate = asyncio.Event()  # the old one never answers

    call = scene.start(tool_call())
    await until(lambda: len(link.eras_wanted) == 1)
    link.be(RECONNECTING)
    scene.service.conversations.renew()
    await until(lambda: bool(link.waited))
    link.gate = None
    scene.replace_upstream()

    assert said(await call) == {"content": []}
    assert [connection.generation for connection in link.connections] == [2]


async def test_a_call_finds_an_opening_that_is_out_of_date_and_begins_a_new_one() -> None:
    scene = Scene()
    link = _answering(scene)
    gate = link.gate = asyncio.Event()
    session = ScriptedSession()

    stuck = scene.start(tool_call(session=session))
    await until(lambda: len(link.eras_wanted) == 1)
    link.gate = None
    link.connect_anew()  # and nobody has told the conversations
    results = await asyncio.gather(scene.service.answer(tool_call(session=session)), stuck)

    assert [said(result) for result in results] == [{"content": []}] * 2
    assert not gate.is_set()
    assert {asked.connection.generation for asked in link.asked} == {2}


async def test_whoever_waits_hears_when_the_upstream_is_given_up() -> None:
    scene = Scene()

    call = scene.start(tool_call())
    await scene.next_asked()
    scene.link.be(RECONNECTING)  # it hangs, and its connections do not break
    scene.service.conversations.renew()

    assert "outcome is unknown" in said(await call)["content"][0]["text"]


async def test_sessions_that_have_called_hear_a_new_upstream_from_the_start_with_the_level_they_chose() -> None:
    scene = Scene()
    link = _answering(scene)
    session, silent = ScriptedSession(), ScriptedSession()
    for one in (session, silent):
        scene.service.opened(one)
    await scene.service.log_level_set(session, "debug")
    await scene.service.answer(tool_call(session=session))
    await scene.service.log_level_set(session, "error")

    link.be(RECONNECTING)
    scene.service.conversations.renew()
    scene.replace_upstream()
    await until(lambda: len(link.connections) == 2 and bool(link.connections[1].levels))

    assert [connection.peer.client for connection in link.connections] == [session.client] * 2
    assert [connection.levels for connection in link.connections] == [["debug", "error"], ["error"]]
    assert link.connections[1].peer.log_level == "error"


async def test_modern_clients_are_not_connected_before_they_call_again() -> None:
    scene = Scene(modern=True)
    link = _answering(scene)
    await scene.service.answer(tool_call(session=ScriptedSession(MODERN)))

    scene.replace_upstream()
    await until(lambda: link.connections[0].closed)

    assert len(link.connections) == 1


async def test_an_upstream_that_is_still_the_same_keeps_its_connections() -> None:
    scene = Scene()
    link = _answering(scene)
    await scene.service.answer(tool_call())

    scene.service.conversations.renew()
    await scene.service.close()

    assert len(link.connections) == 1
    assert link.connections[0].closed  # by the end, which says goodbye for all


async def test_what_the_upstream_says_beside_requests_goes_where_it_belongs() -> None:
    scene = Scene()
    link = _answering(scene)
    session = ScriptedSession()
    await scene.service.answer(tool_call(session=session))
    peer = link.connections[0].peer

    peer.notify("notifications/tools/list_changed", {})
    peer.notify("notifications/resources/list_changed", {})
    peer.notify("notifications/resources/updated", {"uri": "file:///a"})
    peer.notify("notifications/message", {"level": "info"})
    peer.notify("notifications/of_somebody/list_changed", {"x": 1})

    assert link.changes == 2
    assert scene.updated == ["file:///a"]
    assert session.heard == [
        ("notifications/message", {"level": "info"}),
        ("notifications/of_somebody/list_changed", {"x": 1}),
    ]


async def test_a_question_beside_requests_is_asked_by_the_call_that_runs_or_else_by_the_session() -> None:
    scene = Scene()
    session = ScriptedSession()
    older, younger = tool_call(session=session), tool_call(session=session)

    running = [scene.start(older), scene.start(younger)]
    await until(lambda: len(scene.link.asked) == 2)
    peer = scene.link.connections[0].peer
    during = await peer.ask("roots/list", {}, "q")
    for asked in scene.link.asked:
        asked.answer()
    await asyncio.gather(*running)
    after = await peer.ask("roots/list", {})

    assert (older.asked, younger.asked) == ([], [("roots/list", {}, "q")])
    assert session.asked == [("roots/list", {})]
    assert (during, after) == ({"from": "the call"}, {"from": "the session"})


async def test_a_question_that_comes_with_the_opening_is_asked_by_the_call_that_opens() -> None:
    scene = Scene()
    scene.link.gate = asyncio.Event()
    call = tool_call(session=ScriptedSession(MODERN))

    answer = scene.start(call)
    await until(lambda: bool(scene.link.eras_wanted))
    scene.link.gate.set()
    asked = await scene.next_asked()
    await asked.connection.peer.ask("roots/list", {})
    asked.answer()
    await answer

    assert call.asked == [("roots/list", {}, None)]


@pytest.mark.parametrize("old_answers", [False, True])
async def test_resources_are_followed_once_for_all_endpoints_and_again_at_a_new_upstream(old_answers: bool) -> None:
    scene = Scene()
    service, link = scene.service, scene.link

    await service.watched("file:///a", True)
    await service.watched("file:///a", True)  # by another endpoint
    await service.watched("file:///b", True)
    await service.watched("file:///a", False)
    await service.watched("file:///b", False)
    link.connections[0].peer.notify("notifications/resources/updated", {"uri": "file:///a"})
    scene.replace_upstream(old_answers=old_answers)
    await until(lambda: len(link.connections) == 2 and bool(link.connections[1].follows))

    a, b = "file:///a", "file:///b"
    assert link.connections[0].follows == [frozenset({a}), frozenset({a, b}), frozenset({a})]
    assert link.connections[1].follows == [frozenset({a})]
    assert scene.updated == [a]
    assert link.connections[0].peer.client.capabilities == {}
    await until(lambda: link.connections[0].closed)


async def test_what_the_follower_hears_besides_is_for_nobody_and_it_cannot_be_asked() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)
    peer = scene.link.connections[0].peer

    peer.notify("notifications/message", {"level": "info"})
    with pytest.raises(RpcError):
        await peer.ask("roots/list", {})


async def test_our_own_resource_is_not_followed_at_the_upstream() -> None:
    scene = Scene()

    await scene.service.watched("uno://health", True)

    assert scene.link.eras_wanted == []


async def test_of_many_subscriptions_at_once_the_upstream_is_told_in_one_question_besides_the_first() -> None:
    scene = Scene()
    uris = [f"file:///{number}" for number in range(100)]
    scene.link.refuses_to_follow = {uris[-1]}

    answers = await asyncio.gather(*(scene.service.watched(uri, True) for uri in uris), return_exceptions=True)

    assert [type(answer) for answer in answers] == [type(None)] * 99 + [RpcError]
    assert len(scene.link.connections[0].follows) <= 2, "each names all resources"
    assert scene.link.connections[0].follows[-1] == frozenset(uris)


async def test_a_resource_that_the_upstream_does_not_know_is_refused_and_not_followed_later() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)
    scene.link.refuses_to_follow = {"file:///b"}

    with pytest.raises(RpcError) as refused:
        await scene.service.watched("file:///b", True)
    await scene.service.watched("file:///c", True)

    assert refused.value.code == METHOD_NOT_FOUND
    assert scene.link.connections[0].follows[-1] == {"file:///a", "file:///c"}


async def test_a_resource_that_only_the_next_upstream_does_not_know_keeps_no_other_from_being_followed() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)
    scene.link.refuses_to_follow = {"file:///a"}

    scene.replace_upstream()
    await until(lambda: len(scene.link.connections) == 2)
    await scene.service.watched("file:///b", True)

    assert scene.link.connections[1].follows[-1] == {"file:///a", "file:///b"}


@pytest.mark.parametrize("why", [ConnectionLost("gone", sent=False), Unavailable("none"), UnusableServer("no"), None])
async def test_what_cannot_be_followed_now_is_followed_later(why: Exception | None) -> None:
    scene = Scene()
    scene.link.unreachable = why
    if why is None:
        scene.link.be(RECONNECTING)

    await scene.service.watched("file:///a", True)
    scene.link.unreachable = None
    scene.replace_upstream()

    await until(lambda: [one.follows for one in scene.link.connections] == [[frozenset({"file:///a"})]])


async def test_a_connection_that_is_lost_while_something_is_followed_is_replaced_by_the_next() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)
    scene.link.connections[0].gone = True

    await scene.service.watched("file:///b", True)
    await scene.service.watched("file:///c", True)

    assert scene.link.connections[1].follows == [frozenset({"file:///a", "file:///b", "file:///c"})]


async def test_an_upstream_that_refuses_what_was_followed_before_does_no_harm() -> None:
    scene = Scene()
    await scene.service.watched("file:///a", True)

    scene.link.unreachable = UnusableServer("no")
    scene.replace_upstream()
    await until(lambda: len(scene.link.eras_wanted) == 2)
    scene.link.unreachable = None
    await scene.service.watched("file:///b", True)

    assert scene.link.connections[-1].follows == [frozenset({"file:///a", "file:///b"})]


async def test_a_server_that_hangs_on_a_subscription_is_not_waited_for_for_ever() -> None:
    scene = Scene(limits=QUICK.replace(aside_seconds=0.01))
    scene.link.gate = asyncio.Event()

    await scene.service.watched("file:///a", True)
    await scene.service.notified(ScriptedSession(), "notifications/of_somebody", {})

    assert len(scene.link.eras_wanted) == 2


async def test_in_a_shared_conversation_all_clients_hear_and_the_first_client_is_seen() -> None:
    scene = Scene()
    peer = scene.service.conversations
    assert peer.client.name == "uno-devserver"
    with pytest.raises(RpcError):
        await peer.ask("roots/list", {})
    sessions = [ScriptedSession(name=name, roots={}) for name in "ab"]
    for session in sessions:
        scene.service.opened(session)

    peer.notify("notifications/message", {"level": "info"})
    peer.notify("notifications/tools/list_changed", {})
    reply = await peer.ask("roots/list", {})

    assert peer.client is sessions[0].client
    assert peer.log_level is None
    assert [session.heard for session in sessions] == [[("notifications/message", {"level": "info"})]] * 2
    assert scene.link.changes == 1
    assert reply == {"from": "the session"}
    assert sessions[0].asked == [("roots/list", {})]


async def test_in_a_shared_conversation_modern_clients_hear_during_their_requests_and_only_then() -> None:
    scene = Scene(modern=True)
    session = ScriptedSession(MODERN)
    older, younger = tool_call(session=session), tool_call(session=session)

    running = [scene.start(call) for call in (older, younger)]
    await until(lambda: len(scene.link.asked) == 2)
    scene.service.conversations.notify("notifications/message", {"level": "info"})
    for asked in scene.link.asked:
        asked.answer()
    await asyncio.gather(*running)
    scene.service.conversations.notify("notifications/message", {"level": "error"})

    assert (older.heard, younger.heard) == ([], [("notifications/message", {"level": "info"})])


async def test_in_a_shared_conversation_the_client_that_started_the_proxy_is_seen_as_soon_as_it_is_known() -> None:
    scene = Scene()
    scene.service.opened(ScriptedSession(name="over HTTP"))
    first = ScriptedSession(MODERN, name="first", elicitation={}).client

    scene.service.conversations.met(first)

    assert scene.service.conversations.client is first


async def test_in_a_shared_conversation_who_waits_for_an_answer_is_asked_first() -> None:
    scene = Scene()
    idle, busy = ScriptedSession(), ScriptedSession()
    scene.service.opened(idle)
    call = ScriptedCall("tools/call", {"name": "t"}, busy)

    answer = scene.start(call)
    asked = await scene.next_asked()
    await scene.service.conversations.ask("elicitation/create", {}, "q")
    asked.answer()
    await answer

    assert call.asked == [("elicitation/create", {}, "q")]
    assert idle.asked == []


# --- an upstream that is replaced while it answers


async def test_a_request_that_runs_when_the_upstream_is_replaced_is_answered_by_the_old_one() -> None:
    scene = Scene()
    session = ScriptedSession()
    running = scene.start(tool_call(session=session))
    asked = await scene.next_asked()

    scene.replace_upstream(old_answers=True)
    unused = asyncio.ensure_future(scene.service.conversations.until_unused(1))
    _answering(scene)
    await scene.service.answer(tool_call(session=session))

    assert [asked.connection.generation for asked in scene.link.asked] == [1, 2]
    assert not unused.done()
    assert not scene.link.connections[0].closed
    asked.answer({"content": [], "by": "the old one"})
    assert said(await running)["by"] == "the old one"
    await unused
    await until(lambda: scene.link.connections[0].closed)
    assert not scene.link.connections[1].closed


async def test_an_upstream_that_nobody_waits_for_is_unused_at_once() -> None:
    scene = Scene()
    _answering(scene)
    await scene.service.answer(tool_call())

    await asyncio.wait_for(scene.service.conversations.until_unused(1), 5)


async def test_a_request_that_is_given_up_does_not_hold_the_old_upstream() -> None:
    scene = Scene()
    running = scene.start(tool_call())
    await scene.next_asked()
    scene.replace_upstream(old_answers=True)
    unused = asyncio.ensure_future(scene.service.conversations.until_unused(1))

    running.cancel()

    await asyncio.wait_for(unused, 5)
