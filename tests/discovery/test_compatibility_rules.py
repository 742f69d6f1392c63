"""Seed 000, section 4b, rules 4 to 9: what must go on working, one test or more per rule; the name says which."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.dotnet import Build, FakeDotNet
from support.machine import Machine
from support.packages import (
    APP_MCP,
    CORE,
    SETTINGS,
    Package,
    app_mcp,
    build_add_in,
    direct_add_in,
    host,
    sdk,
    settings,
    tools_only,
)
from support.workspace import WorkspaceBuilder

# MSBuild runs code of the workspace: the user has agreed.
TRUSTED = {"UNO_DEVSERVER_TRUST": "1"}


# --- rule 4: an SDK whose packages cannot be read the fast way falls back to MSBuild; slower, not an error ----------


def test_rule_4_an_sdk_without_readable_add_ins_falls_back_to_msbuild_without_an_error(
    workspace: WorkspaceBuilder,
) -> None:
    old = tools_only("Uno.UI.App.Mcp", "1.1.0")
    add_in = old.dll(workspace.machine.nuget)
    workspace.machine.install_dotnet(FakeDotNet(build=Build(["net10.0;"], {"net10.0": [add_in]})))
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), old).project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco(env=TRUSTED)

    assert (result.exit_code, result.json["errors"]) == (0, [])
    assert result.add_ins == [add_in]
    assert result.json["addIns"][0]["discoverySource"] == "msbuild"
    assert result.json["addInsDiscoveryMethod"] == "msbuild"


@pytest.mark.parametrize("generation", ["uno_5", "uno_6_2", "uno_6_5"])
def test_rule_4_every_generation_of_the_sdk_gives_a_result(workspace: WorkspaceBuilder, generation: str) -> None:
    workspace.machine.install_dotnet()
    getattr(workspace, generation)().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco()

    assert result.exit_code in (0, 1)
    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert result.json["unoSdkPath"]
    assert result.json["addInDiscoveryFailed"] is False


def test_rule_4_sdk_5_has_no_packages_json_and_no_host_and_says_so(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_5().project("App/App.csproj", [direct_add_in("Acme.Tool")]).solution("App.slnx")

    result = workspace.machine.disco()

    assert (result.exit_code, result.json["packagesJsonPath"], result.json["hostPath"]) == (1, None, None)
    assert "PackagesJsonNotFound" in result.issue_codes
    assert [Path(path).name for path in result.add_ins] == ["Acme.Tool.dll"]


def test_rule_4_no_sdk_at_all_is_a_result_with_the_next_step(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet()
    workspace.global_json().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco()

    assert (result.exit_code, result.json["resolutionKind"]) == (1, "NoValidWorkspace")
    assert result.json["issues"]
    assert all(issue["remediation"] for issue in result.json["issues"])


# --- rule 5: paths, and the order of the NuGet caches --------------------------------------------------------------


def _caches(workspace: WorkspaceBuilder) -> dict[str, Path]:
    """Everywhere a package may lie, by the order in which the places are searched; all three hold the same."""
    caches = {
        "environment": workspace.machine.nuget,
        "nuget.config": workspace.root / "pk",
        "home": workspace.machine.home / ".nuget" / "packages",
    }
    for cache in caches.values():
        workspace.uno_sdk(cache=cache).package(host(), settings(), app_mcp(), cache=cache)
    workspace.nuget_config("pk").project("App/App.csproj", restored=False).solution("App.slnx")
    return caches


def test_rule_5_nuget_packages_comes_before_nuget_config_and_the_home_folder(workspace: WorkspaceBuilder) -> None:
    caches = _caches(workspace)

    result = workspace.machine.disco()

    assert result.json["nuGetCacheLocations"][:3] == [str(path) for path in caches.values()]
    assert result.json["unoSdkPath"] == str(caches["environment"] / "uno.sdk" / "6.5.31")
    assert all(Path(path).is_relative_to(caches["environment"]) for path in result.add_ins)


@pytest.mark.parametrize("blank", ["", "  "])
def test_rule_5_a_blank_nuget_packages_is_skipped(workspace: WorkspaceBuilder, blank: str) -> None:
    caches = _caches(workspace)

    result = workspace.machine.disco(env={"NUGET_PACKAGES": blank})

    assert result.json["nuGetCacheLocations"][:2] == [str(caches["nuget.config"]), str(caches["home"])]
    assert result.json["unoSdkPath"] == str(caches["nuget.config"] / "uno.sdk" / "6.5.31")


def test_rule_5_a_nuget_packages_that_does_not_exist_leaves_the_other_caches(workspace: WorkspaceBuilder) -> None:
    caches = _caches(workspace)
    nowhere = str(workspace.machine.root / "nowhere")

    result = workspace.machine.disco(env={"NUGET_PACKAGES": nowhere})

    assert result.json["nuGetCacheLocations"][0] == nowhere
    assert result.json["unoSdkPath"] == str(caches["nuget.config"] / "uno.sdk" / "6.5.31")


@pytest.mark.parametrize("name", ["nuget.config", "NuGet.Config"])
def test_rule_5_nuget_config_is_found_in_the_folders_above(workspace: WorkspaceBuilder, name: str) -> None:
    machine = workspace.machine
    below = WorkspaceBuilder(machine, "deep/down")
    below.uno_sdk(cache=machine.workspace / "pk").project("App/App.csproj", restored=False).solution("App.slnx")
    text = '<configuration><config><add key="GlobalPackagesFolder" value="./pk" /></config></configuration>'
    workspace.file(name, text)

    result = machine.disco(cwd=below.root, env={"NUGET_PACKAGES": ""})

    assert result.json["unoSdkPath"] == str(machine.workspace / "pk" / "uno.sdk" / "6.5.31")


def test_rule_5_backslashes_in_solutions_and_targets_are_separators(workspace: WorkspaceBuilder) -> None:
    text = r"""<Project><ItemGroup><UnoRemoteControlAddIns
        Include="$(MSBuildThisFileDirectory)..\tools\devserver\Acme.Windows.dll" /></ItemGroup></Project>"""
    package = direct_add_in("Acme.Windows").with_files({"buildTransitive/Acme.Windows.targets": text})
    workspace.uno_6_5().project("src/App/App.csproj", [package]).solution("App.sln")

    result = workspace.machine.disco()

    assert package.dll(workspace.machine.nuget) in result.add_ins


def test_rule_5_spaces_and_letters_of_all_languages_in_paths(machine: Machine) -> None:
    machine.environment["NUGET_PACKAGES"] = str(machine.root / "Päckchen 日本")
    machine.nuget = machine.root / "Päckchen 日本"
    workspace = WorkspaceBuilder(machine, "R & D (x86)/It's 100% #1; ü")
    package = direct_add_in("Acme.Tool")
    workspace.uno_6_5().project("Mön App/Äpp.csproj", [package], restore_files=["assets"]).solution("日本.slnx")

    result = machine.disco(cwd=workspace.root)

    assert result.json["selectedSolutionPath"] == str(workspace.root / "日本.slnx")
    assert package.dll(machine.nuget) in result.add_ins


# --- rule 6: package names ignore case -----------------------------------------------------------------------------


def test_rule_6_a_cache_whose_folders_are_not_in_lower_case_is_searched_too(workspace: WorkspaceBuilder) -> None:
    cache = workspace.machine.nuget
    workspace.uno_6_5().project("App/App.csproj", restored=False).solution("App.slnx")
    for folder, other in {"uno.sdk": "Uno.Sdk", "uno.settings.devserver": "Uno.Settings.DEVSERVER"}.items():
        (cache / folder).rename(cache / other)

    result = workspace.machine.disco()

    # Where the file system ignores case, the first spelling finds it.
    assert Path(result.json["unoSdkPath"]).samefile(cache / "Uno.Sdk" / "6.5.31")
    assert Path(result.json["settingsPackagePath"]).samefile(cache / "Uno.Settings.DEVSERVER" / "1.8.0")
    assert "Uno.Settings.DevServer.dll" in [Path(path).name for path in result.add_ins]


def test_rule_6_ids_of_packages_json_and_of_the_restore_are_the_same_package_in_any_case(
    workspace: WorkspaceBuilder,
) -> None:
    restored = Package("UNO.UI.APP.MCP", "1.2.0", app_mcp().files)
    workspace.uno_6_5().project("App/App.csproj", [restored], restore_files=["assets"]).solution("App.slnx")

    result = workspace.machine.disco()

    versions = [entry["packageVersion"] for entry in result.json["addIns"] if "mcp" in entry["packageName"].lower()]
    assert versions == ["1.2.0"]


@pytest.mark.parametrize(
    ("written", "folder"), [("1.8", "1.8.0"), ("1.8.0.0", "1.8.0"), ("1.8-DEV.19", "1.8.0-dev.19")]
)
def test_rule_6_versions_are_found_by_any_spelling(workspace: WorkspaceBuilder, written: str, folder: str) -> None:
    groups = (CORE, type(SETTINGS)("settings", written, ["Uno.Settings.DevServer"]))
    workspace.uno_sdk(groups=groups).package(host(), settings(folder))
    workspace.project("App/App.csproj", restored=False).solution("App.slnx")

    result = workspace.machine.disco()

    assert result.json["settingsPackagePath"] == str(workspace.machine.nuget / "uno.settings.devserver" / folder)
    assert len(result.add_ins) == 1


# --- rule 7: no assumption about what an MCP client can do ----------------------------------------------------------


@pytest.mark.parametrize("command", [["mcp", "start"], ["mcp", "serve"], ["--mcp-app"]], ids=" ".join)
def test_rule_7_the_switches_for_clients_without_roots_or_list_changed_are_understood(
    machine: Machine, command: list[str]
) -> None:
    """What each does is held by the scenarios of the proxy; here its client has gone before it came."""
    result = machine.run(*command, "--force-roots-fallback", "--mcp-wait-tools-list")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


# --- rule 8: new add-ins need no new code --------------------------------------------------------------------------


@pytest.mark.parametrize("files", [["assets"], ["g"]], ids=["assets", "g.props and g.targets"])
def test_rule_8_a_package_nobody_has_heard_of_is_found_by_its_convention(
    workspace: WorkspaceBuilder, files: list[str]
) -> None:
    package = direct_add_in("Contoso.Brand.New", "0.0.1-alpha.1")
    workspace.uno_6_5().project("App/App.csproj", [package], restore_files=files).solution("App.slnx")

    result = workspace.machine.disco()

    [entry] = [entry for entry in result.json["addIns"] if entry["packageName"].lower() == "contoso.brand.new"]
    assert entry["packageVersion"] == "0.0.1-alpha.1"
    assert entry["entryPointDll"] == package.dll(workspace.machine.nuget)


def test_rule_8_a_new_package_of_the_sdk_is_found_without_a_restore(workspace: WorkspaceBuilder) -> None:
    groups = (CORE, type(SETTINGS)("Future", "7.0.0", ["Uno.Future.AddIn"]))
    workspace.uno_sdk("7.0.1", groups=groups).package(host(), direct_add_in("Uno.Future.AddIn", "7.0.0"))
    workspace.project("App/App.csproj", restored=False).solution("App.slnx")

    result = workspace.machine.disco()

    assert [entry["packageName"] for entry in result.json["addIns"]] == ["Uno.Future.AddIn"]


def test_rule_8_no_package_name_is_wired_into_the_program_as_an_add_in() -> None:
    import uno_devserver

    sources = Path(uno_devserver.__file__).parent.rglob("*.py")
    named = [path.name for path in sources if "uno.ui.app.mcp" in path.read_text("utf-8").lower()]

    assert named == []


# --- rule 9: add-ins from before the convention --------------------------------------------------------------------


def test_rule_9_an_add_in_in_the_build_folder_is_found_and_its_author_is_told(workspace: WorkspaceBuilder) -> None:
    package = build_add_in("Acme.Old")
    workspace.uno_6_5().project("App/App.csproj", [package]).solution("App.slnx")

    result = workspace.machine.disco()

    assert package.dll(workspace.machine.nuget) in result.add_ins
    issue = result.issue("AddInTargetsDeprecated")
    assert issue["severity"] == "Warning"
    assert "Acme.Old" in issue["message"]
    assert "buildTransitive" in issue["remediation"]


def test_rule_9_an_add_in_that_only_msbuild_understands_comes_through_the_fallback_and_it_is_logged(
    workspace: WorkspaceBuilder,
) -> None:
    machine = workspace.machine
    old = tools_only("Uno.UI.App.Mcp", "1.1.0")
    machine.install_dotnet(FakeDotNet(build=Build(["net10.0;"], {"net10.0": [old.dll(machine.nuget)]})))
    workspace.package(sdk("Uno.Sdk", "6.0.67", (CORE, APP_MCP))).global_json({"Uno.Sdk": "6.0.67"})
    workspace.package(host(), old).project("App/App.csproj").solution("App.slnx")

    result = machine.disco(env=TRUSTED)

    assert result.add_ins == [old.dll(machine.nuget)]
    assert "AddInDiscoveryFallback" in result.issue_codes
