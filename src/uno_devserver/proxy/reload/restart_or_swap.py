"""Replaces the upstream by one with new code: stops it and starts it again, or starts the new one beside it (a swap).

Before that, calls finish, also those of other proxies that share the upstream. One replacement runs at a time, and goes
on if its caller is cancelled. Its outcome is the difference between the old and the new tools, or the reason why the
new server did not start, with the last lines that it printed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ...hotreload.authority import RestartResult
from ...system.event_loop import Tasks, run_in_thread, shielded
from ...system.log import log
from ...workspace.config import Strategy
from ..lists.tool_changes import compare_tools
from ..state import ConnectionState
from ..upstream.host_launch import HostUpstream
from ..upstream.host_process import HostProcess
from .second_server import SecondServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...hotreload.control.server import ControlServer
    from ...workspace.config import HotReloadSettings
    from ..calls.call_queue import CallQueue
    from ..lists.merge import Entries
    from ..upstream.keeper import Keeper

PEERS_SECONDS = 5.0  # for the calls of other proxies to finish before their Host is restarted
CONNECTED, SHUTDOWN = ConnectionState.CONNECTED, ConnectionState.SHUTDOWN


class Restarter:
    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._tasks = Tasks()
        self._one_at_a_time = asyncio.Lock()

    async def restart(
        self,
        hot_reload: HotReloadSettings,
        queue: CallQueue,
        channel: ControlServer | None,
        *,
        new_code: bool,
        refusal: Callable[[], str],
    ) -> RestartResult:
        """Replace the upstream when its calls are over, or by a swap, and notify the proxies that share it.

        `new_code`: no server has answered with it yet. `refusal`: why the user's agreement does not cover what would
        be started; it is asked last of all, because the calls may have taken long.
        """
        swaps, outcome = hot_reload.strategy is Strategy.SWAP, RestartResult(False, "The restart was interrupted.")
        try:
            await queue.pause(hold=swaps, finish=not (swaps and self._can_swap))
            if channel is not None:
                await channel.announce_restart(PEERS_SECONDS)
            if why := await run_in_thread(refusal):
                outcome = RestartResult(False, kept=self._keeper.state is CONNECTED, refusal=why)
                return outcome
            delay = hot_reload.restart_delay_ms / 1000
            outcome = await (self.swap(new_code=new_code) if swaps else self.renew(delay, new_code=new_code))
            if outcome.ok:
                outcome = outcome.replace(problem=await self._addin_failures())
            return outcome
        finally:
            if channel is not None:
                channel.announce_restarted(outcome)

    @property
    def _can_swap(self) -> bool:
        """Whether another server can be started beside the present one; apps and IDEs know a Host by its port."""
        running = self._keeper.running
        return running is None or running.endpoint is None

    async def _addin_failures(self) -> str:
        """Which add-ins of the restarted Host did not load; also updates the health report."""
        running = self._keeper.running
        if not isinstance(running, HostProcess):
            return ""
        host = await run_in_thread(running.probe)
        if host.connected and running is self._keeper.running:
            self._keeper.proxy_state.learn(host=host)
        return " ".join(addin.failure for addin in host.add_ins if addin.error is not None)

    async def renew(self, delay_seconds: float = 0.0, *, new_code: bool = True) -> RestartResult:
        """Stop the upstream, if it is owned, and start it with its new code."""
        return await self._in_turn(partial(self._renew, delay_seconds, new_code))

    async def swap(self, *, new_code: bool = True) -> RestartResult:
        """Start the new code beside the present upstream, which serves until the new one is ready."""
        return await self._in_turn(partial(self._swap_or_renew, new_code))

    async def _in_turn(self, work: Callable[[], Awaitable[RestartResult]]) -> RestartResult:
        async def wait_and_work() -> RestartResult:
            async with self._one_at_a_time:
                return await work()

        return await shielded(self._tasks.start(wait_and_work()))

    async def _renew(self, delay_seconds: float, new_code: bool) -> RestartResult:
        keeper, upstream = self._keeper, self._keeper.upstream
        if upstream is None or keeper.state is SHUTDOWN:
            return RestartResult(False, "There is nothing to restart.")
        obstacle = await self._obstacle()
        if obstacle:
            return RestartResult(False, obstacle, kept=keeper.state is CONNECTED)
        if keeper.upstream is not upstream:  # the workspace has changed meanwhile
            return RestartResult(False, "The workspace has changed meanwhile, so nothing was restarted.")
        before = keeper.publisher.offered.tools
        keeper.proxy_state.forget_upstream()
        upstream.renegotiate()
        keeper.renew(delay_seconds, new_code=new_code)
        return await self._outcome(before)

    async def _obstacle(self) -> str:
        """Why the present upstream cannot be restarted, for example because it belongs to another program."""
        running, upstream = self._keeper.running, self._keeper.upstream
        if running is None or running.owned:
            return ""
        if isinstance(upstream, HostUpstream) and isinstance(running, HostProcess):
            return await run_in_thread(lambda: upstream.replace(running))
        return f"{self._keeper.named} was not started by this proxy, so it cannot be restarted here."

    async def _swap_or_renew(self, new_code: bool) -> RestartResult:
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or upstream is None or keeper.state is not CONNECTED:
            return await self._renew(0.0, new_code)
        if not self._can_swap:  # the calls are over, and other requests, which no call waits for, finish first
            await keeper.until_unused()
            return await self._renew(0.0, new_code)
        before = keeper.publisher.offered.tools
        upstream.renegotiate()
        swap = keeper.swap = SecondServer(keeper, upstream, keeper.promote)
        try:
            await keeper.owner.before_launch()
            failure = await swap.run()
        finally:
            keeper.swap = None
            keeper.wake_waiters()
        if failure is None:
            return self._compared(before)
        log.warn(f"{failure.problem} {keeper.named} was not replaced.")
        if keeper.state is not CONNECTED:  # the old one has ended meanwhile, and is restarted with the new code
            return await self._outcome(before)
        return failure

    async def _outcome(self, before: Entries) -> RestartResult:
        """The outcome of the start that is under way."""
        keeper = self._keeper
        startup_seconds = keeper.upstream.startup_seconds if keeper.upstream is not None else 0.0
        seconds = keeper.limits.renew_seconds + keeper.limits.additional_seconds(startup_seconds)
        try:
            async with asyncio.timeout(seconds):
                await keeper.until_settled()
        except TimeoutError:
            return RestartResult(False, f"{keeper.named} is still being started after {seconds:g} s.")
        if keeper.state is CONNECTED:
            return self._compared(before)
        ending = keeper.proxy_state.facts.last_end
        problem = "uno-devserver is ending." if keeper.state is SHUTDOWN else keeper.problem
        return RestartResult(False, problem, ending.last_lines if ending else ())

    def _compared(self, before: Entries) -> RestartResult:
        difference = compare_tools(before, self._keeper.publisher.offered.tools)
        log.info(f"{self._keeper.named} runs the new code; {difference}.")
        return RestartResult(True, lists=difference.verdict, tools=difference)
