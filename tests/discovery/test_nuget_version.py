"""Versions: order, folder names, and the comparison with a minimum."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.discovery.nuget_version import NuGetVersion, at_least, folder_spellings, parse_version

IN_ORDER = [
    "0.9",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-99999999999999999999",
    "1.0.0-alpha",
    "1.0.0-ALPHA.1",
    "1.0.0-alpha.1.1",
    "1.0.0-alpha.2",
    "1.0.0-alpha.10",
    "1.0.0-alpha.x",
    "1.0.0-alpha-",
    "1.0.0-beta",
    "1.0.0-rc.1",
    "1.0",
    "1.0.0.1",
    "1.0.1",
    "1.2",
    "1.10",
    "10.0.100-preview.1",
    "10.0.100",
]


def version(text: str) -> NuGetVersion:
    parsed = parse_version(text)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(("lower", "higher"), list(itertools.pairwise(IN_ORDER)))
def test_versions_are_ordered_as_semver_says_ignoring_case(lower: str, higher: str) -> None:
    assert version(lower) < version(higher)
    assert version(lower) <= version(higher)
    assert version(higher) > version(lower)
    assert version(higher) >= version(lower)
    assert version(lower) != version(higher)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1.0", "1.0.0.0"), ("1.0.0-RC1", "1.0.0-rc1"), ("1.2.3+a", "1.2.3+b"), ("01.02.03", "1.2.3"), (" 1.0 ", "1.0")],
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert version(one) == version(other)
    assert hash(version(one)) == hash(version(other))


@pytest.mark.parametrize(
    "text",
    ["", " ", "v1.0", "1.", ".1", "1..2", "1.2.3.4.5", "1.0-", "1.0-a..b", "1.0+", "1.0-ä", "१.0", "1.x", "9" * 5000],
)
def test_what_is_no_version_is_none(text: str) -> None:
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("1.0", "1.0.0"),
        ("6", "6.0.0"),
        ("1.2.3.4", "1.2.3.4"),
        ("2.0.0.0", "2.0.0"),
        ("03.01.02", "3.1.2"),
        ("4.0.0-Beta.1+meta", "4.0.0-beta.1"),
        ("5.0.0-RC1", "5.0.0-rc1"),
        ("1.8-dev.19", "1.8.0-dev.19"),
    ],
)
def test_a_folder_is_found_by_the_normalised_spelling_after_the_written_one(written: str, folder: str) -> None:
    spellings = list(folder_spellings(written))

    assert spellings[0] == written
    assert spellings[-1] == folder


def test_each_spelling_is_tried_once() -> None:
    assert list(folder_spellings("1.2.3")) == ["1.2.3"]
    assert list(folder_spellings("1.0-RC")) == ["1.0-RC", "1.0-rc", "1.0.0-rc"]


def test_a_text_that_is_no_version_is_only_looked_for_as_it_stands() -> None:
    assert list(folder_spellings("Local")) == ["Local", "local"]


@pytest.mark.parametrize("text", ["", "  ", ".", "..", "../1.0.0", "1.0.0/..", "..\\1.0.0", "1.0\0"])
def test_a_version_never_leads_out_of_the_package_folder(text: str) -> None:
    assert list(folder_spellings(text)) == []


@pytest.mark.parametrize(
    ("host", "minimum", "expected"),
    [
        ("6.5.153", "6.5.0", True),
        ("6.5.0", "6.5.153", False),
        ("6.0", "6.0.0", True),
        ("6.0.0", "6.0", True),
        ("6.0.0.0", "6.0", True),
        ("10.0", "9.5", True),
        ("6.5.0-dev.7", "6.5.0", True),
        ("6.5.0+abc", "6.5.0-rc.1", True),
        ("6", "6.0", True),
        ("6.0", "7", False),
        ("1.2.3.4.5", "1.0", None),
        ("", "1.0", None),
        ("unknown", "1.0", None),
        ("1.0", "9" * 5000 + ".0", None),
    ],
)
def test_a_minimum_is_compared_by_numbers_only(host: str, minimum: str, expected: bool | None) -> None:
    assert at_least(host, minimum) is expected


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    parsed = parse_version(text)

    assert parsed is None or parse_version(str(parsed)) == parsed
    assert at_least(text, "1.0") in (True, False, None)
    assert all("/" not in spelling for spelling in folder_spellings(text))
