"""The table of all bars names figures that are measured, and tests that exist."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from benchmarks import bars
from benchmarks.bars import HELD, Bar, Held
from benchmarks.figures import COMMIT, RESULTS

ROOT = Path(__file__).parents[1]
RECORDS = {path.stem: json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}


@pytest.mark.parametrize(
    "bar", bars.bars({name: record["rows"] for name, record in RECORDS.items()}), ids=lambda bar: bar.what
)
def test_each_figure_is_read_from_its_record(bar: Bar) -> None:
    if bar.result == "coverage" and "coverage" not in RECORDS:
        assert bars.line_of(bar, RECORDS) == (bar.area, bar.what, bar.wanted, "not recorded", False)
        return

    _, _, wanted, measured, _ = bars.line_of(bar, RECORDS)

    assert re.match(r"[≤≥] [\d.]+", wanted)
    assert re.match(r"-?[\d.]|∞", measured)


@pytest.mark.parametrize("held", HELD, ids=lambda held: held.what)
def test_each_bar_without_a_figure_has_tests_that_exist(held: Held) -> None:
    for test in held.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name}" in (ROOT / path).read_text("utf-8")


def test_a_figure_beyond_its_limit_is_a_miss_in_both_directions() -> None:
    rows = [{"what": "x", "ratioToBare": 3.5}]

    assert Bar("", "", "", bars.of("x", bars.ratio), 3, "").judged(rows) == ("3.5", False)
    assert Bar("", "", "", bars.of("x", bars.ratio), 3, "", at_least=True).judged(rows) == ("3.5", True)


def test_a_figure_of_another_commit_says_so() -> None:
    bar = Bar("area", "what", "record", lambda rows: float(len(rows)), 3, " ms")

    of_this, of_another = ({"record": {"commit": commit, "rows": [{}]}} for commit in (COMMIT, "1234567"))

    assert bars.line_of(bar, of_this) == ("area", "what", "≤ 3 ms", "1 ms", True)
    assert bars.line_of(bar, of_another) == ("area", "what", "≤ 3 ms", "1 ms (of 1234567)", True)


@pytest.mark.parametrize(
    ("unit", "others", "expected"),
    [
        ("ms", {"a": {"median": 30.0}, "b": {"median": 20.0}, "no proxy": {"median": 1.0}}, 2.0),
        ("/s", {"a": {"median": 30.0}, "b": {"median": 20.0}, "no proxy": {"median": 900.0}}, 1 / 3),
        ("ms", {"a": {"no": "it cannot"}}, math.inf),
    ],
)
def test_the_best_of_the_others_counts(unit: str, others: dict[str, object], expected: float) -> None:
    assert bars.lead({"unit": unit, "peers": {"uno-devserver": {"median": 10.0}, **others}}) == pytest.approx(expected)


def test_what_grows_too_fast_and_what_takes_too_long_are_bars_of_their_own() -> None:
    row = {"what": "a call", "axis": "tools", "usual": 100, "points": [[10, 5.0], [100, 500.0]]}

    assert [bar.judged([row]) for bar in bars.growth(row)] == [("2", False), ("500 ms", False)]
    assert [bar.wanted for bar in bars.growth(row)] == ["≤ 1.1", "≤ 100 ms"]


def test_a_test_that_failed_or_was_not_run_is_a_miss(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_good"/>'
        '<testcase classname="tests.a.test_b" name="test_bad"><failure/></testcase>'
        '<testcase classname="tests.a.test_b" name="test_left_out"><skipped/></testcase></testsuite></testsuites>'
    )

    outcomes = bars.outcomes_of(report)

    assert outcomes == {"tests/a/test_b.py::test_good": True, "tests/a/test_b.py::test_bad": False}
    assert Held("", "", ("tests/a/test_b.py::test_good",)).judged(outcomes) == ("all pass", "1 of 1 tests", True)
    assert not Held("", "", ("tests/a/test_b.py",)).judged(outcomes)[2]
    assert not Held("", "", ("tests/a/test_b.py::test_left_out",)).judged(outcomes)[2]
