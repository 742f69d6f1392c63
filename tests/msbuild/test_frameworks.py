"""Target framework names."""

from __future__ import annotations

import pytest

from uno_devserver.msbuild.frameworks import Framework, is_compatible, parse_framework, version_text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("net10.0", Framework(".NETCoreApp", (10, 0))),
        (" NET9.0-Windows10.0.19041 ", Framework(".NETCoreApp", (9, 0), "windows", (10, 0, 19041))),
        ("net9.0-android", Framework(".NETCoreApp", (9, 0), "android")),
        ("netcoreapp3.1", Framework(".NETCoreApp", (3, 1))),
        ("netstandard2.0", Framework(".NETStandard", (2, 0))),
        ("net48", Framework(".NETFramework", (4, 8, 0))),
        ("net472", Framework(".NETFramework", (4, 7, 2))),
        ("net4.8", Framework(".NETFramework", (4, 8))),
        ("monoandroid", None),
        ("", None),
        ("net" + "9" * 5000 + ".0", Framework(".NETCoreApp", (10**9, 0))),
    ],
)
def test_the_usual_names_are_understood(name: str, expected: Framework | None) -> None:
    assert parse_framework(name) == expected


@pytest.mark.parametrize(
    ("target", "candidate", "expected"),
    [
        ("net10.0", "net8.0", True),
        ("net8.0", "net10.0", False),
        ("net10.0-android36.0", "net10.0", True),
        ("net10.0", "net10.0-android36.0", False),
        ("net10.0-ios", "net9.0-android", False),
        ("net10.0-android36.0", "net9.0-android35.0", True),
        ("net10.0-android35.0", "net10.0-android36.0", False),
        ("net10.0", "netstandard2.1", True),
        ("netcoreapp2.1", "netstandard2.1", False),
        ("netstandard2.0", "net10.0", False),
        ("net472", "net462", True),
        ("net48", "netcoreapp3.1", False),
        ("net48", "netstandard2.0", None),
        ("netcoreapp0.0", "netstandard2.0", None),
    ],
)
def test_a_project_can_use_what_is_not_newer_and_not_of_another_platform(
    target: str, candidate: str, expected: bool | None
) -> None:
    left, right = parse_framework(target), parse_framework(candidate)

    assert left
    assert right
    assert is_compatible(left, right) is expected


def test_a_version_loses_its_trailing_zeros_down_to_a_number_of_parts() -> None:
    assert version_text((4, 7, 2), 2) == "4.7.2"
    assert version_text((10, 0), 2) == "10.0"
    assert version_text((10, 0), 1) == "10"
    assert version_text((), 2) == "0.0"
    assert version_text((1, 2), 4) == "1.2.0.0"
