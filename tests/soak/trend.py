"""Whether something grows: the judgement of a long run, from its samples alone. Pure.

Memory breathes, and takes a step now and then which is none of a series; so three things must come together before it
is said to grow. Numbers of files, threads and processes grow if even the least of the end is above what was usual at
first: connections come and go, but one that stays is there all the time.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HOUR = 3600.0
MIB = 1024 * 1024
WARM_UP_SECONDS = 300.0  # caches, pools and bounded queues fill; of a run under half an hour, a sixth
WARM_UP_SHARE = 1 / 6
TOLERATED_BYTES = 3 * MIB  # an hour
TOLERATED_SHARE = 0.02  # an hour, of what it had after the warm-up
LEAST_BYTES = MIB // 2  # between thirds: of less nothing can be said, however short the run was
LEAST_SAMPLES = 9  # three in each third
STILL = 0.25  # of the growth lies in the last two thirds, if it goes on: half of it in a straight line


@dataclass(frozen=True)
class Trend:
    """How a series went after its warm-up; thirds are their medians."""

    thirds: tuple[float, float, float]
    least: float  # of the last third, but for a tenth of its samples
    per_hour: float  # the median slope of all pairs, by Theil and Sen
    hours: float

    @property
    def first(self) -> float:
        return self.thirds[0]

    @property
    def last(self) -> float:
        return self.thirds[2]


def trend(times: Sequence[float], values: Sequence[float]) -> Trend | None:
    """None: too few samples to say anything."""
    if not times:
        return None
    begun = times[0] + min(WARM_UP_SECONDS, (times[-1] - times[0]) * WARM_UP_SHARE)
    points = [(time, value) for time, value in zip(times, values, strict=True) if time >= begun]
    if len(points) < LEAST_SAMPLES:
        return None
    third = len(points) // 3
    parts = [[value for _, value in part] for part in (points[:third], points[third:-third], points[-third:])]
    first, middle, last = (statistics.median(part) for part in parts)
    return Trend(
        (first, middle, last),
        sorted(parts[2])[third // 10],
        HOUR * _slope(points),
        (points[-1][0] - points[0][0]) / HOUR,
    )


def memory_grows(seen: Trend) -> bool:
    first, middle, last = seen.thirds
    tolerated = max(TOLERATED_BYTES, TOLERATED_SHARE * first)
    between = seen.hours * 2 / 3  # from the middle of the first third to that of the last
    return (
        seen.per_hour > tolerated
        and last - first > max(tolerated * between, LEAST_BYTES)
        and last - middle >= STILL * (last - first)
    )


def count_grows(seen: Trend) -> bool:
    return seen.least > seen.first


def _slope(points: Sequence[tuple[float, float]]) -> float:
    return statistics.median(
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
        if later[0] > earlier[0]
    )
