"""NuGet's generated files are read in their fixed form, and mean what an evaluation of them means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.files import write
from support.golden import recorded_ids, restored_workspace
from support.machine import Machine
from uno_devserver.discovery.nuget import PackageFolders
from uno_devserver.discovery.project_info import ProjectInfo, read_project
from uno_devserver.discovery.restore import Restored, read_generated, read_restored, restore_issues, select_imports
from uno_devserver.msbuild.project_files import ProjectFileCache

ALWAYS = "'$(ExcludeRestorePackageImports)' != 'true'"
PROPS = f"""<?xml version="1.0" encoding="utf-8" standalone="no"?>
<Project ToolsVersion="14.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <PropertyGroup Condition=" {ALWAYS} ">
    <NuGetPackageRoot Condition=" '$(NuGetPackageRoot)' == '' ">/cache/</NuGetPackageRoot>
    <RestoreTool Condition=" '$(RestoreTool)' == '' ">NuGet</RestoreTool>
  </PropertyGroup>
  <ItemGroup Condition=" {ALWAYS} ">
    <SourceRoot Include="/cache/" />
  </ItemGroup>
  <PropertyGroup Condition=" '$(TargetFramework)' == 'net9.0' AND {ALWAYS} ">
    <PkgAcme Condition=" '$(PkgAcme)' == '' ">/cache/acme/1.0.0</PkgAcme>
  </PropertyGroup>
</Project>"""


def _import(path: str) -> str:
    return f'<Import Project="{path}" Condition="Exists(\'{path}\')" />'


def _targets(*groups: str) -> str:
    return "<Project >\n" + "\n".join(groups) + "\n</Project>"


def _group(framework: str | None, *imports: str) -> str:
    condition = f"'$(TargetFramework)' == '{framework}' AND {ALWAYS}" if framework is not None else ALWAYS
    return "\n".join([f'<ImportGroup Condition=" {condition} ">', *map(_import, imports), "</ImportGroup>"])


def test_imports_and_properties_count_for_their_framework() -> None:
    targets = _targets(
        _group("net9.0", "$(NuGetPackageRoot)nine/1.0.0/a.targets"),
        _group("net10.0", "$(NuGetPackageRoot)ten/1.0.0/a.targets"),
        _group("", "$(NuGetPackageRoot)outer/1.0.0/a.targets"),
        _group(None, "/fallback/all/1.0.0/a.targets"),
    )

    lines = read_generated([PROPS, targets])

    assert lines is not None
    assert select_imports(lines, "net9.0") == (
        ["/cache/nine/1.0.0/a.targets", "/fallback/all/1.0.0/a.targets"],
        {"NuGetPackageRoot": "/cache/", "PkgAcme": "/cache/acme/1.0.0"},
    )
    assert select_imports(lines, "net10.0") == (
        ["/cache/ten/1.0.0/a.targets", "/fallback/all/1.0.0/a.targets"],
        {"NuGetPackageRoot": "/cache/"},
    )


def test_the_first_value_of_a_property_counts_as_its_condition_says() -> None:
    again = "<NuGetPackageRoot Condition=\" '$(NuGetPackageRoot)' == '' \">/other</NuGetPackageRoot>\n    <RestoreTool"
    twice = PROPS.replace("<RestoreTool", again, 1)

    lines = read_generated([twice])

    assert lines is not None
    assert select_imports(lines, None)[1]["NuGetPackageRoot"] == "/cache/"


def test_every_framework_counts_when_the_project_does_not_say_but_never_the_outer_build() -> None:
    lines = read_generated([_targets(_group("net9.0", "/nine"), _group("", "/outer"), _group(None, "/all"))])

    assert lines is not None
    assert select_imports(lines, None)[0] == ["/nine", "/all"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<Project>",
        PROPS.replace("\n", " "),
        PROPS.replace("</Project>", "<!-- mine --></Project>"),
        PROPS.replace("<RestoreTool ", "<RestoreTool Label='x' "),
        PROPS.replace("net9.0", "net9.0' or 'a' == 'a"),
        PROPS.replace("/cache/acme", "/ca&amp;che/acme"),
        PROPS.replace("/cache/acme", "/ca%20che/acme"),
        PROPS.replace("/cache/</NuGetPackageRoot>", "$(UserProfile)/cache/</NuGetPackageRoot>"),
        _targets(_group(None, "$(Elsewhere)/a.targets")),
        _targets(_group("net9.0", "/a"), _import("/outside-of-groups")),
        _targets('<Import Project="/a" />'),
        _targets('<Import Project="/a" Condition="Exists(\'/b\')" />'),
        _targets('<ImportGroup Condition="true">', _import("/a"), "</ImportGroup>"),
    ],
)
def test_a_file_in_any_other_form_is_left_to_the_evaluator(text: str) -> None:
    assert read_generated([text]) is None


@pytest.mark.parametrize("name", recorded_ids("restore"))
def test_the_fixed_form_means_what_an_evaluation_means(name: str, machine: Machine) -> None:
    # given every project that a real restore left its files for
    restored_workspace(name, machine)
    generated = sorted(machine.workspace.rglob("*.nuget.g.targets"))
    projects = [next(machine.workspace.rglob(path.name.removesuffix(".nuget.g.targets"))) for path in generated]

    # when its files are read as they are, and then with a line that only the evaluator understands
    plain = [_restored(project) for project in projects]
    for path in generated:
        for file in (path, path.with_suffix(".props")):
            write(file, file.read_text("utf-8-sig").replace("</Project>", "<!-- touched -->\n</Project>"))
    evaluated = [_restored(project) for project in projects]

    # then both tell the same packages, folders and existing files
    assert [_existing(one) for one in plain] == [_existing(one) for one in evaluated]
    assert all(one.found for one in plain)


def _restored(project: Path) -> Restored:
    files = ProjectFileCache()
    return read_restored(read_project(str(project), files, {}), PackageFolders(()), files, {})


def _existing(restored: Restored) -> object:
    """The evaluator does not name files that are gone; the line reader does, and whoever opens them finds out."""
    imports = [
        (one.framework, [p for p in (*one.props, *one.targets) if Path(p).is_file()], dict(one.properties))
        for one in restored.imports
    ]
    packages = {package for package in restored.packages if package.folder and Path(package.folder).is_dir()}
    return imports, packages, restored.folders


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
