"""Waits for a condition, within a bound that is enough on a busy machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from support.machine import SLOWNESS

PATIENCE = 60.0 * SLOWNESS  # seconds for what takes milliseconds on an idle machine


async def until(condition: Callable[[], object], what: str = "the awaited condition") -> None:
    """Let the loop run until a condition holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not condition():
        assert loop.time() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        await asyncio.sleep(0.001)


def wait_for(condition: Callable[[], Any], what: str = "the awaited condition", seconds: float = PATIENCE) -> Any:
    """Return the first true value of a condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.005)
    return value
