"""Starts upstreams in threads of their own, and reports what comes of each start.

Reports wait in order until there is an event loop that takes them: the first start begins before that. Cheap to import:
the launch waits for it.
"""

from __future__ import annotations

import _thread
from collections import deque

from ...issues import fatal
from ...system.log import ERROR, log
from ...system.values import Value
from .base import StartFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from ..state import Timeline
    from .base import Running, Upstream


class Launching(Value):
    attempt: int
    what: str
    process_id: int | None  # None: it ran already


class Said(Value):
    attempt: int
    message: str
    warning: bool


class Strayed(Value):
    attempt: int
    line: str


class Ready(Value):
    attempt: int
    running: Running


class Failed(Value):
    attempt: int
    failure: StartFailure


Report = Launching | Said | Strayed | Ready | Failed


class Launcher:
    def __init__(self, timeline: Timeline) -> None:
        self.reports = ReportQueue()
        self._timeline = timeline
        self._attempt = 0  # the one that is wanted; others are given up
        self._launched = _thread.allocate_lock()  # held until the first start has a process or an outcome
        self._launched.acquire()

    def start(self, attempt: int, upstream: Upstream) -> None:
        """Start it, give up earlier starts, and report `Ready` or `Failed` in the end."""
        self._attempt = attempt
        _thread.start_new_thread(self._run, (attempt, upstream))

    def wait_until_launched(self, seconds: float) -> None:
        """Wait until the first start has a process, or an outcome."""
        self._launched.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Give up the start that is under way: it stops what it has launched."""
        self._attempt = 0

    def _run(self, attempt: int, upstream: Upstream) -> None:
        try:
            running = upstream.start(_Observer(self, attempt))
            self._timeline.mark("ready")
            self._report(Ready(attempt, running))
        except StartFailure as failure:
            self._report(Failed(attempt, failure))
        except BaseException as error:  # a defect of ours, which must not leave the start without an outcome
            import traceback

            log.write(ERROR, f"starting the server failed:\n{traceback.format_exc()}")
            message = f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}."
            issue = fatal("UpstreamError", message, "The log on stderr has the details; please report it.")
            self._report(Failed(attempt, StartFailure(issue)))

    def _report(self, report: Report) -> None:
        self.reports.put(report)
        try:
            self._launched.release()
        except RuntimeError:
            pass  # it was released before


class _Observer:
    """Reports the progress of one start, from its thread. Implements `StartObserver`."""

    def __init__(self, launcher: Launcher, attempt: int) -> None:
        self._launcher = launcher
        self._attempt = attempt

    def launching(self, what: str, process_id: int | None) -> None:
        self._launcher._timeline.mark("launched")
        self._launcher._report(Launching(self._attempt, what, process_id))

    def said(self, message: str, *, warning: bool = False) -> None:
        self._launcher.reports.put(Said(self._attempt, message, warning))

    def strayed(self, line: str) -> None:
        self._launcher.reports.put(Strayed(self._attempt, line))

    def go_on(self) -> bool:
        return self._launcher._attempt == self._attempt


class ReportQueue:
    """Carries reports from any thread to the event loop, in order; those before `open` wait for it."""

    def __init__(self) -> None:
        self._waiting: deque[Report] = deque()
        self._loop: AbstractEventLoop | None = None
        self._take: Callable[[Report], None] | None = None
        self._scheduled = False  # the loop will deliver all that wait

    def put(self, report: Report) -> None:
        """From any thread."""
        self._waiting.append(report)
        if self._loop is not None and not self._scheduled:
            self._scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                pass  # the loop is closed, and the process ends

    def open(self, loop: AbstractEventLoop, take: Callable[[Report], None]) -> None:
        """From the loop's thread: `take` gets the reports that wait, and each one that comes."""
        self._take = take
        self._loop = loop
        self._deliver()

    def _deliver(self) -> None:
        self._scheduled = False  # first: a report that is put from now on schedules again
        assert self._take is not None
        while self._waiting:
            self._take(self._waiting.popleft())
