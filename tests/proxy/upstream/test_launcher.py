"""Starting in threads: reports wait until somebody takes them, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest

from uno_devserver.issues import fatal
from uno_devserver.proxy.state import Timeline
from uno_devserver.proxy.upstream.base import StartFailure, Upstream
from uno_devserver.proxy.upstream.launcher import Launcher, LaunchFailed, Launching, Ready, StrayLine, UpstreamObserver

BOUND = 10.0


class ScriptedUpstream(Upstream):
    """Launches when told to, then returns or raises."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.launches = threading.Event()
        self.goes_on: list[bool] = []

    def start(self, observer: UpstreamObserver) -> Any:
        assert self.launches.wait(BOUND)
        observer.launching("it", 7)
        observer.said("Hm.", warning=True)
        self.goes_on.append(observer.go_on())
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def reports_of(starts: Launcher, number: int) -> list[Any]:
    """The first reports, in a loop that begins only now."""

    async def listen() -> list[Any]:
        heard: list[Any] = []
        enough = asyncio.Event()

        def take(report: Any) -> None:
            heard.append(report)
            if len(heard) == number:
                enough.set()

        starts.report_to(asyncio.get_running_loop(), take)
        await asyncio.wait_for(enough.wait(), BOUND)
        return heard

    return asyncio.run(listen())


def test_what_happens_before_there_is_a_loop_is_heard_in_order_when_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timeline = Timeline()
    starts, upstream = Launcher(timeline), ScriptedUpstream("running")
    upstream.launches.set()

    starts.start(1, upstream)

    launching, ready = reports_of(starts, 2)
    assert launching == Launching(1, "it", 7)
    assert isinstance(ready, Ready)
    assert (ready.attempt, ready.running) == (1, upstream.outcome)
    assert {"launched", "ready"} <= dict(timeline.stages()).keys()
    assert upstream.goes_on == [True]
    assert "warn: Hm." in capsys.readouterr().err


def test_whoever_waits_for_the_launch_goes_on_as_soon_as_there_is_a_process() -> None:
    starts, upstream = Launcher(Timeline()), ScriptedUpstream("running")
    starts.start(1, upstream)
    threading.Timer(0.05, upstream.launches.set).start()

    starts.wait_until_launched(BOUND)

    assert upstream.launches.is_set()


def test_a_start_that_takes_long_is_waited_for_no_longer_than_that() -> None:
    starts, upstream = Launcher(Timeline()), ScriptedUpstream("running")
    starts.start(1, upstream)

    starts.wait_until_launched(0.01)

    assert upstream.goes_on == []
    upstream.launches.set()
    reports_of(starts, 2)


def test_a_failure_is_a_report_too() -> None:
    failure = StartFailure(fatal("HostCrashed", "It died.", "Repair it."), final=True)
    starts, upstream = Launcher(Timeline()), ScriptedUpstream(failure)
    upstream.launches.set()

    starts.start(3, upstream)

    assert reports_of(starts, 2)[-1] == LaunchFailed(3, failure)


@pytest.mark.parametrize("defect", [ZeroDivisionError("a defect"), SystemExit(2), KeyboardInterrupt()], ids=repr)
def test_a_defect_is_told_as_such(defect: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    starts, upstream = Launcher(Timeline()), ScriptedUpstream(defect)
    upstream.launches.set()

    starts.start(1, upstream)

    failed = reports_of(starts, 2)[-1]
    assert isinstance(failed, LaunchFailed)
    assert type(defect).__name__ in str(failed.failure)
    assert "Traceback" in capsys.readouterr().err


def test_a_start_that_is_given_up_or_overtaken_is_not_to_go_on() -> None:
    starts, first, second = Launcher(Timeline()), ScriptedUpstream("a"), ScriptedUpstream("b")
    starts.start(1, first)
    starts.start(2, second)
    first.launches.set()
    heard = reports_of(starts, 2)
    starts.give_up()
    second.launches.set()

    heard += reports_of(starts, 2)

    assert [report.attempt for report in heard] == [1, 1, 2, 2]
    assert first.goes_on + second.goes_on == [False, False]


# --- reports


def test_reports_of_other_threads_are_taken_in_the_loop_in_order() -> None:
    launcher = Launcher(Timeline())
    taken: list[object] = []

    async def work() -> None:
        over = asyncio.Event()

        def take(report: object) -> None:
            taken.append((report, threading.current_thread()))
            if report == strayed(999):
                over.set()

        launcher.report_to(asyncio.get_running_loop(), take)
        threading.Thread(target=lambda: deque(map(launcher.report, map(strayed, range(1000))))).start()
        async with asyncio.timeout(BOUND):
            await over.wait()

    asyncio.run(work())

    assert taken == [(strayed(number), threading.current_thread()) for number in range(1000)]


def test_a_report_of_the_loop_itself_is_taken_in_its_next_turn() -> None:
    launcher = Launcher(Timeline())
    taken: list[object] = []

    async def work() -> None:
        launcher.report_to(asyncio.get_running_loop(), taken.append)
        launcher.report(strayed(1))
        launcher.report(strayed(2))
        assert taken == []
        await asyncio.sleep(0)

    asyncio.run(work())

    assert taken == [strayed(1), strayed(2)]


def test_reports_that_come_when_the_loop_has_ended_do_no_harm() -> None:
    launcher = Launcher(Timeline())
    taken: list[object] = []

    async def work() -> None:
        launcher.report_to(asyncio.get_running_loop(), taken.append)

    asyncio.run(work())

    launcher.report(strayed(1))
    launcher.report(strayed(2))

    assert taken == []


def strayed(number: int) -> StrayLine:
    return StrayLine(number, "Hm.")
