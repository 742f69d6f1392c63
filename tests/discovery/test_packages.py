"""The packages of a workspace: restore beats the SDK's list, and a framework's own version beats the general one."""

from __future__ import annotations

from uno_devserver.discovery.packages import SdkPackage, WorkspacePackage, merge_packages
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
