"""Seed 000, section 16: what is checked for an add-in, from coarse to fine, one test per row of its table.

Each finding has its code, names what was looked for, and says what to do; the rest is still discovered.
"""

from __future__ import annotations

import shutil

import pytest

from support.packages import (
    Package,
    build_add_in,
    direct_add_in,
    library,
    manifest_add_in,
    property_add_in,
    settings,
    targets,
    tools_only,
)
from support.workspace import WorkspaceBuilder


def partial_add_in(name: str, version: str = "1.0.0") -> Package:
    """An interrupted restore: the metadata is there, the DLL is not."""
    return direct_add_in(name, version).without_files(f"tools/devserver/{name}.dll")


@pytest.fixture
def uno(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """A complete workspace; the add-ins of the SDK are found whatever a test adds."""
    workspace.machine.install_dotnet()
    return workspace.uno_6_5()


def sdk_add_ins(uno: WorkspaceBuilder) -> list[str]:
    cache = uno.machine.nuget
    return [
        str(cache / "uno.settings.devserver/1.8.0/tools/devserver/Uno.Settings.DevServer.dll"),
        str(cache / "uno.ui.app.mcp/1.1.0/tools/devserver/Uno.UI.App.Mcp.Server.dll"),
    ]


def test_row_1_without_a_nuget_cache_the_sdk_is_not_in_cache_and_restore_is_the_remedy(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.slnx")
    shutil.rmtree(uno.machine.nuget)

    result = uno.machine.disco()

    issue = result.issue("SdkNotInCache")
    assert result.exit_code == 1
    assert issue["severity"] == "Fatal"
    assert "Uno.Sdk" in issue["message"]
    assert "6.5.31" in issue["message"]
    assert "dotnet restore" in issue["remediation"]
    assert str(uno.machine.nuget) in result.json["nuGetCacheLocations"]


@pytest.mark.parametrize("version", ["6.5.*", "*", "[6.5,7.0)", "6.5.x31", "latest"])
def test_row_1_a_version_that_msbuild_cannot_resolve_is_told_as_such(workspace: WorkspaceBuilder, version: str) -> None:
    workspace.global_json({"Uno.Sdk": version}).project("App/App.csproj").solution("App.slnx")

    issue = workspace.machine.disco().issue("SdkNotInCache")

    assert (
        f"global.json names Uno.Sdk {version}, which is no valid version: MSBuild finds a project SDK by an exact one."
        in issue["message"]
    )
    assert issue["remediation"].startswith("Write the exact version into the file")


def test_row_1_the_locations_that_were_checked_are_listed_in_their_order(uno: WorkspaceBuilder) -> None:
    uno.nuget_config("pk").project("App/App.csproj").solution("App.slnx")

    result = uno.machine.disco()

    expected = [uno.machine.nuget, uno.root / "pk", uno.machine.home / ".nuget" / "packages"]
    assert result.json["nuGetCacheLocations"][:3] == [str(path) for path in expected]


def test_row_2_a_restored_package_that_is_gone_from_the_cache_is_named(uno: WorkspaceBuilder) -> None:
    gone = direct_add_in("Acme.Gone", "2.0.0")
    uno.project("App/App.csproj", [gone]).solution("App.slnx")
    shutil.rmtree(uno.machine.nuget / gone.path)

    result = uno.machine.disco()

    issue = result.issue("AddInPackageNotCached")
    assert issue["severity"] == "Warning"
    assert "Acme.Gone" in issue["message"]
    assert "2.0.0" in issue["message"]
    assert "dotnet restore" in issue["remediation"]
    assert result.add_ins == sdk_add_ins(uno)


def test_row_2_of_many_restored_packages_that_are_gone_one_issue_names_some(uno: WorkspaceBuilder) -> None:
    gone = [direct_add_in(f"Acme.Gone{number:02}", "2.0.0") for number in range(15)]
    uno.project("App/App.csproj", gone).solution("App.slnx")
    for package in gone:
        shutil.rmtree(uno.machine.nuget / package.path)

    message = uno.machine.disco().issue("AddInPackageNotCached")["message"]

    assert message.count("Acme.Gone") == 10
    assert "and 5 more were restored, but are in none of the package folders: " in message


def test_of_many_projects_that_were_not_restored_some_are_named(uno: WorkspaceBuilder) -> None:
    for number in range(15):
        uno.project(f"App{number}/App{number}.csproj", restored=False)
    uno.solution("App.slnx")

    message = uno.machine.disco().issue("RestoreMissing")["message"]

    assert message.count(".csproj") == 10
    assert " and 5 more. " in message


def test_row_2_the_settings_package_of_the_sdk_that_was_never_restored_is_named(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.slnx")
    shutil.rmtree(uno.machine.nuget / settings().path)

    result = uno.machine.disco()

    issue = result.issue("AddInPackageNotCached")
    assert (result.exit_code, result.add_ins) == (0, sdk_add_ins(uno)[1:])
    for part in ("Uno.Settings.DevServer", "1.8.0", *result.json["nuGetCacheLocations"]):
        assert part in issue["message"]


def test_row_3_a_package_without_targets_is_skipped_without_a_word(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj", [library("Acme.Plain")]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == sdk_add_ins(uno)
    assert "Acme.Plain" not in result.stdout


def test_row_3_a_devserver_folder_without_targets_is_reported_and_never_loaded(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj", [tools_only("Acme.Mute")]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == sdk_add_ins(uno)
    assert "acme.mute" in result.issue("AddInEntryPointUnknown")["message"].lower()


def test_row_4_targets_without_an_add_in_item_are_skipped_without_a_word(uno: WorkspaceBuilder) -> None:
    text = "<Project><ItemGroup><Compile Include='x.cs' /></ItemGroup></Project>"
    package = library("Acme.Plain").with_files({"buildTransitive/Acme.Plain.targets": text})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == sdk_add_ins(uno)
    assert "Acme.Plain" not in result.stdout


def test_row_5_a_missing_dll_is_named_with_package_version_path_caches_and_remedy(uno: WorkspaceBuilder) -> None:
    package = partial_add_in("Acme.Half", "3.1.0")
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    issue = result.issue("AddInBinaryNotFound")
    assert issue["severity"] == "Warning"
    for part in ("Acme.Half", "3.1.0", package.dll(uno.machine.nuget), *result.json["nuGetCacheLocations"]):
        assert part in issue["message"] + issue["remediation"]
    assert "dotnet restore --force" in issue["remediation"]
    assert result.add_ins == sdk_add_ins(uno)


@pytest.mark.parametrize("folder", ["buildTransitive", "build"])
def test_row_5_a_missing_dll_is_found_out_in_both_target_folders(uno: WorkspaceBuilder, folder: str) -> None:
    package = direct_add_in("Acme.Half") if folder == "buildTransitive" else build_add_in("Acme.Half")
    uno.project("App/App.csproj", [package.without_files("tools/devserver/Acme.Half.dll")]).solution("App.slnx")

    result = uno.machine.disco()

    assert "Acme.Half" in result.issue("AddInBinaryNotFound")["message"]


def test_row_5_a_missing_dll_of_a_manifest_is_found_out_too(uno: WorkspaceBuilder) -> None:
    package = manifest_add_in("Acme.Half").without_files("tools/devserver/Acme.Half.dll")
    uno.project("App/App.csproj", [package.with_files({"tools/readme.txt": "x"})]).solution("App.slnx")

    result = uno.machine.disco()

    assert package.dll(uno.machine.nuget) in result.issue("AddInBinaryNotFound")["message"]
    assert result.add_ins == sdk_add_ins(uno)


def test_row_5_a_folder_in_the_place_of_the_dll_is_no_dll(uno: WorkspaceBuilder) -> None:
    package = partial_add_in("Acme.Half").with_files({"tools/devserver/Acme.Half.dll/readme.txt": "x"})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == sdk_add_ins(uno)
    assert "Acme.Half" in result.issue("AddInBinaryNotFound")["message"]


def test_row_5_an_item_guarded_by_exists_is_no_missing_dll(uno: WorkspaceBuilder) -> None:
    package = property_add_in("Acme.Optional").without_files("tools/devserver/Acme.Optional.dll")
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.issues("AddInBinaryNotFound") == []
    assert result.add_ins == sdk_add_ins(uno)


@pytest.mark.parametrize("source", ["targets", "manifest"])
def test_row_6_an_empty_dll_is_refused_and_a_forced_restore_is_the_remedy(uno: WorkspaceBuilder, source: str) -> None:
    shape = direct_add_in if source == "targets" else manifest_add_in
    package = shape("Acme.Empty", "1.2.3").with_files({"tools/devserver/Acme.Empty.dll": b""})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    issue = result.issue("AddInBinaryCorrupted")
    assert package.dll(uno.machine.nuget) in issue["message"]
    assert "Acme.Empty" in issue["message"]
    assert "dotnet restore --force" in issue["remediation"]
    assert result.add_ins == sdk_add_ins(uno)


def test_an_empty_item_is_no_add_in_and_no_problem(uno: WorkspaceBuilder) -> None:
    package = library("Acme.Nothing").with_files({"buildTransitive/Acme.Nothing.targets": targets("$(AcmeNothing)")})
    uno.project("App/App.csproj", [package]).solution("App.slnx")

    result = uno.machine.disco()

    assert result.add_ins == sdk_add_ins(uno)
    assert result.issues("AddInBinaryNotFound") == []
