"""An upstream that is started beside the one that serves, to take its place.

It is handed over at the very moment in which it can be spoken to and its lists were read; what does not come so far is
ended, with all that it started, and says why. The one that serves notices nothing of either.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...protocol.running import Tasks
from ...system.log import log
from ..upstream.keeper import Connected, Listed, Refused
from ..upstream.launcher import Failed, Launcher, Launching, Ready, Strayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import Timeline
    from ..upstream.base import Running, Upstream
    from ..upstream.keeper import Event, Tenure
    from ..upstream.launcher import Report


SECONDS = 75.0  # a command has 30 s to answer for the first time, and as long for its lists
LAST_WORDS_SECONDS = 1.0  # for one that was ended to be known as such
THE_ONLY = 1  # the number of its start


class SwapFailure(Exception):
    """There is none. The message is a sentence that says why; `last_lines` are what it printed last."""

    def __init__(self, problem: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.last_lines = last_lines


class Swap:
    def __init__(
        self,
        upstream: Upstream,
        timeline: Timeline,
        tenure_of: Callable[[Running, Callable[[Tenure, Event], None]], Tenure],
        take: Callable[[Tenure, Listed], None],
        seconds: float = SECONDS,
    ) -> None:
        """`take` gets it, and with it the duty to hear what becomes of it."""
        self._upstream = upstream
        self._starts = Launcher(timeline)
        self._tenure_of = tenure_of
        self._take = take
        self._seconds = seconds
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._started: asyncio.Future[Running | None] = loop.create_future()
        self._taken: asyncio.Future[None] = loop.create_future()
        self._tenure: Tenure | None = None
        self._listed: Listed | None = None
        self._late = Tasks()

    async def prepare(self) -> None:
        """Returns when it has been taken; SwapFailure when there is none, and nothing is left of it."""
        self._starts.reports.open(self._loop, self._reported)
        self._starts.start(THE_ONLY, self._upstream)
        await asyncio.wait((self._taken,), timeout=self._seconds)
        self._fail(SwapFailure(f"The new server was not ready within {self._seconds:g} s."))
        failure = self._taken.exception()
        if isinstance(failure, SwapFailure):
            raise SwapFailure(str(failure), await self._clear() or failure.last_lines)

    def give_up(self, problem: str) -> None:
        """Nobody wants it any more."""
        self._fail(SwapFailure(problem))

    # What becomes of its start.

    def _reported(self, report: Report) -> None:
        if isinstance(report, Ready):
            self._ready(report.running)
        elif isinstance(report, Failed):
            if not self._started.done():
                self._started.set_result(None)
            ending = report.failure.ending
            self._fail(SwapFailure(str(report.failure), ending.last_lines if ending else ()))
        elif isinstance(report, Launching):
            log.info(f"Started {report.what} (process {report.process_id}) beside the one that serves.")
        elif isinstance(report, Strayed):
            log.debug(f"the new server wrote something that is no message: {report.line}")
        else:
            (log.warn if report.warning else log.info)(report.message)

    def _ready(self, running: Running) -> None:
        if self._started.done():  # nobody has waited any longer
            self._late.start(running.stop())
            return
        self._started.set_result(running)
        if not self._taken.done():
            self._tenure = self._tenure_of(running, self._heard)
            self._tenure.watch()
            self._tenure.converse()

    def _heard(self, tenure: Tenure, event: Event) -> None:
        if self._taken.done():
            return
        if isinstance(event, Listed):
            self._listed = event
        elif isinstance(event, Connected):
            if self._listed is None or "tools" not in self._listed.lists:
                self._fail(SwapFailure("The new server answers, but its tools cannot be listed."))
            else:
                self._taken.set_result(None)
                self._take(tenure, self._listed)
        elif isinstance(event, Refused):
            self._fail(SwapFailure(f"The new server cannot be used over MCP: {str(event.refusal).rstrip('.')}."))
        else:
            self._fail(SwapFailure(f"The new server did not start: {event.reason}.", event.last_lines))

    # Its end.

    def _fail(self, failure: SwapFailure) -> None:
        """Unless it was taken, or has failed before."""
        if not self._taken.done():
            self._taken.set_exception(failure)

    async def _clear(self) -> tuple[str, ...]:
        """End what was started, and its last words."""
        self._starts.give_up()
        if self._tenure is not None:
            self._tenure.end()
        await asyncio.wait((self._started,), timeout=LAST_WORDS_SECONDS)
        if not self._started.done():
            self._started.set_result(None)
        running = self._started.result()
        if running is None:
            return ()
        await running.stop()
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                return (await running.ended()).last_lines
        except TimeoutError:
            return ()
