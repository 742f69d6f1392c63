"""Who makes a request: what the upstream says to it, and how long it may say nothing."""

from __future__ import annotations

import asyncio

import pytest

from protocol.conversations import asynchronous, until
from support.relays import ScriptedCall, tool_call
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.calls.conversations import LOOKS, Caller, SilenceWatch

SECONDS = 0.2


class Trial:
    """A caller's try that lasts until it is given up, or told to end."""

    def __init__(self, call: ScriptedCall, seconds: float = SECONDS) -> None:
        self.caller = Caller(call)
        self.loop = asyncio.get_running_loop()
        self.silence = SilenceWatch(seconds)
        self.begun = self.loop.time()
        self.lasts = asyncio.Event()
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> float:
        """How long it lasted; -1: it was not given up."""
        self.silence.watch(self.caller)
        try:
            await self.lasts.wait()
        except asyncio.CancelledError:
            if not self.caller.gave_up():
                raise
            return self.loop.time() - self.begun
        finally:
            self.silence.forget(self.caller)
        return -1


@asynchronous
async def test_a_try_of_which_nothing_is_heard_is_given_up_and_not_much_later() -> None:
    trial = Trial(tool_call())

    lasted = await trial.task

    assert SECONDS <= lasted < SECONDS * (1 + 2 / LOOKS) + 1  # a busy machine is late, but never early
    task = trial.task
    assert task.cancelling() == 0


@asynchronous
async def test_whatever_is_heard_gives_the_upstream_the_full_time_again() -> None:
    call = tool_call()
    trial = Trial(call)
    await asyncio.sleep(SECONDS / 2)

    trial.caller.notify("notifications/message", {"level": "debug"})

    assert await trial.task >= SECONDS * 1.5
    assert call.heard == [("notifications/message", {"level": "debug"})]


@asynchronous
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


@asynchronous
async def test_a_refused_question_ends_the_time_to_think() -> None:
    call = tool_call()
    call.reply = asyncio.get_running_loop().create_future()
    call.reply.set_exception(RpcError(-1, "no"))
    trial = Trial(call, 0.02)
    await asyncio.sleep(0)

    with pytest.raises(RpcError):
        await trial.caller.ask("elicitation/create", {})

    assert await trial.task > 0


@asynchronous
async def test_a_cancellation_of_somebody_else_is_not_taken_for_silence() -> None:
    trial = Trial(tool_call())
    await asyncio.sleep(0)

    trial.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await trial.task


@asynchronous
async def test_a_cancellation_in_the_moment_of_silence_counts() -> None:
    trial = Trial(tool_call(), 0.01)
    await asyncio.sleep(0)
    trial.caller.look(trial.loop.time() + 1)

    trial.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await trial.task


@asynchronous
async def test_a_try_that_ends_in_time_is_looked_at_no_more() -> None:
    trial = Trial(tool_call(), 0.01)
    await asyncio.sleep(0)
    trial.lasts.set()

    assert await trial.task == -1
    again = Trial(tool_call(), 0.01)  # nor does it leave a timer that would not start again
    assert await again.task > 0


@asynchronous
async def test_what_is_said_before_or_after_a_try_is_passed_on_too() -> None:
    call = tool_call()
    caller = Caller(call)

    caller.notify("notifications/early", {})
    trial = Trial(call)
    trial.lasts.set()
    await trial.task
    caller.notify("notifications/late", {})

    assert [method for method, _ in call.heard] == ["notifications/early", "notifications/late"]
