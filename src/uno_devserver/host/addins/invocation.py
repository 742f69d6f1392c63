"""Calls functions of add-ins; plain ones run in threads of their add-in, so that they never block the Host.

An add-in whose functions hang delays only its own calls. A call that its client has given up continues in its thread,
which no longer counts towards the limit. The threads are daemons, because a function that never returns can neither be
stopped nor waited for. Running calls are recorded for the health report, and `watch_event_loop` warns of slow calls
and of functions that block the event loop.
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
from .failures import AddInExit, as_addin_exit, frame_in_thread, place_in_coroutine, place_in_thread

THREADS = 16  # per add-in; tools mostly wait for files and programs, so more would hardly help
MOST_THREADS = 64  # including those of given-up calls; limits what hanging functions can use
WAITING = 1000  # calls that may wait for a thread; if there are more, something hangs
BUSY_SECONDS = 5.0  # after this time without a free thread, a problem is reported
SHOWN_NAMES = 5  # the most names in the sentence about busy threads
SLOW_SECONDS = 30.0  # a longer call is logged; clients give up after 30 to 60 s
SHOWN_CALLS = 20  # the most calls in the health report
BEAT_SECONDS = 2.0  # between two checks of the event loop, which cost next to nothing
BLOCKED_SECONDS = 5.0  # no step of the Host's own code takes a tenth of this

Outcome = tuple[Any, BaseException | None]


class CallTarget(Value):
    """The tool, resource or other registration for which a function of an add-in is called."""

    addin: str
    kind: str  # tool, resource, prompt, …
    name: str


class Busy(Exception):
    """All threads are busy, and the queue is full."""


async def invoke(target: CallTarget, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of an add-in, async or plain, and return its result. It raises only subclasses of `Exception`.

    Cancelling the call cancels an async function; a plain one continues in its thread, and its result is dropped.
    """
    call = functools.partial(function, *args, **kwargs)

    def in_thread() -> Any:
        with recorded(target):
            return call()

    async def called() -> Any:
        result = call() if is_async(function) else await _pool_of(target.addin).run(in_thread, target.name)
        # A plain function may wrap an async one and return its coroutine.
        if not inspect.isawaitable(result):
            return result
        with recorded(target, result):
            return await result

    return await _contained(called())


async def invoke_apart(function: Callable[[], Any]) -> Any:
    """Call an add-in's hook (on_start, on_stop, health, background) in a thread of its own.

    Not in the add-in's pool, whose threads may all be busy with its tools.
    """

    async def called() -> Any:
        result = function() if is_async(function) else await _run_apart(function)
        return await result if inspect.isawaitable(result) else result

    return await _contained(called())


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def _contained(called: Awaitable[Any]) -> Any:
    try:
        return await called
    except Exception:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # The function cancelled itself. If CancelledError were raised, the call would never be answered.
        raise AddInExit("the function was cancelled from inside") from error
    except BaseException as error:
        raise as_addin_exit(error) from error


class WorkerPool:
    """Worker threads, started as needed up to a limit; threads of given-up calls do not count towards it."""

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
        """A sentence that names the calls that have kept all threads busy for a while; None if a thread is free."""
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
            with self._changed:  # before the result is delivered, because its receiver may submit the next job
                self._running.discard(job)
            job.settle(outcome)
            del job, outcome  # a large result must not stay until the next job comes

    def _next(self) -> _Job | None:
        with self._changed:
            if self._threads > self._allowed():  # the given-up call that this thread replaced has finished
                self._threads -= 1
                return None
            while not self._waiting:
                self._changed.wait()
            job = self._waiting.popleft()
            job.began = time.monotonic()
            self._running.add(job)
            return job


class _Job:
    """A call of a plain function in a thread, whose outcome is returned to the event loop that waits."""

    def __init__(self, call: Callable[[], Any], name: str = "") -> None:
        self.name = name
        self.began = 0.0
        self.given_up = False
        self._call = call
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Outcome] = self._loop.create_future()

    async def result(self) -> Any:
        # The exception is passed as a value, because a future refuses StopIteration.
        result, error = await self._future
        if error is not None:
            raise error
        return result

    def run(self) -> Outcome:
        if self._future.cancelled():  # the caller gave up before a thread was free
            return None, None
        try:
            return self._context.run(self._call), None
        except BaseException as error:  # SystemExit in a tool must not end the thread
            return None, error

    def settle(self, outcome: Outcome) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, self._future, outcome)
        except RuntimeError:  # the loop is closed
            pass


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


async def _run_apart(call: Callable[[], Any]) -> Any:
    job = _Job(call)
    threading.Thread(target=lambda: job.settle(job.run()), daemon=True).start()
    return await job.result()


_pools: dict[str, WorkerPool] = {}  # by add-in


def _pool_of(addin: str) -> WorkerPool:
    return _pools.setdefault(addin, WorkerPool())


def busy_problems() -> list[str]:
    """A sentence for each add-in that has had no free thread for a while."""
    found = ((addin, pool.congestion()) for addin, pool in list(_pools.items()))
    return [f"add-in {addin}: {congestion}" for addin, congestion in found if congestion is not None]


class RunningCall:
    def __init__(self, target: CallTarget, coroutine: Any) -> None:
        self.target = target
        self._coroutine = coroutine  # that of an async function; None for a plain function, which runs in this thread
        self._thread = threading.get_ident()
        self._since = time.monotonic()
        self._warned = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def warn_if_slow(self) -> None:
        if self._warned or self.seconds < SLOW_SECONDS:
            return
        self._warned = True
        place = place_in_thread(self._thread) if self._coroutine is None else place_in_coroutine(self._coroutine)
        target = self.target
        log.warn(f"[{target.addin}] {target.kind} '{target.name}' has been running for {self.seconds:.0f} s{place}")


_running: set[RunningCall] = set()  # adding and removing are atomic


@contextmanager
def recorded(target: CallTarget, coroutine: Any = None) -> Iterator[None]:
    """Record a call while the block runs. For a plain function, use this in the thread that runs it."""
    call = RunningCall(target, coroutine)
    _running.add(call)
    try:
        yield
    finally:
        _running.discard(call)


def running_calls() -> list[RunningCall]:
    """The calls that are running, the longest first."""
    return sorted(_running.copy(), key=lambda call: -call.seconds)


def running_report() -> list[dict[str, Any]]:
    """The longest running calls, as the health report shows them."""
    return [
        {
            "addIn": call.target.addin,
            "kind": call.target.kind,
            "name": call.target.name,
            "seconds": round(call.seconds, 1),
        }
        for call in running_calls()[:SHOWN_CALLS]
    ]


def watch_event_loop(loop: asyncio.AbstractEventLoop, stopped: threading.Event) -> None:
    """Log slow calls, and functions that block the event loop of this thread, until `stopped` is set."""
    arguments = (loop, threading.get_ident(), stopped)
    threading.Thread(target=_watch, args=arguments, name="watch the event loop", daemon=True).start()


def _watch(loop: asyncio.AbstractEventLoop, thread: int, stopped: threading.Event) -> None:
    while not stopped.wait(BEAT_SECONDS):
        for call in running_calls():
            call.warn_if_slow()
        beat = threading.Event()
        try:
            loop.call_soon_threadsafe(beat.set)
        except RuntimeError:  # the loop is closed
            return
        if not beat.wait(BLOCKED_SECONDS):
            log.warn(
                f"The Host has not answered for {BLOCKED_SECONDS:g} s: {_line(thread)} blocks the event loop. "
                "An async function of an add-in must not block; make it a plain one, which gets a thread."
            )
            beat.wait()  # no second warning for the same block


def _line(thread: int) -> str:
    """The innermost line of an add-in that a thread is running, otherwise the innermost line of all."""
    frame = frame_in_thread(thread) or sys._current_frames().get(thread)
    return "something" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
