"""The threads of plain functions."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from support.addins import until
from uno_devserver.host.addins import invocation as workers_module
from uno_devserver.host.addins.invocation import Busy, CallTarget, WorkerPool, invoke

WORK = CallTarget("workers", "tool", "test")
VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_the_pool_grows_to_its_limit_and_no_further() -> None:
    workers = WorkerPool(threads=2, waiting=10)
    both, release = threading.Barrier(3), threading.Event()
    names = set()

    def work() -> None:
        names.add(threading.current_thread().name)
        both.wait(30)
        release.wait(30)

    def later() -> str:
        return threading.current_thread().name

    calls = [asyncio.create_task(workers.run(work)) for _ in range(2)]
    await asyncio.to_thread(both.wait, 30)
    waiting = asyncio.create_task(workers.run(later))
    await asyncio.sleep(0)
    assert not waiting.done()
    release.set()
    await asyncio.gather(*calls)

    assert await waiting in names
    assert len(names) == 2


async def test_an_idle_thread_is_used_again() -> None:
    workers = WorkerPool(threads=4)

    names = {await workers.run(lambda: threading.current_thread().name) for _ in range(20)}

    assert len(names) == 1


async def test_a_full_queue_is_a_clear_refusal() -> None:
    workers = WorkerPool(threads=1, waiting=1)
    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        release.wait(30)

    running = asyncio.create_task(workers.run(hold))
    await until(begun.is_set)
    waiting = asyncio.create_task(workers.run(lambda: None))
    await asyncio.sleep(0)

    with pytest.raises(Busy, match="the Host is busy: 2 calls of add-in functions are unfinished"):
        await workers.run(lambda: None)
    release.set()
    await asyncio.gather(running, waiting)


async def test_a_call_that_is_given_up_before_it_has_a_thread_never_begins() -> None:
    workers = WorkerPool(threads=1)
    begun, release = threading.Event(), threading.Event()
    done: list[str] = []

    def hold() -> None:
        begun.set()
        release.wait(30)

    running = asyncio.create_task(workers.run(hold))
    await until(begun.is_set)
    given_up = asyncio.create_task(workers.run(lambda: done.append("given up")))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    release.set()
    await running
    await workers.run(lambda: done.append("next"))

    assert done == ["next"]


async def test_calls_that_were_given_up_leave_their_threads_to_others_up_to_a_limit() -> None:
    workers = WorkerPool(threads=2, most=4)
    held, release = [], threading.Event()

    def hang() -> None:
        held.append(1)
        release.wait(30)

    async def hang_and_give_up(count: int) -> None:
        calls = [asyncio.create_task(workers.run(hang)) for _ in range(count)]
        wanted = len(held) + count
        await until(lambda: len(held) == wanted)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)

    await hang_and_give_up(2)
    assert await workers.run(lambda: "still here") == "still here"
    await hang_and_give_up(2)
    beyond = asyncio.create_task(workers.run(lambda: "at last"))
    done, _ = await asyncio.wait([beyond], timeout=0.1)
    assert not done
    release.set()

    assert await beyond == "at last"
    await until(lambda: _threads_of(workers) == 2)


async def test_a_call_that_waits_gets_the_place_of_one_that_is_given_up() -> None:
    workers = WorkerPool(threads=1)
    begun, release = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        release.wait(30)

    hanging = asyncio.create_task(workers.run(hang))
    await until(begun.is_set)
    waiting = asyncio.create_task(workers.run(lambda: "here"))
    await asyncio.sleep(0)
    hanging.cancel()

    assert await asyncio.wait_for(waiting, 30) == "here"
    release.set()


async def test_a_call_that_was_given_up_while_it_waited_takes_no_room() -> None:
    workers = WorkerPool(threads=1, waiting=1)
    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        release.wait(30)

    running = asyncio.create_task(workers.run(hold))
    await until(begun.is_set)
    for _ in range(3):
        given_up = asyncio.create_task(workers.run(lambda: None))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
    last = asyncio.create_task(workers.run(lambda: "in"))
    await asyncio.sleep(0)
    release.set()

    assert await last == "in"
    await running


async def test_threads_that_are_busy_for_long_are_a_problem_that_names_what_holds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = WorkerPool(threads=2)
    both, release = threading.Barrier(3), threading.Event()

    def hang() -> None:
        both.wait(30)
        release.wait(30)

    calls = [asyncio.create_task(workers.run(hang, "hang")) for _ in range(2)]
    await asyncio.to_thread(both.wait, 30)
    calls.append(asyncio.create_task(workers.run(lambda: None, "list")))
    await asyncio.sleep(0)
    young = workers.congestion()
    monkeypatch.setattr(workers_module, "BUSY_SECONDS", 0.0)
    old = workers.congestion()
    release.set()
    await asyncio.gather(*calls)

    assert young is None
    assert old == "2 of 2 worker threads are busy: hang x2; calls that wait: 1"
    assert workers.congestion() is None


def test_a_thread_whose_caller_is_gone_with_its_loop_works_for_the_next() -> None:
    workers = WorkerPool(threads=1)
    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        release.wait(30)

    async def leave() -> None:
        call = asyncio.create_task(workers.run(hold))
        await until(begun.is_set)
        call.cancel()

    asyncio.run(leave())
    release.set()

    assert asyncio.run(asyncio.wait_for(workers.run(lambda: "here"), 30)) == "here"


async def test_context_variables_reach_the_function() -> None:
    VARIABLE.set("here")

    assert await invoke(WORK, VARIABLE.get) == "here"


async def test_arguments_may_have_any_name() -> None:
    assert await invoke(WORK, lambda **given: sorted(given), function=1, work=2, run=3) == ["function", "run", "work"]


async def test_a_plain_function_may_return_a_coroutine() -> None:
    async def inner() -> str:
        return "inner"

    assert await invoke(WORK, lambda: inner()) == "inner"


async def test_an_object_with_an_async_call_runs_on_the_loop() -> None:
    class Callable:
        async def __call__(self) -> str:
            return threading.current_thread().name

    assert await invoke(WORK, Callable()) == threading.current_thread().name


def test_a_function_that_never_returns_does_not_keep_the_process() -> None:
    program = """
import asyncio, threading
from uno_devserver.host.addins.invocation import CallTarget, invoke

async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    call = asyncio.create_task(invoke(CallTarget("a", "tool", "hang"), hang))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    call.cancel()

asyncio.run(main())
print("gone")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (result.returncode, result.stdout, result.stderr) == (0, "gone\n", "")


def _threads_of(workers: WorkerPool) -> int:
    return workers._threads
