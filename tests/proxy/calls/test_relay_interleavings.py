"""Whatever happens to relayed calls in whatever order: each has one answer, unless its client has cancelled it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.authorities import CHANGED, ScriptedAuthority, failed_build
from support.relays import QUICK
from support.virtual_time import run_virtually, turns
from uno_devserver.hotreload.authority import UNCHANGED, RestartResult
from uno_devserver.protocol.jsonrpc import STOPPED
from uno_devserver.proxy.calls.call_queue import CallQueue
from uno_devserver.proxy.inspection.call_recorder import CANCELLED, DONE, FAILED, RESTARTING, CallRecorder
from uno_devserver.workspace.config import Strategy

from .relayed import RelayedClient, Upstreams, message, upstream_steps, was_lost_unsent, which

TOOLS = {"act": False, "look": True}  # and whether each may run twice
SILENCE = QUICK.silence_seconds


class Request:
    def __init__(self, number: int, tool: str) -> None:
        self.number = number
        self.tool = tool
        self.answered_before_cancel: bool | None = None  # None: it was not cancelled


class World(Upstreams):
    """A client that calls and cancels, an upstream that answers, fails and is replaced, and code that changes."""

    def __init__(self, *, modern: bool, strategy: Strategy, concurrency: int | None) -> None:
        self.client = RelayedClient(modern=modern)
        self.scene = self.client.scene
        self.client.link.turns = 2
        self.client.link.tools = {"look": {"annotations": {"readOnlyHint": True}}}
        self.authority = ScriptedAuthority(False)
        self.recorder = CallRecorder(lambda _: None)
        self.queue = CallQueue(
            self.authority, concurrency=concurrency, strategy=strategy, waits=lambda: False, name="Acme", limits=QUICK
        )
        self.requests: list[Request] = []

    async def begin(self) -> None:
        await self.client.begin()
        self.client.use_queue(self.queue)

    @property
    def unanswered(self) -> list[Request]:
        answered = {said.get("id") for said in self.client.heard()}
        return [one for one in self.requests if one.number not in answered and one.answered_before_cancel is not False]

    # What happens.

    def call(self, tools: list[str]) -> None:
        """In one read."""
        lines = []
        for tool in tools:
            request = Request(len(self.requests), tool)
            self.requests.append(request)
            lines.append(self.client.line(tool, request.number, arguments={"number": request.number}))
        self.client.send(*lines)

    def answer(self, which: int) -> None:
        if self.waiting:
            asked = self.waiting[which % len(self.waiting)]
            asked.answer({"content": [], "number": asked.params["arguments"]["number"]})

    def refuse(self, which: int, code: int) -> None:
        if self.waiting:
            self.waiting[which % len(self.waiting)].fail(code, "It says no.")

    def cancel(self, which: int) -> None:
        if self.requests:
            request = self.requests[which % len(self.requests)]
            if request.answered_before_cancel is None:
                request.answered_before_cancel = bool(self.client.answers(request.number))
                self.client.cancel(request.number)

    def edit(self) -> None:
        self.authority.known = True

    def check(self, outcome: str) -> None:
        for check in self.authority.checks:
            if not check.done():
                self.authority.known = False
                check.set_result(
                    {"changed": CHANGED, "unchanged": UNCHANGED, "broken": failed_build("oops", "d1")}[outcome]
                )

    def restart(self, ok: bool) -> None:
        for restart in self.authority.restarts:
            if not restart.done():
                self.come(True)
                restart.set_result(RestartResult(ok=ok, problem="" if ok else "It ended.", kept=not ok))

    def decline(self, wanted: bool) -> None:
        """Whether connections have no room for a call at the moment."""
        self.client.link.declines_calls = wanted

    def observe(self, wanted: bool) -> None:
        self.recorder.live = wanted
        self.client.service.forwarding.observer = self.recorder if wanted else None

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # How it ends.

    async def end(self) -> None:
        """Everything works again, and the upstream answers."""
        self.come(True)
        async with asyncio.timeout(3 * SILENCE):
            while self.unanswered or self.client.session.open:
                self.check("unchanged")
                self.restart(True)
                self.answer(0)
                await asyncio.sleep(0.001)
        await turns()
        await self.client.service.close()
        self.queue.close()

    async def stop(self) -> None:
        """The proxy ends while calls run; the upstream goes on for a moment."""
        late = self.waiting
        await self.client.session.close()
        for number, asked in enumerate(late):
            if asked.open and number % 2:
                asked.answer({"content": []})
            elif asked.open:
                asked.lose()
        await turns(50)
        await self.client.service.close()
        self.queue.close()


tools = st.sampled_from(sorted(TOOLS))
calls = st.tuples(st.just("call"), st.lists(tools, min_size=1, max_size=3))
steps = st.one_of(
    calls,
    calls,
    upstream_steps,
    st.tuples(st.just("refuse"), which, st.sampled_from([STOPPED, -32602])),
    st.tuples(st.just("edit")),
    st.tuples(st.just("check"), st.sampled_from(["changed", "unchanged", "broken"])),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("decline"), st.booleans()),
    st.tuples(st.just("observe"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([0.01, 1.0, 20.0, SILENCE * 1.2])),
)
scripts = st.lists(st.tuples(steps, st.integers(0, 12)), max_size=25)
strategies = st.sampled_from([Strategy.RESTART, Strategy.SWAP])
concurrencies = st.sampled_from([None, 1, 2])


@pytest.mark.parametrize("stops", [False, True], ids=["all is answered", "the proxy ends while they run"])
@settings(max_examples=100, deadline=None)
@given(script=scripts, modern=st.booleans(), strategy=strategies, concurrency=concurrencies)
def test_every_call_has_one_answer_or_was_cancelled_and_nothing_is_left_of_it(
    script: list[tuple[tuple[Any, ...], int]], modern: bool, strategy: Strategy, concurrency: int | None, stops: bool
) -> None:
    run_virtually(_play(script, modern, strategy, concurrency, stops=stops))


async def _play(
    script: list[tuple[tuple[Any, ...], int]],
    modern: bool,
    strategy: Strategy,
    concurrency: int | None,
    *,
    stops: bool,
) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    world = World(modern=modern, strategy=strategy, concurrency=concurrency)
    try:
        await world.begin()
        for (name, *arguments), pause in script:
            done = getattr(world, name)(*arguments)
            if done is not None:
                await done
            await turns(pause)
        await (world.stop() if stops else world.end())
        for request in world.requests:
            _check(request, world)
        _check_balance(world)
        if not stops:
            states = {one["state"] for one in world.recorder.documents()}
            assert states <= {DONE, FAILED, CANCELLED, RESTARTING}
    finally:
        world.client.close()
    assert failures == []


def _check(request: Request, world: World) -> None:
    answers = world.client.answers(request.number)
    runs = [one for one in world.client.link.asked if one.params["arguments"]["number"] == request.number]
    sent = [run for run in runs if not was_lost_unsent(run)]
    assert not any(run.outdated for run in runs)
    if request.answered_before_cancel is False:
        assert answers == []
    else:
        assert len(answers) == 1
        result = answers[0].get("result", {})
        if "number" in result:  # the upstream's
            assert result["number"] == request.number
            assert runs
        if "has not been run." in str(result):
            assert not sent
    assert len(sent) <= (1 + QUICK.repetitions if TOOLS[request.tool] else 1)


def _check_balance(world: World) -> None:
    """Nothing is left of the calls, wherever they were counted."""
    assert world.client.session.open == {}
    assert world.queue._running.count == world.queue._running.asking == 0
    assert all(one.route is None or not one.route.callers for one in world.client.service.conversations.all())
    assert not any(route.callers for route in world.client.service.conversations.routes)


def test_a_message_for_nothing_is_ignored() -> None:
    """Cancelling what is unknown, or was answered long ago."""

    async def play() -> None:
        client = RelayedClient()
        try:
            await client.begin()
            client.call("echo", 1)
            client.asked.answer()
            client.cancel(1)
            client.cancel("unknown")
            client.send(message(None, "notifications/cancelled", {"requestId": None}))
            await turns()
            assert len(client.heard()) == 1
        finally:
            client.close()

    run_virtually(play())
