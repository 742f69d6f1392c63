"""The two rules for version numbers."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.versions import parse_simple, parse_system


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", (10, 0, 0, 0)),
        ("1.2.3.4", (1, 2, 3, 4)),
        (" v1.0-beta+x ", (1, 0, 0, 0)),
        ("V2.0+build", (2, 0, 0, 0)),
        ("0" * 5000 + "7", (7, 0, 0, 0)),
        ("", None),
        ("net10.0", None),
        ("1.", None),
        ("1.2.3.4.5", None),
        ("2147483648", None),
        ("9" * 5000, None),
    ],
)
def test_msbuild_itself_takes_one_to_four_numbers_a_v_and_a_suffix(text: str, expected: object) -> None:
    assert parse_simple(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2", (1, 2)),
        ("1.2.3.4", (1, 2, 3, 4)),
        (" 1 .+2", (1, 2)),
        ("1", None),
        ("1.2-rc", None),
        ("1.-2", None),
        ("1..2", None),
        ("1.2.3.4.5", None),
    ],
)
def test_system_version_takes_two_to_four_numbers_and_nothing_else(text: str, expected: object) -> None:
    assert parse_system(text) == expected
