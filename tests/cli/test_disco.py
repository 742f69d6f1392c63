"""`disco`: one report about a workspace, as text, as JSON, and as the value of the Host's --addins."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.dotnet import FakeDotNet
from support.files import snapshot, write
from support.machine import Machine
from support.packages import CORE, SETTINGS, app_mcp, build_add_in, direct_add_in, host, manifest_add_in, sdk, settings
from support.workspace import WorkspaceBuilder
from uno_devserver.system.processes import machine_name, user_name

# The contract's fields, in its order; whatever we add comes behind them.
FIELDS = """
    requestedWorkingDirectory workingDirectory effectiveWorkspaceDirectory selectedSolutionPath
    selectedGlobalJsonPath resolutionKind selectionSource candidateSolutions globalJsonPath unoSdkSource
    unoSdkSourcePath unoSdkPackage unoSdkVersion unoSdkPath packagesJsonPath devServerPackageVersion
    devServerPackagePath settingsPackageVersion settingsPackagePath dotNetVersion dotNetTfm hostPath
    hostRequiresMajorRollForward settingsPath addIns addInsDiscoveryMethod discoveryDurationMs
    addInsDiscoveryDurationMs addInDiscoveryFailed activeServers warnings errors
"""
CONTRACT = FIELDS.split()
ADDED = ["issues", "nuGetCacheLocations", "activeServer"]


@pytest.fixture
def uno(workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    """A current workspace with dotnet, without any project yet."""
    workspace.machine.install_dotnet()
    return workspace.uno_6_5()


@pytest.fixture
def app(uno: WorkspaceBuilder) -> WorkspaceBuilder:
    """The same with a project and a solution."""
    return uno.project("App/App.csproj").solution("App.slnx")


# --- what the issue says must be shown -----------------------------------------------------------------------------


@pytest.mark.parametrize("solution", ["App.sln", "App.slnx"])
@pytest.mark.parametrize("files", [["assets", "g", "cache", "dgspec"], ["g"], ["assets"]], ids="+".join)
def test_every_kind_of_add_in_is_found_below_src(uno: WorkspaceBuilder, solution: str, files: list[str]) -> None:
    # given: both examples of the seed come with the SDK, the others with projects below src/
    manifest, old, third = (
        manifest_add_in("Acme.Manifest"),
        build_add_in("Acme.Old"),
        direct_add_in("Third.Party", "2.0.0"),
    )
    uno.project("src/App/App.csproj", [settings(), app_mcp(), manifest], restore_files=files)
    uno.project("src/Libraries/Core/Core.csproj", [old, third], restore_files=files)
    uno.solution(solution)

    # when
    result = uno.machine.disco()

    # then
    assert result.exit_code == 0
    found = {entry["entryPointDll"]: entry["discoverySource"] for entry in result.json["addIns"]}
    cache = uno.machine.nuget
    assert found == {
        settings().dll(cache): "targets",
        app_mcp().dll(cache, "Uno.UI.App.Mcp.Server.dll"): "targets",
        manifest.dll(cache): "manifest",
        old.dll(cache): "targets",
        third.dll(cache): "targets",
    }
    versions = {entry["packageName"].lower(): entry["packageVersion"] for entry in result.json["addIns"]}
    assert versions["third.party"] == "2.0.0"
    assert set(result.json["addInsDiscoveryMethod"].split("+")) == {"targets", "manifest"}
    assert "Acme.Old" in result.issue("AddInTargetsDeprecated")["message"]


def test_nothing_is_written_outside_the_folder_of_our_own_files(uno: WorkspaceBuilder) -> None:
    machine = uno.machine
    uno.project("src/App/App.csproj", [direct_add_in("Acme.Tool"), build_add_in("Acme.Old")]).solution("App.slnx")
    places = (machine.workspace, machine.nuget, machine.home, machine.temp)
    before = snapshot(*places)

    for options in (["--json"], [], ["--addins-only"], ["--json", "--force"], ["--json", "--force-msbuild-discovery"]):
        machine.run("disco", *options)

    assert snapshot(*places) == before
    elsewhere = [path for path in machine.data.rglob("*") if path.is_file() and not path.is_relative_to(machine.state)]
    assert elsewhere == []


# --- the shape of the report ---------------------------------------------------------------------------------------


def test_json_has_the_fields_of_the_contract_in_its_order_and_ours_behind(app: WorkspaceBuilder) -> None:
    report = app.machine.disco().json

    assert list(report)[: len(CONTRACT)] == CONTRACT
    assert set(ADDED) <= set(list(report)[len(CONTRACT) :])
    for entry in report["addIns"]:
        assert list(entry)[:4] == ["packageName", "packageVersion", "entryPointDll", "discoverySource"]


def test_json_of_a_complete_workspace_has_a_value_everywhere(app: WorkspaceBuilder) -> None:
    cache, root = app.machine.nuget, app.root

    report = app.machine.disco().json

    expected: dict[str, object] = {
        "effectiveWorkspaceDirectory": str(root),
        "globalJsonPath": str(root / "global.json"),
        "unoSdkSource": "global.json",
        "unoSdkPackage": "Uno.Sdk",
        "unoSdkVersion": "6.5.31",
        "unoSdkPath": str(cache / "uno.sdk/6.5.31"),
        "packagesJsonPath": str(cache / "uno.sdk/6.5.31/targets/netstandard2.0/packages.json"),
        "devServerPackagePath": str(cache / "uno.winui.devserver/6.5.153"),
        "dotNetVersion": "10.0.401",
        "dotNetTfm": "net10.0",
        "hostPath": str(cache / "uno.winui.devserver/6.5.153/tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll"),
        "settingsPath": str(cache / "uno.settings.devserver/1.8.0/tools/manager/Uno.Settings.dll"),
        "activeServers": [],
        "activeServer": None,
        "errors": [],
        "issues": [],
        "warnings": [],
    }
    assert {field: report[field] for field in expected} == expected
    assert isinstance(report["discoveryDurationMs"], int)
    assert isinstance(report["addInsDiscoveryDurationMs"], int)


def test_for_people_it_is_a_short_page_without_raw_names(app: WorkspaceBuilder) -> None:
    report = app.machine.disco().json

    result = app.machine.run("disco")

    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 20
    for value in (report["effectiveWorkspaceDirectory"], report["selectedSolutionPath"], report["hostPath"]):
        assert value in result.stdout
    for field in ("effectiveWorkspaceDirectory", "resolutionKind", "addInsDiscoveryDurationMs", "<null>"):
        assert field not in result.stdout


def test_each_step_is_told_once_and_the_first_says_to_choose_between_two_solutions(uno: WorkspaceBuilder) -> None:
    uno.solution("A.slnx").solution("B.slnx")

    for command in ("disco", "health"):
        text = uno.machine.run(command).stdout
        steps = [line.partition("next: ")[2] for line in text.splitlines() if "next: " in line]
        assert "--solution" in steps[0], text
        assert len(steps) == len(set(steps)), text


def test_verbose_shows_every_field_and_the_global_json_path_too(app: WorkspaceBuilder) -> None:
    report = app.machine.disco().json

    result = app.machine.run("disco", "--verbose")

    assert result.exit_code == 0
    shown = ["globalJsonPath", "resolutionKind", "selectedSolutionPath", "selectedGlobalJsonPath", "packagesJsonPath"]
    for field in [*shown, "settingsPath", "dotNetVersion", "dotNetTfm", "nuGetCacheLocations"]:
        assert field in result.stdout
    for field in (
        "unoSdkPath",
        "hostPath",
        "settingsPath",
        "devServerPackagePath",
        "settingsPackagePath",
        "dotNetVersion",
    ):
        assert report[field] in result.stdout
    for path in [*app.machine.disco().add_ins, *report["nuGetCacheLocations"]]:
        assert path in result.stdout


def test_text_says_what_is_missing_and_lists_the_problems_with_their_remedy(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk().project("App/App.csproj", restored=False).solution("App.slnx")
    workspace.machine.install_dotnet()

    result = workspace.machine.run("disco")

    report = workspace.machine.disco().json
    assert result.exit_code == 1
    for issue in report["issues"]:
        assert issue["message"] in result.stdout
        assert issue["remediation"] in result.stdout


def test_errors_and_warnings_repeat_the_issues_as_sentences(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk().project("App/App.csproj", restored=False).solution("App.slnx")
    workspace.machine.install_dotnet()

    report = workspace.machine.disco().json

    fatal = [issue for issue in report["issues"] if issue["severity"] == "Fatal"]
    assert len(report["errors"]) == len(fatal)
    assert len(report["warnings"]) == len(report["issues"]) - len(fatal)
    assert all(any(issue["message"] in sentence for sentence in report["errors"]) for issue in fatal)
    for issue in report["issues"]:
        assert list(issue) == ["code", "severity", "message", "remediation"]
        assert all(issue.values())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("tools/rc/host", ("host not found", "not found in package")),
        ("targets/netstandard2.0/packages.json", ("packages.json not found",)),
        ("Uno.WinUI.DevServer", ("version not found in packages",)),
    ],
)
def test_the_sentences_of_errors_hold_the_words_that_scripts_match(
    app: WorkspaceBuilder, damage: str, words: tuple[str, ...]
) -> None:
    report = app.machine.disco().json
    sdk, host = Path(report["unoSdkPath"]), Path(report["devServerPackagePath"])
    if damage == "tools/rc/host":
        shutil.rmtree(host / damage)
    elif damage.endswith(".json"):
        (sdk / damage).unlink()
    else:
        (sdk / "targets/netstandard2.0/packages.json").write_text("[]", "utf-8")

    errors = " ".join(app.machine.disco().json["errors"])

    assert all(word in errors for word in words), errors


# --- --addins-only -------------------------------------------------------------------------------------------------


def test_addins_only_prints_one_line_that_the_host_takes_as_it_is(app: WorkspaceBuilder) -> None:
    text = app.machine.run("disco", "--addins-only")
    array = app.machine.run("disco", "--addins-only", "--json")

    assert (text.exit_code, array.exit_code) == (0, 0)
    assert text.stdout == ";".join(array.json) + "\n"
    assert array.json == app.machine.disco().add_ins


def test_addins_only_needs_neither_dotnet_nor_a_host_nor_a_solution(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk().package(settings())

    result = workspace.machine.run("disco", "--addins-only")

    assert (result.exit_code, result.add_ins) == (0, [settings().dll(workspace.machine.nuget)])


def test_addins_only_without_add_ins_prints_an_empty_line_or_an_empty_array(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj").solution("App.slnx")

    text = workspace.machine.run("disco", "--addins-only")
    array = workspace.machine.run("disco", "--addins-only", "--json")

    assert (text.exit_code, text.stdout.strip()) == (0, "")
    assert (array.exit_code, array.json) == (0, [])


def test_addins_only_fails_without_a_sdk_and_still_prints_an_array(machine: Machine) -> None:
    text = machine.run("disco", "--addins-only")
    array = machine.run("disco", "--addins-only", "--json")

    assert (text.exit_code, text.stdout.strip()) == (1, "")
    assert (array.exit_code, array.json) == (1, [])
    assert text.stderr


# --- which workspace -----------------------------------------------------------------------------------------------


def test_a_sln_and_a_slnx_of_the_same_name_are_one_candidate_the_slnx(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.sln").solution("App.slnx")

    report = uno.machine.disco().json

    assert report["resolutionKind"] == "CurrentDirectory"
    assert report["selectedSolutionPath"] == str(uno.root / "App.slnx")


def test_two_different_solutions_are_ambiguous_and_both_are_named(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.slnx").solution("Other.slnx")

    result = uno.machine.disco()

    assert (result.exit_code, result.json["resolutionKind"]) == (1, "Ambiguous")
    assert result.json["candidateSolutions"] == [str(uno.root / "App.slnx"), str(uno.root / "Other.slnx")]
    assert "--solution" in result.issue("WorkspaceAmbiguous")["remediation"]


def test_a_project_in_place_of_a_solution_is_told_as_such(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.slnx")

    issue = uno.machine.disco("--solution", "App/App.csproj").issue("WorkspaceNotResolved")

    assert issue["message"] == f"{uno.root / 'App' / 'App.csproj'} is no .sln, .slnx or .slnf file."
    assert str(uno.root / "App.slnx") in issue["remediation"]


@pytest.mark.parametrize("dotnet", [True, False])
def test_people_see_which_add_ins_the_bundled_host_will_not_load(workspace: WorkspaceBuilder, dotnet: bool) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    if dotnet:
        workspace.machine.install_dotnet()

    shown = workspace.machine.run("disco").stdout

    assert "- Uno.UI.App.Mcp " in shown
    assert ("(not loaded by the bundled Host)" in shown) is not dotnet


@pytest.mark.parametrize("version", ["", 6.5, None])
def test_a_version_that_is_none_is_not_called_a_missing_sdk(workspace: WorkspaceBuilder, version: object) -> None:
    workspace.file("global.json", json.dumps({"msbuild-sdks": {"Uno.Sdk": version}}))
    workspace.project("App/App.csproj").solution("App.slnx")

    shown = workspace.machine.run("disco").stdout

    assert "names Uno.Sdk under msbuild-sdks, but what stands there is no version." in shown
    assert "names no Uno SDK" not in shown
    assert shown.count('Write its version as text, as in "Uno.Sdk": "6.5.31".') == 1
    assert "Add " not in shown
    assert "to choose from" not in shown, "none of them can be chosen"


def test_the_user_can_choose_between_two_solutions(uno: WorkspaceBuilder) -> None:
    uno.project("App/App.csproj").solution("App.slnx").solution("Other.slnx")

    result = uno.machine.disco("--solution", "Other.slnx")

    assert (result.exit_code, result.json["resolutionKind"]) == (0, "CurrentDirectory")
    assert result.json["selectedSolutionPath"] == str(uno.root / "Other.slnx")
    assert result.json["selectionSource"] == "UserSelected"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_folder_that_does_not_exist_has_no_add_ins(app: WorkspaceBuilder, options: tuple[str, ...]) -> None:
    result = app.machine.run("disco", "--addins-only", "--solution-dir", "typo", *options)

    assert result.exit_code == 1
    assert str(app.root / "typo") in result.stderr
    assert result.stdout.strip() in ("", "[]")


def test_a_mistyped_option_is_ignored_with_a_hint(app: WorkspaceBuilder) -> None:
    result = app.machine.disco("--addins-onl")

    assert result.exit_code == 0
    assert "Did you mean '--addins-only'?" in result.stderr


def test_a_removed_current_folder_is_reported(machine: Machine) -> None:
    gone = machine.root / "gone"
    gone.mkdir()

    result = machine.run(
        "disco", prefix=["/bin/sh", "-c", 'cd "$1" && /bin/rmdir "$1" && shift && exec "$@"', "sh", str(gone)]
    )

    assert result.exit_code == 1
    assert "The current folder does not exist any more." in result.stderr


def test_a_folder_without_uno_names_the_command_that_loads_its_addins(machine: Machine) -> None:
    write(machine.workspace / ".devtools" / "host.config.jsonc", "{}")
    (machine.workspace / ".devtools" / "addins").mkdir()

    result = machine.run("disco", "--addins-only")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "loaded by 'start'" in result.stderr


def test_an_empty_folder_is_no_error(machine: Machine) -> None:
    result = machine.disco()

    assert (result.exit_code, result.json["resolutionKind"], result.json["errors"]) == (0, "NoCandidates", [])


def test_a_folder_with_a_host_config_is_a_workspace_without_any_uno_sdk(workspace: WorkspaceBuilder) -> None:
    workspace.file(".devtools/host.config.jsonc", '{ "command": ["python", "server.py"] } // ours\n')
    workspace.file(".devtools/addins/notes.py", "def register(addin): ...\n")

    result = workspace.machine.disco()

    assert result.json["effectiveWorkspaceDirectory"] == str(workspace.root)
    assert result.json["resolutionKind"] == "CurrentDirectory"
    assert (result.exit_code, result.json["errors"]) == (0, [])
    assert result.json["workspaceAddIns"] == [str(workspace.root / ".devtools" / "addins" / "notes.py")]


def test_the_private_sdk_is_another_package_than_the_public_one_of_the_same_version(app: WorkspaceBuilder) -> None:
    app.package(sdk("Uno.Sdk.Private", "6.5.31", (CORE, SETTINGS))).global_json({"Uno.Sdk.Private": "6.5.31"})
    result = app.machine.disco()

    assert result.json["unoSdkPackage"] == "Uno.Sdk.Private"
    assert result.json["unoSdkPath"] == str(app.machine.nuget / "uno.sdk.private" / "6.5.31")
    assert [Path(path).name for path in result.add_ins] == ["Uno.Settings.DevServer.dll"]


# --- which .NET, which Host ----------------------------------------------------------------------------------------


def test_the_version_comes_from_the_installed_sdks_without_running_managed_code(app: WorkspaceBuilder) -> None:
    dotnet = app.machine.dotnet
    assert dotnet

    assert app.machine.disco().json["dotNetVersion"] == "10.0.401"
    assert ["--version"] not in dotnet.calls()


def test_global_json_chooses_among_the_installed_sdks(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet(FakeDotNet(["9.0.205", "10.0.401"], ["9.0.6", "10.0.12"]))
    workspace.uno_6_5().global_json({"Uno.Sdk": "6.5.31"}, dotnet={"version": "9.0.200"})
    workspace.project("App/App.csproj").solution("App.slnx")

    report = workspace.machine.disco().json

    assert (report["dotNetVersion"], report["dotNetTfm"]) == ("9.0.205", "net9.0")
    assert "net9.0" in Path(report["hostPath"]).parts
    assert report["hostRequiresMajorRollForward"] is False


def test_an_sdk_that_is_not_installed_is_an_error_that_lists_what_is(uno: WorkspaceBuilder) -> None:
    uno.global_json({"Uno.Sdk": "6.5.31"}, dotnet={"version": "8.0.100"}).project("App/App.csproj").solution("App.slnx")

    result = uno.machine.disco()

    assert (result.exit_code, result.json["dotNetVersion"]) == (1, None)
    assert "10.0.401" in result.issue("DotNetVersionUnsupported")["message"]
    assert len(result.add_ins) == 2


def test_without_dotnet_the_add_ins_are_found_and_a_host_can_start(workspace: WorkspaceBuilder) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco()

    assert (result.exit_code, result.json["dotNetVersion"], result.json["hostPath"]) == (0, None, None)
    assert result.issue("DotNetNotFound")["severity"] == "Warning", "the bundled Host serves without it"
    assert len(result.add_ins) == 2


def test_a_host_for_a_lower_framework_must_roll_forward(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet(FakeDotNet(runtimes=["10.0.12"]))
    workspace.uno_sdk().package(host(frameworks=["net8.0", "net9.0", "net11.0"]))

    report = workspace.project("App/App.csproj").solution("App.slnx").machine.disco().json

    assert "net9.0" in Path(report["hostPath"]).parts
    assert report["hostRequiresMajorRollForward"] is True


# --- running servers -----------------------------------------------------------------------------------------------


def _register(machine: Machine, process: int, port: int, solution: Path | None) -> None:
    """The file that a .NET Host writes about itself."""
    entry = {
        "ProcessId": process,
        "ParentProcessId": 0,
        "SolutionPath": solution and str(solution),
        "StartTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z"),
        "Port": port,
        "MachineName": machine_name(),
        "UserName": user_name(),
        "IdeChannelId": None,
    }
    registry = machine.data / "Uno Platform" / "DevServers"
    write(registry / f"devserver-{process}.json", json.dumps(entry, indent=2))


def test_a_registered_server_of_the_workspace_is_the_active_one(app: WorkspaceBuilder) -> None:
    _register(app.machine, os.getpid(), 53821, app.root / "App.slnx")

    report = app.machine.disco().json

    [server] = report["activeServers"]
    assert (server["processId"], server["port"], server["isInWorkspace"]) == (os.getpid(), 53821, True)
    assert server["mcpEndpoint"] == "http://localhost:53821/mcp"
    assert server["solutionPath"] == str(app.root / "App.slnx")
    assert server["processChain"][0]["processId"] == os.getpid()
    assert report["activeServer"]["processId"] == os.getpid()


def test_a_registered_server_of_another_solution_is_listed_but_not_active(app: WorkspaceBuilder) -> None:
    _register(app.machine, os.getpid(), 53821, app.machine.root / "elsewhere" / "Other.sln")

    report = app.machine.disco().json

    assert [server["isInWorkspace"] for server in report["activeServers"]] == [False]
    assert report["activeServer"] is None


def test_a_registration_of_a_process_that_is_gone_or_of_no_sense_is_not_listed(app: WorkspaceBuilder) -> None:
    _register(app.machine, 2**22 + 1, 53821, app.root / "App.slnx")
    write(app.machine.data / "Uno Platform" / "DevServers" / "devserver-1.json", "no json")

    result = app.machine.disco()

    assert (result.exit_code, result.json["activeServers"]) == (0, [])
