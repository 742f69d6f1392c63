"""A server's new tools against its old ones, for whoever has read the old ones: same, grown or changed. Pure.

Restarter an upstream on purpose, because there is newer code: first the old one goes, or first the new one comes.

One replacement at a time, and whoever asks for one may stop waiting for it. A new one that does not start is told with
its last words; beside an old one that still serves it costs that nothing.
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
from ..upstream.host import HostUpstream
from ..upstream.host_process import HostProcess
from .swap import Swap, SwapFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ...hotreload.difference import Verdict
    from ..lists.merge import Entries
    from ..lists.publisher import ListPublisher
    from ..state import ProxyState
    from ..upstream.base import Upstream
    from ..upstream.keeper import Keeper
    from ..upstream.lifecycle import UpstreamLimits, Lifecycle


def compare(before: Entries, after: Entries) -> Difference:
    old, new = dict(before), dict(after)
    both = [name for name in new if name in old]
    grown = {name: _growth(old[name], new[name]) for name in both}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        grown=tuple(name for name in both if grown[name] == "grown"),
        changed=tuple(name for name in both if grown[name] == "changed"),
    )


def _growth(before: bytes, after: bytes) -> Verdict:
    if before == after:
        return "same"
    try:
        old, new = msgspec.json.decode(before), msgspec.json.decode(after)
        if old == new:  # the members of an object have no order
            return "same"
        return "grown" if _takes_more(old, new) else "changed"
    except (ValueError, RecursionError):  # valid for others, but not for this reader
        return "changed"


def _takes_more(old: Any, new: Any) -> bool:
    """Whether all that is new are properties that nobody has to give."""
    taken, takes = _schema(old), _schema(new)
    before, after = taken.pop("properties", None) or {}, takes.pop("properties", None) or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    same_but_for_these = {**old, "inputSchema": taken} == {**new, "inputSchema": takes}
    return same_but_for_these and before == {name: schema for name, schema in after.items() if name in before}


def _schema(tool: Any) -> dict[str, Any]:
    """A copy; ValueError: it is none."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if not isinstance(schema, dict):
        raise ValueError("a tool without a schema")
    return dict(schema)


CONNECTED, SHUTDOWN = ConnectionState.CONNECTED, ConnectionState.SHUTDOWN
NOT_WANTED = "The new server is not wanted any more: the workspace has changed, or the proxy ends."


class Restarter:
    def __init__(
        self,
        keeper: Keeper,
        lifecycle: Lifecycle,
        state: ProxyState,
        publisher: ListPublisher,
        limits: UpstreamLimits,
    ) -> None:
        self._keeper = keeper
        self._lifecycle = lifecycle
        self._state = state
        self._publisher = publisher
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._one_at_a_time = asyncio.Lock()
        self._spare: Swap | None = None

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
        before = self._publisher.tools
        self._state.forget_upstream()
        announcement = f"{keeper.named} is restarted with the new code."
        keeper.do(self._lifecycle.renew(self._loop.time(), announcement, after=delay_seconds))
        self._state.learn(reloads=self._lifecycle.reloads)
        return await self._outcome(before)

    async def _obstacle(self) -> str:
        """Why what runs cannot be replaced: it may be somebody else's."""
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or running.owned:
            return ""
        if isinstance(upstream, HostUpstream) and isinstance(running, HostProcess):
            return await apart(lambda: upstream.replace(running))
        return f"{keeper.named} was not started by this proxy, so it cannot be restarted here."

    async def _outcome(self, before: Entries) -> Restarted:
        """What becomes of a start that is under way."""
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

    # The new one comes first.

    async def _swap(self) -> Restarted:
        keeper = self._keeper
        running, upstream = keeper.running, keeper.upstream
        if running is None or upstream is None or keeper.state is not CONNECTED:
            return await self._renew(0.0)
        if running.endpoint is not None:
            # A Host: apps and IDEs know it by its port, which two cannot have. What it does, it may bring to an end.
            await keeper.until_unused()
            return await self._renew(0.0)
        before = self._publisher.tools
        try:
            await self._take_a_new_one(upstream)
        except SwapFailure as failure:
            return await self._not_taken(failure, before)
        return self._compared(before)

    async def _take_a_new_one(self, upstream: Upstream) -> None:
        keeper = self._keeper
        keeper.alone.clear()
        self._spare = Swap(
            upstream, self._state.timeline, keeper.tenure_of, keeper.take_over, self._limits.swap_seconds
        )
        try:
            await keeper.before_launch()
            await self._spare.prepare()
        finally:
            self._spare = None
            keeper.alone.set()

    async def _not_taken(self, failure: SwapFailure, before: Entries) -> Restarted:
        keeper = self._keeper
        log.warn(f"{failure} {keeper.named} was not replaced.")
        if keeper.state is not CONNECTED:  # the old one has ended meanwhile, and the new code is tried in its place
            return await self._outcome(before)
        return Restarted(False, str(failure), failure.last_lines, kept=True)

    def _compared(self, before: Entries) -> Restarted:
        difference = compare(before, self._publisher.tools)
        log.info(f"{self._keeper.named} runs the new code; {difference}.")
        return Restarted(True, lists=difference.verdict, tools=difference)
