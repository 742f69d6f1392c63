"""Add-in functions never block the Host: plain ones run in threads of their add-in, a few at a time.

An add-in whose functions hang holds up nobody but itself, and itself no longer than clients wait for them: a call
that was given up goes on in its thread, but no longer counts. The threads are daemons: a function that never returns
can neither be stopped nor waited for, and must not keep the Host from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...system.log import log
from ...system.values import Value
from .failures import AddInExit, as_addin_exit, frame_in_coroutine, frame_in_thread

THREADS = 16  # of an add-in; tools mostly wait for files and programs, and more at once would only take turns
MOST_THREADS = 64  # with those that calls hold which nobody waits for any more; a leak has to end somewhere
WAITING = 1000  # calls that may wait for a thread; beyond that something hangs, and a clear refusal helps more
BUSY_SECONDS = 5.0  # all threads busy is nothing unusual for a moment, and a problem after that
SHOWN_NAMES = 5  # in the sentence about busy threads

Outcome = tuple[Any, BaseException | None]


class Busy(Exception):
    """All threads are taken, and the queue is full."""


async def invoke(work: CallTarget, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of an add-in, async or plain, and wait for its result; only an `Exception` leaves it.

    Cancelling this cancels an async function; a plain one goes on in its thread and its result is dropped.
    """
    call = functools.partial(function, *args, **kwargs)

    def in_thread() -> Any:
        with recorded(work):
            return call()

    async def called() -> Any:
        result = call() if is_async(function) else await _pool_of(work.addin).run(in_thread, work.name)
        # A plain function may wrap an async one and return its coroutine.
        if not inspect.isawaitable(result):
            return result
        with recorded(work, result):
            return await result

    return await _contained(called())


async def invoke_apart(function: Callable[[], Any]) -> Any:
    """The same for what the Host itself asks of an add-in: its tools may hold all threads of the pool."""

    async def called() -> Any:
        result = function() if is_async(function) else await _run_apart(function)
        return await result if inspect.isawaitable(result) else result

    return await _contained(called())


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def busy_problems() -> list[str]:
    """A sentence for each add-in that has had no thread left for a while."""
    found = ((addin, pool.congestion()) for addin, pool in list(_pools.items()))
    return [f"add-in {addin}: {congestion}" for addin, congestion in found if congestion is not None]


async def _contained(called: Awaitable[Any]) -> Any:
    try:
        return await called
    except Exception:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled the call: taken for a cancellation, it would never be answered.
        raise AddInExit("the function was cancelled from inside") from error
    except BaseException as error:
        raise as_addin_exit(error) from error


class WorkerPool:
    """A pool that grows to its limit as needed, and beyond it by the threads that given-up calls hold."""

    def __init__(self, threads: int = THREADS, most: int = MOST_THREADS, waiting: int = WAITING) -> None:
        self._limit = threads
        self._most = most
        self._room = waiting
        self._changed = threading.Condition()
        self._threads = 0
        self._waiting: deque[_Job] = deque()
        self._running: set[_Job] = set()

    async def run(self, call: Callable[[], Any], name: str = "") -> Any:
        job = _Job(call, name)
        self._submit(job)
        try:
            return await job.result()
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def congestion(self) -> str | None:
        """What holds all threads, if that has lasted for a while."""
        with self._changed:
            jobs, waiting, allowed = list(self._running), len(self._waiting), self._allowed()
        if len(jobs) < allowed or any(time.monotonic() - job.began < BUSY_SECONDS for job in jobs):
            return None
        names = Counter(job.name for job in jobs).most_common(SHOWN_NAMES)
        held = ", ".join(f"{name} x{count}" for name, count in names)
        return f"{len(jobs)} of {allowed} worker threads are busy: {held}; calls that wait: {waiting}"

    def _submit(self, job: _Job) -> None:
        with self._changed:
            if len(self._waiting) >= self._room:
                unfinished = len(self._waiting) + len(self._running)
                raise Busy(f"the Host is busy: {unfinished} calls of add-in functions are unfinished")
            self._waiting.append(job)
            self._grow()
            self._changed.notify()

    def _give_up(self, job: _Job) -> None:
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
            job.given_up = True
            self._grow()

    def _grow(self) -> None:
        if len(self._waiting) + len(self._running) > self._threads and self._threads < self._allowed():
            self._threads += 1
            threading.Thread(target=self._work, name=f"addin-{self._threads}", daemon=True).start()

    def _allowed(self) -> int:
        return min(self._limit + sum(job.given_up for job in self._running), self._most)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            outcome = job.run()
            with self._changed:  # before the result is known: whoever gets it may come with the next job
                self._running.discard(job)
            job.settle(outcome)

    def _next(self) -> _Job | None:
        with self._changed:
            if self._threads > self._allowed():  # the call that made this thread necessary has finished
                self._threads -= 1
                return None
            while not self._waiting:
                self._changed.wait()
            job = self._waiting.popleft()
            job.began = time.monotonic()
            self._running.add(job)
            return job


class _Job:
    """A plain function on its way through a thread, and its outcome on the way back to the loop that waits for it."""

    def __init__(self, call: Callable[[], Any], name: str = "") -> None:
        self.name = name
        self.began = 0.0
        self.given_up = False
        self._call = call
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Outcome] = self._loop.create_future()

    async def result(self) -> Any:
        # The exception travels as a value: a future refuses StopIteration.
        result, error = await self._future
        if error is not None:
            raise error
        return result

    def run(self) -> Outcome:
        if self._future.cancelled():  # the call was given up on its way here
            return None, None
        try:
            return self._context.run(self._call), None
        except BaseException as error:  # SystemExit in a tool must not end the thread
            return None, error

    def settle(self, outcome: Outcome) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, self._future, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass


async def _run_apart(call: Callable[[], Any]) -> Any:
    job = _Job(call)
    threading.Thread(target=lambda: job.settle(job.run()), daemon=True).start()
    return await job.result()


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


_pools: dict[str, WorkerPool] = {}  # by add-in; of the process, as threads are


def _pool_of(addin: str) -> WorkerPool:
    return _pools.setdefault(addin, WorkerPool())


SLOW_SECONDS = 30.0  # clients give a call 30 to 60 s; whatever takes longer is worth a line in the log
SHOWN = 20  # of a report: enough to see what hangs


class CallTarget(Value):
    """What a function of an add-in is called for."""

    addin: str
    kind: str  # tool, resource, prompt, …
    name: str


class RunningCall:
    """One call."""

    def __init__(self, work: CallTarget, coroutine: Any) -> None:
        self.work = work
        self._coroutine = coroutine  # of an async function; None for a plain one, which has a thread
        self._thread = threading.get_ident()
        self._since = time.monotonic()
        self._told = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def tell_if_slow(self) -> None:
        if self._told or self.seconds < SLOW_SECONDS:
            return
        self._told = True
        frame = frame_in_thread(self._thread) if self._coroutine is None else frame_in_coroutine(self._coroutine)
        where = "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno})"
        work = self.work
        log.warn(f"[{work.addin}] {work.kind} '{work.name}' has been running for {self.seconds:.0f} s{where}")


_running: set[RunningCall] = set()  # of the process, as the log; adding and removing are atomic


@contextmanager
def recorded(work: CallTarget, coroutine: Any = None) -> Iterator[None]:
    """Record a call while the block runs, in the thread in which it runs."""
    call = RunningCall(work, coroutine)
    _running.add(call)
    try:
        yield
    finally:
        _running.discard(call)


def running_calls() -> list[RunningCall]:
    """The calls that run now, the longest first."""
    return sorted(_running.copy(), key=lambda call: -call.seconds)


def running_report() -> list[dict[str, Any]]:
    """The same for the health report."""
    return [
        {
            "addIn": call.work.addin,
            "kind": call.work.kind,
            "name": call.work.name,
            "seconds": round(call.seconds, 1),
        }
        for call in running_calls()[:SHOWN]
    ]


BEAT_SECONDS = 2.0  # seldom enough to cost nothing
BLOCKED_SECONDS = 5.0  # no step of the Host's own takes a tenth of that


def watch_event_loop(loop: asyncio.AbstractEventLoop, stopped: threading.Event) -> None:
    """Watch the event loop that runs in this thread, until `stopped`."""
    arguments = (loop, threading.get_ident(), stopped)
    threading.Thread(target=_watch, args=arguments, name="watch the event loop", daemon=True).start()


def _watch(loop: asyncio.AbstractEventLoop, thread: int, stopped: threading.Event) -> None:
    while not stopped.wait(BEAT_SECONDS):
        for call in running_calls():
            call.tell_if_slow()
        beat = threading.Event()
        try:
            loop.call_soon_threadsafe(beat.set)
        except RuntimeError:  # the loop is closed
            return
        if not beat.wait(BLOCKED_SECONDS):
            log.warn(
                f"The Host has answered nobody for {BLOCKED_SECONDS:g} s: {_line(thread)} keeps the event loop. "
                "An async function of an add-in must not block; make it a plain one, which gets a thread."
            )
            beat.wait()  # told once


def _line(thread: int) -> str:
    """Where a thread is: the innermost line of an add-in, or else of anything."""
    frame = frame_in_thread(thread) or sys._current_frames().get(thread)
    return "something" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
