"""The values that functions take and give."""

from __future__ import annotations

import time

import pytest

from uno_devserver.msbuild.expressions import MAX_TEXT
from uno_devserver.msbuild.functions.calls import (
    FunctionValue,
    SystemVersion,
    bounded,
    maybe_integer,
    maybe_real,
    to_text,
)
from uno_devserver.msbuild.problems import EvaluationProblem


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "True"),
        (3, "3"),
        (3.0, "3"),
        (3.5, "3.5"),
        (1e15, "1E+15"),
        (1.5e-7, "1.5E-07"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (SystemVersion((1, 2)), "1.2"),
        (["a;b", "c"], "a%3bb;c"),
    ],
)
def test_a_value_is_written_as_dotnet_writes_it(value: FunctionValue, expected: str) -> None:
    assert to_text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("-7", -7), (" +7 ", 7), ("7.0", None), (7.0, 7), (7.5, None), (True, None), ("x", None), ("2147483648", None)],
)
def test_an_integer_may_be_text_and_has_a_range(value: FunctionValue, expected: int | None) -> None:
    assert maybe_integer(value, 2**31) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1.5", 1.5), ("1,000", 1000.0), ("1.e3", 1000.0), (".5", 0.5), ("x", None), (",", None), (2, 2.0)],
)
def test_a_real_number_may_be_text(value: FunctionValue, expected: float | None) -> None:
    assert maybe_real(value) == expected


def test_a_text_that_begins_as_a_long_number_is_refused_in_a_moment() -> None:
    start = time.process_time()

    assert maybe_real("1" * 400_000 + "x") is None
    # Trying every place for the point would take minutes.
    assert time.process_time() - start < 5


def test_a_length_has_a_limit() -> None:
    assert bounded(MAX_TEXT) == MAX_TEXT
    with pytest.raises(EvaluationProblem):
        bounded(MAX_TEXT + 1)
