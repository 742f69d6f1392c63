"""What is known of a project without building it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write, write_all
from uno_devserver.discovery.project_info import (
    ProjectInfo,
    framework_properties,
    known_properties,
    read_project,
    sdk_defaults,
)
from uno_devserver.msbuild.project_files import ProjectFileCache


def _read(path: Path) -> ProjectInfo:
    return read_project(str(path), ProjectFileCache(), {})


def test_frameworks_and_references_come_from_the_project_and_the_files_above_it(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {
            "Directory.Build.props": """<Project><PropertyGroup><Modern>net10.0</Modern></PropertyGroup>
                <ItemGroup><PackageReference Include="Everywhere" Version="1.0.0" /></ItemGroup></Project>""",
            "src/App/App.csproj": """<Project Sdk="Uno.Sdk">
                <PropertyGroup>
                  <TargetFrameworks>$(Modern)-desktop; $(Modern)-android ;</TargetFrameworks>
                </PropertyGroup>
                <ItemGroup>
                  <PackageReference Include="Acme" Version="2.*" />
                  <PackageReference Include="Central" />
                  <PackageReference Include="Release" Version="1.0.0" Condition="'$(Configuration)' == 'Release'" />
                </ItemGroup></Project>""",
        },
    )

    project = _read(tmp_path / "src/App/App.csproj")

    assert project.frameworks == ("net10.0-desktop", "net10.0-android")
    assert project.references == (("Everywhere", "1.0.0"), ("Acme", "2.*"), ("Central", ""))
    assert project.sdks == ("Uno.Sdk",)
    assert project.before == (str(tmp_path / "Directory.Build.props"),)
    assert project.issue is None


@pytest.mark.parametrize(
    ("project", "sdks"),
    [
        ('<Project Sdk="Acme.Sdk/1.2.3; Other " />', ("Acme.Sdk/1.2.3", "Other")),
        ('<Project><Sdk Name="Acme.Sdk" Version="1.2.3" /><Sdk Name="Other" /></Project>', ("Acme.Sdk/1.2.3", "Other")),
        ("<Project />", ()),
    ],
)
def test_the_sdks_of_a_project(project: str, sdks: tuple[str, ...], tmp_path: Path) -> None:
    assert _read(write(tmp_path / "A.csproj", project)).sdks == sdks


@pytest.mark.parametrize(
    ("props", "folder"),
    [
        (None, "src/App/obj"),
        ("<BaseIntermediateOutputPath>..\\..\\out\\</BaseIntermediateOutputPath>", "out"),
        ("<MSBuildProjectExtensionsPath>$(MSBuildThisFileDirectory).obj/</MSBuildProjectExtensionsPath>", ".obj"),
        ("<UseArtifactsOutput>true</UseArtifactsOutput>", "artifacts/obj/App"),
        ("<ArtifactsPath>$(MSBuildThisFileDirectory).out</ArtifactsPath>", ".out/obj/App"),
        ("<UseArtifactsOutput>false</UseArtifactsOutput>", "src/App/obj"),
    ],
)
def test_restore_puts_its_files_where_directory_build_props_says(
    props: str | None, folder: str, tmp_path: Path
) -> None:
    if props is not None:
        write(tmp_path / "Directory.Build.props", f"<Project><PropertyGroup>{props}</PropertyGroup></Project>")

    project = _read(write(tmp_path / "src/App/App.csproj", "<Project />"))

    assert project.restore_folder == str(tmp_path / folder)


def test_the_project_file_itself_is_too_late_to_move_the_folder(tmp_path: Path) -> None:
    body = "<BaseIntermediateOutputPath>elsewhere/</BaseIntermediateOutputPath>"

    project = _read(write(tmp_path / "A.csproj", f"<Project><PropertyGroup>{body}</PropertyGroup></Project>"))

    assert project.restore_folder == str(tmp_path / "obj")


@pytest.mark.parametrize("content", [None, "", "<Project><PropertyGroup>", "<Project><Oops /></Project>"])
def test_a_project_that_cannot_be_evaluated_is_named_and_still_has_its_folder(
    content: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "A.csproj"
    if content is not None:
        write(path, content)

    project = _read(path)

    assert project.issue is not None
    assert project.issue.code == "ProjectUnreadable"
    assert str(path) in project.issue.message
    assert (project.frameworks, project.references, project.restore_folder) == ((), (), str(tmp_path / "obj"))


def test_packages_see_what_the_sdk_and_the_solution_would_have_set(tmp_path: Path) -> None:
    project = _read(write(tmp_path / "My App.csproj", '<Project Sdk="Uno.Sdk" />'))

    known = known_properties(project, "/src/100%/My App.slnx")
    known |= sdk_defaults(project.path) | framework_properties("net10.0-android36.0")

    assert known["TargetFrameworkIdentifier"] == ".NETCoreApp"
    assert known["TargetFrameworkVersion"] == "v10.0"
    assert known["TargetPlatformIdentifier"] == "android"
    assert known["UsingUnoSdk"] == "true"
    assert known["AssemblyName"] == "My App"
    assert known["SolutionDir"] == "/src/100%25/", "values are MSBuild's text, in which % has to be escaped"
