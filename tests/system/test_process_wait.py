"""The end of a process is noticed, whether the system tells of it or has to be asked again and again."""

from __future__ import annotations

import asyncio
import sys

import pytest

from support.servers import Processes
from uno_devserver.system.process_wait import process_exit

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
