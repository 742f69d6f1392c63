"""An event loop whose clock jumps to the next timer: waits take no time, and a wait without end is an error."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

virtual = pytest.mark.virtual_time  # runs an async test by `run_virtually`, see tests/conftest.py


class Deadlock(Exception):
    """All tasks wait, and no timer is left to wake one."""


class _Clock(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def turns(count: int = 20) -> None:
    """Run all tasks that are ready, without any time passing."""
    for _ in range(count):
        await asyncio.sleep(0)
