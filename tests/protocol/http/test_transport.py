"""A deadline that moves: rings once, at the last time that was set. Time is the event loop's, turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from uno_devserver.protocol.http.transport import DeadlineTimer


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still until it is moved."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(3):  # due timers, and those that they set
            self.call_soon(self.stop)
            self.run_forever()

    @property
    def timers(self) -> int:
        waiting: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return len([each for each in waiting if not each.cancelled()])


@pytest.fixture
def clock() -> Iterator[Clock]:
    loop = Clock()
    yield loop
    loop.close()


def rings(clock: Clock) -> tuple[DeadlineTimer, list[float]]:
    times: list[float] = []
    ring: Callable[[], None] = lambda: times.append(clock.now - 1000)  # noqa: E731
    return DeadlineTimer(clock, ring), times


def test_it_rings_once_at_its_time(clock: Clock) -> None:
    alarm, times = rings(clock)

    alarm.set(10)
    for _ in range(30):
        clock.pass_time(1)

    assert times == [10]


def test_setting_it_later_moves_it_without_another_timer(clock: Clock) -> None:
    alarm, times = rings(clock)

    for _ in range(100):
        alarm.set(10)
        clock.pass_time(1)
        assert clock.timers == 1
    for _ in range(20):
        clock.pass_time(1)

    assert times == [109]


def test_setting_it_earlier_moves_it(clock: Clock) -> None:
    alarm, times = rings(clock)

    alarm.set(100)
    alarm.set(10)
    for _ in range(200):
        clock.pass_time(1)

    assert times == [10]


def test_cleared_it_does_not_ring_and_can_be_set_again(clock: Clock) -> None:
    alarm, times = rings(clock)

    alarm.set(10)
    alarm.clear()
    clock.pass_time(20)
    alarm.set(5)
    clock.pass_time(5)

    assert times == [25]


def test_stopped_it_leaves_nothing_behind(clock: Clock) -> None:
    alarm, times = rings(clock)

    alarm.set(10)
    alarm.stop()
    clock.pass_time(20)

    assert (times, clock.timers) == ([], 0)


def test_it_can_be_set_while_it_rings(clock: Clock) -> None:
    times: list[float] = []

    def ring() -> None:
        times.append(clock.now - 1000)
        alarm.set(10)

    alarm = DeadlineTimer(clock, ring)
    alarm.set(10)
    for _ in range(35):
        clock.pass_time(1)

    assert times == [10, 20, 30]
