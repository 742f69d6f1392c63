"""Blocking work beside an event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

import pytest

from support.clocks import move_clock
from support.servers import Processes
from support.waiting import until
from uno_devserver.system.event_loop import (
    QueueFull,
    Tasks,
    WorkQueue,
    process_exit,
    run_in_thread,
    run_in_thread_to_end,
    shielded,
    wait_for_event,
)


async def test_tasks_run_in_the_context_of_their_owner_whoever_starts_them() -> None:
    server = ContextVar("server", default="")

    async def read() -> str:
        found = server.get()
        server.set("changed by a task")
        return found

    server.set("the owner's")
    tasks = Tasks()
    server.set("a caller's")

    assert [await tasks.start(read()) for _ in range(2)] == ["the owner's", "the owner's"]


async def test_the_result_comes_back_and_the_loop_goes_on_meanwhile() -> None:
    gate = threading.Event()
    working = asyncio.ensure_future(run_in_thread(lambda: gate.wait(10) and "done"))
    await asyncio.sleep(0)
    assert not working.done()

    gate.set()

    assert await working == "done"


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3)], ids=repr)
async def test_what_it_raises_is_raised_here(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises((ValueError, RuntimeError)) as raised:
        await run_in_thread(work)

    assert str(error) in str(raised.value)


async def test_whoever_gives_up_hears_nothing_of_it() -> None:
    gate, done = threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(10)
        done.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_in_thread(work)
    gate.set()

    assert await asyncio.to_thread(done.wait, 10)
    await asyncio.sleep(0.01)


def test_a_loop_that_has_ended_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, failed = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda _: failed.set())

    async def leave() -> None:
        asyncio.ensure_future(run_in_thread(lambda: gate.wait(10)))  # noqa: RUF006
        await asyncio.sleep(0)

    asyncio.run(leave())

    gate.set()

    assert not failed.wait(0.05)


async def test_an_event_ends_a_sleep_and_can_do_so_again() -> None:
    event = asyncio.Event()
    begun = time.monotonic()
    for _ in range(2):
        asyncio.get_running_loop().call_later(0.01, event.set)
        await wait_for_event(event, 10)

    await wait_for_event(event, 0.01)

    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("fails", [False, True])
async def test_work_that_must_not_be_left_behind_is_given_up_and_waited_for(fails: bool) -> None:
    ended = threading.Event()

    def work(wanted: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while wanted() and time.monotonic() < deadline:
            time.sleep(0.001)
        ended.set()
        if fails:
            raise ValueError("nobody is interested")

    waiting = asyncio.ensure_future(run_in_thread_to_end(work))
    await asyncio.sleep(0)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_work_that_is_not_given_up_says_what_it_has_done() -> None:
    assert await run_in_thread_to_end(lambda wanted: wanted())


POLL_SECONDS = 0.01
SECONDS = 20.0


@pytest.mark.parametrize("platform", ["linux", "darwin"])
async def test_it_returns_when_the_process_ends_and_not_before(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    process = processes.start()

    ends = asyncio.create_task(process_exit(process.pid, POLL_SECONDS))
    await asyncio.wait([ends], timeout=5 * POLL_SECONDS)
    assert not ends.done()
    move_clock(monkeypatch, hours=1)
    await asyncio.wait([ends], timeout=5 * POLL_SECONDS)
    assert not ends.done()
    process.kill()

    await asyncio.wait_for(ends, SECONDS)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
async def test_of_one_that_has_ended_it_returns_at_once(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    process = processes.start()
    process.kill()

    await asyncio.wait_for(process_exit(process.pid, SECONDS), SECONDS / 2)


async def test_another_process_with_the_id_of_one_that_has_ended_is_not_waited_for(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    process, found = processes.start(), ["it", "it", "another"]
    monkeypatch.setattr("uno_devserver.system.processes.identity", lambda pid: found.pop(0))

    await asyncio.wait_for(process_exit(process.pid, POLL_SECONDS), SECONDS)

    assert found == []


async def test_work_in_a_queue_runs_one_at_a_time_and_in_order() -> None:
    queue = WorkQueue(10, most_waiting=20, most_hanging=2)
    running: list[int] = []
    together: list[int] = []

    def work(number: int) -> int:
        running.append(number)
        together.append(len(running))
        running.remove(number)
        return number

    done = await asyncio.gather(*(queue.run(partial(work, number)) for number in range(20)))

    assert done == list(range(20))
    assert set(together) == {1}


async def test_more_work_than_a_queue_holds_is_refused_and_what_hangs_is_left_behind() -> None:
    queue = WorkQueue(0.05, most_waiting=1, most_hanging=2)
    gate = threading.Event()

    def hang() -> None:
        gate.wait(30)

    # when: two hang, and others wait for their turn
    outcomes = await asyncio.gather(*(queue.run(hang) for _ in range(3)), return_exceptions=True)
    later = await asyncio.gather(queue.run(hang), queue.run(lambda: None), return_exceptions=True)

    # then
    assert [type(outcome) for outcome in outcomes] == [TimeoutError, TimeoutError, QueueFull]
    assert [type(outcome) for outcome in later] == [QueueFull, QueueFull]

    # when: the disk is back
    gate.set()
    await until(lambda: queue._threads == 0)

    # then
    assert await queue.run(lambda: "read") == "read"


# --- work that goes on without its caller


async def test_shielded_work_goes_on_without_its_caller_and_its_error_is_told_to_nobody() -> None:
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()
        raise ValueError("bad")

    working = asyncio.ensure_future(work())
    caller = asyncio.ensure_future(shielded(working))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()

    gate.set()

    await asyncio.wait([working])
    del working
    gc.collect()
    assert told == []


async def test_shielded_work_answers_its_caller() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await shielded(work()) == "done"
    with pytest.raises(ValueError, match="bad"):
        await shielded(run_in_thread(lambda: int("bad")))
