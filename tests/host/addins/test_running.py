"""Calls that run long can be seen: in the report, and after a while in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.addins import AddInFolder, health_of, until
from uno_devserver.host.addins import invocation
from uno_devserver.system.log import log

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
    assert message.startswith(f"[sample] tool '{tool}' has been running for 0 s ({addins.folder}/sample.py:")
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
