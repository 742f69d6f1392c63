"""Replaces the upstream by one with new code: stop and start again (`renew`), or start beside it first (`swap`).

One replacement runs at a time, and goes on if its caller is cancelled. Its outcome names the difference between the old
and the new tools, or why the new server did not start, with the last lines that it printed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...hotreload.authority import Restarted
from ...hotreload.difference import Difference
from ...protocol.running import Tasks
from ...system.log import log
from ...system.threads import apart
from ..state import ConnectionState
from ..upstream.host_launch import HostUpstream
from ..upstream.host_process import HostProcess
from .swap import Swap, SwapFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...hotreload.difference import Verdict
    from ..lists.merge import Entries
    from ..lists.publisher import ListPublisher
    from ..state import ProxyState
    from ..upstream.base import Upstream
    from ..upstream.keeper import Keeper, Owner
    from ..upstream.restart_policy import Lifecycle, UpstreamLimits

CONNECTED, SHUTDOWN = ConnectionState.CONNECTED, ConnectionState.SHUTDOWN
NOT_WANTED = "The new server is not wanted any more: the workspace has changed, or the proxy ends."


class Restarter:
    """A part of the keeper, which imports it when it is first needed."""

    def __init__(
        self,
        keeper: Keeper,
        owner: Owner,
        lifecycle: Lifecycle,
        state: ProxyState,
        publisher: ListPublisher,
        limits: UpstreamLimits,
    ) -> None:
        self._keeper = keeper
        self._owner = owner
        self._lifecycle = lifecycle
        self._state = state
        self._publisher = publisher
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._one_at_a_time = asyncio.Lock()
        self._swap: Swap | None = None  # the one that is under way

    async def renew(self, delay_seconds: float) -> Restarted:
        return await self._in_turn(partial(self._renew, delay_seconds))

    async def swap(self) -> Restarted:
        return await self._in_turn(self._swap_or_renew)

    def abort_swap(self) -> None:
        if self._swap is not None:
            self._swap.abort(NOT_WANTED)

    async def _in_turn(self, work: Callable[[], Awaitable[Restarted]]) -> Restarted:
        async def wait_and_work() -> Restarted:
            async with self._one_at_a_time:
                return await work()

        return await asyncio.shield(self._tasks.start(wait_and_work()))

    # Stop, then start.

    async def _renew(self, delay_seconds: float) -> Restarted:
        keeper = self._keeper
        if keeper.upstream is None or keeper.state is SHUTDOWN:
            return Restarted(False, "There is nothing that could be restarted.")
        obstacle = await self._obstacle()
        if obstacle:
            return Restarted(False, obstacle, kept=keeper.state is CONNECTED)
        before = self._publisher.offered.tools
        self._state.forget_upstream()
        keeper.upstream.renegotiate()
        announcement = f"{keeper.named} is restarted with the new code."
        keeper.carry_out(self._lifecycle.renew(self._loop.time(), announcement, after=delay_seconds))
        self._state.learn(reloads=self._lifecycle.reloads)
        return await self._outcome(before)

    async def _obstacle(self) -> str:
        """Why the present upstream cannot be restarted: it may belong to another program."""
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or running.owned:
            return ""
        if isinstance(upstream, HostUpstream) and isinstance(running, HostProcess):
            return await apart(lambda: upstream.replace(running))
        return f"{keeper.named} was not started by this proxy, so it cannot be restarted here."

    async def _outcome(self, before: Entries) -> Restarted:
        """The outcome of the start that is under way."""
        keeper, seconds = self._keeper, self._limits.renew_seconds
        try:
            async with asyncio.timeout(seconds):
                await keeper.until_settled()
        except TimeoutError:
            return Restarted(False, f"{keeper.named} is still being started after {seconds:g} s.")
        if keeper.state is CONNECTED:
            return self._compared(before)
        ending = self._state.facts.last_end
        problem = "uno-devserver is ending." if keeper.state is SHUTDOWN else keeper.problem
        return Restarted(False, problem, ending.last_lines if ending else ())

    # Start, then stop.

    async def _swap_or_renew(self) -> Restarted:
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or upstream is None or keeper.state is not CONNECTED:
            return await self._renew(0.0)
        if running.endpoint is not None:
            # A Host: apps and IDEs know it by its port, which two cannot have. It may finish its requests first.
            await keeper.until_unused()
            return await self._renew(0.0)
        before = self._publisher.offered.tools
        try:
            await self._run_swap(upstream)
        except SwapFailure as failure:
            return await self._not_swapped(failure, before)
        return self._compared(before)

    async def _run_swap(self, upstream: Upstream) -> None:
        keeper = self._keeper
        keeper.no_swap.clear()
        upstream.renegotiate()
        self._swap = Swap(
            upstream,
            self._state.timeline,
            supervise=keeper.supervise,
            promote=keeper.promote,
            strayed=keeper.strayed,
            limits=self._limits,
        )
        try:
            await self._owner.before_launch()
            await self._swap.run()
        finally:
            self._swap = None
            keeper.no_swap.set()

    async def _not_swapped(self, failure: SwapFailure, before: Entries) -> Restarted:
        keeper = self._keeper
        log.warn(f"{failure} {keeper.named} was not replaced.")
        if keeper.state is not CONNECTED:  # the old one has ended meanwhile, and is started again with the new code
            return await self._outcome(before)
        return Restarted(False, str(failure), failure.last_lines, kept=True)

    def _compared(self, before: Entries) -> Restarted:
        difference = compare(before, self._publisher.offered.tools)
        log.info(f"{self._keeper.named} runs the new code; {difference}.")
        return Restarted(True, lists=difference.verdict, tools=difference)


def compare(before: Entries, after: Entries) -> Difference:
    """The difference between the old tools and the new ones, for clients that have read the old ones."""
    old, new = dict(before), dict(after)
    verdicts = {name: _verdict(old[name], new[name]) for name in new if name in old}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        grown=tuple(name for name, verdict in verdicts.items() if verdict == "grown"),
        changed=tuple(name for name, verdict in verdicts.items() if verdict == "changed"),
    )


def _verdict(before: bytes, after: bytes) -> Verdict:
    if before == after:
        return "same"
    try:
        old, new = msgspec.json.decode(before), msgspec.json.decode(after)
        if old == new:  # the members of an object have no order
            return "same"
        return "grown" if _has_grown(old, new) else "changed"
    except (ValueError, RecursionError):  # JSON that other readers accept, but not this one
        return "changed"


def _has_grown(old: Any, new: Any) -> bool:
    """Whether the only difference are new properties, and none of them is required."""
    old_schema, new_schema = _schema(old), _schema(new)
    before, after = old_schema.pop("properties", None) or {}, new_schema.pop("properties", None) or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    same_otherwise = {**old, "inputSchema": old_schema} == {**new, "inputSchema": new_schema}
    return same_otherwise and before == {name: schema for name, schema in after.items() if name in before}


def _schema(tool: Any) -> dict[str, Any]:
    """A copy of its input schema; raises ValueError where there is none."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if not isinstance(schema, dict):
        raise ValueError("a tool without a schema")
    return dict(schema)
