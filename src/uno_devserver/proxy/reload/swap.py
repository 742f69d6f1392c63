"""Starts a server with new code beside the one that serves, which it replaces at the moment in which it is ready.

Ready means: the conversation is open, and the lists were read. A server that does not become ready is stopped with all
its processes, and the failure says why. The serving one notices neither.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...protocol.running import Tasks
from ...system.log import log
from ..upstream.keeper import Connected, Listed, Refused
from ..upstream.launcher import Failed, Launcher, Launching, Ready
from ..upstream.restart_policy import DEFAULT_LIMITS, UpstreamLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import Timeline
    from ..upstream.base import Running, Upstream
    from ..upstream.keeper import Event, ReportEvent, SupervisedUpstream
    from ..upstream.launcher import Report


class SwapFailure(Exception):
    """The new server did not become ready. The message is a sentence; `last_lines` are the last that it printed."""

    def __init__(self, problem: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.last_lines = last_lines


class Swap:
    def __init__(
        self,
        upstream: Upstream,
        timeline: Timeline,
        *,
        supervise: Callable[[Running, ReportEvent], SupervisedUpstream],
        promote: Callable[[SupervisedUpstream, Listed], None],
        strayed: Callable[[SupervisedUpstream, str], None],
        limits: UpstreamLimits = DEFAULT_LIMITS,
    ) -> None:
        """`promote` gets the new server when it is ready; `strayed` gets the lines of it that are no messages."""
        self._upstream = upstream
        self._launcher = Launcher(timeline)
        self._supervise = supervise
        self._promote = promote
        self._strayed = strayed
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._attempt = 0
        self._started: asyncio.Future[Running | None] = self._loop.create_future()  # None: the start failed
        self._outcome: asyncio.Future[None] = self._loop.create_future()
        self._candidate: SupervisedUpstream | None = None
        self._listed: Listed | None = None
        self._stray_line = ""  # the last line of the new server that is no message
        self._tasks = Tasks()

    async def run(self) -> None:
        """Return when the new server was promoted; SwapFailure when it was not, and nothing is left of it."""
        seconds = self._limits.swap_seconds
        self._launcher.report_to(self._loop, self._on_report)
        self._start()
        await asyncio.wait((self._outcome,), timeout=seconds)
        self.abort(f"The new server was not ready within {seconds:g} s.")
        failure = self._outcome.exception()
        if isinstance(failure, SwapFailure):
            raise SwapFailure(str(failure), await self._stop() or failure.last_lines)

    def abort(self, problem: str, last_lines: tuple[str, ...] = ()) -> None:
        """Fail for this reason, unless there is an outcome already."""
        if not self._outcome.done():
            self._outcome.set_exception(SwapFailure(problem, last_lines))

    def _start(self) -> None:
        self._attempt += 1
        self._launcher.start(self._attempt, self._upstream)

    def _on_report(self, report: Report) -> None:
        if isinstance(report, Ready):
            self._on_ready(report.running)
        elif isinstance(report, Failed):
            if not self._started.done():
                self._started.set_result(None)
            ending = report.failure.ending
            self.abort(str(report.failure), ending.last_lines if ending else ())
        elif isinstance(report, Launching):
            log.info(f"Started {report.what} (process {report.process_id}) beside the one that serves.")
        else:
            log.debug(f"the new server wrote a line that is no message: {report.line}")
            self._stray_line = report.line if report.attempt == self._attempt else self._stray_line
            self._report_stray_line()

    def _on_ready(self, running: Running) -> None:
        if self._started.done():  # too late: the swap has failed
            self._tasks.start(running.stop())
            return
        self._started.set_result(running)
        if not self._outcome.done():
            self._candidate = self._supervise(running, self._on_event)
            self._candidate.start()

    def _on_event(self, candidate: SupervisedUpstream, event: Event) -> None:
        if self._outcome.done():
            return
        if isinstance(event, Listed):
            self._listed = event
        elif isinstance(event, Connected):
            if self._listed is None or "tools" not in self._listed.lists:
                self.abort("The new server answers, but its tools cannot be listed.")
            else:
                self._outcome.set_result(None)
                self._promote(candidate, self._listed)
                self._report_stray_line()
        elif isinstance(event, Refused):
            self.abort(f"The new server cannot be used over MCP: {str(event.refusal).rstrip('.')}.")
        elif event.other_era_next and self._attempt == 1:
            self._start_again(candidate)
        else:
            self.abort(f"The new server did not start: {event.reason}.", event.last_lines)

    def _report_stray_line(self) -> None:
        """Report the last line that is no message, once the new server is promoted."""
        promoted = self._outcome.done() and self._outcome.exception() is None
        if promoted and self._candidate is not None and self._stray_line:
            self._strayed(self._candidate, self._stray_line)

    def _start_again(self, candidate: SupervisedUpstream) -> None:
        """It ended over `server/discover`; the next start begins with `initialize`."""
        candidate.release()
        self._tasks.start(candidate.running.stop())
        self._candidate, self._started, self._stray_line = None, self._loop.create_future(), ""
        self._start()

    async def _stop(self) -> tuple[str, ...]:
        """Stop what was started; the last lines that it printed."""
        self._launcher.give_up()
        if self._candidate is not None:
            self._candidate.release()
        await asyncio.wait((self._started,), timeout=self._limits.last_words_seconds)
        if not self._started.done():
            self._started.set_result(None)
        running = self._started.result()
        if running is None:
            return ()
        await running.stop()
        try:
            async with asyncio.timeout(self._limits.last_words_seconds):
                return (await running.ended()).last_lines
        except TimeoutError:
            return ()
