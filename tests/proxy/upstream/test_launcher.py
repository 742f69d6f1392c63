"""Starting in threads: reports wait until somebody takes them, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest

from uno_devserver.issues import fatal
from uno_devserver.proxy.state import Timeline
from uno_devserver.proxy.upstream.base import StartFailure, StartObserver
from uno_devserver.proxy.upstream.launcher import Failed, Inbox, Launcher, Launching, Ready, Said

BOUND = 10.0


class Upstream:
    """Launches when told to, then returns or raises."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.launches = threading.Event()
        self.goes_on: list[bool] = []

    def start(self, observer: StartObserver) -> Any:
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

        starts.reports.open(asyncio.get_running_loop(), take)
        await asyncio.wait_for(enough.wait(), BOUND)
        return heard

    return asyncio.run(listen())


def test_what_happens_before_there_is_a_loop_is_heard_in_order_when_there_is_one() -> None:
    timeline = Timeline()
    starts, upstream = Launcher(timeline), Upstream("running")
    upstream.launches.set()

    starts.start(1, upstream)

    launching, said, ready = reports_of(starts, 3)
    assert (launching, said) == (Launching(1, "it", 7), Said(1, "Hm.", True))
    assert isinstance(ready, Ready)
    assert (ready.attempt, ready.running) == (1, upstream.outcome)
    assert {"launched", "ready"} <= dict(timeline.stages()).keys()
    assert upstream.goes_on == [True]


def test_whoever_waits_for_the_launch_goes_on_as_soon_as_there_is_a_process() -> None:
    starts, upstream = Launcher(Timeline()), Upstream("running")
    starts.start(1, upstream)
    threading.Timer(0.05, upstream.launches.set).start()

    starts.wait_until_launched(BOUND)

    assert upstream.launches.is_set()


def test_a_start_that_takes_long_is_waited_for_no_longer_than_that() -> None:
    starts, upstream = Launcher(Timeline()), Upstream("running")
    starts.start(1, upstream)

    starts.wait_until_launched(0.01)

    assert upstream.goes_on == []
    upstream.launches.set()
    reports_of(starts, 3)


def test_a_failure_is_a_report_too() -> None:
    failure = StartFailure(fatal("HostCrashed", "It died.", "Repair it."), final=True)
    starts, upstream = Launcher(Timeline()), Upstream(failure)
    upstream.launches.set()

    starts.start(3, upstream)

    assert reports_of(starts, 3)[-1] == Failed(3, failure)


@pytest.mark.parametrize("defect", [ZeroDivisionError("a defect"), SystemExit(2), KeyboardInterrupt()], ids=repr)
def test_a_defect_is_told_as_such(defect: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    starts, upstream = Launcher(Timeline()), Upstream(defect)
    upstream.launches.set()

    starts.start(1, upstream)

    failed = reports_of(starts, 3)[-1]
    assert isinstance(failed, Failed)
    assert type(defect).__name__ in str(failed.failure)
    assert "Traceback" in capsys.readouterr().err


def test_a_start_that_is_given_up_or_overtaken_is_not_to_go_on() -> None:
    starts, first, second = Launcher(Timeline()), Upstream("a"), Upstream("b")
    starts.start(1, first)
    starts.start(2, second)
    first.launches.set()
    heard = reports_of(starts, 3)
    starts.give_up()
    second.launches.set()

    heard += reports_of(starts, 3)

    assert [report.attempt for report in heard] == [1, 1, 1, 2, 2, 2]
    assert first.goes_on + second.goes_on == [False, False]


# --- reports


def test_what_waits_comes_in_order_when_it_is_opened_and_all_else_as_it_comes() -> None:
    inbox = Inbox()
    taken: list[object] = []
    inbox.put(1)
    inbox.put(2)

    inbox.open(None, taken.append)
    inbox.put(3)

    assert taken == [1, 2, 3]


def test_what_other_threads_put_in_is_taken_in_the_loop() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        over = asyncio.Event()

        def take(message: int) -> None:
            taken.append((message, threading.current_thread()))
            if message == 999:
                over.set()

        inbox.open(asyncio.get_running_loop(), take)
        threading.Thread(target=lambda: deque(map(inbox.put, range(1000)))).start()
        async with asyncio.timeout(10):
            await over.wait()

    asyncio.run(work())

    assert taken == [(number, threading.current_thread()) for number in range(1000)]


def test_what_is_put_in_by_the_loop_is_taken_when_that_is_done_with_what_it_does() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)
        inbox.put(1)
        inbox.put(2)
        assert taken == []
        await asyncio.sleep(0)

    asyncio.run(work())

    assert taken == [1, 2]


def test_what_came_when_the_loop_had_ended_goes_to_whoever_opens_it_next() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)

    asyncio.run(work())
    inbox.put(1)
    inbox.put(2)
    assert taken == []

    inbox.open(None, taken.append)

    assert taken == [1, 2]


def test_what_is_expected_is_taken_in_the_same_turn_also_what_another_thread_put_in() -> None:
    inbox = Inbox()
    taken: list[object] = []

    async def work() -> None:
        inbox.open(asyncio.get_running_loop(), taken.append)
        inbox.expect()
        inbox.put(1)
        other = threading.Thread(target=inbox.put, args=(2,))
        other.start()
        other.join(10)
        assert taken == []
        inbox.hand_over()
        assert taken == [1, 2]
        inbox.put(3)
        await asyncio.sleep(0)

    asyncio.run(work())

    assert taken == [1, 2, 3]
