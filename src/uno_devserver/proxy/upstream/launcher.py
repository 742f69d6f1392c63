"""Starts upstreams in threads of their own, and reports what comes of each start.

Reports wait in order for the event loop: the first start begins before that. Cheap to import: the launch waits for it.
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
    from .base import RunningUpstream, Upstream


class Launching(Value):
    attempt: int
    what: str
    process_id: int | None  # None: it ran already


class StrayLine(Value):
    attempt: int
    line: str


class Ready(Value):
    attempt: int
    running: RunningUpstream


class LaunchFailed(Value):
    attempt: int
    failure: StartFailure


Report = Launching | StrayLine | Ready | LaunchFailed


class Launcher:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.attempt = 0  # the one that is wanted; others are given up
        self._launched = _thread.allocate_lock()  # held until the first start has a process or an outcome
        self._launched.acquire()
        self._reports: deque[Report] = deque()  # that were not taken yet
        self._loop: AbstractEventLoop | None = None
        self._take: Callable[[Report], None] | None = None
        self._scheduled = False  # the loop will take all reports that wait

    def start(self, attempt: int, upstream: Upstream) -> None:
        """Start it, give up earlier starts, and report `Ready` or `LaunchFailed` in the end."""
        self.attempt = attempt
        _thread.start_new_thread(self._run, (attempt, upstream))

    def wait_until_launched(self, seconds: float) -> None:
        """Wait until the first start has a process, or an outcome."""
        self._launched.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Give up the start that is under way: it stops what it has launched."""
        self.attempt = 0

    def report_to(self, loop: AbstractEventLoop, take: Callable[[Report], None]) -> None:
        """From the loop's thread: `take` gets the reports that wait, and each one that comes."""
        self._take, self._loop = take, loop
        self._deliver()

    def report(self, report: Report) -> None:
        """From any thread."""
        self._reports.append(report)
        try:
            if self._loop is not None and not self._scheduled:
                self._scheduled = True
                self._loop.call_soon_threadsafe(self._deliver)
            self._launched.release()
        except RuntimeError:
            pass  # the loop is closed, and the process ends; or the lock was released before

    def _deliver(self) -> None:
        self._scheduled = False  # first: a report that comes from now on schedules again
        assert self._take is not None
        while self._reports:
            self._take(self._reports.popleft())

    def _run(self, attempt: int, upstream: Upstream) -> None:
        try:
            running = upstream.start(UpstreamObserver(self, attempt))
            self.timeline.mark("ready")
            self.report(Ready(attempt, running))
        except StartFailure as failure:
            self.report(LaunchFailed(attempt, failure))
        except BaseException as error:  # a defect of ours, which must not leave the start without an outcome
            import traceback

            log.write(ERROR, f"starting the server failed:\n{traceback.format_exc()}")
            message = f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}."
            issue = fatal("UpstreamError", message, "The log on stderr has the details; please report it.")
            self.report(LaunchFailed(attempt, StartFailure(issue)))


class UpstreamObserver:
    """Reports the progress of one start, from its thread unless stated otherwise."""

    def __init__(self, launcher: Launcher, attempt: int) -> None:
        self._launcher = launcher
        self._attempt = attempt

    def launching(self, what: str, process_id: int | None) -> None:
        """The process exists (None: it did before), and its readiness is awaited. May be called more than once."""
        self._launcher.timeline.mark("launched")
        self._launcher.report(Launching(self._attempt, what, process_id))

    def said(self, message: str, *, warning: bool = False) -> None:
        """Log this line, unless the start was given up."""
        if self.go_on():
            (log.warn if warning else log.info)(message)

    def strayed(self, line: str) -> None:
        """It wrote this line, which is no message, to its standard output. Called in the event loop, at any time."""
        self._launcher.report(StrayLine(self._attempt, line))

    def go_on(self) -> bool:
        """Asked again and again; on False the start raises StartFailure soon."""
        return self._launcher.attempt == self._attempt
