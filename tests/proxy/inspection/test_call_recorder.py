"""Calls as somebody sees them who looks on: every state that they pass, with its time, and nothing of it otherwise."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.authorities import CHANGED, ScriptedAuthority, failed_build
from support.relays import CONNECTED, QUICK, RECONNECTING, Scene, ScriptedCall, ScriptedSession, tool_call
from support.virtual_time import turns, virtual
from uno_devserver.hotreload.authority import UNCHANGED, RestartResult
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.inspection.call_recorder import (
    CUT,
    MOST_BYTES,
    MOST_CHARACTERS,
    REMEMBERED,
    TELL_SECONDS,
    CallRecorder,
    arguments_of,
    name_of,
    outcome_of,
    short_json,
)
from uno_devserver.workspace.config import Strategy

LIMITS = QUICK.replace(grace_seconds=5.0, check_seconds=10.0, restart_seconds=120.0)


class Watched:
    """A service whose calls are recorded."""

    def __init__(self, **how: Any) -> None:
        self.scene = Scene(limits=LIMITS, **how)
        self.told: list[dict[str, Any]] = []
        self.recorder = CallRecorder(self.told.append)
        self.recorder.live = True
        self.scene.service.forwarding.observer = self.recorder
        self.authority = ScriptedAuthority(False)

    def reload(self, strategy: Strategy = Strategy.RESTART, concurrency: int | None = None) -> None:
        forwarding = self.scene.service.forwarding
        queue = CallQueue(
            self.authority,
            concurrency=concurrency,
            strategy=strategy,
            waits=lambda: False,
            observer=lambda: forwarding.observer,
            name="the server",
            limits=LIMITS,
        )
        forwarding.queue = queue

    async def check(self, calls: int = 1) -> list[asyncio.Task[Any]]:
        """Start calls that wait for a check of the code, whose result is due."""
        self.authority.known = True
        started = [self.start(tool_call()) for _ in range(calls)]
        await turns()
        self.authority.known = False
        return started

    def start(self, call: ScriptedCall) -> asyncio.Task[Any]:
        return self.scene.start(call)

    async def see(self) -> dict[str, Any]:
        """The last call, when all was told that has happened."""
        await turns()
        await asyncio.sleep(TELL_SECONDS)
        assert self.told, "nothing was told"
        return self.told[-1]

    async def states(self) -> list[str]:
        """Of all calls."""
        await self.see()
        return [call["state"] for call in self.recorder.documents()]


# --- one call


@virtual
async def test_a_call_is_told_while_it_runs_and_when_it_is_done() -> None:
    watched = Watched()
    session = ScriptedSession(name="Claude")

    answer = watched.start(ScriptedCall("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, session))
    running = await watched.see()
    await asyncio.sleep(2)
    (await watched.scene.next_asked()).answer({"content": [{"type": "text", "text": "hi"}]})
    done = await watched.see()

    assert (await answer) == msgspec.Raw(b'{"content": [{"type": "text", "text": "hi"}]}')
    assert [call["state"] for call in watched.told] == ["running", "done"]
    assert running == {
        "id": 1,
        "method": "tools/call",
        "name": "echo",
        "client": "Claude",
        "state": "running",
        "why": "",
        "at": running["at"],
        "queuedMs": 0.0,
        "runningMs": TELL_SECONDS * 1000,
        "totalMs": None,
        "arguments": '{"text": "hi"}',
        "outcome": "",
    }
    assert (done["id"], done["queuedMs"], done["runningMs"], done["totalMs"]) == (1, 0.0, 2050.0, 2050.0)
    assert done["outcome"] == "hi"


@virtual
async def test_a_quick_call_is_told_once() -> None:
    watched = Watched()
    watched.scene.link.answers = lambda asked: asked.answer()

    await watched.start(tool_call())

    await watched.see()
    assert [call["state"] for call in watched.told] == ["done"]


@pytest.mark.parametrize(
    ("fails", "outcome"),
    [
        (lambda asked: asked.fail(-32602, "That is no number."), "That is no number. (-32602)"),
        (lambda asked: asked.answer({"content": [{"type": "text", "text": "no"}], "isError": True}), "no"),
    ],
    ids=["an error", "a result that is one"],
)
@virtual
async def test_what_went_wrong_is_told_with_what_was_answered(fails: Any, outcome: str) -> None:
    watched = Watched()
    watched.scene.link.answers = fails

    answer = watched.start(tool_call())
    await asyncio.wait([answer])

    failed = await watched.see()
    assert (failed["state"], failed["outcome"]) == ("failed", outcome)
    answer.exception()


@virtual
async def test_a_defect_of_ours_fails_the_call_and_reaches_the_client_as_before() -> None:
    watched = Watched()
    watched.scene.link.unreachable = ZeroDivisionError("oops")

    with pytest.raises(ZeroDivisionError):
        await watched.start(tool_call())

    assert (await watched.see())["outcome"] == "The proxy failed: ZeroDivisionError. Its log has the details."


@pytest.mark.parametrize(("by_client", "state"), [(True, "cancelled"), (False, "failed")])
@virtual
async def test_only_a_call_that_its_client_cancels_is_told_as_cancelled(by_client: bool, state: str) -> None:
    watched = Watched()
    answer = watched.start(tool_call())
    asked = await watched.scene.next_asked()

    if by_client:
        answer.cancel()
    else:  # something inside the call
        asked.outcome.cancel()
    await asyncio.wait([answer])

    assert (await watched.see())["state"] == state
    assert asked.cancelled


@pytest.mark.parametrize("name", ["", "x" * 500])
@virtual
async def test_a_client_without_a_name_is_unknown_and_one_with_too_much_of_it_is_cut(name: str) -> None:
    watched = Watched()
    watched.scene.link.answers = lambda asked: asked.answer()

    await watched.start(tool_call(session=ScriptedSession(name=name)))

    client = (await watched.see())["client"]
    assert client == "unknown" if not name else len(client) == 100


@virtual
async def test_lists_and_our_own_tools_are_told_too() -> None:
    watched = Watched()

    await watched.start(ScriptedCall("tools/list"))
    await watched.start(tool_call("uno_health"))
    await watched.see()

    assert [(call["method"], call["name"]) for call in watched.told] == [
        ("tools/list", None),
        ("tools/call", "uno_health"),
    ]


# --- waiting


@virtual
async def test_a_call_waits_for_the_server_and_says_so() -> None:
    watched = Watched(connection=RECONNECTING)
    watched.scene.link.answers = lambda asked: asked.answer()

    answer = watched.start(tool_call())
    queued = await watched.see()
    await asyncio.sleep(1)
    watched.scene.link.connect_anew()
    await answer
    done = await watched.see()

    assert (queued["state"], queued["why"]) == ("queued", "Waiting for the dev server.")
    assert (queued["runningMs"], queued["totalMs"]) == (None, None)
    assert (done["state"], done["why"], done["queuedMs"], done["runningMs"]) == ("done", "", 1050.0, 0.0)


@virtual
async def test_a_call_that_comes_before_it_is_known_who_watches_the_code_says_so() -> None:
    watched = Watched()
    arranging = asyncio.get_running_loop().create_future()
    watched.scene.service.forwarding.await_reloader(arranging)
    watched.scene.link.answers = lambda asked: asked.answer()

    answer = watched.start(tool_call())
    queued = await watched.see()
    arranging.set_result(None)
    await answer

    assert (queued["state"], queued["why"]) == ("queued", "Finding out whether its code is watched.")
    assert (await watched.see())["state"] == "done"


@virtual
async def test_what_needs_no_turn_waits_for_the_newest_code_and_says_so() -> None:
    watched = Watched()
    watched.reload()
    watched.authority.known = True

    answer = watched.start(ScriptedCall("resources/read", {"uri": "file:///a"}))
    queued = await watched.see()
    watched.authority.known = False
    watched.authority.checks[-1].set_result(UNCHANGED)
    (await watched.scene.next_asked()).answer({"contents": []})
    await answer

    assert (queued["state"], queued["why"]) == ("queued", "Waiting for the newest code.")
    assert (await watched.see())["state"] == "done"


@virtual
async def test_a_call_whose_server_crashed_waits_for_the_next_and_its_times_add_up() -> None:
    watched = Watched()
    watched.scene.link.tools["echo"] = {"annotations": {"readOnlyHint": True}}
    answer = watched.start(tool_call())
    await watched.scene.next_asked()
    await asyncio.sleep(1)

    watched.scene.link.crash()
    queued = await watched.see()
    watched.scene.link.connect_anew()
    asked = await watched.scene.next_asked()
    again = await watched.see()
    asked.answer()
    await answer
    done = await watched.see()

    assert (queued["state"], queued["why"]) == ("queued", "The dev server was lost. Waiting for the next.")
    assert again["state"] == "running"
    assert (done["state"], done["queuedMs"], done["runningMs"], done["totalMs"]) == ("done", 50.0, 1050.0, 1100.0)


@virtual
async def test_calls_stand_in_the_queue_until_it_is_their_turn() -> None:
    watched = Watched()
    watched.reload(concurrency=1)

    first, second = watched.start(tool_call()), watched.start(tool_call())
    await watched.see()
    waiting = watched.recorder.documents()
    (await watched.scene.next_asked()).answer()
    await first
    then = await watched.states()
    (await watched.scene.next_asked()).answer()
    await second

    assert [(call["state"], call["why"]) for call in waiting] == [("running", ""), ("queued", "Waiting for its turn.")]
    assert then == ["done", "running"]
    assert await watched.states() == ["done", "done"]
    assert watched.recorder.documents()[1]["queuedMs"] == 50.0


@virtual
async def test_what_a_check_is_at_is_what_its_calls_wait_for() -> None:
    watched = Watched()
    watched.reload()
    watched.authority.known = True

    answer = watched.start(tool_call())
    checking = await watched.see()
    watched.authority.tells[-1]("npm run build runs for the server")
    building = await watched.see()
    watched.authority.known = False
    watched.authority.checks[-1].set_result(UNCHANGED)
    (await watched.scene.next_asked()).answer()
    await answer

    assert (checking["state"], checking["why"]) == ("queued", "Checking whether the code of the server has changed.")
    assert (building["state"], building["why"]) == ("queued", "npm run build runs for the server")
    assert (await watched.see())["state"] == "done"


@virtual
async def test_calls_that_are_told_of_a_restart_end_as_restarting() -> None:
    watched = Watched()
    watched.reload()
    told_first = await watched.check(2)

    watched.authority.checks[-1].set_result(CHANGED)
    await asyncio.wait(told_first)
    await watched.start(tool_call())

    assert await watched.states() == ["restarting"] * 3
    told = watched.recorder.documents()[0]
    assert (told["why"], told["runningMs"]) == ("Answered that the server is restarting.", None)
    assert told["totalMs"] is not None
    assert "mcpStatus" in told["outcome"]
    watched.authority.restarts[-1].set_result(RestartResult(True))


@virtual
async def test_calls_that_are_held_for_a_swap_are_restarting_until_they_run() -> None:
    watched = Watched()
    watched.reload(Strategy.SWAP)
    [answer] = await watched.check()

    watched.authority.checks[-1].set_result(CHANGED)
    held = await watched.see()
    late = watched.start(tool_call())
    both = await watched.states()
    watched.authority.restarts[-1].set_result(RestartResult(True))
    await turns()
    for asked in list(watched.scene.link.asked):
        asked.answer()
    await asyncio.wait([answer, late])

    assert (held["state"], held["why"]) == ("restarting", "Waiting for the new code of the server.")
    assert both == ["restarting", "restarting"]
    assert await watched.states() == ["done", "done"]


@virtual
async def test_a_call_that_is_answered_with_a_failed_build_has_failed() -> None:
    watched = Watched()
    watched.reload()
    [answer] = await watched.check()

    watched.authority.checks[-1].set_result(failed_build("error TS1005"))
    await answer

    failed = await watched.see()
    assert (failed["state"], failed["runningMs"]) == ("failed", None)
    assert "error TS1005" in failed["outcome"]


@virtual
async def test_who_waits_in_the_queue_after_a_restart_is_not_restarting_any_more() -> None:
    watched = Watched()
    watched.reload(Strategy.SWAP, concurrency=1)
    calls = await watched.check(2)
    watched.authority.checks[-1].set_result(CHANGED)
    await turns()

    watched.authority.restarts[-1].set_result(RestartResult(True))
    states = await watched.states()
    for _ in calls:
        (await watched.scene.next_asked()).answer()
        await turns()
    await asyncio.wait(calls)

    assert states == ["running", "queued"]


# --- many, and none


@virtual
async def test_the_last_calls_are_remembered_and_those_under_way_are_never_dropped() -> None:
    watched = Watched()
    old = watched.start(tool_call("old"))
    await watched.scene.next_asked()
    watched.scene.link.answers = lambda asked: asked.answer()

    for _ in range(2 * REMEMBERED):
        await watched.start(tool_call())

    documents = watched.recorder.documents()
    assert len(documents) == REMEMBERED
    assert (documents[0]["name"], documents[0]["state"]) == ("old", "running")
    assert [call["id"] for call in documents[1:]] == list(range(REMEMBERED + 3, 2 * REMEMBERED + 2))
    old.cancel()


@virtual
async def test_what_is_remembered_is_small_whatever_was_said() -> None:
    watched = Watched()
    watched.scene.link.answers = lambda asked: asked.answer({"content": [{"type": "text", "text": "x" * 1_000_000}]})

    for _ in range(20):
        await watched.start(ScriptedCall("tools/call", {"name": "n" * 100_000, "arguments": {"y": "z" * 1_000_000}}))

    assert len(json.dumps(watched.recorder.documents())) < 20 * 5000


@virtual
async def test_what_a_call_was_answered_is_not_held_when_nobody_looks_any_more() -> None:
    watched = Watched()
    large = {"content": [{"type": "text", "text": "x" * 1_000_000}]}
    ended, under_way = watched.start(tool_call()), watched.start(tool_call())
    (await watched.scene.next_asked()).answer(large)
    await ended

    watched.recorder.live = False
    (await watched.scene.next_asked()).answer(large)
    await under_way
    await asyncio.sleep(TELL_SECONDS)

    kept = watched.recorder._ended
    assert [len(str(record.outcome)) for record in kept] == [MOST_CHARACTERS] * 2


@virtual
async def test_without_an_observer_calls_are_not_followed_and_those_under_way_come_to_their_end() -> None:
    watched = Watched()
    watched.reload(concurrency=1)
    under_way, queued = watched.start(tool_call()), watched.start(tool_call())
    await watched.see()

    watched.scene.service.forwarding.observer = None
    watched.recorder.live = False
    told = len(watched.told)
    (await watched.scene.next_asked()).answer()
    await under_way
    (await watched.scene.next_asked()).answer()
    await queued
    unseen = watched.start(tool_call())
    (await watched.scene.next_asked()).answer()
    await unseen
    await asyncio.sleep(10 * TELL_SECONDS)

    assert len(watched.told) == told
    assert [call["state"] for call in watched.recorder.documents()] == ["done", "done"]


@virtual
async def test_calls_that_were_under_way_when_somebody_came_are_left_alone() -> None:
    watched = Watched()
    watched.reload(concurrency=1)
    watched.scene.service.forwarding.observer = None
    before = [watched.start(tool_call()), watched.start(tool_call())]
    await turns()

    watched.scene.service.forwarding.observer = watched.recorder
    for _ in before:
        (await watched.scene.next_asked()).answer()
        await turns()
    await asyncio.wait(before)

    assert watched.recorder.documents() == []


@virtual
async def test_an_error_of_the_upstream_passes_unchanged() -> None:
    watched = Watched()
    watched.scene.link.answers = lambda asked: asked.fail(-32000, "no", {"why": 1})

    with pytest.raises(RpcError) as error:
        await watched.start(tool_call())

    assert (error.value.code, error.value.message, error.value.data) == (-32000, "no", {"why": 1})
    assert watched.scene.link.state is CONNECTED


# --- the texts

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def raw(result: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(result).encode())


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


# --- what it was given


@pytest.mark.parametrize(
    ("method", "params", "name", "arguments"),
    [
        ("tools/call", {"name": "echo", "arguments": {"a": [1, "ü"]}}, "echo", '{"a": [1, "ü"]}'),
        ("tools/call", {"name": "echo"}, "echo", ""),
        ("tools/call", {"name": 5, "arguments": {}}, None, ""),
        ("prompts/get", {"name": "greet", "arguments": {"who": "you"}}, "greet", '{"who": "you"}'),
        ("resources/read", {"uri": "file:///a", "_meta": {"x": 1}}, "file:///a", ""),
        ("completion/complete", {"ref": {"name": "p"}, "_meta": {}}, None, '{"ref": {"name": "p"}}'),
        ("tools/list", {}, None, ""),
    ],
)
def test_a_call_is_named_by_what_it_is_about(
    method: str, params: dict[str, Any], name: str | None, arguments: str
) -> None:
    assert name_of(method, params) == name
    assert arguments_of(method, params) == arguments


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [(b'{"a": [1]}', '{"a": [1]}'), (b"{}", ""), (b'{"a":1e400}', "[JSON that cannot be shown]")],
)
def test_arguments_that_are_still_bytes_are_shown(arguments: bytes, shown: str) -> None:
    params = b'{"name":"echo","arguments":%b}' % arguments

    assert arguments_of("tools/call", {"name": "echo", "arguments": msgspec.Raw(arguments)}) == shown
    assert arguments_of("tools/call", msgspec.Raw(params)) == shown


@given(ANYTHING)
def test_json_is_whole_or_cut_where_the_whole_would_have_been(value: Any) -> None:
    shown, whole = short_json(value), json.dumps(value, ensure_ascii=False)

    if len(whole) <= MOST_CHARACTERS:
        assert shown == whole
    else:
        assert shown == whole[: MOST_CHARACTERS - 1] + CUT


@pytest.mark.parametrize(
    "value",
    [
        "x" * 50_000_000,
        {"a": ["y" * 50_000_000] * 20},
        [[list(range(1000))] * 1000] * 1000,
        {str(number): "z" for number in range(200_000)},
    ],
    ids=["a text", "texts", "lists", "an object"],
)
def test_what_is_not_shown_is_not_looked_at(value: Any) -> None:
    begun = time.process_time()

    shown = short_json(value)

    assert len(shown) == MOST_CHARACTERS
    assert shown.endswith(CUT)
    assert time.process_time() - begun < 0.05, "all of it would take seconds"


def test_of_arguments_that_are_nested_deep_the_beginning_is_shown_if_it_can_be_followed() -> None:
    objects: Any = {}
    lists: Any = []
    for _ in range(900):
        objects = {"a": objects}
    for _ in range(1500):
        lists = [lists]

    shown = arguments_of("tools/call", {"name": "echo", "arguments": objects})

    assert (shown[:12], len(shown), shown[-1]) == ('{"a": {"a": ', MOST_CHARACTERS, CUT)
    assert arguments_of("tools/call", {"name": "echo", "arguments": {"a": lists}}) == "[JSON that cannot be shown]"


# --- what it was answered


@pytest.mark.parametrize("wrap", [raw, dict], ids=["as bytes", "as an object"])
@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"content": [text("one"), text("two\nthree")]}, "one\ntwo\nthree"),
        ({"content": [{"type": "image", "mimeType": "image/png", "data": "A" * 4096}]}, "[image/png, 3 KB]"),
        ({"content": [{"type": "audio", "data": "A" * 40}]}, "[audio, 30 bytes]"),
        ({"content": [{"type": "resource", "resource": {"uri": "a", "text": "inside"}}]}, "inside"),
        ({"content": [{"type": "resource", "resource": {"uri": "a", "blob": "A" * 4_194_304}}]}, "[binary, 3.0 MB]"),
        ({"content": [{"type": "resource_link", "uri": "a"}]}, '{"type": "resource_link", "uri": "a"}'),
        ({"content": [], "structuredContent": {"sum": 3}}, '{"structuredContent": {"sum": 3}}'),
        ({"content": []}, ""),
        ({"contents": [{"uri": "a", "text": "read"}]}, "read"),
        ({"messages": [{"role": "user", "content": text("Hello!")}]}, "user: Hello!"),
        ({"tools": [{"name": "t"}]}, '{"tools": [{"name": "t"}]}'),
        ({"content": "odd"}, ""),
        ({"content": [5, None]}, "5\nnull"),
    ],
)
def test_a_result_is_shown_by_its_texts_and_the_rest_is_named(wrap: Any, result: Any, shown: str) -> None:
    assert outcome_of(wrap(result)) == (False, shown)


def test_members_that_are_still_bytes_are_read() -> None:
    result = {"content": [raw(text("theirs")), text("ours")], "isError": raw(True)}

    assert outcome_of(result) == (True, "theirs\nours")
    assert outcome_of({"tools": raw([{"name": "t"}])}) == (False, '{"tools": [{"name": "t"}]}')


@pytest.mark.parametrize(("said", "is_error"), [(True, True), (False, False), ("yes", False), (None, False)])
def test_an_error_is_what_says_so_of_itself(said: object, is_error: bool) -> None:
    assert outcome_of(raw({"content": [], "isError": said}))[0] is is_error


def test_a_long_result_is_cut_and_a_huge_one_is_named() -> None:
    _, long = outcome_of(raw({"content": [text("x" * 5000)]}))
    _, huge = outcome_of(raw({"content": [text("x" * MOST_BYTES)]}))

    assert (len(long), long[-1]) == (MOST_CHARACTERS, CUT)
    assert huge == "[8.0 MB, which is too much to show]"


@pytest.mark.parametrize(
    "result",
    [{"content": [1] * 200_000}, {"structuredContent": [{"id": number} for number in range(100_000)]}],
    ids=["items", "structured"],
)
def test_of_a_large_result_only_the_beginning_is_made_into_objects(result: Any) -> None:
    received = raw(result)
    tracemalloc.start()

    is_error, shown = outcome_of(received)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (is_error, len(shown), shown[-1]) == (False, MOST_CHARACTERS, CUT)
    assert most < 4 * len(memoryview(received)), "the objects of all of it take ten times the bytes"


@pytest.mark.parametrize("spaced", [b'{"content" : [ 1 ,\n\t"a" ] }', b'{"content":[1,"a"]}'])
def test_the_spaces_between_items_do_not_matter(spaced: bytes) -> None:
    assert outcome_of(msgspec.Raw(spaced)) == (False, '1\n"a"')


@pytest.mark.parametrize("odd", [b"[1]", b'"text"', b"{", b"{}x", b'{"content":[{]}', b'{"a":' * 5000, b""])
def test_what_is_no_result_is_said_to_be_none(odd: bytes) -> None:
    assert outcome_of(msgspec.Raw(odd)) == (False, "[JSON that cannot be shown]")
