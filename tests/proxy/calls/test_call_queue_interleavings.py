"""A model of what must be true, whatever comes in whatever order.

Every call has one outcome. No call, nested call or mcpStatus waits for ever. Nothing runs on a server that is being
replaced, `ready` is true, and no result of old code is silent about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from support.authorities import CHANGED, failed_build, settled
from support.relays import QUICK, ScriptedLink, said, state_of, tool_call
from support.virtual_time import run_virtually, turns
from uno_devserver.hotreload.authority import UNCHANGED, CheckResult, Demand, RestartResult
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls.call_queue import CallQueue, RunningCalls
from uno_devserver.proxy.calls.forwarder import Forwarder
from uno_devserver.proxy.calls.reload_messages import META_KEY
from uno_devserver.proxy.calls.service import ProxyService
from uno_devserver.workspace.config import Strategy

LIMITS = QUICK.replace(check_seconds=10.0, restart_seconds=120.0, progress_seconds=1.0)
LONG_SECONDS = 1000.0  # longer than every bound together
# How long a check or a restart takes, in seconds; at the last it is given up.
DURATIONS = (0.0, 0.5, 500.0)


class Code:
    """Sources that are edited, a server that runs some version of them, and the authority over both."""

    def __init__(self, world: World, *, watched: bool) -> None:
        self.world = world
        self.watched = watched
        self.source = 0
        self.looked = 0  # the version that the last check saw
        self.running = 0
        self.broken: set[int] = set()
        self.check_takes = self.restart_takes = 0.0
        self.check_fails = self.restart_fails = False
        self.faulty = False  # whether the last check or restart failed or was given up, so that nothing is known
        self.replaced: list[int] = []

    def news(self) -> bool | None:
        return self.source != self.looked if self.watched else None

    async def check(self, tell: Callable[[str], None], demand: Demand = Demand.NEW_CODE) -> CheckResult:
        tell("Looking.")
        self.looked = seen = self.source
        takes, fails = self.check_takes, self.check_fails
        given_up = takes > LIMITS.check_seconds
        self.faulty = self.faulty or fails or given_up
        await asyncio.sleep(takes)
        if fails:
            raise OSError("The disk is gone.")
        self.faulty = self.faulty and given_up
        if seen == self.running:
            return UNCHANGED
        return failed_build(f"version {seen}", str(seen)) if seen in self.broken else CHANGED

    async def ready_to_restart(self) -> RestartResult:
        world = self.world
        world.demand(self.running != self.source, "there was nothing to restart for")
        takes, fails, version = self.restart_takes, self.restart_fails, self.source
        given_up = takes > LIMITS.restart_seconds
        # One that fails leaves the old server only in a swap; the model has one in any case.
        self.faulty = given_up or (fails and world.strategy is Strategy.RESTART)
        if world.strategy is Strategy.RESTART:
            world.demand(not world.executing, "calls still ran")
            world.replacing += 1
        try:
            # One that is given up goes on; calls are made meanwhile.
            await asyncio.sleep(min(takes, LIMITS.restart_seconds))
        finally:
            if world.strategy is Strategy.RESTART:
                world.replacing -= 1
        if fails:
            return RestartResult(ok=False, problem="It ended.", kept=world.strategy is Strategy.SWAP)
        if given_up:
            raise ConnectionError("gone")
        self.running = version
        self.replaced.append(version)
        return RestartResult(ok=True)


class Made:
    """A call, and all that became of it."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.since = world.code.source  # what it may expect to run on
        self.asks: bool = False
        self.came_during_question = False
        self.begun = 0
        self.old = False  # whether it runs on code that is older than it may expect
        self.cancelled = False
        self.ending = asyncio.Event()
        self.running: RunningCalls | None = None
        self.nested: list[asyncio.Task[None]] = []
        self.world = world
        self.task = asyncio.ensure_future(self._queued())

    async def _queued(self) -> Result | msgspec.Raw:
        # Judged here, when the queue gets it: a question may come between this and the making of the call.
        self.came_during_question = any(made.asks for made in self.world.made)
        return await self.world.queue.run(tool_call(), self._execute)

    async def _execute(self, running: RunningCalls) -> Result:
        world, code = self.world, self.world.code
        assert not world.replacing
        assert not world.paused
        assert world.counted(running) < world.limit
        self.begun += 1
        self.running = running
        world.order.append(self)
        world.executing += 1
        self.old = code.watched and not code.faulty and code.running < self.since
        try:
            await self.ending.wait()
            for answering in self.nested:
                await asyncio.wait([answering])
        finally:
            world.executing -= 1
            if self.asks:  # as `Caller.close` does
                self.asks = False
                running.answered()
        return {"content": []}

    def ask(self) -> None:
        """Ask the client, which makes another call, and answers when that has its outcome."""

        async def answer() -> None:
            inner = world.submit_one()
            await asyncio.wait([inner.task])
            if self.asks and self.running is not None:
                self.asks = False
                self.running.answered()

        world = self.world
        assert self.running is not None
        self.asks = True
        self.running.asks()
        self.nested.append(asyncio.ensure_future(answer()))


class World:
    def __init__(self, strategy: Strategy, concurrency: int | None, *, watched: bool, waits: bool) -> None:
        self.strategy = strategy
        self.limit = concurrency or 1_000_000
        self.code = Code(self, watched=watched)
        self.made: list[Made] = []
        self.wrong: list[str] = []
        self.order: list[Made] = []
        self.statuses: list[asyncio.Task[None]] = []
        self.executing = 0
        self.replacing = 0
        self.paused = False  # by somebody else, and nothing runs
        self.pausing: list[asyncio.Task[None]] = []
        self.queue = CallQueue(
            self.code, concurrency=concurrency, strategy=strategy, waits=lambda: waits, name="It", limits=LIMITS
        )
        state = state_of(own_tools=frozenset({"mcpStatus"}))
        forwarding = Forwarder(ScriptedLink(), state, lambda _: None, LIMITS)
        self.service = ProxyService(
            forwarding,
            resource_updated=lambda _: None,
            roots_changed=lambda _: None,
            reconsider=forwarding.link.reconsider,
        )
        self.service.forwarding.queue = self.queue

    def counted(self, running: RunningCalls) -> int:
        """The calls that run on this server; those that had a question go on at once, whatever the limit."""
        return sum(made.running is running and not made.task.done() and not made.nested for made in self.made)

    def demand(self, fact: bool, else_wrong: str) -> None:
        """An authority that raises stops no call, so what it sees is judged at the end."""
        if not fact:
            self.wrong.append(else_wrong)

    def submit(self, count: int) -> None:
        for _ in range(count):
            self.submit_one()

    def submit_one(self) -> Made:
        self.made.append(Made(self, len(self.made)))
        return self.made[-1]

    def nest(self, which: int) -> None:
        running = [made for made in self.made if made.begun and not made.task.done() and not made.asks]
        if running:
            running[which % len(running)].ask()

    def status(self) -> None:
        self.statuses.append(asyncio.ensure_future(self._ask_status()))

    async def _ask_status(self) -> None:
        begun, edited = asyncio.get_running_loop().time(), self.code.source
        result = said(await self.service.answer(tool_call("mcpStatus")))
        self.demand(asyncio.get_running_loop().time() - begun < LIMITS.status_seconds + 1, "mcpStatus took too long")
        state, code = result["_meta"][META_KEY], self.code
        if state["state"] == "ready" and "also" not in state and not code.faulty:
            # Without a watcher, only what was saved before it asked is certain to be seen.
            newest = code.source if code.watched else edited
            self.demand(code.running >= newest, "what answers is not the newest code")
            self.demand(not self.queue._restart_due, "the next call would be told of a restart")

    def cancel(self, which: int) -> None:
        open_ones = [made for made in self.made if not made.task.done()]
        if open_ones:
            made = open_ones[which % len(open_ones)]
            made.cancelled = made.task.cancel() or made.cancelled

    def finish(self, which: int) -> None:
        running = [made for made in self.made if made.begun and not made.task.done()]
        if running:
            running[which % len(running)].ending.set()

    def edit(self, well: bool) -> None:
        self.code.source += 1
        if not well:
            self.code.broken.add(self.code.source)

    def checks(self, takes: float, fail: bool) -> None:
        self.code.check_takes, self.code.check_fails = takes, fail

    def restarts(self, takes: float, fail: bool) -> None:
        self.code.restart_takes, self.code.restart_fails = takes, fail

    def pause(self, hold: bool) -> None:
        async def pause() -> None:
            await self.queue.pause(hold=hold)
            self.paused = not hold

        self.pausing.append(asyncio.ensure_future(pause()))

    def resume(self) -> None:
        for task in self.pausing:
            task.cancel()
        self.paused = False
        self.queue.resume()

    async def end(self) -> None:
        """Now everything works: whatever still waits has its outcome."""
        self.checks(0.0, False)
        self.restarts(0.0, False)
        self.resume()
        async with asyncio.timeout(LONG_SECONDS):
            while not all(made.task.done() for made in self.made) or not all(each.done() for each in self.statuses):
                for made in self.made:
                    made.ending.set()
                await asyncio.sleep(0.1)
            assert await settled(self.queue, LONG_SECONDS)
        await turns()
        for each in self.statuses:
            each.result()


which = st.integers(0, 9)
durations = st.sampled_from(DURATIONS)
steps = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 4)),
    st.tuples(st.just("submit"), st.integers(1, 4)),
    st.tuples(st.just("finish"), which),
    st.tuples(st.just("finish"), which),
    st.tuples(st.just("nest"), which),
    st.tuples(st.just("nest"), which),
    st.tuples(st.just("status")),
    st.tuples(st.just("status")),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("edit"), st.booleans()),
    st.tuples(st.just("edit"), st.just(True)),
    st.tuples(st.just("checks"), durations, st.booleans()),
    st.tuples(st.just("checks"), st.sampled_from(DURATIONS[:2]), st.just(False)),
    st.tuples(st.just("restarts"), durations, st.booleans()),
    st.tuples(st.just("restarts"), st.sampled_from(DURATIONS[:2]), st.just(False)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("resume")),
    st.tuples(st.just("resume")),
)
# Until the next step: turns of the loop, or seconds.
gaps = st.sampled_from((0, 0, 0, 1, 1, 2, 3, 5, 8, 0.3, 2.0, 200.0))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(steps, gaps), min_size=12, max_size=40),
    st.sampled_from(Strategy),
    st.sampled_from((None, 1, 3)),
    st.booleans(),
    st.booleans(),
)
def test_every_call_has_one_outcome_and_every_change_one_restart(
    script: list[tuple[tuple[Any, ...], int | float]],
    strategy: Strategy,
    concurrency: int | None,
    watched: bool,
    waits: bool,
) -> None:
    async def play() -> World:
        world = World(strategy, concurrency, watched=watched, waits=waits)
        for (name, *arguments), gap in script:
            getattr(world, name)(*arguments)
            if isinstance(gap, float):
                await asyncio.sleep(gap)
            else:
                await turns(gap)
        await world.end()
        return world

    world = run_virtually(play())

    assert world.wrong == []
    for made in world.made:
        _check(made)
    if concurrency == 1:
        in_turn = [made.number for made in world.order if not made.came_during_question]
        assert in_turn == sorted(in_turn)
    assert len(world.code.replaced) == len(set(world.code.replaced)), "one restart per change"


def _check(made: Made) -> None:
    assert made.begun <= 1
    if made.task.cancelled():
        assert made.cancelled
        return
    result = said(made.task.result())
    state = result.get("_meta", {}).get(META_KEY)
    if made.begun:
        assert state is None or state["run"] is True
        assert not made.old or state is not None, "old code was silent"
    else:
        assert state is not None
        assert state["run"] is False
        assert result["isError"] is True
