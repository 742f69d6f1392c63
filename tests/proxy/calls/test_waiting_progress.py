from __future__ import annotations

import asyncio

from support.relays import ScriptedCall, tool_call
from support.virtual_time import run_virtually
from uno_devserver.proxy.calls.waiting_progress import QUEUE_STEP, Progress, report


def test_progress_grows_with_every_word() -> None:
    call = tool_call(_meta={"progressToken": 0})
    progress = Progress(call, QUEUE_STEP)

    progress.tell("One.")
    progress.tell("Two.")

    told = [params for _, params in call.heard if params]
    assert [(each["progressToken"], each["message"]) for each in told] == [(0, "One."), (0, "Two.")]
    assert 0 < told[0]["progress"] < told[1]["progress"]


def test_a_client_that_does_not_ask_for_progress_gets_none() -> None:
    for call in (tool_call(), tool_call(_meta={}), tool_call(_meta="odd")):
        Progress(call, 1.0).tell("One.")

        assert call.heard == []


def test_a_wait_is_told_again_and_again_until_it_is_over() -> None:
    async def wait(call: ScriptedCall) -> None:
        words = iter(("One.", "Two.", "Three.", "Four."))
        reporting = asyncio.ensure_future(report(call, lambda: next(words), 1.0))
        await asyncio.sleep(2.5)
        reporting.cancel()
        await asyncio.sleep(5)

    asking, other = tool_call(_meta={"progressToken": "t"}), tool_call()
    run_virtually(wait(asking))
    run_virtually(wait(other))

    assert [params["message"] for _, params in asking.heard if params] == ["One.", "Two.", "Three."]
    assert other.heard == []
