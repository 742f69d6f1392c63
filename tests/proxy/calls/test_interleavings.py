"""Whatever comes in whatever order: every request has one outcome, and what must not run twice does not."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from support.relays import MODERN, QUICK, Scene, ScriptedCall, ScriptedSession, said
from uno_devserver.protocol.jsonrpc import RpcError
from uno_devserver.protocol.service import Result
from uno_devserver.proxy.calls.failure_answers import OUTCOME_UNKNOWN, UNAVAILABLE

from .relayed import Upstreams, upstream_steps, was_lost_unsent, which

# What a request is, and whether it may run twice.
KINDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "act": ("tools/call", {"name": "act"}, False),
    "look": ("tools/call", {"name": "look"}, True),
    "read": ("resources/read", {"uri": "file:///a"}, True),
    "odd": ("somebody/else", {}, False),
    "execute": ("tools/call", {"name": "uno_execute_tool", "arguments": {"toolName": "act"}}, False),
}
SESSIONS = 3
NUMBER = "number"  # a field that tells requests apart, and passes like every unknown one


class Request:
    """One of a client's, with all that the upstreams saw of it."""

    def __init__(self, scene: Scene, number: int, kind: str, session: ScriptedSession) -> None:
        method, params, self.repeatable = KINDS[kind]
        self.number = number
        self.method = method
        self.cancelled = False
        self.task = scene.start(ScriptedCall(method, {**params, NUMBER: number}, session))

    def outcome(self) -> Result | msgspec.Raw | RpcError | None:
        """None: its client has cancelled it."""
        try:
            return self.task.result()
        except RpcError as error:
            return error
        except asyncio.CancelledError:
            return None


class World(Upstreams):
    """Clients that call, an upstream that answers or dies, and a record of it all."""

    def __init__(self, *, wait_calls: bool, modern: bool) -> None:
        self.scene = Scene(modern=modern, limits=QUICK)
        self.scene.state.own_tools = frozenset({"uno_execute_tool"})
        self.scene.service.forwarding.waits = wait_calls
        self.scene.link.turns = 3
        self.scene.link.tools = {"look": {"annotations": {"readOnlyHint": True}}}
        self.sessions = [ScriptedSession(), ScriptedSession(), ScriptedSession(MODERN)]
        self.requests: list[Request] = []
        self.answered: dict[int, int] = {}  # which answer a request was given, by its place among all asked

    def call(self, kind: str, session: int) -> None:
        self.requests.append(Request(self.scene, len(self.requests), kind, self.sessions[session]))

    def answer(self, which: int) -> None:
        if self.waiting:
            asked = self.waiting[which % len(self.waiting)]
            place = self.scene.link.asked.index(asked)
            self.answered[asked.params[NUMBER]] = place
            asked.answer({"place": place})

    def cancel(self, which: int) -> None:
        running = [request for request in self.requests if not request.task.done()]
        if running:
            running[which % len(running)].cancelled = running[which % len(running)].task.cancel()

    async def end(self) -> None:
        """Whatever still waits is answered."""
        async with asyncio.timeout(10):
            while not all(request.task.done() for request in self.requests):
                for _ in self.waiting:
                    self.answer(0)
                await asyncio.sleep(0)
        await self.scene.service.close()


calls = st.tuples(st.just("call"), st.sampled_from(sorted(KINDS)), st.integers(0, SESSIONS - 1))
steps = st.one_of(calls, calls, upstream_steps)
gentle_steps = st.one_of(
    calls,
    st.tuples(st.just("answer"), which),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("swap")),
)
turns = st.integers(0, 12)  # of the loop until the next step; connecting and asking take ten


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(steps, turns), max_size=25), st.booleans(), st.booleans())
def test_every_request_has_one_true_outcome_and_nothing_runs_twice_that_must_not(
    script: list[tuple[tuple[Any, ...], int]], wait_calls: bool, modern: bool
) -> None:
    world = asyncio.run(_play(script, modern=modern, wait_calls=wait_calls, comes_last=True))

    assert not any(asked.outdated for asked in world.scene.link.asked)
    for request in world.requests:
        _check(request, world)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(gentle_steps, turns), max_size=25), st.booleans())
def test_where_upstreams_only_take_each_others_place_every_request_is_run_and_answered_once(
    script: list[tuple[tuple[Any, ...], int]], modern: bool
) -> None:
    world = asyncio.run(_play(script, modern=modern))

    assert not any(asked.outdated for asked in world.scene.link.asked)
    for request in world.requests:
        _check(request, world)
        outcome = request.outcome()
        assert outcome is None or _refusal(outcome) == (None, "")
        assert sum(asked.params[NUMBER] == request.number for asked in world.scene.link.asked) <= 1


async def _play(
    script: list[tuple[tuple[Any, ...], int]], *, modern: bool, wait_calls: bool = False, comes_last: bool = False
) -> World:
    world = World(wait_calls=wait_calls, modern=modern)
    for (name, *arguments), turns in script:
        getattr(world, name)(*arguments)
        for _ in range(turns):
            await asyncio.sleep(0)
    if comes_last:  # everything works now
        world.come(True)
    await world.end()
    return world


def _check(request: Request, world: World) -> None:
    runs = [asked for asked in world.scene.link.asked if asked.params[NUMBER] == request.number]
    sent = [run for run in runs if not was_lost_unsent(run)]
    outcome = request.outcome()
    if outcome is None:
        assert request.cancelled
        return
    if not request.repeatable:
        assert len(sent) <= 1
    assert len(sent) <= 1 + QUICK.repetitions
    code, text = _refusal(outcome)
    if code == UNAVAILABLE:
        assert not sent, text
    elif code == OUTCOME_UNKNOWN:
        assert len(sent) >= 1
        assert request.number not in world.answered
    else:
        assert not isinstance(outcome, RpcError)
        assert said(outcome)["place"] == world.answered[request.number]
        assert world.scene.link.asked[world.answered[request.number]] is runs[-1]


def _refusal(outcome: Result | msgspec.Raw | RpcError) -> tuple[int | None, str]:
    """Which of our own answers it is; None: it is the upstream's."""
    if isinstance(outcome, RpcError):
        return outcome.code, outcome.message
    result = said(outcome)
    if not result.get("isError"):
        return None, ""
    text = result["content"][0]["text"]
    return (UNAVAILABLE if "has not been run." in text else OUTCOME_UNKNOWN), text
