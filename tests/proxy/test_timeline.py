from __future__ import annotations

import time

from uno_devserver.proxy.state import Timeline


def test_stages_are_counted_from_the_beginning_of_the_process() -> None:
    worked = time.process_time()
    timeline = Timeline()

    assert timeline.mark("begun") >= int(worked * 1000)


def test_a_stage_keeps_the_moment_when_it_was_first_reached() -> None:
    timeline = Timeline()
    first = timeline.mark("connected")
    until = time.monotonic() + 0.005
    while time.monotonic() < until:
        pass

    later = timeline.mark("lists read")

    assert timeline.mark("connected") == first
    assert timeline.stages() == (("connected", first), ("lists read", later))
    assert later > first
