"""What is left out on Windows is there, so that no entry outlives its test."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from windows.left_out import LEFT_OUT, reason_of

TESTS = Path(__file__).parents[1]


def test_each_entry_names_a_file_or_a_test_that_exists() -> None:
    for places in LEFT_OUT.values():
        for place, names in places.items():
            assert (TESTS / place).exists(), place
            if names:
                there = set(re.findall(r"def (test_\w+)", (TESTS / place).read_text("utf-8")))
                assert set(names) <= there, (place, set(names) - there)


def test_a_reason_holds_for_one_test_or_for_all_of_a_folder() -> None:
    assert reason_of(PurePosixPath("browser/test_live.py"), "test_anything") == "It drives a browser of this system."
    assert reason_of(PurePosixPath("browser")) is not None
    assert reason_of(PurePosixPath("test_version.py"), "test_anything") is None
