"""Background tasks of an event loop, and calls into the loop from other threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .log import log

T = TypeVar("T")


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> None:
    """Call `function` in the loop's thread: at once if this is that thread, else soon and in order."""
    if asyncio._get_running_loop() is loop:
        function(*arguments)
    else:
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            log.debug("a call into an event loop was dropped: the loop is closed")


class Tasks:
    """Background tasks, with the reference that keeps asyncio from collecting them before they are done."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task. If `work` awaits other work, pass it a function that makes the coroutine, not the coroutine:
        a task that is cancelled before its first step would never await it.
        """
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def wait(self, seconds: float) -> None:
        """Wait until all are done, for at most `seconds`."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
