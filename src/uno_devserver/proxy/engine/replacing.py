"""Replacing an upstream on purpose, because there is newer code: first the old one goes, or first the new one comes.

One replacement at a time, and whoever asks for one may stop waiting for it. A new one that does not start is told with
its last words; beside an old one that still serves it costs that nothing.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ...hotreload.authority import Restarted
from ...instances.health_report import ConnectionState
from ...protocol.running import Tasks
from ...system.log import log
from ...system.threads import apart
from ..upstream.host import HostUpstream
from ..upstream.host_running import HostRunning
from .spare import Spare, SpareFailure
from .tools_diff import compare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..lists import Entries
    from ..timeline import Timeline
    from ..upstream.upstream import Upstream
    from .keeper import Keeper
    from .knowledge import Knowledge
    from .lifecycle import Lifecycle
    from .offering import Offering
    from .policy import Policy

CONNECTED, SHUTDOWN = ConnectionState.CONNECTED, ConnectionState.SHUTDOWN
NOT_WANTED = "The new server is not wanted any more: the workspace has changed, or the proxy ends."


class Replacing:
    def __init__(
        self,
        keeper: Keeper,
        lifecycle: Lifecycle,
        knowledge: Knowledge,
        offering: Offering,
        timeline: Timeline,
        policy: Policy,
    ) -> None:
        self._keeper = keeper
        self._lifecycle = lifecycle
        self._knowledge = knowledge
        self._offering = offering
        self._timeline = timeline
        self._policy = policy
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._one_at_a_time = asyncio.Lock()
        self._spare: Spare | None = None

    async def renew(self, delay_seconds: float) -> Restarted:
        return await self._in_turn(partial(self._renew, delay_seconds))

    async def swap(self) -> Restarted:
        return await self._in_turn(self._swap)

    def give_up(self) -> None:
        """What is started beside is not wanted any more."""
        if self._spare is not None:
            self._spare.give_up(NOT_WANTED)

    async def _in_turn(self, work: Callable[[], Awaitable[Restarted]]) -> Restarted:
        async def wait_and_work() -> Restarted:
            async with self._one_at_a_time:
                return await work()

        return await asyncio.shield(self._tasks.start(wait_and_work()))

    # The old one goes first.

    async def _renew(self, delay_seconds: float) -> Restarted:
        keeper = self._keeper
        if keeper.upstream is None or keeper.state is SHUTDOWN:
            return Restarted(False, "There is nothing that could be restarted.")
        obstacle = await self._obstacle()
        if obstacle:
            return Restarted(False, obstacle, kept=keeper.state is CONNECTED)
        before = self._offering.tools
        self._knowledge.forget_upstream()
        announcement = f"{keeper.named} is restarted with the new code."
        keeper.do(self._lifecycle.renew(self._loop.time(), announcement, after=delay_seconds))
        self._knowledge.learn(reloads=self._lifecycle.reloads)
        return await self._outcome(before)

    async def _obstacle(self) -> str:
        """Why what runs cannot be replaced: it may be somebody else's."""
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or running.owned:
            return ""
        if isinstance(upstream, HostUpstream) and isinstance(running, HostRunning):
            return await apart(lambda: upstream.replace(running))
        return f"{keeper.named} was not started by this proxy, so it cannot be restarted here."

    async def _outcome(self, before: Entries) -> Restarted:
        """What becomes of a start that is under way."""
        keeper, seconds = self._keeper, self._policy.renew_seconds
        try:
            async with asyncio.timeout(seconds):
                await keeper.until_settled()
        except TimeoutError:
            return Restarted(False, f"{keeper.named} is still being started after {seconds:g} s.")
        if keeper.state is CONNECTED:
            return self._compared(before)
        ending = self._knowledge.facts.last_end
        problem = "uno-devserver is ending." if keeper.state is SHUTDOWN else keeper.problem
        return Restarted(False, problem, ending.last_lines if ending else ())

    # The new one comes first.

    async def _swap(self) -> Restarted:
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or upstream is None or keeper.state is not CONNECTED:
            return await self._renew(0.0)
        if running.endpoint is not None:
            # A Host: apps and IDEs know it by its port, which two cannot have. What it does, it may bring to an end.
            await keeper.unused(keeper.generation)
            return await self._renew(0.0)
        before = self._offering.tools
        try:
            await self._take_a_new_one(upstream)
        except SpareFailure as failure:
            return await self._not_taken(failure, before)
        return self._compared(before)

    async def _take_a_new_one(self, upstream: Upstream) -> None:
        keeper = self._keeper
        keeper.alone.clear()
        self._spare = Spare(upstream, self._timeline, keeper.tenure_of, keeper.take_over, self._policy.spare_seconds)
        try:
            await keeper.launching()
            await self._spare.prepare()
        finally:
            self._spare = None
            keeper.alone.set()

    async def _not_taken(self, failure: SpareFailure, before: Entries) -> Restarted:
        keeper = self._keeper
        log.warn(f"{failure} {keeper.named} was not replaced.")
        if keeper.state is not CONNECTED:  # the old one has ended meanwhile, and the new code is tried in its place
            return await self._outcome(before)
        return Restarted(False, str(failure), failure.last_lines, kept=True)

    def _compared(self, before: Entries) -> Restarted:
        difference = compare(before, self._offering.tools)
        log.info(f"{self._keeper.named} runs the new code; {difference}.")
        return Restarted(True, lists=difference.verdict, tools=difference)
