"""The table of all bars names figures that are measured, and tests that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks import bars
from benchmarks.bars import FIGURES, HELD, Figure, Held
from benchmarks.figures import RESULTS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_each_figure_is_among_those_that_were_saved(figure: Figure) -> None:
    rows = json.loads((RESULTS / f"{figure.result}.json").read_text("utf-8"))["rows"]

    bar, measured, _ = figure.judged({figure.result: rows})

    assert re.match(r"[≤≥] [\d.]+", bar)
    assert re.match(r"[\d.]", measured)


@pytest.mark.parametrize("held", HELD, ids=lambda held: held.what)
def test_each_bar_without_a_figure_has_tests_that_exist(held: Held) -> None:
    for test in held.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name}" in (ROOT / path).read_text("utf-8")


def test_a_figure_beyond_its_limit_is_a_miss_in_both_directions() -> None:
    rows = {"proxy": [{"what": "x", "ratioToBare": 3.5}]}

    assert Figure(3, "", "proxy", "x", bars.ratio, 3, "").judged(rows) == ("≤ 3", "3.5", False)
    assert Figure(3, "", "proxy", "x", bars.ratio, 3, "", at_least=True).judged(rows) == ("≥ 3", "3.5", True)


def test_a_test_that_failed_or_was_not_run_is_a_miss(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_good"/>'
        '<testcase classname="tests.a.test_b" name="test_bad"><failure/></testcase>'
        '<testcase classname="tests.a.test_b" name="test_left_out"><skipped/></testcase></testsuite></testsuites>'
    )

    outcomes = bars.outcomes_of(report)

    assert outcomes == {"tests/a/test_b.py::test_good": True, "tests/a/test_b.py::test_bad": False}
    assert Held(1, "", ("tests/a/test_b.py::test_good",)).judged(outcomes) == ("all pass", "1 of 1 tests", True)
    assert not Held(1, "", ("tests/a/test_b.py",)).judged(outcomes)[2]
    assert not Held(1, "", ("tests/a/test_b.py::test_left_out",)).judged(outcomes)[2]
