"""Requests across crashes, silence and the absence of an upstream: one outcome for each, and a true one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from protocol.conversations import timers
from support.relays import (
    CONNECTED,
    DEGRADED,
    QUICK,
    RECONNECTING,
    Scene,
    ScriptedCall,
    said,
    state_of,
    text_of,
    tool_call,
)
from support.waiting import until
from uno_devserver.protocol.client.connection import AnswerTooLong, ConnectionLost, UnusableServer
from uno_devserver.protocol.jsonrpc import STOPPED, RpcError
from uno_devserver.proxy.calls.failure_answers import ANSWER_TOO_LONG, OUTCOME_UNKNOWN, TIMED_OUT, UNAVAILABLE
from uno_devserver.proxy.calls.forwarder import QUEUE_STEP, Caller, ForwardedRequest, Progress, report
from uno_devserver.proxy.state import ConnectionState
from uno_devserver.proxy.upstream.base import Ending

READ_ONLY = {"name": "look", "annotations": {"readOnlyHint": True}}
IDEMPOTENT = {"name": "set", "annotations": {"idempotentHint": True, "readOnlyHint": False}}


def _scene(**limits: Any) -> Scene:
    scene = Scene(limits=QUICK.replace(**limits))
    scene.link.tools = {"look": READ_ONLY, "set": IDEMPOTENT, "plain": {"name": "plain"}}
    return scene


async def _text(scene: Scene, name: str = "echo") -> str:
    """The answer to a tool call."""
    return text_of(await scene.service.answer(tool_call(name)))


async def test_a_call_whose_upstream_ended_says_how_and_what_it_printed_last() -> None:
    scene = _scene()
    printed = tuple(f"line {number} {100 * 'x'}" for number in range(29))
    scene.link.endings[1] = Ending("it ended with exit code 3", 3, (*printed, "Error: boom"))

    answer = scene.start(tool_call("plain"))
    await scene.next_asked()
    scene.link.crash()
    text = said(await answer)["content"][0]["text"]

    assert "was lost while it ran 'plain': it ended with exit code 3. Its last lines:\nline 0 " in text
    assert "\nError: boom\n\nThe outcome is unknown" in text
    assert len(text) < 3000


async def test_a_call_whose_upstream_ended_says_that_its_outcome_is_unknown_and_is_not_repeated() -> None:
    scene = _scene()

    answer = scene.start(tool_call("plain"))
    await scene.next_asked()
    scene.link.crash()
    result = said(await answer)
    scene.link.connect_anew()

    assert result["isError"] is True
    assert "was lost while it ran 'plain'" in result["content"][0]["text"]
    assert "outcome is unknown" in result["content"][0]["text"]
    assert "has not been run again" in result["content"][0]["text"]
    assert len(scene.link.asked) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "look"}),
        ("tools/call", {"name": "set"}),
        ("resources/read", {"uri": "file:///a"}),
        ("prompts/get", {"name": "p"}),
        ("completion/complete", {}),
    ],
)
async def test_what_may_be_done_twice_is_done_again_by_the_next_upstream(method: str, params: dict[str, Any]) -> None:
    scene = _scene()

    answer = scene.start(ScriptedCall(method, params))
    await scene.next_asked()
    scene.link.crash()
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    again = await scene.next_asked()
    again.answer(b'{"again":true}')

    assert said(await answer) == {"again": True}
    assert again.connection.generation == 2
    assert [(asked.method, asked.params) for asked in scene.link.asked] == [(method, params)] * 2


@pytest.mark.parametrize(("tool", "times"), [("plain", 1), ("look", 3)])
async def test_what_a_host_says_when_it_stops_is_passed_on_where_the_call_is_not_repeated(
    tool: str, times: int
) -> None:
    scene = _scene(repetitions=2)

    answer = scene.start(tool_call(tool))
    for _ in range(times):
        (await scene.next_asked()).fail(STOPPED, "Its outcome is unknown.")
    with pytest.raises(RpcError) as failed:
        await answer

    assert (failed.value.code, failed.value.message) == (STOPPED, "Its outcome is unknown.")
    assert len(scene.link.asked) == times


@pytest.mark.parametrize(
    "annotations",
    [None, [], {}, {"readOnlyHint": "true"}, {"readOnlyHint": False, "idempotentHint": 1}, {"destructiveHint": False}],
)
async def test_only_a_clear_hint_lets_a_call_be_repeated(annotations: object) -> None:
    scene = _scene()
    scene.link.tools = {"odd": {"name": "odd", "annotations": annotations}}

    assert not scene.service.forwarding.may_repeat(ForwardedRequest("tools/call", {"name": "odd"}))


async def test_a_request_that_is_unknown_here_is_not_repeated_either_and_fails_with_a_code() -> None:
    scene = _scene()

    answer = scene.start(ScriptedCall("somebody/else"))
    await scene.next_asked()
    scene.link.crash()
    with pytest.raises(RpcError) as failed:
        await answer

    assert failed.value.code == OUTCOME_UNKNOWN
    assert "'somebody/else'" in failed.value.message
    assert "before you repeat it" in failed.value.data["remedy"]


async def test_a_call_that_never_reached_the_upstream_goes_to_the_next_whatever_it_does() -> None:
    scene = _scene()

    answer = scene.start(tool_call("plain"))
    await scene.next_asked()
    scene.link.crash(sent=False)
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    (await scene.next_asked()).answer(b'{"done":1}')

    assert said(await answer) == {"done": 1}


async def test_a_read_only_call_that_ends_every_upstream_is_given_up() -> None:
    scene = _scene()

    answer = scene.start(tool_call("look"))
    for _ in range(3):
        await scene.next_asked()
        scene.link.crash()
        scene.link.connect_anew()

    assert "lost each of the 3 times" in text_of(await answer)
    assert len(scene.link.asked) == 3


async def test_a_lost_connection_is_replaced_while_the_upstream_stays() -> None:
    scene = _scene()

    answer = scene.start(tool_call("plain"))
    (await scene.next_asked()).lose(sent=False)
    (await scene.next_asked()).answer(b'{"done":1}')

    assert said(await answer) == {"done": 1}
    assert scene.link.losses == [1]
    assert [connection.generation for connection in scene.link.connections] == [1, 1]
    await until(lambda: scene.link.connections[0].closed)


async def test_others_who_use_a_connection_keep_it_when_one_request_loses_it() -> None:
    scene = _scene()
    session = tool_call().session

    slow = scene.start(tool_call("plain", session))
    kept = await scene.next_asked()
    unlucky = scene.start(tool_call("plain", session))
    await until(lambda: len(scene.link.asked) == 2)
    scene.link.asked[1].lose(sent=False)
    await until(lambda: len(scene.link.asked) == 3)
    scene.link.asked[2].answer()
    await unlucky
    assert not kept.connection.closed
    kept.answer(b'{"kept":1}')

    assert said(await slow) == {"kept": 1}
    await until(lambda: kept.connection.closed)


async def test_nobody_but_the_call_knows_yet_that_the_upstream_is_gone() -> None:
    scene = _scene()

    answer = scene.start(tool_call("plain"))
    asked = await scene.next_asked()
    scene.link.unreachable = ConnectionLost("refused", sent=False)
    asked.lose(sent=False)
    await until(lambda: len(scene.link.losses) > 3)  # it tries again and again, and says so each time
    scene.link.be(RECONNECTING)
    scene.link.unreachable = None
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    (await scene.next_asked()).answer(b'{"done":1}')

    assert said(await answer) == {"done": 1}


@pytest.mark.parametrize("greeted", [False, True])
async def test_an_upstream_that_cannot_be_reached_is_given_up_after_a_while(greeted: bool) -> None:
    scene = _scene(again_seconds=0.02)
    scene.link.unreachable = ConnectionLost("refused", sent=greeted)

    result = await _text(scene, "plain")

    assert "could not be reached for 0.02 s" in result
    assert "has not been run" in result


@pytest.mark.parametrize(
    ("tool", "sent", "state", "words"),
    [
        ("plain", False, RECONNECTING, "has gone, and is not back yet. This request has not been run."),
        ("look", True, DEGRADED, "was lost while it ran 'look'"),
    ],
)
async def test_where_no_other_upstream_comes_a_call_is_told_whether_it_ran(
    tool: str, sent: bool, state: ConnectionState, words: str
) -> None:
    scene = _scene(again_seconds=0.02)

    answer = scene.start(tool_call(tool))
    await scene.next_asked()
    scene.link.crash(state, sent=sent)

    assert words in text_of(await answer)


async def test_each_run_of_a_call_gives_it_the_full_time_to_wait_for_another_upstream() -> None:
    scene = _scene()

    answer = scene.start(tool_call("look"))
    for _ in range(2):
        await scene.next_asked()
        scene.link.crash()
        waits = len(scene.link.waited)
        await until(lambda: len(scene.link.waited) > waits)  # noqa: B023
        await asyncio.wait([answer], timeout=0.1)
        scene.link.connect_anew()
    (await scene.next_asked()).answer(b'{"third":1}')

    assert said(await answer) == {"third": 1}
    first, second = scene.link.waited
    assert QUICK.again_seconds - 0.05 < first <= QUICK.again_seconds
    assert QUICK.again_seconds - 0.05 < second


async def test_a_refused_connection_is_told_with_its_reason() -> None:
    scene = _scene()
    scene.link.unreachable = UnusableServer("it speaks HTTP 0.9.")

    assert "does not accept a connection: it speaks HTTP 0.9." in text_of(
        await scene.service.answer(tool_call("plain"))
    )


async def test_a_call_that_has_run_is_not_said_not_to_have_when_the_next_upstream_refuses() -> None:
    scene = _scene()

    answer = scene.start(tool_call("look"))
    await scene.next_asked()
    scene.link.unreachable = UnusableServer("no")
    scene.link.crash()
    scene.link.connect_anew()

    assert "was lost while it ran 'look'" in text_of(await answer)


@pytest.mark.parametrize("method", ["tools/call", "resources/read"])
async def test_an_answer_that_is_too_long_is_told_and_not_asked_for_again(method: str) -> None:
    scene = _scene()

    answer = scene.start(tool_call("look") if method == "tools/call" else ScriptedCall(method, {"uri": "a:b"}))
    (await scene.next_asked()).outcome.set_exception(AnswerTooLong())

    if method == "tools/call":
        assert "has run 'look' and has answered, but the answer is longer than 64 MiB" in text_of(await answer)
    else:
        with pytest.raises(RpcError, match=r"'resources/read' .* longer than 64 MiB") as failed:
            await answer
        assert failed.value.code == ANSWER_TOO_LONG
    assert len(scene.link.asked) == 1


async def test_a_call_that_hangs_is_cancelled_and_told_so() -> None:
    scene = _scene(silence_seconds=0.3)

    answer = scene.start(tool_call("plain"))
    asked = await scene.next_asked()
    result = said(await answer)

    assert asked.cancelled
    assert result["isError"] is True
    assert "Nothing has been heard from 'plain' for 0.3 s" in result["content"][0]["text"]
    assert "outcome is unknown" in result["content"][0]["text"]
    with pytest.raises(RpcError) as failed:
        await scene.service.answer(ScriptedCall("resources/read", {"uri": "file:///a"}))
    assert failed.value.code == TIMED_OUT


async def test_a_timeout_inside_the_connection_is_not_taken_for_silence() -> None:
    scene = _scene()

    answer = scene.start(tool_call("plain"))
    (await scene.next_asked()).outcome.set_exception(TimeoutError("of somebody else"))

    with pytest.raises(TimeoutError, match="somebody else"):
        await answer


async def test_calls_leave_no_timer() -> None:
    scene = _scene()
    before = timers()

    for _ in range(3):
        answer = scene.start(tool_call("plain"))
        (await scene.next_asked()).answer()
        await answer

    assert timers() == before


STARTING = "is starting, and is not ready yet"


@pytest.mark.parametrize(
    ("state", "words", "waits"),
    [
        (ConnectionState.INITIALIZING, STARTING, True),
        (ConnectionState.DISCOVERING, STARTING, True),
        (ConnectionState.LAUNCHING, STARTING, True),
        (ConnectionState.CONNECTING, STARTING, True),
        (ConnectionState.SHUTDOWN, "uno-devserver is ending", False),
        (DEGRADED, "does not work. It could not be started.", False),
    ],
)
async def test_a_call_without_an_upstream_waits_for_a_first_start_and_is_answered_with_the_reason(
    state: ConnectionState, words: str, waits: bool
) -> None:
    scene = Scene(state)

    result = said(await scene.service.answer(tool_call()))
    with pytest.raises(RpcError) as failed:
        await scene.service.answer(ScriptedCall("prompts/get", {"name": "p"}))

    assert result["isError"] is True
    assert words in result["content"][0]["text"]
    assert "This request has not been run." in result["content"][0]["text"]
    assert failed.value.code == UNAVAILABLE
    assert failed.value.message == result["content"][0]["text"]
    assert failed.value.data["connectionState"] == state.value
    assert failed.value.data["remedy"]
    assert scene.link.waited == ([QUICK.grace_seconds] * 2 if waits else [])
    assert scene.link.attempts_wanted == (2 if state is DEGRADED else 0)


async def test_a_call_is_not_held_while_the_workspace_is_unknown() -> None:
    scene = Scene(ConnectionState.INITIALIZING)
    scene.link.fallback = True

    assert "Call uno_app_initialize" in await _text(scene)
    assert scene.link.waited == []


AFTER_A_CRASH = pytest.mark.parametrize(
    "state",
    [RECONNECTING, ConnectionState.DISCOVERING, ConnectionState.LAUNCHING, ConnectionState.CONNECTING],
)


@pytest.mark.parametrize("first", [True, False], ids=["first start", "after a crash"])
@AFTER_A_CRASH
async def test_a_call_before_a_start_is_over_is_run_by_the_new_upstream(state: ConnectionState, first: bool) -> None:
    scene = Scene(state if first else CONNECTED, limits=QUICK.replace(grace_seconds=10.0))
    scene.link.be(state)

    answer = scene.start(tool_call("plain"))
    await until(lambda: bool(scene.link.waited))
    scene.link.connect_anew()
    (await scene.next_asked()).answer({"content": []})

    assert said(await answer) == {"content": []}
    assert scene.link.waited == [10.0]


@AFTER_A_CRASH
async def test_but_not_for_long(state: ConnectionState) -> None:
    scene = Scene()
    scene.link.be(state)

    text = await _text(scene)

    assert "has gone, and is not back yet. This request has not been run." in text
    assert scene.link.waited == [QUICK.grace_seconds]


async def test_whoever_is_told_to_wait_is_told_so_once() -> None:
    waiting = {"severity": "Warning", "message": "It is coming.", "remediation": "Wait some seconds, then try again."}
    known = Scene(ConnectionState.LAUNCHING, state=state_of(health={"status": "Degraded", "issues": [waiting]}))
    unknown = Scene(ConnectionState.LAUNCHING, state=state_of(health={"status": "Degraded", "issues": []}))

    for scene in (known, unknown):
        assert (await _text(scene)).lower().count("try again") == 1


async def test_a_call_does_not_tell_of_a_reason_that_the_user_has_settled_by_now() -> None:
    scene = Scene(DEGRADED)
    scene.link.settled = ConnectionState.DISCOVERING
    assert "is starting, and is not ready yet" in await _text(scene)

    scene = Scene()
    scene.link.be(DEGRADED)
    scene.link.settled = ConnectionState.DISCOVERING
    assert "has gone, and is not back yet" in await _text(scene)
    assert scene.link.waited == [QUICK.grace_seconds], "it is back soon"


async def test_a_call_that_may_wait_is_held_until_there_is_an_upstream_and_reports_that() -> None:
    scene = Scene(ConnectionState.LAUNCHING)
    scene.service.forwarding.waits = True
    scene.link.answers = lambda asked: asked.answer(b'{"done":1}')
    call, other = tool_call(_meta={"progressToken": "tok"}), tool_call()

    answers = [scene.start(each) for each in (call, other)]
    await until(lambda: len(call.heard) >= 2)
    scene.link.be(ConnectionState.CONNECTING)
    seen = len(call.heard)
    await until(lambda: len(call.heard) > seen)
    scene.link.connect_anew()

    assert [said(await answer) for answer in answers] == [{"done": 1}] * 2
    assert other.heard == [], "it did not ask for progress"
    reports = [params for method, params in call.heard if method == "notifications/progress" and params]
    assert len(reports) == len(call.heard)
    assert {report["progressToken"] for report in reports} == {"tok"}
    assert [report["progress"] for report in reports] == sorted({report["progress"] for report in reports})
    assert reports[-1]["progress"] < 1
    assert "Launching" in reports[0]["message"]
    assert "Connecting" in reports[seen]["message"]


async def test_a_call_is_held_for_a_while_only() -> None:
    scene = Scene(ConnectionState.LAUNCHING, limits=QUICK.replace(hold_seconds=0.01))
    scene.service.forwarding.waits = True

    assert "is starting, and is not ready yet" in await _text(scene)


async def test_a_held_call_that_is_cancelled_is_over() -> None:
    scene = Scene(ConnectionState.LAUNCHING)
    scene.service.forwarding.waits = True
    call = tool_call(_meta={"progressToken": 1})

    answer = scene.start(call)
    await until(lambda: bool(call.heard))
    answer.cancel()
    await asyncio.wait([answer])
    scene.link.connect_anew()
    seen = len(call.heard)
    await asyncio.wait([asyncio.ensure_future(scene.link.until_connected(0))])

    assert answer.cancelled()
    assert scene.link.asked == []
    assert len(call.heard) == seen


async def test_a_held_call_asks_for_a_new_attempt_when_degraded() -> None:
    scene = Scene(DEGRADED)
    scene.service.forwarding.waits = True

    result = await _text(scene)

    assert "does not work" in result
    assert scene.link.attempts_wanted == 1
    assert scene.link.state is not CONNECTED


# --- the one that makes a request, and how long the upstream may be silent

SECONDS = 0.2


class Trial:
    """A caller's try that lasts until it is given up, or told to end."""

    def __init__(self, call: ScriptedCall, seconds: float = SECONDS) -> None:
        self.caller = Caller(call, seconds)
        self.loop = asyncio.get_running_loop()
        self.seconds = seconds
        self.begun = self.loop.time()
        self.lasts = asyncio.Event()
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> float:
        """How long it lasted; -1: it was not given up."""
        try:
            async with asyncio.timeout(self.seconds) as self.caller.silence:
                await self.lasts.wait()
        except TimeoutError:
            return self.loop.time() - self.begun
        finally:
            self.caller.silence = None
        return -1


async def test_a_try_of_which_nothing_is_heard_is_given_up_and_not_much_later() -> None:
    trial = Trial(tool_call())

    lasted = await trial.task

    assert SECONDS <= lasted < SECONDS + 1  # a busy machine is late, but never early
    task = trial.task
    assert task.cancelling() == 0


@pytest.mark.virtual_time
async def test_whatever_is_heard_gives_the_upstream_the_full_time_again() -> None:
    call = tool_call()
    trial = Trial(call)
    await asyncio.sleep(SECONDS / 2)

    trial.caller.notify("notifications/message", {"level": "debug"})

    assert await trial.task >= SECONDS * 1.5
    assert call.heard == [("notifications/message", {"level": "debug"})]


@pytest.mark.virtual_time
async def test_while_somebody_is_asked_nobody_is_silent() -> None:
    call = tool_call()
    call.reply = asyncio.get_running_loop().create_future()
    trial = Trial(call, 0.02)
    asking = [asyncio.ensure_future(trial.caller.ask("elicitation/create", {}, name)) for name in ("a", "b")]
    await until(lambda: len(call.asked) == 2)
    trial.caller.notify("notifications/progress", {})

    await asyncio.sleep(0.1)  # five times as long as it may be silent

    assert not trial.task.done()
    call.reply.set_result({"action": "accept"})
    assert await asyncio.gather(*asking) == [{"action": "accept"}] * 2
    assert await trial.task > 0.1


@pytest.mark.virtual_time
async def test_a_refused_question_ends_the_time_to_think() -> None:
    call = tool_call()
    call.reply = asyncio.get_running_loop().create_future()
    call.reply.set_exception(RpcError(-1, "no"))
    trial = Trial(call, 0.02)
    await asyncio.sleep(0)

    with pytest.raises(RpcError):
        await trial.caller.ask("elicitation/create", {})

    assert await trial.task > 0


async def test_a_cancellation_of_somebody_else_is_not_taken_for_silence() -> None:
    trial = Trial(tool_call())
    await asyncio.sleep(0)

    trial.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await trial.task


async def test_a_cancellation_in_the_moment_of_silence_counts() -> None:
    trial = Trial(tool_call(), 0.01)
    await asyncio.sleep(0)
    time.sleep(0.02)
    trial.loop.call_later(0, trial.task.cancel)  # behind the timer of the silence, in the same turn

    with pytest.raises(asyncio.CancelledError):
        await trial.task


async def test_a_try_that_ends_in_time_is_looked_at_no_more() -> None:
    trial = Trial(tool_call(), 0.01)
    await asyncio.sleep(0)
    trial.lasts.set()

    assert await trial.task == -1
    again = Trial(tool_call(), 0.01)  # nor does it leave a timer that would not start again
    assert await again.task > 0


async def test_what_is_said_before_or_after_a_try_is_passed_on_too() -> None:
    call = tool_call()
    caller = Caller(call, SECONDS)

    caller.notify("notifications/early", {})
    trial = Trial(call)
    trial.lasts.set()
    await trial.task
    caller.notify("notifications/late", {})

    assert [method for method, _ in call.heard] == ["notifications/early", "notifications/late"]


# --- progress of a call that waits


def test_progress_grows_with_every_word() -> None:
    call = tool_call(_meta={"progressToken": 0})
    progress = Progress(call, QUEUE_STEP)

    progress.send("One.")
    progress.send("Two.")

    told = [params for _, params in call.heard if params]
    assert [(each["progressToken"], each["message"]) for each in told] == [(0, "One."), (0, "Two.")]
    assert 0 < told[0]["progress"] < told[1]["progress"]


def test_a_client_that_does_not_ask_for_progress_gets_none() -> None:
    for call in (tool_call(), tool_call(_meta={}), tool_call(_meta="odd")):
        Progress(call, 1.0).send("One.")

        assert call.heard == []


@pytest.mark.virtual_time
async def test_a_wait_is_told_again_and_again_until_it_is_over() -> None:
    asking, other = tool_call(_meta={"progressToken": "t"}), tool_call()
    for call in (asking, other):
        words = iter(("One.", "Two.", "Three.", "Four."))
        reporting = asyncio.ensure_future(report(call, lambda: next(words), 1.0))  # noqa: B023
        await asyncio.sleep(2.5)
        reporting.cancel()
        await asyncio.sleep(5)

    assert [params["message"] for _, params in asking.heard if params] == ["One.", "Two.", "Three."]
    assert other.heard == []
