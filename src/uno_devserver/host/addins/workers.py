"""Add-in functions never block the Host: plain ones run in threads of their own, a few at a time.

The threads are daemons: a function that never returns can neither be stopped nor waited for, and must not keep the
Host from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any

from .failures import Escaped

THREADS = 16  # tools mostly wait for files and programs; more at once would only take turns
WAITING = 1000  # calls that may wait for a thread; beyond that something hangs, and a clear refusal helps more


class Busy(Exception):
    """All threads are taken, and the queue is full."""


async def invoke(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of an add-in, async or plain, and wait for its result; only an `Exception` leaves it.

    Cancelling this cancels an async function; a plain one goes on in its thread and its result is dropped.
    """
    try:
        if _is_async(function):
            result = await function(*args, **kwargs)
        else:
            result = await _workers.run(lambda: function(*args, **kwargs))
        # A plain function may wrap an async one and return its coroutine.
        return await result if inspect.isawaitable(result) else result
    except (SystemExit, KeyboardInterrupt) as error:  # either would end the Host
        raise Escaped(f"{type(error).__name__}: {error}".rstrip(": ")) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled the call: taken for a cancellation, it would never be answered.
        raise Escaped("the function was cancelled from inside") from error


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


class Workers:
    """A pool that grows to its limit as needed."""

    def __init__(self, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._limit = threads
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue(waiting)
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0  # running and waiting

    async def run(self, work: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = context.run(work), None
            except BaseException as error:  # SystemExit in a tool must not end the thread
                outcome = None, error
            with self._lock:  # before the result is known: whoever gets it may come with the next job
                self._unfinished -= 1
            try:
                loop.call_soon_threadsafe(_settle, future, outcome)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        self._submit(job)
        # The exception travels as a value: a future refuses StopIteration.
        result, error = await future
        if error is not None:
            raise error
        return result

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            try:
                self._jobs.put_nowait(job)
            except queue.Full:
                raise Busy(f"the Host is busy: {self._unfinished} calls of add-in functions are unfinished") from None
            self._unfinished += 1
            if self._unfinished > self._threads and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"addin-{self._threads}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _settle(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


_workers = Workers()  # one per process, as the log: threads are the process's
