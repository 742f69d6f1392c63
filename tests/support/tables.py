"""Many small cases in one test: each is tried, and those that fail are named.

For recorded tables of hundreds of cases, where a test for each would cost more than its check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def every(cases: Iterable[Case], check: Callable[[Case], None], name: Callable[[Case], object] = str) -> None:
    tried, failed = 0, []
    for case in cases:
        tried += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # the latter is what `pytest.raises` ends with
            error.add_note(f"The case is {name(case)}.")
            failed.append(error)
    assert tried, "there is no case"
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {tried} cases fail", failed)
