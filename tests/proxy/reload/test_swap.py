"""One that is started beside the one that serves: it is handed over when it is ready, or nothing is left of it."""

from __future__ import annotations

import asyncio

import pytest

from protocol.conversations import asynchronous, until
from support.upstreams import SWIFT, Lists, ScriptedRunning, ScriptedUpstream
from uno_devserver.issues import fatal
from uno_devserver.protocol.client.connection import Lost
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError
from uno_devserver.protocol.parties import ClientInfo
from uno_devserver.proxy.reload.swap import Swap, SwapFailure
from uno_devserver.proxy.state import Timeline
from uno_devserver.proxy.upstream.base import Ending, Running, StartFailure
from uno_devserver.proxy.upstream.keeper import UNKNOWN_CLIENT, Listed, ReportEvent, SupervisedUpstream


class Beside:
    def __init__(self, upstream: ScriptedUpstream, seconds: float = 5.0) -> None:
        self.promoted: list[tuple[SupervisedUpstream, Listed]] = []
        self.strays: list[tuple[SupervisedUpstream, str]] = []
        self.swap = Swap(
            upstream,
            Timeline(),
            supervise=self._supervise,
            promote=self._promote,
            strayed=lambda upstream, line: self.strays.append((upstream, line)),
            limits=SWIFT.replace(swap_seconds=seconds),
        )

    def _promote(self, upstream: SupervisedUpstream, listed: Listed) -> None:
        self.promoted.append((upstream, listed))

    @staticmethod
    def _supervise(running: Running, report: ReportEvent) -> SupervisedUpstream:
        async def client() -> ClientInfo:
            return UNKNOWN_CLIENT

        return SupervisedUpstream(running, report, 1, client=client, shared_peer=None, end_seconds=0.01)


@asynchronous
async def test_it_is_taken_with_its_lists_and_whoever_takes_it_hears_of_its_end() -> None:
    running = ScriptedRunning(Lists(tools=["new"]))
    beside = Beside(ScriptedUpstream(running))

    await beside.swap.run()

    ((supervised, listed),) = beside.promoted
    assert (supervised.running, [name for name, _ in listed.lists["tools"]], running.stops) == (running, ["new"], 0)
    heard: list[object] = []
    supervised.hand_over(lambda _, event: heard.append(event), 2)
    running.die()
    await until(lambda: heard == [Ending("it ended with exit code 3", 3, ("its last line",))])


@asynchronous
async def test_its_lines_that_are_no_messages_are_reported_as_soon_as_it_is_promoted() -> None:
    upstream = ScriptedUpstream(ScriptedRunning(Lists()))
    upstream.gate.clear()
    beside = Beside(upstream)
    swapping = asyncio.ensure_future(beside.swap.run())
    await until(lambda: bool(upstream.observers))

    upstream.observers[0].strayed("starting up")
    await asyncio.sleep(0)
    assert beside.strays == []
    upstream.gate.set()
    await swapping
    ((promoted, _),) = beside.promoted
    assert beside.strays == [(promoted, "starting up")]
    upstream.observers[0].strayed("at work")

    await until(lambda: beside.strays[1:] == [(promoted, "at work")])


@asynchronous
async def test_one_that_dies_before_it_is_ready_says_so_with_its_last_words() -> None:
    running = ScriptedRunning(Lists())
    running.refusals = [Lost("It hung up.", sent=True)] * 2
    beside = Beside(ScriptedUpstream(running))
    preparing = asyncio.ensure_future(beside.swap.run())
    await until(lambda: len(running.refusals) == 1)

    running.die()

    with pytest.raises(SwapFailure, match="it ended with exit code 3") as failure:
        await preparing
    assert failure.value.last_lines == ("its last line",)
    assert (beside.promoted, running.stops) == ([], 1)


@asynchronous
async def test_one_whose_tools_cannot_be_listed_is_not_taken() -> None:
    running = ScriptedRunning(Lists())
    running.lists.names["tools"] = RpcError(INTERNAL_ERROR, "not now")

    beside = Beside(ScriptedUpstream(running))

    with pytest.raises(SwapFailure, match="its tools cannot be listed"):
        await beside.swap.run()
    assert running.stops == 1


@asynchronous
async def test_a_start_that_fails_is_told_in_its_own_words() -> None:
    ending = Ending("it ended with exit code 1", 1, ("boom",))
    upstream = ScriptedUpstream(StartFailure(fatal("HostCrashed", "It does not start.", "Repair it."), ending=ending))

    with pytest.raises(SwapFailure, match="It does not start") as failure:
        await Beside(upstream).swap.run()
    assert failure.value.last_lines == ("boom",)


@asynchronous
async def test_one_that_is_never_ready_is_given_up_and_stopped_when_it_comes_late() -> None:
    running = ScriptedRunning(Lists())
    upstream = ScriptedUpstream(running, stubborn=True)
    upstream.gate.clear()
    beside = Beside(upstream, seconds=0.05)

    with pytest.raises(SwapFailure, match=r"not ready within 0\.05 s"):
        await beside.swap.run()
    upstream.gate.set()

    await until(lambda: running.stops == 1)
    assert beside.promoted == []


@asynchronous
async def test_one_that_is_not_wanted_any_more_is_not_taken() -> None:
    running = ScriptedRunning(Lists())
    upstream = ScriptedUpstream(running)
    upstream.gate.clear()
    beside = Beside(upstream)
    preparing = asyncio.ensure_future(beside.swap.run())
    await until(lambda: upstream.starts == 1)

    beside.swap.abort("Nobody wants it.")
    upstream.gate.set()

    with pytest.raises(SwapFailure, match="Nobody wants it"):
        await preparing
    assert beside.promoted == []
