"""Upstreams that have to go."""

from __future__ import annotations

import asyncio

from protocol.conversations import asynchronous, until
from support.upstreams import Lists, ScriptedRunning
from uno_devserver.proxy.upstream.keeper import Departures


class Leaving(ScriptedRunning):
    """Notes how it is stopped, and may take its time."""

    def __init__(self) -> None:
        super().__init__(Lists())
        self.patience: list[bool] = []
        self.takes = asyncio.Event()
        self.takes.set()

    async def stop(self, *, patient: bool = False) -> None:
        self.patience.append(patient)
        await self.takes.wait()


@asynchronous
async def test_one_that_still_has_to_answer_is_stopped_when_nobody_waits_any_more() -> None:
    departures, running, unused = Departures(5.0), Leaving(), asyncio.Event()
    departures.see_off(running, unused.wait)
    await departures.done()
    assert running.patience == [], "a start does not wait for it"

    unused.set()

    await until(lambda: running.patience == [True])


@asynchronous
async def test_one_that_ends_by_itself_while_it_leaves_is_cleaned_up() -> None:
    departures, running = Departures(5.0), Leaving()
    departures.see_off(running, asyncio.Event().wait)

    running.die()

    await until(lambda: running.patience == [True])


@asynchronous
async def test_at_the_end_all_go_at_once_and_are_waited_for() -> None:
    departures, leaving, stopped = Departures(5.0), Leaving(), Leaving()
    stopped.takes.clear()
    departures.see_off(leaving, asyncio.Event().wait)
    departures.stop(stopped)

    closing = asyncio.ensure_future(departures.close())
    await until(lambda: leaving.patience == [False] and stopped.patience == [False])
    assert not closing.done()
    stopped.takes.set()

    await closing


@asynchronous
async def test_one_that_hangs_is_not_waited_for_longer_than_its_bound() -> None:
    departures, running = Departures(0.02), Leaving()
    running.takes.clear()

    departures.stop(running, patient=True)
    await departures.done()

    assert running.patience == [True]
