"""Our own evaluation of .NET projects, held against what the .NET command line said of 34 of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.dotnet_cli import PROJECTS, RecordedDotNet, RecordedProject
from support.files import write, write_all
from uno_devserver.workspace.dotnet_project import (
    choose_framework,
    is_source,
    project_graph,
    project_in,
    projects_in,
    read_project,
)

# What our evaluation does not do, and why.
ONLY_THE_SDK = {
    "multi-target": "the SDK names no program until it is told a framework; we choose one",
    "broken-project": "there is no answer; the default files count, and the problem is told",
    "unknown-sdk": "there is no answer; we look for no SDK, and the build tells what is wrong",
    "file-based": "the output lies in a folder of the user whose name only the SDK knows",
    "file-based-project-reference": "as file-based",
}
LIBRARY = '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>'


@pytest.mark.parametrize("identity", [name for name in PROJECTS if name not in ONLY_THE_SDK])
def test_the_evaluation_is_that_of_the_sdk(identity: str, tmp_path: Path) -> None:
    recorded = RecordedProject(identity, tmp_path / "ws")

    project = read_project(str(recorded.path), {})

    assert project.sources == _sources(recorded)
    assert list(project.references) == [item["FullPath"] for item in recorded.items("ProjectReference")]
    assert project.target == recorded.property("TargetPath")
    assert (project.command, project.arguments) == (recorded.property("RunCommand"), recorded.property("RunArguments"))
    assert project.framework == recorded.property("TargetFramework")
    assert not project.problem


@pytest.mark.parametrize("identity", ["file-based", "file-based-project-reference"])
def test_the_sources_of_a_file_based_program_are_those_of_the_sdk(identity: str, tmp_path: Path) -> None:
    recorded = RecordedProject(identity, tmp_path / "ws")

    project = read_project(str(recorded.path), {})

    assert project.sources == _sources(recorded)
    assert list(project.references) == [item["FullPath"] for item in recorded.items("ProjectReference")]
    assert project.command == ""


def test_of_several_frameworks_the_newest_with_a_runtime_is_started(tmp_path: Path) -> None:
    recorded = RecordedProject("multi-target", tmp_path / "ws")
    dotnet = RecordedDotNet(tmp_path / "net")
    newest = read_project(str(recorded.path), dotnet.environ)
    dotnet.runtime("9.0.4")

    installed = read_project(str(recorded.path), dotnet.environ)

    assert (newest.framework, newest.several) == ("net10.0", True)
    assert installed.command == str(recorded.folder / "S" / "bin" / "Debug" / "net9.0" / "S")


@pytest.mark.parametrize(
    ("frameworks", "wanted", "chosen"),
    [
        (["netstandard2.0", "net8.0", "net10.0"], "net9.0", "net8.0"),
        (["netstandard2.0", "net10.0"], "net9.0", "netstandard2.0"),
        (["net10.0-android", "net9.0"], "", "net9.0"),
        (["net48", "netstandard2.1"], "", "net48"),
        (["strange"], "", "strange"),
    ],
)
def test_a_reference_is_used_in_the_newest_framework_that_fits(frameworks: list[str], wanted: str, chosen: str) -> None:
    assert choose_framework(frameworks, wanted, ()) == chosen


def test_a_project_that_cannot_be_read_has_the_default_files_and_says_why(tmp_path: Path) -> None:
    recorded = RecordedProject("broken-project", tmp_path / "ws")

    project = read_project(str(recorded.path), {})

    assert project.sources == {str(recorded.folder / "S" / "Program.cs")}
    assert "S.csproj cannot be evaluated: the file is not XML" in project.problem


def test_an_imported_file_that_cannot_be_read_still_counts(tmp_path: Path) -> None:
    recorded = RecordedProject("import-elsewhere", tmp_path / "ws")
    broken = write(recorded.folder / "eng" / "my.targets", "<Project>")

    project = read_project(str(recorded.path), {})

    assert str(broken) in project.files
    assert f"{broken} cannot be evaluated" in project.problem


def test_references_of_all_levels_count_and_a_circle_ends(tmp_path: Path) -> None:
    recorded = RecordedProject("reference", tmp_path / "ws")
    back = '<ItemGroup><ProjectReference Include="..\\S\\S.csproj" /></ItemGroup></Project>'
    write(recorded.folder / "Core" / "Core.csproj", LIBRARY + back)

    graph = project_graph(str(recorded.path), {})

    assert [os.path.relpath(each.path, recorded.folder) for each in graph] == [
        "S/S.csproj",
        "Lib/Lib.csproj",
        "Core/Core.csproj",
    ]


def test_the_files_that_decide_are_named_and_those_that_would(tmp_path: Path) -> None:
    deciding = ["Directory.Build.props", "a/Directory.Build.targets", "a/S/NuGet.config", "nuget.config", "a/x.props"]
    write_all(tmp_path, dict.fromkeys(deciding, "<Project />"))
    write(
        tmp_path / "a" / "S" / "S.csproj", '<Project Sdk="Microsoft.NET.Sdk"><Import Project="../x.props" /></Project>'
    )

    project = read_project(str(tmp_path / "a" / "S" / "S.csproj"), {}, top=str(tmp_path))

    named = {os.path.relpath(file, tmp_path) for file in project.files if file.startswith(str(tmp_path))}
    awaited = {os.path.relpath(file, tmp_path) for file in project.awaited}
    assert named == {*deciding, "a/S/S.csproj"}
    assert {
        "a/Directory.Build.props",
        "a/S/Directory.Build.targets",
        "global.json",
        "a/S/packages.lock.json",
    } <= awaited
    assert "Directory.Build.targets" not in awaited  # a nearer one counts
    assert not any(name.startswith("..") for name in awaited)


def test_a_project_without_an_sdk_has_no_default_files(tmp_path: Path) -> None:
    write_all(tmp_path, {"Old.csproj": '<Project><ItemGroup><Compile Include="a.cs" /></ItemGroup></Project>'})
    write_all(tmp_path, {"a.cs": "", "b.cs": ""})

    assert read_project(str(tmp_path / "Old.csproj"), {}).sources == {str(tmp_path / "a.cs")}


def test_an_sdk_may_be_named_by_imports(tmp_path: Path) -> None:
    imports = [f'<Import Project="Sdk.{part}" Sdk="Microsoft.NET.Sdk" />' for part in ("props", "targets")]
    write_all(tmp_path, {"App.csproj": f"<Project>{imports[0]}{imports[1]}</Project>", "a.cs": ""})

    assert read_project(str(tmp_path / "App.csproj"), {}).sources == {str(tmp_path / "a.cs")}


def test_paths_that_no_file_can_have_are_left_out(tmp_path: Path) -> None:
    items = '<Compile Include="x%00.cs" /><ProjectReference Include="%00" />'
    write_all(tmp_path, {"app/App.csproj": f"{LIBRARY}<ItemGroup>{items}</ItemGroup></Project>", "app/a.cs": ""})
    write_all(tmp_path, {"p/server.cs": "#:project \0\n#:project ../gone\n"})

    project = read_project(str(tmp_path / "app" / "App.csproj"), {})

    assert project.sources == {str(tmp_path / "app" / "a.cs")}
    assert project.references == ()
    assert read_project(str(tmp_path / "p" / "server.cs"), {}).references == (str(tmp_path / "gone"),)


def test_excluded_folders_are_not_read(tmp_path: Path) -> None:
    write_all(tmp_path, {"App.csproj": LIBRARY + "</Project>", "a/b.cs": "", "bin/x/c.cs": "", ".git/d/e.cs": ""})

    folders = read_project(str(tmp_path / "App.csproj"), {}).folders

    assert folders == {str(tmp_path), str(tmp_path / "a")}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a.cs": "#:package X@1.0.0\n", "b.cs": "class B;"}, ["a.cs"]),
        ({"a.cs": "#!/usr/bin/env dotnet\n", "b.cs": ""}, ["a.cs"]),
        ({"a.cs": "// a note\n\n#:project Lib\n", "b.cs": "#:sdk X\n"}, ["a.cs", "b.cs"]),
        ({"server.cs": "System.Console.WriteLine();"}, ["server.cs"]),
        ({"server.cs": "class C;", "tool.py": ""}, []),
        ({"a.cs": "class A;\n#:project Lib\n", "b.cs": ""}, []),
        ({"a.cs": "#:project Lib\n", "App.VBPROJ": ""}, ["App.VBPROJ"]),
    ],
)
def test_a_file_with_directives_is_a_program_where_there_is_no_project(
    tmp_path: Path, files: dict[str, str], found: list[str]
) -> None:
    write_all(tmp_path, files)

    assert projects_in(str(tmp_path), files) == found
    assert project_in(str(tmp_path), files) == (found[0] if found else None)


def _sources(recorded: RecordedProject) -> set[str]:
    kinds = ("Compile", "EmbeddedResource", "Content", "None")
    return {item["FullPath"] for kind in kinds for item in recorded.items(kind) if is_source(kind, item)}
