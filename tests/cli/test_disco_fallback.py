"""When reading files is not enough: the last good answer, then MSBuild; and MSBuild at once where it is asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from support.dotnet import Build, FakeDotNet
from support.files import snapshot, write
from support.golden import recorded_ids, restored_workspace
from support.hosts import StandInHosts
from support.machine import WINDOWS, Machine, Result
from support.packages import APP_MCP, CORE, DLL, Package, app_mcp, direct_add_in, host, targets, tools_only
from support.workspace import WorkspaceBuilder

# MSBuild runs code of the workspace: the user has agreed.
TRUSTED = {"UNO_DEVSERVER_TRUST": "1"}

MUTE = tools_only("Uno.UI.App.Mcp", "1.1.0")
FRAMEWORKS = "UnoDumpTargetFrameworks"
ADD_INS = "UnoDumpRemoteControlAddIns"

# MSBuild was recorded on Linux, and conditions of these ask for the system.
OF_LINUX = ("conditions", "unicode-path")


def _mute(workspace: WorkspaceBuilder, build: Build) -> FakeDotNet:
    """A workspace whose add-in only MSBuild can tell."""
    dotnet = workspace.machine.install_dotnet(FakeDotNet(build=build))
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), MUTE).project("src/App/App.csproj").solution(
        "src/App.slnx", ["App/App.csproj"]
    )
    return dotnet


def _add_in(workspace: WorkspaceBuilder) -> str:
    return MUTE.dll(workspace.machine.nuget)


def _fall_back(workspace: WorkspaceBuilder) -> Result:
    return workspace.machine.disco(env=TRUSTED)


# --- MSBuild -------------------------------------------------------------------------------------------------------


def test_msbuild_is_called_with_the_two_targets_and_their_exact_arguments(workspace: WorkspaceBuilder) -> None:
    add_in = _add_in(workspace)
    dotnet = _mute(workspace, Build(["net9.0;", ";net10.0-desktop;net10.0-android"], {"net10.0-desktop": [add_in]}))

    result = _fall_back(workspace)

    assert result.add_ins == [add_in]
    calls = dotnet.build_calls()
    solution = str(workspace.root / "src" / "App.slnx")
    hooks = workspace.machine.nuget / host().path / "tools/rc/host/net10.0/DevServer.Custom.Targets"
    custom = f"-p:CustomBeforeMicrosoftCSharpTargets={hooks}"
    assert _without_files(calls[0]) == [
        "build",
        solution,
        f"-t:{FRAMEWORKS}",
        f"-p:{FRAMEWORKS}TargetFile=",
        custom,
        "--verbosity",
        "quiet",
    ]
    for call, framework in zip(calls[1:], ["net9.0", "net10.0-desktop"], strict=True):
        assert _without_files(call) == [
            "build",
            solution,
            f"-t:{ADD_INS}",
            f"-p:{ADD_INS}TargetFile=",
            custom,
            "--verbosity",
            "quiet",
            "--framework",
            framework,
            "-nowarn:MSB4057",
        ]
    assert set(dotnet.build_folders()) == {str(workspace.root / "src")}


def _without_files(call: list[str]) -> list[str]:
    """The names of the dump files are chosen by the program."""
    return [
        f"{argument.split('TargetFile=')[0]}TargetFile=" if "TargetFile=" in argument else argument for argument in call
    ]


def test_the_dump_files_are_gone_afterwards(workspace: WorkspaceBuilder) -> None:
    machine = workspace.machine
    dotnet = _mute(workspace, Build(["net10.0;"], {"net10.0": [_add_in(workspace)]}))
    before = snapshot(machine.workspace, machine.nuget, machine.home, machine.temp)

    _fall_back(workspace)

    dumps = [
        argument.split("=", 1)[1] for call in dotnet.build_calls() for argument in call if "TargetFile=" in argument
    ]
    assert len(dumps) == 2
    assert not any(Path(dump).exists() for dump in dumps)
    assert snapshot(machine.workspace, machine.nuget, machine.home, machine.temp) == before


def test_what_msbuild_dumps_may_hold_any_letters_separators_and_repetitions(workspace: WorkspaceBuilder) -> None:
    one = str(write(workspace.machine.root / "Ünï 日本" / "One.dll", b"MZ"))
    two = str(write(workspace.machine.root / "Two.dll", b"MZ"))
    dump = [f" {one.upper()} ;{one};{two}", "", one, two.upper()]  # projects that are built side by side have no order
    _mute(workspace, Build(["net10.0;", "net10.0;", ""], {"net10.0": dump}))

    result = _fall_back(workspace)

    assert [os.path.normcase(path) for path in result.add_ins] == [os.path.normcase(path) for path in (one, two)]
    assert "AddInBinaryNotFound" not in result.issue_codes
    assert {entry["discoverySource"] for entry in result.json["addIns"]} == {"msbuild"}


def test_an_add_in_of_msbuild_that_does_not_exist_is_reported_not_given(workspace: WorkspaceBuilder) -> None:
    missing = str(workspace.machine.root / "Missing.dll")
    _mute(workspace, Build(["net10.0;"], {"net10.0": [missing]}))

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert missing in result.issue("AddInBinaryNotFound")["message"]


def test_a_build_that_fails_is_a_warning_that_quotes_it_and_the_report_is_given(workspace: WorkspaceBuilder) -> None:
    _mute(workspace, Build(exit_code=1, stdout="App.csproj : error MSB4236: The SDK was not found.\n"))

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert "MSB4236" in result.issue("MSBuildDiscoveryFailed")["message"]
    assert result.json["hostPath"]


def test_without_dotnet_there_is_no_fallback_and_no_crash(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), MUTE).project("App/App.csproj").solution("App.slnx")

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert "DotNetNotFound" in result.issue_codes


def test_msbuild_runs_code_of_the_workspace_only_when_the_user_agreed(workspace: WorkspaceBuilder) -> None:
    dotnet = _mute(workspace, Build(["net10.0;"], {"net10.0": [_add_in(workspace)]}))

    result = workspace.machine.disco()

    assert dotnet.build_calls() == []
    assert result.add_ins == []
    remedies = " ".join(issue["remediation"] for issue in result.json["issues"])
    assert "UNO_DEVSERVER_TRUST" in remedies or "--force-msbuild-discovery" in remedies


def test_a_workspace_whose_add_ins_are_found_never_starts_a_build(workspace: WorkspaceBuilder) -> None:
    dotnet = workspace.machine.install_dotnet()
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    assert len(_fall_back(workspace).add_ins) == 2
    assert dotnet.build_calls() == []


def test_force_msbuild_discovery_asks_msbuild_though_the_files_would_do(workspace: WorkspaceBuilder) -> None:
    other = str(write(workspace.machine.root / "Other.dll", b"MZ"))
    workspace.machine.install_dotnet(FakeDotNet(build=Build(["net10.0;"], {"net10.0": [other]})))
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = workspace.machine.disco("--force-msbuild-discovery")
    only = workspace.machine.run("disco", "--addins-only", "--force-msbuild-discovery")

    assert result.add_ins == only.add_ins == [other]
    assert result.json["addInsDiscoveryMethod"] == "msbuild"


# --- the last good answer ------------------------------------------------------------------------------------------


def _found_once(workspace: WorkspaceBuilder) -> str:
    """A first run finds the add-in by its files; then they are lost."""
    dotnet = workspace.machine.install_dotnet(FakeDotNet(build=Build(["net10.0;"], {})))
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), app_mcp()).project("App/App.csproj").solution("App.slnx")
    [add_in] = _fall_back(workspace).add_ins
    assert dotnet.build_calls() == []
    write(workspace.machine.nuget / app_mcp().path / "buildTransitive/Uno.UI.App.Mcp.targets", "<Project><lost")
    return add_in


def test_the_last_good_answer_is_used_and_reported_before_msbuild_is_asked(workspace: WorkspaceBuilder) -> None:
    add_in = _found_once(workspace)

    result = _fall_back(workspace)

    assert result.add_ins == [add_in]
    assert result.json["addInsDiscoveryMethod"] == "cached"
    assert result.json["addIns"][0]["packageName"].lower() == "uno.ui.app.mcp"
    assert "AddInDiscoveryFallback" in result.issue_codes
    assert "Uno.UI.App.Mcp.targets" in result.issue("AddInTargetsInvalid")["message"], "the cause is told too"
    assert workspace.machine.dotnet
    assert workspace.machine.dotnet.build_calls() == []


def test_the_last_good_answer_of_other_packages_is_not_used(workspace: WorkspaceBuilder) -> None:
    add_in = _found_once(workspace)
    changed = type(APP_MCP)("AppMcp", "1.2.0", ["Uno.UI.App.Mcp"])
    workspace.uno_sdk(groups=(CORE, changed)).package(tools_only("Uno.UI.App.Mcp", "1.2.0"))

    assert add_in not in _fall_back(workspace).add_ins


def test_a_last_good_answer_whose_file_is_gone_is_not_given(workspace: WorkspaceBuilder) -> None:
    add_in = _found_once(workspace)
    Path(add_in).unlink()

    assert _fall_back(workspace).add_ins == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe\x00", b"null"])
def test_a_damaged_cache_is_as_good_as_none(workspace: WorkspaceBuilder, damage: bytes) -> None:
    _found_once(workspace)
    files = [path for path in workspace.machine.state.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(damage)

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert workspace.machine.dotnet
    assert workspace.machine.dotnet.build_calls(), "then MSBuild is asked"


def test_a_cache_folder_that_cannot_be_written_changes_nothing(workspace: WorkspaceBuilder) -> None:
    workspace.machine.install_dotnet()
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    write(workspace.machine.data / "Uno Platform", "a file where the folder should be")

    result = _fall_back(workspace)

    assert (result.exit_code, len(result.add_ins)) == (0, 2)


def test_two_workspaces_keep_their_answers_apart(workspace: WorkspaceBuilder) -> None:
    add_in = _found_once(workspace)
    other = WorkspaceBuilder(workspace.machine, "other")
    changed = type(APP_MCP)("AppMcp", "1.2.0", ["Uno.UI.App.Mcp"])
    other.uno_sdk("6.6.0", groups=(CORE, changed)).package(app_mcp("1.2.0")).project("App/App.csproj").solution(
        "B.slnx"
    )

    assert workspace.machine.disco(cwd=other.root, env=TRUSTED).add_ins != [add_in]
    (other.root / "B.slnx").unlink()
    assert _fall_back(workspace).add_ins == [add_in]


# --- add-ins that are switched off ---------------------------------------------------------------------------------

ACME = "$(MSBuildThisFileDirectory)../tools/devserver/Acme.Tool.dll"
ON = "'$(AcmeOff)' != 'true'"
SWITCHES = {
    "item": targets(ACME, item_condition=ON),
    "group": targets(ACME, group_condition=ON),
    "property": f"""<Project>
  <PropertyGroup Condition="{ON}"><AcmePath>{ACME}</AcmePath></PropertyGroup>
  <ItemGroup><UnoRemoteControlAddIns Include="$(AcmePath)" /></ItemGroup>
</Project>""",
    "choose": f"""<Project>
  <Choose><When Condition="{ON}"><ItemGroup><UnoRemoteControlAddIns Include="{ACME}" /></ItemGroup></When></Choose>
</Project>""",
    "import": f"""<Project><Import Project="Items.targets" Condition="{ON}" /></Project>""",
    "computed import": f"""<Project>
  <PropertyGroup><AcmeItems>None</AcmeItems><AcmeItems Condition="{ON}">Items</AcmeItems></PropertyGroup>
  <Import Project="$(MSBuildThisFileDirectory)$(AcmeItems).targets" />
</Project>""",
}


def _switched(text: str = SWITCHES["item"]) -> Package:
    """An add-in that the property AcmeOff switches off."""
    files = {"Acme.Tool.targets": text, "Items.targets": targets(ACME), "None.targets": "<Project />"}
    return direct_add_in("Acme.Tool").with_files({f"buildTransitive/{name}": text for name, text in files.items()})


def _switch_off(workspace: WorkspaceBuilder) -> None:
    project = workspace.root / "App" / "App.csproj"
    write(project, project.read_text("utf-8").replace("<OutputType>", "<AcmeOff>true</AcmeOff><OutputType>"))


@pytest.mark.parametrize("switch", SWITCHES)
def test_an_add_in_that_the_project_switches_off_is_not_loaded_from_the_last_good_answer(
    workspace: WorkspaceBuilder, switch: str
) -> None:
    """A condition that says no is an answer."""
    dotnet = workspace.machine.install_dotnet()
    package = _switched(SWITCHES[switch])
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj", [package]).solution("App.slnx")
    assert _fall_back(workspace).add_ins == [package.dll(workspace.machine.nuget)]
    _switch_off(workspace)

    result = _fall_back(workspace)

    assert (result.add_ins, result.json["addInsDiscoveryMethod"]) == ([], None)
    assert [code for code in result.issue_codes if code.startswith("AddIn")] == ["AddInPackageNotCached"], "of Settings"
    assert dotnet.build_calls() == []
    shutil.rmtree(workspace.root / "App" / "obj")
    Path(result.json["packagesJsonPath"]).write_text("damaged", "utf-8")
    assert _fall_back(workspace).add_ins == [], "nor later, when neither the restore nor the SDK can be read"


def test_the_host_does_not_get_an_add_in_that_was_switched_off(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    package = _switched()
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj", [package]).solution("App.slnx")
    for _ in range(2):
        workspace.machine.run("start", env=TRUSTED)
        workspace.machine.run("stop")
        _switch_off(workspace)

    given = [launch["argv"][launch["argv"].index("--addins") + 1] for launch in hosts.launches()]

    assert given == [package.dll(workspace.machine.nuget), ";"]


def test_an_add_in_of_the_project_itself_that_it_switches_off_is_not_loaded(workspace: WorkspaceBuilder) -> None:
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj").solution("App.slnx")
    own = write(workspace.root / "Own.dll", DLL)
    workspace.file("Directory.Build.targets", targets("$(MSBuildThisFileDirectory)Own.dll", item_condition=ON))
    assert _fall_back(workspace).add_ins == [str(own)]
    _switch_off(workspace)

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert "AddInDiscoveryFallback" not in result.issue_codes


def test_an_add_in_whose_build_files_the_project_excludes_is_not_loaded_from_the_last_good_answer(
    workspace: WorkspaceBuilder,
) -> None:
    package = direct_add_in("Acme.Tool")
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj", [package]).solution("App.slnx")
    assert len(_fall_back(workspace).add_ins) == 1
    write(workspace.root / "App" / "obj" / "App.csproj.nuget.g.targets", "<Project />")

    result = _fall_back(workspace)

    assert result.add_ins == []
    assert "AddInBuildFilesExcluded" in result.issue_codes


@pytest.mark.parametrize("unread", ["package", "project"])
def test_where_something_else_cannot_be_read_an_add_in_stays_switched_off(
    workspace: WorkspaceBuilder, unread: str
) -> None:
    """The last good answer counts for what could not be read, and only for that."""
    package, other = _switched(), direct_add_in("Beta.Tool")
    packages = [package, other] if unread == "package" else [package]
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj", packages)
    workspace.project("Lib/Lib.csproj", restored=unread == "package").solution("App.slnx")
    assert len(_fall_back(workspace).add_ins) == len(packages)
    _switch_off(workspace)
    if unread == "package":
        write(workspace.machine.nuget / other.path / "buildTransitive" / "Beta.Tool.targets", "<Project><lost")

    result = _fall_back(workspace)

    assert result.add_ins == [each.dll(workspace.machine.nuget) for each in packages[1:]]
    assert "AddInEntryPointUnknown" not in result.issue_codes


@pytest.mark.parametrize("place", ["user file", "imported file", "project SDK", "excluded build files"])
def test_wherever_a_project_says_no_another_that_is_not_restored_changes_nothing(
    workspace: WorkspaceBuilder, place: str
) -> None:
    workspace.machine.install_dotnet()
    packages = [_switched()] if place in ("user file", "excluded build files") else []
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj", packages)
    workspace.project("Lib/Lib.csproj", restored=False).solution("App.slnx")
    app = workspace.root / "App" / "App.csproj"
    text = app.read_text("utf-8")
    if place == "imported file":
        write(workspace.root / "Own.dll", DLL)
        workspace.file("Own.targets", targets("$(MSBuildThisFileDirectory)Own.dll"))
        write(app, text.replace("</Project>", f'<Import Project="../Own.targets" Condition="{ON}" /></Project>'))
    if place == "project SDK":
        files = {"Sdk/Sdk.props": "<Project />", "Sdk/Sdk.targets": targets(ACME, item_condition=ON)}
        workspace.package(tools_only("Acme.Tool").with_files(files))
        write(app, text.replace("Uno.Sdk", "Acme.Tool/1.0.0"))
    assert len(_fall_back(workspace).add_ins) == 1
    if place == "user file":
        write(
            app.with_name("App.csproj.user"),
            "<Project><PropertyGroup><AcmeOff>true</AcmeOff></PropertyGroup></Project>",
        )
    elif place == "excluded build files":
        write(app.parent / "obj" / "App.csproj.nuget.g.targets", "<Project />")
    else:
        _switch_off(workspace)

    assert _fall_back(workspace).add_ins == []


def test_what_an_imported_file_that_is_damaged_said_before_still_counts(workspace: WorkspaceBuilder) -> None:
    """The project itself can be read, and says nothing."""
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj").solution("App.slnx")
    own = write(workspace.root / "Own.dll", DLL)
    workspace.file("Own.targets", targets("$(MSBuildThisFileDirectory)Own.dll"))
    workspace.file("Directory.Build.targets", '<Project><Import Project="Own.targets" /></Project>')
    assert _fall_back(workspace).add_ins == [str(own)]
    workspace.file("Own.targets", "<Project><UnoRemoteControlAddIns lost")

    result = _fall_back(workspace)

    assert (result.add_ins, result.json["addInsDiscoveryMethod"]) == ([str(own)], "cached")


# --- MSBuild by evaluation -----------------------------------------------------------------------------------------


def _two_projects(workspace: WorkspaceBuilder) -> tuple[str, str]:
    workspace.uno_sdk(groups=(CORE,)).package(host())
    workspace.project("App/App.csproj", frameworks=("net10.0", "net9.0")).project("Lib/Lib.csproj").solution("App.slnx")
    return str(workspace.root / "App" / "App.csproj"), str(workspace.root / "Lib" / "Lib.csproj")


def test_msbuild_is_asked_by_evaluation_and_builds_nothing(workspace: WorkspaceBuilder) -> None:
    app, lib = _two_projects(workspace)
    package = direct_add_in("Acme.Tool")
    path = package.dll(package.write(workspace.machine.nuget).parents[1])
    evaluation = {app: {"net10.0": [path.upper()], "net9.0": []}, lib: {"net10.0": [path]}}
    dotnet = workspace.machine.install_dotnet(FakeDotNet(evaluation=evaluation))

    result = workspace.machine.disco("--force-msbuild-discovery")

    (found,) = result.add_ins  # by its full path, so that two spellings are one add-in
    assert os.path.normcase(found) == os.path.normcase(path)
    assert "AddInBinaryNotFound" not in result.issue_codes
    assert result.json["addInsDiscoveryMethod"] == "msbuild"
    assert re.search(r"MSBuild evaluated 2 project\(s\) in \d+\.\d s\.", result.stderr)
    assert dotnet.build_calls() == []
    wanted = [(app, "net10.0"), (app, "net9.0"), (lib, "net10.0")]
    assert sorted(dotnet.evaluation_calls()) == [
        [
            "msbuild",
            project,
            "-nologo",
            "-getItem:UnoRemoteControlAddIns",
            "-getProperty:TargetFrameworks",
            f"-p:TargetFramework={framework}",
        ]
        for project, framework in wanted
    ]


def test_frameworks_that_only_msbuild_knows_are_asked_for(workspace: WorkspaceBuilder) -> None:
    path = str(write(workspace.machine.root / "Tool.dll", b"MZ"))
    workspace.uno_sdk(groups=(CORE,)).package(host()).file("App/App.csproj", '<Project Sdk="Uno.Sdk" />')
    workspace.solution("App.slnx", ["App/App.csproj"])
    app = str(workspace.root / "App" / "App.csproj")
    dotnet = FakeDotNet(evaluation={app: {"net9.0": [], "net10.0": [path]}})
    workspace.machine.install_dotnet(dotnet)

    assert workspace.machine.disco("--force-msbuild-discovery").add_ins == [path]
    assert next(call[-1] for call in dotnet.evaluation_calls()) == "-getProperty:TargetFrameworks"


def test_a_project_that_msbuild_cannot_evaluate_is_named_and_the_others_count(workspace: WorkspaceBuilder) -> None:
    app, lib = _two_projects(workspace)
    path = str(write(workspace.machine.root / "Tool.dll", b"MZ"))
    workspace.machine.install_dotnet(FakeDotNet(evaluation={lib: {"net10.0": [path]}}))

    result = workspace.machine.disco("--force-msbuild-discovery")

    assert result.add_ins == [path]
    message = result.issue("MSBuildDiscoveryFailed")["message"]
    assert app in message
    assert "MSB4025" in message


def test_without_the_sdk_of_global_json_it_is_told_which_to_install(workspace: WorkspaceBuilder) -> None:
    """On standard output `dotnet` prints only those that are there."""
    _two_projects(workspace)
    workspace.machine.install_dotnet(FakeDotNet(evaluation={}))
    document = json.loads((workspace.root / "global.json").read_text("utf-8"))
    workspace.file("global.json", json.dumps(document | {"sdk": {"version": "99.0.100"}}))

    issues = workspace.machine.disco("--force-msbuild-discovery").issues("MSBuildDiscoveryFailed")

    assert len(issues) == 2
    assert all("Install the [99.0.100] .NET SDK" in issue["message"] for issue in issues)


def test_an_sdk_before_8_0_100_is_asked_by_its_targets(workspace: WorkspaceBuilder) -> None:
    _two_projects(workspace)
    build = Build(["net10.0"], {"net10.0": [str(write(workspace.machine.root / "Tool.dll", b"MZ"))]})
    dotnet = workspace.machine.install_dotnet(FakeDotNet(sdks=("7.0.400",), runtimes=("7.0.1",), build=build))

    assert len(workspace.machine.disco("--force-msbuild-discovery").add_ins) == 1
    assert dotnet.evaluation_calls() == []


# --- disco --verify ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in recorded_ids("restore") if not WINDOWS or name not in OF_LINUX])
def test_disco_verify_shows_no_difference_in_recorded_workspaces(name: str, machine: Machine) -> None:
    recording = restored_workspace(name, machine)
    projects = [project for project in recording["expected"]["projects"] if project["inSolution"]]
    failing = [project["path"] for project in projects if "byTargetFramework" not in project]  # MSBuild gives an error
    evaluation = {
        str(machine.workspace / project["path"]): {
            framework: [item["fullPath"] for item in answer.get("items") or ()]
            for framework, answer in project["byTargetFramework"].items()
        }
        for project in projects
        if "byTargetFramework" in project
    }
    dotnet = machine.install_dotnet(FakeDotNet(evaluation=evaluation))

    result = machine.disco("--verify", env=TRUSTED)

    asked = {(call[1], call[-1].partition("TargetFramework=")[2]) for call in dotnet.evaluation_calls()}
    answered = {(path, framework) for path, answers in evaluation.items() for framework in answers}
    assert {pair for pair in asked if pair[0] in evaluation and pair[1]} == answered
    assert {path for path, _ in asked} == {str(machine.workspace / project["path"]) for project in projects}
    verification = result.json["verification"]
    assert (verification["onlyRead"], verification["onlyMSBuild"]) == ([], [])
    assert len(verification["problems"]) == len(failing)
    assert verification["agrees"] is not bool(failing)


def test_disco_verify_shows_each_difference_and_ends_with_1(workspace: WorkspaceBuilder) -> None:
    app, lib = _two_projects(workspace)
    read, asked = direct_add_in("Acme.Read"), direct_add_in("Acme.Asked")
    workspace.project("App/App.csproj", [read]).package(asked)
    cache = workspace.machine.nuget
    workspace.machine.install_dotnet(FakeDotNet(evaluation={app: {"net10.0": [asked.dll(cache)]}, lib: {}}))

    result = workspace.machine.disco("--verify", env=TRUSTED)
    text = workspace.machine.run("disco", "--verify", env=TRUSTED)

    assert (result.exit_code, text.exit_code) == (1, 1)
    verification = result.json["verification"]
    assert verification["onlyRead"] == [read.dll(cache)]
    assert verification["onlyMSBuild"] == [asked.dll(cache)]
    assert "MSBuild" in text.stdout
    assert "Acme.Asked.dll" in text.stdout


def test_disco_verify_compares_nothing_with_an_answer_that_was_not_given(workspace: WorkspaceBuilder) -> None:
    _two_projects(workspace)
    workspace.project("App/App.csproj", [direct_add_in("Acme.Read")])
    workspace.machine.install_dotnet(FakeDotNet(evaluation={}))

    result = workspace.machine.disco("--verify", env=TRUSTED)
    text = workspace.machine.run("disco", "--verify", env=TRUSTED).stdout

    verification = result.json["verification"]
    assert (result.exit_code, verification["agrees"]) == (1, False)
    assert (verification["onlyRead"], verification["onlyMSBuild"]) == ([], [])
    assert ["MSB4025" in problem for problem in verification["problems"]] == [True, True]
    assert "did not answer fully" in text


def test_disco_verify_runs_nothing_without_the_users_agreement(workspace: WorkspaceBuilder) -> None:
    _two_projects(workspace)
    dotnet = workspace.machine.install_dotnet(FakeDotNet(evaluation={}))

    result = workspace.machine.run("disco", "--verify")

    assert result.exit_code == 1
    assert "uno-devserver trust" in result.stderr
    assert dotnet.evaluation_calls() == []


def test_disco_verify_without_dotnet_asks_for_that_and_not_for_agreement(workspace: WorkspaceBuilder) -> None:
    _two_projects(workspace)

    result = workspace.machine.run("disco", "--verify")

    assert result.exit_code == 1
    assert "no 'dotnet' was found" in result.stderr
    assert "Install the .NET SDK" in result.stderr
    assert "trust" not in result.stderr
