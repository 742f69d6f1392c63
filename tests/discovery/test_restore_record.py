"""Restore's own record tells when its result is not to be trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.discovery.project_info import ProjectInfo
from uno_devserver.discovery.restore import restore_issues


def _project(folder: Path, *references: tuple[str, str], framework: str = "net10.0") -> ProjectInfo:
    path = str(folder / "App.csproj")
    return ProjectInfo(path, (framework,), (), references, str(folder / "obj"), (), (), (path,))


def _record(folder: Path, *packages: str, success: bool = True, project: str = "App.csproj", logs: str = "") -> None:
    files = []
    for package in packages:
        name, version = package.split("/")
        files.append(f"/cache/{package}/{name}.{version}.nupkg.sha512")
    content = {
        "version": 2,
        "success": success,
        "projectFilePath": str(folder / project),
        "expectedPackageFiles": files,
        "logs": [{"code": logs}] if logs else [],
    }
    write(folder / "obj" / "project.nuget.cache", json.dumps(content, indent=2))


def _codes(project: ProjectInfo) -> list[str]:
    return [issue.code for issue in restore_issues(project)]


def test_a_restore_that_knew_every_reference_is_trusted(tmp_path: Path) -> None:
    _record(tmp_path, "acme.tool/1.0.0", "acme.other/2.1.0-beta.1")

    project = _project(
        tmp_path,
        ("Acme.Tool", "1.0"),
        ("ACME.OTHER", "2.1.0-Beta.1"),
        ("Acme.Tool", "[1.0.0,2.0.0)"),
        ("Acme.Tool", ""),
    )

    assert _codes(project) == []


@pytest.mark.parametrize(
    "reference", [("Acme.New", "1.0.0"), ("Acme.Tool", "1.1.0"), ("Acme.New", "*"), ("Acme.New", "")]
)
def test_a_reference_that_restore_did_not_know_makes_it_stale(reference: tuple[str, str], tmp_path: Path) -> None:
    _record(tmp_path, "acme.tool/1.0.0")

    (issue,) = restore_issues(_project(tmp_path, reference))

    assert issue.code == "RestoreStale"
    assert reference[0] in issue.message


def test_a_version_that_does_not_exist_and_was_raised_is_not_stale(tmp_path: Path) -> None:
    _record(tmp_path, "acme.tool/1.0.0", logs="NU1603")

    assert _codes(_project(tmp_path, ("Acme.Tool", "0.9.0"))) == []


def test_a_failed_restore_is_told(tmp_path: Path) -> None:
    _record(tmp_path, success=False)

    assert _codes(_project(tmp_path, ("Acme.Tool", "1.0.0"))) == ["RestoreFailed"]


def test_the_record_of_another_project_in_the_same_folder_says_nothing(tmp_path: Path) -> None:
    _record(tmp_path, success=False, project="Other.csproj")

    assert _codes(_project(tmp_path)) == []


@pytest.mark.parametrize(
    ("restored", "now", "stale"),
    [
        ("net9.0", "net10.0", True),
        ("net10.0", "net10.0", False),
        (".NETCoreApp,Version=v10.0", "net10.0", False),
        (".NETCoreApp,Version=v9.0", "net10.0", True),
        ("net10.0-windows7.0", "net10.0-windows", False),
        ("net10.0-android36.0", "net10.0-desktop", True),
        ("some-alias", "net10.0", False),
    ],
)
def test_another_target_framework_than_the_restored_one_is_stale(
    restored: str, now: str, stale: bool, tmp_path: Path
) -> None:
    _record(tmp_path)
    write(tmp_path / "obj" / "project.assets.json", json.dumps({"version": 3, "targets": {restored: {}}}, indent=2))

    assert _codes(_project(tmp_path, framework=now)) == (["RestoreStale"] if stale else [])
