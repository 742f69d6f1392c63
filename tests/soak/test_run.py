"""The soak's short form: all of its worlds for some seconds, and every answer is right."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from soak import report
from soak.run import soak
from soak.samples import OF_FOLDER, OF_PROCESS, Series, of_folder, of_process
from soak.tally import Loops, Tally
from support.files import write_all
from support.proxies import PATIENCE
from support.servers import Processes
from support.waiting import wait_for

SHORT_SECONDS = 0.5  # each thing that is begun comes to its end, so each happens once at least


def test_for_some_seconds_every_answer_is_right_and_nothing_is_left() -> None:
    tally = Tally()

    series = soak(SHORT_SECONDS, seed=1, tally=tally)

    assert not tally.problems, tally.problems
    done = {what for what, number in tally.counts.items() if number}
    assert {"calls", "requests", "edits", "kills", "sessions", "pages", "cuts", "expired tokens"} <= done, tally.counts
    watched = [each.name.partition(":")[0] for each in series]
    assert (watched.count("proxy"), watched.count("Host")) == (6, 1)
    assert all(set(each.values) in ({*OF_PROCESS}, {*OF_FOLDER}) for each in series), series


def test_a_process_that_grows_is_named_with_what_grows() -> None:
    growing, steady = Series("proxy: one"), Series("state: one")
    for number in range(60):
        at = 60.0 * number
        growing.add(
            at, {"rss": 40_000_000 + 200_000 * number, "uss": 1, "fds": 14 + number, "threads": 3, "children": 1}
        )
        steady.add(at, {"files": 20, "bytes": 5000})

    rows = report.judge([growing, steady])

    assert [row.grows for row in rows] == [("rss", "fds"), ()]
    told = report.text(rows, Tally(), minutes=60, seed=1)
    assert "GROWS: rss, fds" in told
    assert "| state: one | 20 → 20 | 5 → 5 | pass |" in told


def test_a_run_too_short_to_see_a_leak_does_not_pass() -> None:
    # given
    process, folder = Series("proxy: one"), Series("state: one")
    for number in range(60):
        process.add(number, {"rss": 40_000_000, "uss": 1, "fds": 14, "threads": 3, "children": 1})
        folder.add(number, {"files": 20, "bytes": 5000})
    rows = report.judge([process, folder])

    # when
    short, long = (report.text(rows, Tally(), minutes, seed=1) for minutes in (14.9, 15.0))

    # then
    assert "| too short to judge memory |" in short
    assert "| too short to judge size |" in short
    assert "pass" not in short
    assert long.count("| pass |") == 2


def test_what_goes_wrong_in_a_loop_is_told_and_the_loop_goes_on() -> None:
    tally = Tally()
    loops = Loops(tally)

    def fail() -> float:
        raise ValueError("no such answer")

    loops.start("a caller", fail)
    wait_for(lambda: tally.problems, "a problem")
    loops.stop(PATIENCE)

    assert tally.counts["wrong"] >= 1
    assert "a caller" in tally.problems[0]
    assert "no such answer" in tally.problems[0]


def test_of_a_folder_all_files_below_it_are_counted(tmp_path: Path) -> None:
    write_all(tmp_path, {"one": "1", "below/two": "22"})

    assert of_folder(tmp_path) == {"files": 2, "bytes": 3}


def test_of_a_process_its_memory_files_threads_and_children_are_seen(processes: Processes) -> None:
    quiet = of_process(psutil.Process())

    processes.start()
    with open(os.devnull) as _:
        busy = of_process(psutil.Process())

    assert quiet.keys() == {*OF_PROCESS}
    assert quiet["rss"] > quiet["uss"] > 0
    assert busy["fds"] > quiet["fds"]
    assert busy["children"] == quiet["children"] + 1
