"""A function that keeps the event loop is named, with its line."""

from __future__ import annotations

import threading

import pytest

from support.addins import AddInFolder, text_of, until
from uno_devserver.host.addins import invocation
from uno_devserver.system.log import log

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
    assert message.startswith("The Host has answered nobody for 0.2 s: ")
    assert f"{addins.folder}/sample.py:" in message
    assert "(block) keeps the event loop" in message


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
