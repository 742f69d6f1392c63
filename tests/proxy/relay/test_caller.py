"""Who makes a request: what the upstream says to it, and how long it may say nothing."""

from __future__ import annotations

import asyncio

import pytest

from protocol.conversations import asynchronous, until
from support.relays import tool_call
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.proxy.relay.caller import Caller


@asynchronous
async def test_whatever_is_heard_gives_the_upstream_the_full_time_again() -> None:
    call = tool_call()
    caller = Caller(call, 100)

    async with caller.patience() as silence:
        first = silence.when()
        caller.notify("notifications/message", {"level": "debug"})
        then = silence.when()

    assert first is not None
    assert then is not None
    assert then > first
    assert call.heard == [("notifications/message", {"level": "debug"})]


@asynchronous
async def test_while_somebody_is_asked_nobody_is_silent() -> None:
    call = tool_call()
    call.reply = asyncio.get_running_loop().create_future()
    caller = Caller(call, 100)

    async with caller.patience() as silence:
        asking = [asyncio.ensure_future(caller.ask("elicitation/create", {}, name)) for name in ("a", "b")]
        await until(lambda: len(call.asked) == 2)
        meanwhile = silence.when()
        caller.notify("notifications/progress", {})
        still = silence.when()
        call.reply.set_result({"action": "accept"})
        assert await asyncio.gather(*asking) == [{"action": "accept"}] * 2
        afterwards = silence.when()

    assert (meanwhile, still) == (None, None)
    assert afterwards is not None


@asynchronous
async def test_a_refused_question_ends_the_time_to_think() -> None:
    call = tool_call()
    call.reply = asyncio.get_running_loop().create_future()
    call.reply.set_exception(RpcError(-1, "no"))
    caller = Caller(call, 100)

    async with caller.patience() as silence:
        with pytest.raises(RpcError):
            await caller.ask("elicitation/create", {})
        assert silence.when() is not None


@asynchronous
async def test_what_is_said_before_or_after_a_try_is_passed_on_too() -> None:
    call = tool_call()
    caller = Caller(call, 100)

    caller.notify("notifications/early", {})
    async with caller.patience():
        pass
    caller.notify("notifications/late", {})

    assert [method for method, _ in call.heard] == ["notifications/early", "notifications/late"]
