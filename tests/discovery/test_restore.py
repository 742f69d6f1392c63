"""NuGet's generated files are read in their fixed form, and mean what an evaluation of them means."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write
from support.golden import recorded_ids, restored_workspace
from support.machine import Machine
from uno_devserver.discovery.nuget import PackageFolders
from uno_devserver.discovery.project_info import read_project
from uno_devserver.discovery.restore import Restored, read_generated, read_restored, select_imports
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
