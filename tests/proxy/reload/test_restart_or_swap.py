"""Newer code takes the place of what runs: real commands under real calls, and what may go wrong meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.hosts import is_running
from support.odd_servers import Notes, odd_server
from support.relays import QUICK, ScriptedSession, text_of, tool_call
from support.upstreams import SWIFT, Kept, Lists, ScriptedRunning, ScriptedUpstream
from support.waiting import until
from uno_devserver.hotreload.authority import RestartResult, ToolChanges
from uno_devserver.issues import fatal
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.jsonrpc import INTERNAL_ERROR, RpcError
from uno_devserver.proxy.calls.forwarder import Forwarder
from uno_devserver.proxy.calls.service import ProxyService
from uno_devserver.proxy.lists.tool_changes import compare_tools
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.reload.second_server import SecondServer
from uno_devserver.proxy.upstream.base import Ending, RunningUpstream, StartFailure
from uno_devserver.proxy.upstream.command_launch import CommandUpstream
from uno_devserver.proxy.upstream.command_process import CommandLimits

RUNNER = """
import runpy, sys
sys.argv = open({manners!r}, encoding="utf-8").read().split("\\n")[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Bench:
    """A command whose code is the file `manners`, behind a keeper and a service."""

    def __init__(self, folder: Path, **command_limits: Any) -> None:
        self.folder = folder
        self.notes = Notes(folder / "notes")
        self.save()
        runner = folder / "runner.py"
        runner.write_text(RUNNER.format(manners=str(folder / "manners")), "utf-8")
        command = (sys.executable, "-IS", str(runner))
        upstream = CommandUpstream(
            command, str(folder), os.environ, str(folder / "state"), CommandLimits(**command_limits)
        )
        options = ProxyOptions(str(folder), command=command)
        self.kept = Kept(folder, upstream, options)  # type: ignore[arg-type]
        self.keeper = self.kept.keeper
        self.updated: list[str] = []
        limits = QUICK.replace(grace_seconds=20.0)
        forwarding = Forwarder(self.keeper, self.kept.state, self.updated.append, limits)
        self.service = ProxyService(
            forwarding,
            resource_updated=lambda _: None,
            roots_changed=lambda _: None,
            reconsider=forwarding.link.reconsider,
        )
        self.kept.service = self.service
        self.kept.shared_peer = self.service.conversations
        self.session = ScriptedSession()
        self.service.opened(self.session)

    def save(self, **manners: object) -> None:
        """An edit of the server."""
        line = odd_server(notes=self.notes, **manners)
        (self.folder / "manners").write_text("\n".join(line), "utf-8")

    async def renew(self, delay_seconds: float = 0.0) -> RestartResult:
        return await self.kept.restarter.renew(delay_seconds)

    async def swap(self) -> RestartResult:
        return await self.kept.restarter.swap()

    async def begin_swap(self, **manners: object) -> asyncio.Task[RestartResult]:
        """Save new code, and return when it was started beside the old one."""
        self.save(**manners)
        swap = asyncio.ensure_future(self.swap())
        await until(lambda: len(self.notes.starts) == 2)
        return swap

    async def hold(self, **arguments: str) -> asyncio.Task[str]:
        """A call that the server has received, and does not answer yet."""
        call = asyncio.ensure_future(self.call("hold", **arguments))
        await until(lambda: "hold" in str(self.notes.received[-1]))
        return call

    async def call(self, name: str, **arguments: Any) -> str:
        return text_of(await self.service.answer(tool_call(name, self.session, arguments=arguments)))

    async def pid(self) -> int:
        return self.of(await self.call("facts"))

    @staticmethod
    def of(facts: str) -> int:
        return int(json.loads(facts)["pid"])

    @property
    def living(self) -> list[int]:
        return [pid for pid in self.notes.starts if is_running(pid)]

    @property
    def version(self) -> str | None:
        """Of the protocol, which the server is spoken to in."""
        upstream = self.kept.facts.upstream
        return upstream.protocol_version if upstream else None

    @property
    def said(self) -> list[str]:
        return [level for level, _ in self.kept.messages]


@asynccontextmanager
async def bench(folder: Path, **command_limits: Any) -> AsyncIterator[Bench]:
    made = Bench(folder, **command_limits)
    try:
        assert await made.keeper.until_connected(20)
        yield made
    finally:
        await made.keeper.close()
        await made.service.close()
        await until(lambda: not made.living)


# --- renew


async def test_a_restart_is_answered_by_a_new_process_and_is_no_crash(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()
        made.save(tools=2)

        outcome = await made.renew()

        assert outcome.replace(tools=None) == RestartResult(True, lists="changed")
        assert outcome.tools is not None
        assert outcome.tools.added == ("tool-1", "tool-2")
        assert "echo" in outcome.tools.removed
        assert made.kept.tools == ["tool-1", "tool-2"]
        assert made.living == [made.keeper.running and made.keeper.running.process_id]
        assert not is_running(before)
        facts = made.kept.facts
        assert (facts.restarts, facts.reloads, facts.last_end) == (0, 1, None)
        assert "warning" not in made.said
        assert ("info", "The server 'odd' is restarted with the new code.") in made.kept.messages
        assert made.kept.launches == 1


async def test_calls_that_come_during_a_restart_wait_for_the_new_one(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()

        renewal = asyncio.ensure_future(made.renew())
        await until(lambda: made.keeper.state.value == "Reconnecting")
        said = await asyncio.gather(*(made.call("facts") for _ in range(8)))

        assert (await renewal).ok
        assert {made.of(one) for one in said} == {made.living[0]}
        assert before not in made.living


async def test_the_pause_lies_between_the_end_of_the_old_one_and_the_start_of_the_new(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()
        renewal = asyncio.ensure_future(made.renew(0.3))

        await until(lambda: not is_running(before))
        assert made.living == []
        assert (await renewal).ok

        assert made.living != []


async def test_new_code_that_dies_at_once_is_tried_in_each_era_and_then_says_why(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        made.save(dies=3)

        outcome = await made.renew()

        assert not outcome.ok
        assert not outcome.kept
        assert outcome.problem == "The server 'odd' has gone: it ended with exit code 3."
        assert outcome.last_lines == ("Traceback: the server cannot begin",)
        assert made.keeper.state.value == "Degraded"
        assert made.kept.facts.restarts == 0
        assert made.kept.launches == 2, "once by server/discover, once by initialize"
        made.save()
        assert (await made.renew()).ok, "a mended source starts from Degraded"
        assert made.kept.facts.reloads == 2


async def test_new_code_that_never_answers_is_given_up_within_its_bound(tmp_path: Path) -> None:
    async with bench(tmp_path, ready_seconds=0.7) as made:
        made.save(never_reads=True)

        outcome = await made.renew()

        assert not outcome.ok
        assert "did not answer within 0.7 s" in outcome.problem
        await until(lambda: not made.living)


async def test_a_server_that_ignores_every_request_to_end_is_ended_before_the_next_is_started(tmp_path: Path) -> None:
    async with bench(tmp_path, patient_seconds=0.2) as made:
        made.save(ignores_sigterm=True, stays=True)
        assert (await made.renew()).ok
        stubborn = await made.pid()
        made.save()

        assert (await made.renew()).ok

        assert not is_running(stubborn)
        assert len(made.living) == 1


async def test_a_server_that_works_gets_the_time_to_end_well(tmp_path: Path) -> None:
    running = ScriptedRunning()
    kept = Kept(tmp_path, ScriptedUpstream(running, ScriptedRunning()))
    patience: list[bool] = []

    async def stop(*, patient: bool = False) -> None:
        patience.append(patient)

    running.stop = stop  # type: ignore[method-assign]
    assert await kept.keeper.until_connected(5)

    assert (await kept.restarter.renew()).ok

    assert patience == [True]


async def test_a_start_that_is_under_way_is_given_up_for_newer_code_and_there_are_never_two(tmp_path: Path) -> None:
    late, new = ScriptedRunning(Lists(tools=["late"])), ScriptedRunning(Lists(tools=["new"]))
    upstream = ScriptedUpstream(late, new, stubborn=True)
    upstream.gate.clear()
    kept = Kept(tmp_path, upstream)
    await until(lambda: upstream.starts)

    renewal = asyncio.ensure_future(kept.restarter.renew())
    await kept.until_state("Reconnecting")
    for _ in range(5):
        await asyncio.sleep(0)
    assert upstream.starts == 1, "the one that was given up has not come to its end"
    upstream.gate.set()

    assert (await renewal).ok
    assert (kept.tools, late.stops, new.stops, upstream.starts) == (["new"], 1, 0, 2)


async def test_restarts_that_are_asked_for_together_come_one_after_the_other(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        outcomes = await asyncio.gather(*(made.renew() for _ in range(3)))

        assert [outcome.ok for outcome in outcomes] == [True] * 3
        assert made.kept.facts.reloads == 3
        assert len(made.living) == 1


async def test_whoever_asked_for_a_restart_may_stop_waiting_for_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()
        renewal = asyncio.ensure_future(made.renew())
        await until(lambda: made.keeper.state.value == "Reconnecting")

        renewal.cancel()

        assert await made.pid() != before


async def test_what_is_not_ours_is_not_restarted(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.owned = False
    kept = Kept(tmp_path, ScriptedUpstream(running))
    assert await kept.keeper.until_connected(5)

    outcome = await kept.restarter.renew()

    assert not outcome.ok
    assert outcome.kept
    assert "was not started by this proxy" in outcome.problem
    assert (running.stops, kept.keeper.state.value, kept.facts.reloads) == (0, "Connected", 0)


async def test_without_anything_to_keep_there_is_nothing_to_restart(tmp_path: Path) -> None:
    kept = Kept(tmp_path, None)

    assert not (await kept.restarter.renew()).ok
    assert not (await kept.restarter.swap()).ok


async def test_the_end_of_the_proxy_is_the_end_of_a_restart(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        renewal = asyncio.ensure_future(made.renew(60.0))
        await until(lambda: made.keeper.state.value == "Reconnecting")

        await made.keeper.close()

        assert await renewal == RestartResult(False, "uno-devserver is ending.")


# --- the version of the protocol


@pytest.mark.parametrize("way", ["renew", "swap"])
async def test_new_code_is_spoken_to_in_the_newest_era_that_it_knows(tmp_path: Path, way: str) -> None:
    async with bench(tmp_path) as made:
        assert made.version == "2026-07-28"
        for manners, version in (({"shy": True}, "2025-11-25"), ({"shy": True}, "2025-11-25"), ({}, "2026-07-28")):
            made.save(**manners)

            assert (await getattr(made.kept.restarter, way)()).ok

            assert made.version == version


@pytest.mark.parametrize(("manners", "version"), [({}, "2026-07-28"), ({"shy": True}, "2025-11-25")])
async def test_a_server_that_is_repaired_when_all_starts_have_failed_is_spoken_to_in_its_era(
    tmp_path: Path, manners: dict[str, object], version: str
) -> None:
    async with bench(tmp_path) as made:
        made.save(dies=3)
        assert not (await made.renew()).ok
        made.save(**manners)

        made.keeper.wanted()

        assert await made.keeper.until_connected(20)
        assert made.version == version


# --- swap


async def test_a_swap_is_answered_by_the_new_one_and_the_old_one_is_gone_when_it_is_idle(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()
        made.save(name="new")

        outcome = await made.swap()

        assert outcome == RestartResult(True, lists="same", tools=ToolChanges())
        assert await made.pid() != before
        await until(lambda: len(made.living) == 1)
        facts = made.kept.facts
        assert (facts.restarts, facts.reloads, facts.last_end, facts.generation) == (0, 1, None, 2)
        assert facts.upstream.process_id == made.living[0]
        assert facts.upstream.name == "new"
        assert "warning" not in made.said
        assert made.kept.broadcasts.count("notifications/tools/list_changed") == 1, "the lists are what they were"
        assert made.kept.launches == 1


async def test_a_call_that_runs_is_finished_by_the_old_one(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before, release = await made.pid(), tmp_path / "release"
        running = await made.hold(until=str(release))

        assert (await made.swap()).ok
        assert await made.pid() != before
        assert sorted(made.living) == sorted(made.notes.starts), "the old one still works"
        release.touch()

        assert await running == "held"
        await until(lambda: not is_running(before))
        assert made.kept.facts.last_end is None


async def test_five_swaps_under_sixteen_callers_lose_no_call_and_answer_none_twice(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        over, answers = asyncio.Event(), list[str]()

        async def caller(number: int) -> None:
            made_calls = 0
            while not over.is_set():
                made_calls += 1
                answers.append(await made.call("echo", text=f"{number}:{made_calls}"))

        callers = [asyncio.ensure_future(caller(number)) for number in range(16)]
        pids = [await made.pid()]
        for _ in range(5):
            made.save()
            assert (await made.swap()).ok
            pids.append(await made.pid())
            count = len(answers)
            await until(lambda count=count: len(answers) > count + 32)  # type: ignore[misc]
        over.set()
        await asyncio.gather(*callers)

        assert pids == made.notes.starts, "each call after a switch went to the newest"
        calls = [
            message["params"]["arguments"]["text"]
            for message in made.notes.received
            if message.get("method") == "tools/call" and message["params"]["name"] == "echo"
        ]
        assert sorted(calls) == sorted(answers), "each was run once, and answered once"
        assert len(calls) == len(set(calls))
        await until(lambda: len(made.living) == 1)
        assert "warning" not in made.said


async def test_new_tools_are_announced_and_the_difference_is_told(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        made.save(tools=1)
        assert (await made.swap()).lists == "changed"
        made.save(tools=3)

        outcome = await made.swap()

        assert outcome.lists == "grown"
        assert made.kept.tools == ["tool-1", "tool-2", "tool-3"]
        assert made.kept.broadcasts.count("notifications/tools/list_changed") == 3


@pytest.mark.parametrize(
    ("manners", "problem"),
    [
        ({"dies": 3}, "The new server did not start: it ended with exit code 3."),
        ({"dies": -9}, "The new server did not start: it was ended by signal 9."),
        ({"never_reads": True}, "did not answer within"),
        ({"refuses": -32000, "flood": 1}, "The new server cannot be used over MCP"),
        ({"closes": True}, "The new server did not start: it closed its output."),
    ],
)
async def test_a_new_one_that_is_of_no_use_leaves_the_old_one_as_it_was(
    tmp_path: Path, manners: dict[str, Any], problem: str
) -> None:
    async with bench(tmp_path, ready_seconds=1.0) as made:
        before, changes = await made.pid(), made.kept.changes
        made.save(**manners)

        outcome = await made.swap()

        assert not outcome.ok
        assert outcome.kept
        assert problem in outcome.problem
        last = {"dies": "Traceback: the server cannot begin", "flood": "flood"}
        assert all(outcome.last_lines[-1].startswith(line) for key, line in last.items() if key in manners)
        assert await made.pid() == before
        assert made.living == [before]
        facts = made.kept.facts
        assert (facts.reloads, facts.generation, facts.last_end, made.kept.changes) == (0, 1, None, changes)
        made.save()
        assert (await made.swap()).ok, "the next attempt is not burdened with that"


async def test_what_it_prints_among_its_messages_is_known_while_it_serves_and_not_of_the_next(tmp_path: Path) -> None:
    async with bench(tmp_path, output_check_seconds=0.01) as made:
        made.save(garbage=True)
        assert (await made.swap()).ok
        await until(lambda: made.kept.facts.upstream.stray_line == "null")
        made.save()

        assert (await made.swap()).ok

        await until(lambda: len(made.living) == 1)
        assert made.kept.facts.upstream.stray_line == ""


async def test_what_the_old_one_prints_is_not_taken_for_last_words_of_the_new(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        gate = tmp_path / "gate"
        swap = await made.begin_swap(until=str(gate), dies=3)
        await made.call("print", lines=["the old one says"])
        gate.touch()

        outcome = await swap

        assert not outcome.ok
        assert "the old one says" not in outcome.last_lines


async def test_when_the_old_one_is_killed_meanwhile_the_new_one_is_taken_and_no_third_is_started(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as made:
        before, gate = await made.pid(), tmp_path / "gate"
        swap = await made.begin_swap(until=str(gate))

        os.kill(before, signal.SIGKILL)
        await until(lambda: made.keeper.state.value == "Reconnecting")
        call = asyncio.ensure_future(made.call("facts"))
        gate.touch()

        assert (await swap).ok
        assert made.of(await call) == made.notes.starts[1]
        assert len(made.notes.starts) == 2
        assert (made.kept.facts.restarts, made.keeper.generation) == (1, 2)


async def test_when_both_fail_the_new_code_is_tried_in_the_old_ones_place(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before, gate = await made.pid(), tmp_path / "gate"
        swap = await made.begin_swap(until=str(gate))
        os.kill(before, signal.SIGKILL)
        await until(lambda: made.keeper.state.value == "Reconnecting")
        made.save()

        os.kill(made.notes.starts[1], signal.SIGKILL)

        assert (await swap).ok
        assert len(made.notes.starts) == 3


@pytest.mark.parametrize("when", ["during a swap", "while the old one has something to answer"])
async def test_the_end_of_the_proxy_ends_both(tmp_path: Path, when: str) -> None:
    async with bench(tmp_path) as made:
        if when == "during a swap":
            swap = await made.begin_swap(until=str(tmp_path / "never"))
        else:
            running = await made.hold()
            assert (await made.swap()).ok

        async with asyncio.timeout(5):
            await made.keeper.close()

        assert made.living == []
        if when == "during a swap":
            assert not (await swap).ok
        else:
            running.cancel()


async def test_an_old_one_that_dies_while_it_answers_is_no_crash_and_its_call_is_told_so(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        before = await made.pid()
        running = await made.hold()
        assert (await made.swap()).ok

        os.kill(before, signal.SIGKILL)

        assert "outcome" in await running
        assert (made.kept.facts.restarts, made.kept.facts.last_end, made.keeper.generation) == (0, None, 2)


async def test_without_a_server_that_works_a_swap_is_a_restart(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        made.save(dies=3)
        assert not (await made.renew()).ok
        made.save()

        assert (await made.swap()).ok

        assert len(made.living) == 1


async def test_a_workspace_that_changes_meanwhile_drops_the_new_one(tmp_path: Path) -> None:
    async with bench(tmp_path) as made:
        swap = await made.begin_swap(until=str(tmp_path / "never"))

        made.keeper.halt("There is no workspace any more.")

        assert not (await swap).ok
        await until(lambda: not made.living)


async def test_a_server_that_is_known_by_its_address_is_idle_before_it_is_stopped(tmp_path: Path) -> None:
    first, second = ScriptedRunning(), ScriptedRunning(Lists(tools=["new"]))
    kept = Kept(tmp_path, ScriptedUpstream(first, second))
    idle, asked = asyncio.Event(), list[int]()

    async def unused(generation: int) -> None:
        asked.append(generation)
        await idle.wait()

    kept.until_unused = unused  # type: ignore[method-assign]
    assert await kept.keeper.until_connected(5)
    swap = asyncio.ensure_future(kept.restarter.swap())
    await until(lambda: asked == [1])
    assert (first.stops, kept.keeper.state.value) == (0, "Connected")
    idle.set()

    assert (await swap).ok
    assert (kept.tools, first.stops) == (["new"], 1)


# --- a server that is started beside the one that serves


class Beside:
    def __init__(self, folder: Path, upstream: ScriptedUpstream, seconds: float = 5.0) -> None:
        self.kept = Kept(folder, None, limits=SWIFT.replace(swap_seconds=seconds, last_words_seconds=0.05))
        self.swap = SecondServer(self.kept.keeper, upstream, self.kept.keeper.promote)

    @property
    def promoted(self) -> RunningUpstream | None:
        return self.kept.keeper.running

    async def failure(self) -> RestartResult:
        failed = await self.swap.run()
        assert failed is not None
        assert (failed.ok, failed.kept, self.promoted) == (False, True, None)
        return failed


async def test_it_is_taken_with_its_lists_and_whoever_takes_it_hears_of_its_end(tmp_path: Path) -> None:
    running = ScriptedRunning(Lists(tools=["new"]))
    beside = Beside(tmp_path, ScriptedUpstream(running))

    assert await beside.swap.run() is None

    assert (beside.promoted, beside.kept.tools, running.stops) == (running, ["new"], 0)
    running.die()
    await until(lambda: beside.kept.facts.last_end == Ending("it ended with exit code 3", 3, ("its last line",)))


async def test_its_lines_that_are_no_messages_are_reported_as_soon_as_it_is_promoted(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(ScriptedRunning())
    upstream.gate.clear()
    beside = Beside(tmp_path, upstream)
    swapping = asyncio.ensure_future(beside.swap.run())
    await until(lambda: bool(upstream.observers))

    upstream.observers[0].strayed("starting up")
    await asyncio.sleep(0)
    assert not beside.kept.facts.upstream
    upstream.gate.set()
    await swapping
    assert beside.kept.facts.upstream.stray_line == "starting up"
    upstream.observers[0].strayed("at work")

    await until(lambda: beside.kept.facts.upstream.stray_line == "at work")


async def test_one_that_dies_before_it_is_ready_says_so_with_its_last_words(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.refusals = [ConnectionLost("It hung up.", sent=True)] * 2
    beside = Beside(tmp_path, ScriptedUpstream(running))
    preparing = asyncio.ensure_future(beside.failure())
    await until(lambda: len(running.refusals) == 1)

    running.die()

    failure = await preparing
    assert "it ended with exit code 3" in failure.problem
    assert failure.last_lines == ("its last line",)
    assert running.stops == 1


async def test_one_that_something_else_kills_is_started_once_more(tmp_path: Path) -> None:
    killed, again = ScriptedRunning(), ScriptedRunning()
    killed.gone.set_result(Ending("it was ended by signal 9", -9))
    beside = Beside(tmp_path, ScriptedUpstream(killed, again))

    assert await beside.swap.run() is None

    assert (beside.promoted, again.stops) == (again, 0)
    await until(lambda: killed.stops == 1)


async def test_one_that_is_killed_at_each_start_is_given_up(tmp_path: Path) -> None:
    killed = ScriptedRunning()
    killed.gone.set_result(Ending("it was ended by signal 9", -9))
    upstream = ScriptedUpstream(killed)

    assert "it was ended by signal 9" in (await Beside(tmp_path, upstream).failure()).problem

    assert upstream.starts == 2


async def test_one_whose_tools_cannot_be_listed_is_not_taken(tmp_path: Path) -> None:
    running = ScriptedRunning()
    running.lists.names["tools"] = RpcError(INTERNAL_ERROR, "not now")

    failure = await Beside(tmp_path, ScriptedUpstream(running)).failure()

    assert "its tools cannot be listed" in failure.problem
    assert running.stops == 1


async def test_a_start_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    ending = Ending("it ended with exit code 1", 1, ("boom",))
    upstream = ScriptedUpstream(StartFailure(fatal("HostCrashed", "It does not start.", "Repair it."), ending=ending))

    failure = await Beside(tmp_path, upstream).failure()

    assert (failure.problem, failure.last_lines) == ("It does not start.", ("boom",))


async def test_one_that_is_never_ready_is_given_up_and_stopped_when_it_comes_late(tmp_path: Path) -> None:
    running = ScriptedRunning()
    upstream = ScriptedUpstream(running, stubborn=True)
    upstream.gate.clear()
    beside = Beside(tmp_path, upstream, seconds=0.05)

    assert "not ready within 0.05 s" in (await beside.failure()).problem
    upstream.gate.set()

    await until(lambda: running.stops == 1)
    assert beside.promoted is None


async def test_one_that_is_not_wanted_any_more_is_not_taken(tmp_path: Path) -> None:
    upstream = ScriptedUpstream(ScriptedRunning())
    upstream.gate.clear()
    beside = Beside(tmp_path, upstream)
    preparing = asyncio.ensure_future(beside.failure())
    await until(lambda: upstream.starts == 1)

    beside.swap.abort("Nobody wants it.")
    upstream.gate.set()

    assert (await preparing).problem == "Nobody wants it."


# --- the difference between two lists of tools


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def tool(name: str, properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": "does", "inputSchema": schema, **more}


def raw(*found: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return tuple((one["name"], json.dumps(one).encode()) for one in found)


BEFORE = raw(tool("add", {"a": NUMBER}, "a"), tool("say", {"text": TEXT}))


@pytest.mark.parametrize(
    ("after", "verdict", "told"),
    [
        (BEFORE, "same", "the tools are the same"),
        (tuple(reversed(BEFORE)), "same", "the tools are the same"),
        ((*BEFORE, *raw(tool("new", {}))), "grown", "the tools: 1 new ('new')"),
        (
            raw(tool("add", {"a": NUMBER, "b": NUMBER}, "a"), tool("say", {"text": TEXT})),
            "grown",
            "the tools: 1 with more options ('add')",
        ),
        (BEFORE[:1], "changed", "the tools: 1 gone ('say')"),
        (
            raw(tool("add", {"a": NUMBER, "b": NUMBER}, "a", "b"), tool("say", {"text": TEXT})),
            "changed",
            "the tools: 1 changed ('add')",
        ),
        (raw(tool("add", {"a": TEXT}, "a"), tool("say", {"text": TEXT})), "changed", "the tools: 1 changed ('add')"),
        (raw(tool("add", {}, "a"), tool("say", {"text": TEXT})), "changed", "the tools: 1 changed ('add')"),
        (
            raw(tool("add", {"a": NUMBER}, "a", title="Add"), tool("say", {"text": TEXT})),
            "changed",
            "the tools: 1 changed ('add')",
        ),
        (
            raw(tool("new", {}), tool("say", {"text": TEXT, "loud": TEXT})),
            "changed",
            "the tools: 1 new ('new'), 1 gone ('add'), 1 with more options ('say')",
        ),
    ],
)
def test_tools_are_the_same_or_have_grown_or_have_changed(after: Any, verdict: str, told: str) -> None:
    difference = compare_tools(BEFORE, after)

    assert (difference.verdict, str(difference)) == (verdict, told)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (b'{"inputSchema": {}, "name": "say"}', "same"),  # the order of members means nothing
        (b'{"name":"say","inputSchema":{"properties":{"loud":{}}}}', "grown"),  # its first optional property
        (b"[1]", "changed"),  # and so has what cannot be understood
        (b'{"name":"say","inputSchema":[]}', "changed"),
        (b"{", "changed"),
        (b'{"inputSchema":{"properties":[1]}}', "changed"),
    ],
)
def test_a_tool_is_compared_by_what_it_means(after: bytes, verdict: str) -> None:
    assert compare_tools((("say", b'{"name":"say","inputSchema":{}}'),), (("say", after),)).verdict == verdict


def test_many_tools_are_counted_and_the_first_are_named() -> None:
    after = raw(*(tool(f"tool-{number}", {}) for number in range(7)))

    told = str(compare_tools((), after))

    assert told == "the tools: 7 new ('tool-0', 'tool-1', 'tool-2', 'tool-3', 'tool-4' and 2 more)"
