"""The time of one upstream; what it tells is held by the tests of its keepers."""

from __future__ import annotations

import asyncio
import gc
import warnings

from protocol.conversations import asynchronous
from support.upstreams import Lists, ScriptedRunning
from uno_devserver.protocol.parties import ClientInfo
from uno_devserver.proxy.upstream.keeper import NOBODY, Event, Tenure


@asynchronous
async def test_one_that_is_over_before_anything_was_done_leaves_no_work_that_nobody_awaits() -> None:
    told: list[Event] = []

    async def client() -> ClientInfo:
        return NOBODY

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tenure = Tenure(
            ScriptedRunning(Lists()),
            lambda _, event: told.append(event),
            client=client,
            shared_peer=None,
            end_seconds=0.01,
        )
        tenure.watch()
        tenure.converse()
        tenure.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()

    assert [str(each.message) for each in seen] == []
    assert told == []
