"""The packages of a workspace: restore beats the SDK's list, and a framework's own version beats the general one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import write
from uno_devserver.discovery.packages import (
    SdkPackage,
    SdkPackages,
    WorkspacePackage,
    merge_packages,
    read_sdk_packages,
)
from uno_devserver.discovery.restore import Restored, RestoredPackage

ACME, OTHER = SdkPackage("Acme", "1.0", {}), SdkPackage("Other", "2.0", {})
PER_FRAMEWORK = SdkPackage("Acme", "1.0", {"net10.0": "10.0"})


def never_asked() -> str | None:
    raise AssertionError("finding the installed SDK may start a process")


def restored(*packages: tuple[str, str], with_add_ins: tuple[str, ...] = ()) -> Restored:
    known = [RestoredPackage(name, version, None) for name, version in packages if name in with_add_ins]
    return Restored(listed=packages, packages=tuple(known))


def test_without_a_restore_the_sdks_list_counts_in_its_order() -> None:
    merged = merge_packages([OTHER, ACME], [], [], never_asked)

    assert list(merged.items()) == [
        ("other", WorkspacePackage("Other", "2.0", restored=False)),
        ("acme", WorkspacePackage("Acme", "1.0", restored=False)),
    ]


def test_the_restored_version_wins_and_the_sdk_gives_name_and_place() -> None:
    merged = merge_packages([ACME, OTHER], [restored(("ACME", "1.5"))], [], never_asked)

    assert list(merged.values()) == [
        WorkspacePackage("Acme", "1.5", restored=True),
        WorkspacePackage("Other", "2.0", restored=False),
    ]


def test_of_two_projects_the_first_decides() -> None:
    projects = [restored(("Acme", "1.5")), restored(("Acme", "1.7"), ("Other", "3.0"))]

    merged = merge_packages([ACME, OTHER], projects, [], never_asked)

    assert [package.version for package in merged.values()] == ["1.5", "3.0"]


def test_packages_that_only_restore_knows_follow_where_they_can_hold_an_add_in() -> None:
    projects = [
        restored(("Zed", "1.0"), ("Plain", "1.0"), with_add_ins=("Zed",)),
        restored(("zed", "2.0"), ("Tool", "3.0"), with_add_ins=("zed", "Tool")),
    ]

    merged = merge_packages([ACME], projects, [], never_asked)

    assert list(merged) == ["acme", "zed", "tool"]
    assert merged["zed"] == WorkspacePackage("Zed", "1.0", restored=True)


def test_a_frameworks_own_version_counts_and_the_other_is_remembered() -> None:
    merged = merge_packages([PER_FRAMEWORK], [], ["net9.0", "net10.0-android"], never_asked)

    package = merged["acme"]
    assert package == WorkspacePackage("Acme", "10.0", restored=False, listed_version="1.0")
    issue = package.overridden()
    assert issue
    assert (issue.code, issue.fatal) == ("PackageVersionOverridden", False)
    assert "10.0" in issue.message
    assert "1.0" in issue.message


def test_where_no_project_names_a_framework_the_installed_sdks_counts() -> None:
    assert merge_packages([PER_FRAMEWORK], [], [], lambda: "net10.0")["acme"].version == "10.0"
    assert merge_packages([PER_FRAMEWORK], [], [], lambda: None)["acme"].version == "1.0"


def test_the_installed_sdk_is_not_asked_for_where_restore_knows_the_version() -> None:
    package = merge_packages([PER_FRAMEWORK], [restored(("Acme", "1.5"))], [], never_asked)["acme"]

    assert package == WorkspacePackage("Acme", "1.5", restored=True)
    assert package.overridden() is None


def test_an_override_that_says_the_same_is_none() -> None:
    same = SdkPackage("Acme", "1.0", {"net10.0": "1.0"})

    assert merge_packages([same], [], ["net10.0"], never_asked)["acme"].overridden() is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["version", "packages", "versionOverride", "group", "net10.0"]), inner)
    ),
    max_leaves=12,
)


def read(sdk: Path, content: object) -> SdkPackages:
    path = sdk / "targets" / "netstandard2.0" / "packages.json"
    write(path, content if isinstance(content, (str, bytes)) else json.dumps(content))
    return read_sdk_packages(str(sdk))


def test_every_package_of_every_group_counts_in_the_version_of_its_group(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            {"group": "Core", "version": "6.5.31", "packages": ["Uno.WinUI", "Uno.WinUI.DevServer"]},
            {
                "group": "AppMcp",
                "version": " 1.1.0 ",
                "packages": ["Uno.UI.App.Mcp"],
                "versionOverride": {"net10.0": "2"},
            },
        ],
    )

    assert found == SdkPackages(
        str(tmp_path / "targets/netstandard2.0/packages.json"),
        (
            SdkPackage("Uno.WinUI", "6.5.31", {}),
            SdkPackage("Uno.WinUI.DevServer", "6.5.31", {}),
            SdkPackage("Uno.UI.App.Mcp", "1.1.0", {"net10.0": "2"}),
        ),
        None,
    )
    assert found.readable


def test_the_first_group_that_names_a_package_gives_its_version(tmp_path: Path) -> None:
    groups = [{"version": "1.0", "packages": ["Acme"]}, {"version": "2.0", "packages": ["ACME", "acme", "Other"]}]

    found = read(tmp_path, groups)

    assert [(package.name, package.version) for package in found.packages] == [("Acme", "1.0"), ("Other", "2.0")]


@pytest.mark.parametrize(
    ("frameworks", "version"),
    [
        ([], "1.0"),
        (["net9.0"], "1.0"),
        (["net10.0"], "10.0"),
        (["net10.0-android36.0"], "10.0"),
        (["net11.0-ios"], "11.0-ios"),
        (["net11.0-android"], "1.0"),
        (["net9.0", "net10.0", "net11.0-ios"], "10.0"),
        (["net11.0-ios", "net10.0"], "11.0-ios"),
    ],
)
def test_the_first_framework_with_a_version_of_its_own_decides(frameworks: list[str], version: str) -> None:
    package = SdkPackage("Acme", "1.0", {"net10.0": "10.0", "net11.0-ios": "11.0-ios"})

    assert package.version_for(frameworks) == version


def test_the_file_may_have_comments_and_a_byte_order_mark(tmp_path: Path) -> None:
    text = '// packages\n[{"version": "1.0", "packages": ["Acme",],},]'

    assert [package.name for package in read(tmp_path, text.encode("utf-8-sig")).packages] == ["Acme"]


def test_an_sdk_without_the_list_says_where_it_was_looked_for(tmp_path: Path) -> None:
    found = read_sdk_packages(str(tmp_path))

    assert (found.path, found.packages, found.readable) == (None, (), False)
    assert found.issue
    assert (found.issue.code, found.issue.fatal) == ("PackagesJsonNotFound", True)
    assert str(tmp_path / "targets/netstandard2.0/packages.json") in found.issue.message


@pytest.mark.parametrize("content", ["", "[", "not json", b"\0\1", "[" * 100_000], ids=lambda value: repr(value)[:30])
def test_a_damaged_list_is_an_issue_that_names_it(tmp_path: Path, content: str | bytes) -> None:
    found = read(tmp_path, content)

    assert (found.packages, found.readable) == ((), False)
    assert found.path
    assert found.issue
    assert (found.issue.code, found.issue.fatal) == ("PackagesJsonInvalid", True)
    assert found.path in found.issue.message


@pytest.mark.parametrize("content", ["{}", "null", '"x"', "1", "[]"])
def test_json_that_is_no_list_of_groups_names_no_packages(tmp_path: Path, content: str) -> None:
    """As recorded from the .NET tool; that the Host is not in the list is told elsewhere."""
    found = read(tmp_path, content)

    assert (found.packages, found.readable) == ((), True)


@pytest.mark.parametrize(
    "group",
    [
        None,
        1,
        [],
        {},
        {"version": 1, "packages": ["Lost"]},
        {"version": "1.0", "packages": "Lost"},
        {"packages": ["Lost"]},
        {"version": "1.0"},
        {"version": "1.0", "packages": [None, 3, "", " ", {}]},
    ],
    ids=str,
)
def test_a_group_of_another_shape_loses_only_itself(tmp_path: Path, group: object) -> None:
    found = read(tmp_path, [group, {"version": "2.0", "packages": ["Acme"]}])

    assert found.packages == (SdkPackage("Acme", "2.0", {}),)


@pytest.mark.parametrize(
    "overrides", [None, [], "net10.0", {"net10.0": 3}, {"net10.0": " "}, {"net10.0": None}], ids=str
)
def test_overrides_of_another_shape_are_none(tmp_path: Path, overrides: object) -> None:
    found = read(tmp_path, [{"version": "1.0", "packages": ["Acme"], "versionOverride": overrides}])

    assert found.packages == (SdkPackage("Acme", "1.0", {}),)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON_VALUES)
def test_any_json_gives_packages_or_an_issue(tmp_path: Path, content: object) -> None:
    found = read(tmp_path, [content] if isinstance(content, dict) else content)

    assert found.readable != (found.issue is not None)
