"""Helpers for event loops: background tasks, work in threads, calls from other threads, waiting for a process."""

from __future__ import annotations

import _thread
import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

from . import proc
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
    """Background tasks, with references that keep them from being garbage-collected before they are done.

    They run in the context in which this object was made, so their lines in the log name the server of its owner.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task. If `work` awaits other work, pass it a function that makes the coroutine, not the coroutine:
        a task that is cancelled before its first step would never await it.
        """
        task = asyncio.create_task(work, context=self._context.copy())
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


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread that does not delay the end of the process; return its result or raise its exception.

    The work goes on if the caller is cancelled, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # also SystemExit, which would end the thread and leave the caller waiting
            in_loop(loop, _settle, done, None, error)
        else:
            in_loop(loop, _settle, done, result, None)

    _thread.start_new_thread(run, ())
    return await done


async def shielded(work: Awaitable[T]) -> T:
    """The result of `work`, which goes on if the caller is cancelled; then an error of it is dropped.

    `asyncio.shield` of Python 3.14 and later would print such an error, with a traceback.
    """
    working = asyncio.ensure_future(work)
    if not working.done():
        try:
            await asyncio.wait((working,))
        except asyncio.CancelledError:
            working.add_done_callback(_drop)
            raise
    return working.result()


def _drop(work: asyncio.Future[Any]) -> None:
    if not work.cancelled():
        work.exception()  # marks it as retrieved


async def run_in_thread_to_end(work: Callable[[Callable[[], bool]], T]) -> T:
    """Like `run_in_thread`, but if the caller is cancelled, it first waits for the end of the work.

    `work` is passed a function that returns True until the caller is cancelled, then False.
    """
    wanted = True
    working = asyncio.ensure_future(run_in_thread(lambda: work(lambda: wanted)))
    try:
        return await shielded(working)
    except asyncio.CancelledError:
        wanted = False
        await asyncio.wait([working])
        raise


class QueueFull(Exception):
    """Too much work waits, or hangs, already."""


class WorkQueue:
    """Runs work that may block in threads, one at a time and for a limited time; what waits and hangs is limited, too.

    A thread cannot be ended: work that exceeds its time goes on without a caller, and the next in the queue begins.
    """

    def __init__(self, seconds: float, *, most_waiting: int, most_hanging: int) -> None:
        self._seconds = seconds
        self._most_waiting = most_waiting
        self._most_hanging = most_hanging
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._threads = 0

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, in its turn; raises QueueFull, or TimeoutError if it takes too long."""
        if self._waiting >= self._most_waiting:
            raise QueueFull
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        try:
            if self._threads >= self._most_hanging:
                raise QueueFull
            async with asyncio.timeout(self._seconds):
                return await self._in_thread(work)
        finally:
            self._turn.release()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()

        def run() -> T:
            try:
                return work()
            finally:
                in_loop(loop, self._ended)

        self._threads += 1
        return await run_in_thread(run)

    def _ended(self) -> None:
        self._threads -= 1


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, for at most `seconds`, and clear it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
    event.clear()


def _settle(done: asyncio.Future[T], result: T, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))


async def process_exit(pid: int, poll_seconds: float) -> None:
    """Return when the process has ended: at once on Linux, within the poll interval elsewhere.

    A child counts as ended before its exit code is read.
    """
    handle = proc.pidfd(pid)
    if handle is not None:
        try:
            loop = asyncio.get_running_loop()
            gone = asyncio.Event()
            loop.add_reader(handle, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(handle)
        finally:
            os.close(handle)
        return
    from .processes import identity, is_alive

    before = identity(pid)
    while is_alive(pid) and identity(pid) == before:  # else another process has been given the id
        await asyncio.sleep(poll_seconds)
