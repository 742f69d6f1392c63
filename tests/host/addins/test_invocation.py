"""How functions of add-ins are called: threads, running calls in report and log, and blocked event loops."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.addins import WAIT_SECONDS, AddInFolder, health_of, text_of
from support.waiting import until
from uno_devserver.host.addins import invocation
from uno_devserver.host.addins.invocation import Busy, CallTarget, WorkerPool, invoke
from uno_devserver.system.log import log

TARGET = CallTarget("workers", "tool", "test")
VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Held:
    """A pool whose threads are all held by calls named `hold`, until `release`."""

    def __init__(self, pool: WorkerPool, threads: int) -> None:
        self.pool = pool
        self.threads = threads
        self.names: list[str] = []
        self.calls: list[asyncio.Task[None]] = []
        self.go = threading.Event()

    async def hold(self) -> None:
        """Let as many calls as the pool has threads begin, and hang."""
        begun = len(self.names) + self.threads
        self.calls = [asyncio.create_task(self.pool.run(self._hang, "hold")) for _ in range(self.threads)]
        await until(lambda: len(self.names) == begun)

    async def give_up(self) -> None:
        for call in self.calls:
            call.cancel()
        await asyncio.wait(self.calls)

    async def submit(self, call: Callable[[], Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(self.pool.run(call, "next"))
        await asyncio.sleep(0)
        return task

    async def release(self) -> None:
        self.go.set()
        await asyncio.wait(self.calls)

    def _hang(self) -> None:
        self.names.append(threading.current_thread().name)
        self.go.wait()


async def held(threads: int = 1, **limits: int) -> Held:
    held = Held(WorkerPool(threads=threads, **limits), threads)
    await held.hold()
    return held


async def answer(task: asyncio.Task[Any]) -> Any:
    return await asyncio.wait_for(task, WAIT_SECONDS)


async def test_the_pool_grows_to_its_limit_and_no_further() -> None:
    pool = await held(threads=2)
    later = await pool.submit(lambda: threading.current_thread().name)
    assert not later.done()

    await pool.release()

    assert await answer(later) in pool.names
    assert len(set(pool.names)) == 2


async def test_an_idle_thread_is_used_again() -> None:
    pool = WorkerPool(threads=4)

    assert len({await pool.run(lambda: threading.current_thread().name) for _ in range(20)}) == 1


async def test_a_full_queue_is_a_clear_refusal() -> None:
    pool = await held(waiting=1)
    waiting = await pool.submit(lambda: None)

    with pytest.raises(Busy, match="the Host is busy: 2 calls of add-in functions are unfinished"):
        await pool.pool.run(lambda: None)
    await pool.release()
    await answer(waiting)


async def test_calls_that_are_given_up_before_they_have_a_thread_never_begin_and_take_no_room() -> None:
    pool = await held(waiting=1)
    done: list[str] = []
    for _ in range(3):
        given_up = await pool.submit(lambda: done.append("given up"))
        given_up.cancel()
        await asyncio.wait([given_up])
    last = await pool.submit(lambda: done.append("next"))

    await pool.release()
    await answer(last)

    assert done == ["next"]


async def test_calls_that_were_given_up_leave_their_threads_to_others_up_to_a_limit() -> None:
    pool = await held(threads=2, most=4)
    waiting = await pool.submit(lambda: "still here")
    await pool.give_up()
    assert await answer(waiting) == "still here"

    await pool.hold()
    await pool.give_up()
    beyond = await pool.submit(lambda: "at last")
    done, _ = await asyncio.wait([beyond], timeout=0.1)
    assert not done
    await pool.release()

    assert await answer(beyond) == "at last"
    await until(lambda: pool.pool._threads == 2)


async def test_threads_that_are_busy_for_long_are_a_problem_that_names_what_holds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = await held(threads=2)
    waiting = await pool.submit(lambda: None)
    assert pool.pool.congestion() is None

    monkeypatch.setattr(invocation, "BUSY_SECONDS", 0.0)
    assert pool.pool.congestion() == "2 of 2 worker threads are busy: hold x2; calls that wait: 1"

    await pool.release()
    await answer(waiting)
    assert pool.pool.congestion() is None


def test_a_thread_whose_caller_is_gone_with_its_loop_works_for_the_next() -> None:
    pool = asyncio.run(held())  # the end of the loop cancels the call
    pool.go.set()

    assert asyncio.run(asyncio.wait_for(pool.pool.run(lambda: "here"), WAIT_SECONDS)) == "here"


async def test_context_variables_reach_the_function() -> None:
    VARIABLE.set("here")

    assert await invoke(TARGET, VARIABLE.get) == "here"


async def test_arguments_may_have_any_name() -> None:
    assert await invoke(TARGET, lambda **given: sorted(given), function=1, work=2, run=3) == ["function", "run", "work"]


async def test_a_plain_function_may_return_a_coroutine() -> None:
    async def inner() -> str:
        return "inner"

    assert await invoke(TARGET, lambda: inner()) == "inner"


async def test_an_object_with_an_async_call_runs_on_the_loop() -> None:
    class Callable:
        async def __call__(self) -> str:
            return threading.current_thread().name

    assert await invoke(TARGET, Callable()) == threading.current_thread().name


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


HANGING = """
import pathlib, time
released = pathlib.Path(addin.workspace, "released")

@addin.tool
def hang() -> None:
    while not released.exists():
        time.sleep(0.005)

@addin.tool
async def hang_async() -> None:
    while not released.exists():
        await asyncio.sleep(0.005)

@addin.resource("slow://{name}")
def slow(name: str) -> str:
    hang()
    return name

@addin.prompt
def think() -> str:
    hang()
    return "done"
"""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is warned of, by a watch that is in a hurry."""
    monkeypatch.setattr(invocation, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(invocation, "SLOW_SECONDS", 0.05)
    warnings: list[str] = []
    monkeypatch.setattr(log, "warn", warnings.append)
    return warnings


async def test_every_running_call_is_in_the_report_with_the_longest_first(addins: AddInFolder) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "hang"}),
        ("tools/call", {"name": "hang_async"}),
        ("resources/read", {"uri": "slow://one"}),
        ("prompts/get", {"name": "think"}),
    ]
    async with addins.serve_register(HANGING, "import asyncio") as client:
        calls = []
        for method, params in requests:
            calls.append(asyncio.create_task(client.request(method, params)))
            await until(lambda: len(invocation.running_calls()) == len(calls))
        report = await health_of(client)
        release(addins)
        await asyncio.gather(*calls)
        after = await health_of(client)

    assert [(call["addIn"], call["kind"], call["name"]) for call in report["running"]] == [
        ("sample", "tool", "hang"),
        ("sample", "tool", "hang_async"),
        ("sample", "resource", "slow://one"),
        ("sample", "prompt", "think"),
    ]
    seconds = [call["seconds"] for call in report["running"]]
    assert seconds == sorted(seconds, reverse=True)
    assert report["status"] == "Healthy"
    assert after["running"] == []


async def test_the_report_is_bounded(addins: AddInFolder) -> None:
    async with addins.serve_register(HANGING, "import asyncio") as client:
        calls = [asyncio.create_task(client.call("hang_async")) for _ in range(invocation.SHOWN_CALLS + 5)]
        await until(lambda: len(invocation.running_calls()) == invocation.SHOWN_CALLS + 5)
        report = await health_of(client)
        release(addins)
        await asyncio.gather(*calls)

    assert len(report["running"]) == invocation.SHOWN_CALLS


@pytest.mark.parametrize(("tool", "pause"), [("hang", "time.sleep(0.005)"), ("hang_async", "await asyncio.sleep")])
async def test_a_call_that_hangs_is_told_once_with_its_line_also_when_it_is_given_up(
    addins: AddInFolder, told: list[str], tool: str, pause: str
) -> None:
    async with addins.serve_register(HANGING, "import asyncio") as client:
        call = asyncio.create_task(client.call(tool))
        await until(lambda: invocation.running_calls())
        if tool == "hang":
            call.cancel()  # the thread goes on
        await until(lambda: told)
        release(addins)
        await asyncio.wait([call])
        await until(lambda: not invocation.running_calls())

    (message,) = told
    assert message.startswith(f"[sample] tool '{tool}' has been running for 0 s ({addins.folder / 'sample.py'}:")
    line = Path(addins.folder, "sample.py").read_text().splitlines()[int(message[:-1].rpartition(":")[2]) - 1]
    assert pause in line or "while not released.exists()" in line


async def test_a_call_that_is_done_in_time_is_not_told(
    addins: AddInFolder, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invocation, "SLOW_SECONDS", 30.0)

    async with addins.serve_register(HANGING, "import asyncio") as client:
        call = asyncio.create_task(client.call("hang"))
        await until(lambda: invocation.running_calls())
        await asyncio.sleep(0.1)  # ten beats of the watch
        release(addins)
        await call

    assert told == []


async def test_an_addin_without_a_free_thread_degrades_the_host_and_leaves_the_others_theirs(
    addins: AddInFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invocation, "BUSY_SECONDS", 0.0)
    hanging = addins.register("hanging.py", HANGING, "import asyncio")
    other = addins.register("other.py", "@addin.tool\ndef quick() -> str:\n    return 'here'")

    async with addins.serve(hanging, other) as client:
        calls = [asyncio.create_task(client.call("hang")) for _ in range(invocation.THREADS + 1)]
        await until(lambda: len(invocation.running_calls()) == invocation.THREADS)
        report = await health_of(client)
        quick = await client.call("quick")
        release(addins)
        await asyncio.gather(*calls)
        after = await health_of(client)

    assert report["status"] == "Degraded"
    assert report["problems"] == [
        "add-in hanging: 16 of 16 worker threads are busy: hang x16; calls that wait: 1",
    ]
    assert quick["content"][0]["text"] == "here"
    assert (after["status"], after["problems"]) == ("Healthy", [])


async def test_hangs_that_clients_have_cancelled_do_not_keep_an_addin_from_working(addins: AddInFolder) -> None:
    body = HANGING + "\n@addin.tool\ndef quick() -> str:\n    return 'here'\n"

    async with addins.serve_register(body, "import asyncio") as client:
        calls = [asyncio.create_task(client.call("hang")) for _ in range(invocation.THREADS)]
        await until(lambda: len(invocation.running_calls()) == invocation.THREADS)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        quick = await asyncio.wait_for(client.call("quick"), 30)
        report = await health_of(client)
        release(addins)
        await until(lambda: not invocation.running_calls())

    assert quick["content"][0]["text"] == "here"
    assert len(report["running"]) == invocation.THREADS
    assert report["problems"] == []


def release(addins: AddInFolder) -> None:
    (addins.folder / "released").touch()


BODY = """
import pathlib, time

@addin.tool
async def block() -> str:
    released = pathlib.Path(addin.workspace, "released")
    while not released.exists():
        time.sleep(0.005)
    return "done"
"""


async def test_an_async_tool_that_blocks_is_told_once_with_its_line(
    addins: AddInFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invocation, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(invocation, "BLOCKED_SECONDS", 0.2)
    told: list[str] = []

    def release(message: str) -> None:
        told.append(message)
        (addins.folder / "released").touch()

    monkeypatch.setattr(log, "warn", release)
    async with addins.serve_register(BODY) as client:
        assert text_of(await client.call("block")) == "done"

    (message,) = told
    assert message.startswith("The Host has not answered for 0.2 s: ")
    assert f"{addins.folder / 'sample.py'}:" in message
    assert "(block) blocks the event loop" in message


async def test_a_tool_that_awaits_is_not_told(addins: AddInFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(invocation, "BLOCKED_SECONDS", 5.0)
    told: list[str] = []
    monkeypatch.setattr(log, "warn", told.append)

    body = "@addin.tool\nasync def wait() -> None:\n    await asyncio.sleep(0.1)"
    async with addins.serve_register(body, "import asyncio") as client:
        await client.call("wait")

    assert told == []


async def test_nobody_watches_when_the_host_has_stopped(addins: AddInFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "BEAT_SECONDS", 0.01)
    before = set(threading.enumerate())

    async with addins.serve_register("pass"):
        watching = {thread for thread in threading.enumerate() if thread.name == "watch the event loop"} - before

    assert len(watching) == 1
    await until(lambda: not any(thread.is_alive() for thread in watching))
