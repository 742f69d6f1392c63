"""What all answers share: long data in pieces, and a deadline that moves and rings once, at the last time that was set.

The time of deadlines is the event loop's, turned by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from uno_devserver.protocol.http.transport import PIECE_BYTES, DeadlineTimer, MemoryBudget, ServerTransport


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


class SendsInOneGo(asyncio.Transport):
    """A transport like asyncio's on Windows: of a write under way nothing counts as sent until all of it is."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []
        self.ended = self.closed = False
        self.wire = ServerTransport(self, MemoryBudget(1 << 30))
        self._under_way = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._under_way += len(data)
        self.wire.pause()

    def get_write_buffer_size(self) -> int:
        return self._under_way

    def is_closing(self) -> bool:
        return self.closed

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def send(self) -> None:
        self.sent.append(self._under_way)
        self._under_way = 0
        self.wire.resume()


def test_of_long_data_the_part_that_a_slow_client_has_read_is_seen() -> None:
    transport = SendsInOneGo()
    wire = transport.wire

    wire.write(bytes(2 * PIECE_BYTES + 1))
    wire.write(b"more")

    backlogs = [wire.backlog]
    while wire.backlog:
        assert wire.stalled
        transport.send()
        backlogs.append(wire.backlog)
    assert backlogs == [2 * PIECE_BYTES + 5, PIECE_BYTES + 5, 5, 4, 0]
    assert sum(transport.sent) == 2 * PIECE_BYTES + 5
    assert not wire.stalled


@pytest.mark.parametrize("how", ["end", "close"])
def test_an_end_comes_behind_all_that_was_written(how: str) -> None:
    transport = SendsInOneGo()
    wire = transport.wire
    wire.write(bytes(2 * PIECE_BYTES))

    getattr(wire, how)()
    wire.write(b"dropped")

    assert wire.closing is (how == "close")
    assert (transport.ended, transport.closed) == (False, False)
    transport.send()
    assert (transport.ended, transport.closed) == (how == "end", how == "close")
    transport.send()
    assert sum(transport.sent) == 2 * PIECE_BYTES


def test_what_a_client_that_is_gone_has_not_read_is_dropped() -> None:
    transport = SendsInOneGo()
    wire = transport.wire
    wire.write(bytes(3 * PIECE_BYTES))
    wire.close()

    transport.closed = True
    wire.lost()

    assert (wire.size, wire.stalled) == (0, False)
