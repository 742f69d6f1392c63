"""Starts upstreams in threads of their own, and reports the progress and outcome of each start to the event loop.

Reports are queued until the event loop runs, because the first start begins earlier. Cheap to import: the launch waits.
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
    from contextvars import Context

    from ..state import Timeline
    from .base import RunningUpstream, Upstream


class Launching(Value):
    attempt: int
    what: str
    process_id: int | None  # None if it was found running


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
        self.attempt = 0  # the number of the start that is wanted; others are given up
        self._launched = _thread.allocate_lock()  # held until the first start has a process or an outcome
        self._launched.acquire()
        self._reports: deque[Report] = deque()
        self._loop: AbstractEventLoop | None = None
        self._take: Callable[[Report], None] | None = None
        self._context: Context | None = None  # of `report_to`, in which the log names the server
        self._scheduled = False  # whether the loop is going to take all queued reports

    def start(self, attempt: int, upstream: Upstream) -> None:
        """Give up earlier starts, and start this upstream; the last report is `Ready` or `LaunchFailed`."""
        self.attempt = attempt
        _thread.start_new_thread(self._run, (attempt, upstream))

    def wait_until_launched(self, seconds: float) -> None:
        """Wait until the first start has a process, or an outcome."""
        self._launched.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Give up the start that is under way: its thread stops the process that it has launched."""
        self.attempt = 0

    def report_to(self, loop: AbstractEventLoop, take: Callable[[Report], None]) -> None:
        """Call `take` with the queued reports and each later one. Called in the loop's thread."""
        from contextvars import copy_context  # the first launch does not wait for it

        self._take, self._loop, self._context = take, loop, copy_context()
        self._deliver()

    def report(self, report: Report) -> None:
        """Queue a report. Safe from any thread."""
        self._reports.append(report)
        try:
            if self._loop is not None and not self._scheduled:
                self._scheduled = True
                self._loop.call_soon_threadsafe(self._deliver, context=self._context)
            self._launched.release()
        except RuntimeError:
            pass  # the loop is closed because the process ends, or the lock was released before

    def _deliver(self) -> None:
        self._scheduled = False  # before reading the queue: a later report schedules another delivery
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
        except BaseException as error:  # a bug in the proxy; the start still needs an outcome
            import traceback

            log.write(ERROR, f"starting the server failed:\n{traceback.format_exc()}")
            message = f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}."
            issue = fatal("UpstreamError", message, "The log on stderr has the details; please report it.")
            self.report(LaunchFailed(attempt, StartFailure(issue)))


class UpstreamObserver:
    """Reports the progress of one start. Used in the thread of that start unless stated otherwise."""

    def __init__(self, launcher: Launcher, attempt: int) -> None:
        self._launcher = launcher
        self._attempt = attempt

    def launching(self, what: str, process_id: int | None) -> None:
        """The process exists (None if it was found running), and is not ready yet. May be called more than once."""
        self._launcher.timeline.mark("launched")
        self._launcher.report(Launching(self._attempt, what, process_id))

    def said(self, message: str, *, warning: bool = False) -> None:
        """Log this line, unless the start was given up."""
        if self.go_on():
            (log.warn if warning else log.info)(message)

    def strayed(self, line: str) -> None:
        """The process wrote a line that is not an MCP message to its standard output. Called in the event loop."""
        self._launcher.report(StrayLine(self._attempt, line))

    def go_on(self) -> bool:
        """Whether the start is still wanted; otherwise it must end soon, with a StartFailure."""
        return self._launcher.attempt == self._attempt
