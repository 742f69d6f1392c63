"""The way from the front to the engine: in order, kept until there is an engine, whichever thread the front is in.

Cheap to import.

Starting upstreams in threads, and the reports of what becomes of it, which wait until somebody takes them.

Cheap to import: the first start is under way before there is an event loop.
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
    from typing import Any

    from ..state import Timeline
    from .base import Running, Upstream


class Inbox:
    def __init__(self) -> None:
        self._waiting: deque[Any] = deque()
        self._loop: AbstractEventLoop | None = None
        self._take: Callable[[Any], None] | None = None
        self._called = False  # the loop will look; calling it for each message would cost more than the message
        self._thread: int | None = None  # of the loop
        self.opened: Callable[[AbstractEventLoop | None], None] = lambda _: None  # told in the thread that opens it

    def put(self, message: Any) -> None:
        """From any thread."""
        self._waiting.append(message)
        loop = self._loop
        if loop is not None and not self._called:
            self._called = True
            try:
                # Also in the loop not at once: the front first answers what else has come.
                here = self._thread == _thread.get_ident()
                (loop.call_soon if here else loop.call_soon_threadsafe)(self.hand_over)
            except RuntimeError:
                pass  # the engine has ended, and so will the front
        elif loop is None and self._take is not None:
            self.hand_over()

    def open(self, loop: AbstractEventLoop | None, take: Callable[[Any], None]) -> None:
        """From the loop's thread: `take` gets what waits, and from now on everything as it comes.

        Without a loop it is called in the thread that puts something in.
        """
        self._take = take
        self._loop, self._thread = loop, _thread.get_ident()
        self.hand_over()
        self.opened(loop)

    def expect(self) -> None:
        """In the loop: what is put from now on waits for `hand_over`, which follows in the same turn."""
        self._called = True

    def hand_over(self) -> None:
        """Where it is taken: all that waits."""
        self._called = False  # before looking: what comes from now on calls again
        assert self._take is not None
        while True:
            try:
                message = self._waiting.popleft()
            except IndexError:  # asked for rather than looked at: without a loop two threads may be here
                return
            self._take(message)


class Launching(Value):
    attempt: int
    what: str
    process_id: int | None  # None: it was there already


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
        self.reports = Inbox()
        self._timeline = timeline
        self._attempt = 0  # the one that is of interest
        self._unknown = _thread.allocate_lock()  # held until something is known of the first start
        self._unknown.acquire()

    def start(self, attempt: int, upstream: Upstream) -> None:
        """Report `Ready` or `Failed` in the end; starts before this one are given up."""
        self._attempt = attempt
        _thread.start_new_thread(self._run, (attempt, upstream))

    def wait_until_launched(self, seconds: float) -> None:
        """Until the first start has a process, or an outcome."""
        self._unknown.acquire(timeout=seconds)

    def give_up(self) -> None:
        """Nobody waits for a start any more; what it has begun, it ends."""
        self._attempt = 0

    def _run(self, attempt: int, upstream: Upstream) -> None:
        try:
            running = upstream.start(_Observer(self, attempt))
            self._timeline.mark("ready")
            self._report(Ready(attempt, running))
        except StartFailure as failure:
            self._report(Failed(attempt, failure))
        except BaseException as error:  # a defect of ours; whoever waits must hear of it all the same
            import traceback

            log.write(ERROR, f"starting the server failed:\n{traceback.format_exc()}")
            message = f"Something went wrong inside uno-devserver: {type(error).__name__}: {error}."
            issue = fatal("UpstreamError", message, "The log on stderr has the details; please report it.")
            self._report(Failed(attempt, StartFailure(issue)))

    def _report(self, report: Report) -> None:
        self.reports.put(report)
        try:
            self._unknown.release()
        except RuntimeError:
            pass  # something was known before


class _Observer:
    """Watches one start, from its thread."""

    def __init__(self, starts: Launcher, attempt: int) -> None:
        self._starts = starts
        self._attempt = attempt

    def launching(self, what: str, process_id: int | None) -> None:
        self._starts._timeline.mark("launched")
        self._starts._report(Launching(self._attempt, what, process_id))

    def said(self, message: str, *, warning: bool = False) -> None:
        self._starts.reports.put(Said(self._attempt, message, warning))

    def strayed(self, line: str) -> None:
        self._starts.reports.put(Strayed(self._attempt, line))

    def go_on(self) -> bool:
        return self._starts._attempt == self._attempt
