"""The threads of plain functions."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from support.addins import asynchronous, until
from uno_devserver.host.addins.workers import Busy, Workers, invoke

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@asynchronous
async def test_the_pool_grows_to_its_limit_and_no_further() -> None:
    workers = Workers(threads=2, waiting=10)
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


@asynchronous
async def test_an_idle_thread_is_used_again() -> None:
    workers = Workers(threads=4)

    names = {await workers.run(lambda: threading.current_thread().name) for _ in range(20)}

    assert len(names) == 1


@asynchronous
async def test_a_full_queue_is_a_clear_refusal() -> None:
    workers = Workers(threads=1, waiting=1)
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


@asynchronous
async def test_a_call_that_is_given_up_before_it_has_a_thread_never_begins() -> None:
    workers = Workers(threads=1)
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


def test_a_thread_whose_caller_is_gone_with_its_loop_works_for_the_next() -> None:
    workers = Workers(threads=1)
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


@asynchronous
async def test_context_variables_reach_the_function() -> None:
    VARIABLE.set("here")

    assert await invoke(VARIABLE.get) == "here"


@asynchronous
async def test_a_plain_function_may_return_a_coroutine() -> None:
    async def inner() -> str:
        return "inner"

    assert await invoke(lambda: inner()) == "inner"


@asynchronous
async def test_an_object_with_an_async_call_runs_on_the_loop() -> None:
    class Callable:
        async def __call__(self) -> str:
            return threading.current_thread().name

    assert await invoke(Callable()) == threading.current_thread().name


def test_a_function_that_never_returns_does_not_keep_the_process() -> None:
    program = """
import asyncio, threading
from uno_devserver.host.addins.workers import invoke

async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    call = asyncio.create_task(invoke(hang))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    call.cancel()

asyncio.run(main())
print("gone")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (result.returncode, result.stdout, result.stderr) == (0, "gone\n", "")
