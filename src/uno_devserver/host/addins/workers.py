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
from collections.abc import Awaitable, Callable
from typing import Any

from .failures import Escaped, escaped

THREADS = 16  # tools mostly wait for files and programs; more at once would only take turns
WAITING = 1000  # calls that may wait for a thread; beyond that something hangs, and a clear refusal helps more

Job = Callable[[], None]
Run = Callable[[Callable[[], Any]], Awaitable[Any]]


class Busy(Exception):
    """All threads are taken, and the queue is full."""


async def invoke(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of an add-in, async or plain, and wait for its result; only an `Exception` leaves it.

    Cancelling this cancels an async function; a plain one goes on in its thread and its result is dropped.
    """
    return await _invoke(_workers.run, function, *args, **kwargs)


async def invoke_apart(function: Callable[[], Any]) -> Any:
    """The same for what the Host itself asks of an add-in: its tools may hold all threads of the pool."""
    return await _invoke(_run_apart, function)


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def _invoke(run: Run, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        if is_async(function):
            result = await function(*args, **kwargs)
        else:
            result = await run(lambda: function(*args, **kwargs))
        # A plain function may wrap an async one and return its coroutine.
        return await result if inspect.isawaitable(result) else result
    except Exception:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled the call: taken for a cancellation, it would never be answered.
        raise Escaped("the function was cancelled from inside") from error
    except BaseException as error:
        raise escaped(error) from error


class Workers:
    """A pool that grows to its limit as needed."""

    def __init__(self, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._limit = threads
        self._jobs: queue.Queue[Job] = queue.Queue(waiting)
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0  # running and waiting

    async def run(self, work: Callable[[], Any]) -> Any:
        return await _outcome(work, self._submit, self._finished)

    def _submit(self, job: Job) -> None:
        with self._lock:
            try:
                self._jobs.put_nowait(job)
            except queue.Full:
                raise Busy(f"the Host is busy: {self._unfinished} calls of add-in functions are unfinished") from None
            self._unfinished += 1
            if self._unfinished > self._threads and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"addin-{self._threads}", daemon=True).start()

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1

    def _work(self) -> None:
        while True:
            self._jobs.get()()


async def _run_apart(work: Callable[[], Any]) -> Any:
    return await _outcome(work, lambda job: threading.Thread(target=job, daemon=True).start(), lambda: None)


async def _outcome(work: Callable[[], Any], begin: Callable[[Job], None], finished: Callable[[], None]) -> Any:
    """What the work gives or raises in the thread where `begin` lets it run."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def job() -> None:
        outcome: tuple[Any, BaseException | None] = None, None
        try:
            if not future.cancelled():  # the call was given up while it waited for a thread
                outcome = context.run(work), None
        except BaseException as error:  # SystemExit in a tool must not end the thread
            outcome = None, error
        finished()  # before the result is known: whoever gets it may come with the next job
        try:
            loop.call_soon_threadsafe(_settle, future, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    begin(job)
    # The exception travels as a value: a future refuses StopIteration.
    result, error = await future
    if error is not None:
        raise error
    return result


def _settle(future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


_workers = Workers()  # one per process, as the log: threads are the process's
