"""Target frameworks: what a name stands for, and the short name of a long one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.discovery.frameworks import Framework, parse_framework, short_name


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("net10.0", Framework(".NETCoreApp", "v10.0", "", "")),
        ("net5.0", Framework(".NETCoreApp", "v5.0", "", "")),
        ("NET10.0-Android36.0", Framework(".NETCoreApp", "v10.0", "android", "36.0")),
        ("net10.0-ios", Framework(".NETCoreApp", "v10.0", "ios", "")),
        ("net9.0-windows10.0.19041.0", Framework(".NETCoreApp", "v9.0", "windows", "10.0.19041.0")),
        ("net9.0-browserwasm", Framework(".NETCoreApp", "v9.0", "browserwasm", "")),
        ("netcoreapp3.1", Framework(".NETCoreApp", "v3.1", "", "")),
        ("netstandard2.0", Framework(".NETStandard", "v2.0", "", "")),
        ("net48", Framework(".NETFramework", "v4.8", "", "")),
        ("net472", Framework(".NETFramework", "v4.7.2", "", "")),
    ],
)
def test_names_that_an_sdk_knows(name: str, framework: Framework) -> None:
    assert parse_framework(name) == framework


@pytest.mark.parametrize(
    "name",
    ["", "net", "net10.0-", "net10.0-36", "net10.0 ", "uap10.0", "$(Tfm)", "net10.0;net9.0", "net4.7.2.1"],
)
def test_other_names_stand_for_nothing(name: str) -> None:
    assert parse_framework(name) is None


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (".NETCoreApp,Version=v10.0", "net10.0"),
        (".NETCoreApp,Version=v5.0", "net5.0"),
        (".NETCoreApp,Version=v3.1", "netcoreapp3.1"),
        (".NETStandard,Version=v2.0", "netstandard2.0"),
        (".NETFramework,Version=v4.7.2", "net472"),
        (".netcoreapp,version=V10.0", "net10.0"),
    ],
)
def test_long_names_of_older_assets_files_have_a_short_one(long: str, short: str) -> None:
    assert short_name(long) == short


@pytest.mark.parametrize(
    "name",
    [
        "net10.0",
        "net10.0-windows7.0",
        "",
        "UAP,Version=v10.0",
        ".NETCoreApp,Version=",
        ".NETCoreApp,Version=v",
        ".NETCoreApp,Version=v.",
        ".NETCoreApp,Version=v..1",
        ".NETCoreApp,Version=v10.",
        ".NETCoreApp,Version=v" + "9" * 5000,
    ],
    ids=lambda name: name[:30],
)
def test_all_other_names_stay_as_they_are(name: str) -> None:
    assert short_name(name) == name


@settings(deadline=None)
@given(st.text() | st.from_regex(r"\.NET(CoreApp|Standard|Framework),Version=v[\d.]*", fullmatch=True))
def test_no_name_is_an_error(name: str) -> None:
    parse_framework(name)
    assert short_name(short_name(name)) == short_name(name)
