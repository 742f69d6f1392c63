"""How a run shares its time, and how it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fuzz.children import Children, Ended
from fuzz.rounds import Outcome, fastest, seconds_each
from support.waiting import wait_for

RUN = Path(__file__).with_name("run.py")


def test_a_target_alone_has_all_of_the_time() -> None:
    assert seconds_each(20.0, targets=1, at_a_time=2) == 20
    assert seconds_each(0.5, targets=1, at_a_time=2) == 1


@pytest.mark.parametrize("seconds", [600.0, 3600.0])
def test_rounds_of_slow_targets_fill_the_time_and_no_more(seconds: float) -> None:
    targets, spent, each = 46, 0, []

    while seconds - spent >= 1:
        each.append(seconds_each(seconds - spent, targets, 2))
        spent += each[-1] * -(-targets // 2)
        targets = max(targets // 2, 1)

    assert 0.9 * seconds < spent <= seconds
    assert len(each) < 12
    assert min(each[:4]) > 0.8 * each[0], "those that come again have as much time again"


def test_the_faster_half_comes_again_and_none_that_failed() -> None:
    results = [Outcome("slow", 10, 10.0), Outcome("fast", 1000, 10.0), Outcome("failed", 9999, 1.0, failure="why")]

    assert [one.target for one in fastest(results)] == ["fast"]


def test_children_end_when_the_round_is_ended_and_no_other_begins(tmp_path: Path) -> None:
    children = Children()
    started = tmp_path / "started"
    program = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    ended = []

    def run() -> None:
        with (tmp_path / "log").open("wb") as log, pytest.raises(Ended):
            children.run([sys.executable, "-c", program], {}, log, 600)
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(started.exists, "its start")
    children.end()
    thread.join()
    started.unlink()
    run()

    assert len(ended) == 2
    assert not started.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seconds", "0"], "argument --seconds: '0' is no number above 0"),
        (["--inputs", "-5"], "argument --inputs: '-5' is no number above 0"),
        (["--repeat", "x"], "--repeat needs one --target"),
        (["--repeat", "no-such-file", "--target", "xml"], "no such file: no-such-file"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(arguments: list[str], sentence: str) -> None:
    process = subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True)

    assert process.returncode == 2
    assert sentence in process.stderr
    assert "Traceback" not in process.stderr
