"""A series that grows is found; one that goes up and down, or took one step, is not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from soak.trend import MIB, Trend, count_grows, memory_grows, trend

SECONDS = [10.0 * number for number in range(360)]  # an hour


def seen(value: Callable[[float], float], noise: float = 0.0) -> Trend:
    """A series with as much noise on both sides."""
    chance = random.Random(1)
    found = trend(SECONDS, [value(at / 3600) + chance.uniform(-noise, noise) for at in SECONDS])
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [0, 2 * MIB])
def test_memory_that_grows_by_more_than_is_tolerated_is_caught(noise: float) -> None:
    found = seen(lambda hours: 40 * MIB + 5 * MIB * hours, noise)

    assert memory_grows(found)
    assert found.per_hour == pytest.approx(5 * MIB, rel=0.2)


def test_memory_that_breathes_does_not_grow() -> None:
    assert not memory_grows(seen(lambda hours: 40 * MIB, noise=8 * MIB))


def test_what_fills_in_the_warm_up_does_not_count() -> None:
    assert not memory_grows(seen(lambda hours: 40 * MIB + 300 * MIB * min(hours, 0.08)))


def test_a_step_that_nothing_follows_is_no_growth() -> None:
    assert not memory_grows(seen(lambda hours: 40 * MIB + (6 * MIB if hours > 0.5 else 0), noise=MIB))


def test_growth_that_becomes_visible_late_is_caught() -> None:
    assert memory_grows(seen(lambda hours: 40 * MIB + 20 * MIB * hours**2, noise=MIB))


def test_a_large_process_may_grow_by_a_small_share_of_itself() -> None:
    grown = 5 * MIB

    assert memory_grows(seen(lambda hours: 100 * MIB + grown * hours))
    assert not memory_grows(seen(lambda hours: 1000 * MIB + grown * hours))


def test_one_file_that_stays_open_for_good_is_caught() -> None:
    assert count_grows(seen(lambda hours: 14 + (1 if hours > 0.5 else 0)))


def test_files_that_are_opened_and_closed_do_not_grow() -> None:
    chance = random.Random(2)

    assert not count_grows(seen(lambda hours: 14 + chance.randint(0, 6)))


def test_files_that_are_opened_and_closed_hide_none_that_stays_open() -> None:
    chance = random.Random(2)

    assert count_grows(seen(lambda hours: 14 + 20 * hours + chance.randint(0, 6)))


def test_a_count_that_becomes_less_does_not_grow() -> None:
    assert not count_grows(seen(lambda hours: 14 - 2 * hours))


def test_of_a_few_samples_nothing_is_said() -> None:
    assert trend([], []) is None
    assert trend([0, 1, 2, 3], [1, 2, 3, 4]) is None
