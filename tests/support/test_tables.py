"""A table of cases names those that fail, and hides none."""

from __future__ import annotations

import pytest

from support.tables import every


def test_every_case_is_tried_and_those_that_fail_are_named() -> None:
    tried = []

    def check(case: int) -> None:
        tried.append(case)
        assert case != 2
        with pytest.raises(ZeroDivisionError):
            _ = 1 // (case - 1)

    with pytest.raises(BaseExceptionGroup) as raised:
        every([1, 2, 3], check, name=hex)

    assert tried == [1, 2, 3]
    assert str(raised.value) == "2 of 3 cases fail (2 sub-exceptions)"
    assert [error.__notes__ for error in raised.value.exceptions] == [["The case is 0x2."], ["The case is 0x3."]]


def test_a_table_without_cases_is_no_success() -> None:
    with pytest.raises(AssertionError, match="there is no case"):
        every([], print)
