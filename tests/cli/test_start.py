"""`start` launches a Host: which one, with exactly which arguments, and what is said of it.

The Hosts are stand-ins that the stand-in dotnet runs; processes, sockets and files are real.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from support.dotnet import Build, FakeDotNet
from support.files import write
from support.hosts import Manners, StandInHosts
from support.machine import Machine
from support.packages import APP_MCP, CORE, app_mcp, host, settings, tools_only
from support.workspace import WorkspaceBuilder


def _host_dll(machine: Machine, framework: str = "net10.0") -> str:
    return str(machine.nuget / host().path / f"tools/rc/host/{framework}/Uno.UI.RemoteControl.Host.dll")


def _addins(machine: Machine) -> str:
    dll = app_mcp().dll(machine.nuget, "Uno.UI.App.Mcp.Server.dll")
    return ";".join([settings().dll(machine.nuget), dll])


# --- what reaches the Host -----------------------------------------------------------------------------------------


def test_the_dotnet_host_gets_port_solution_and_addins_and_nothing_else(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    result = uno.machine.run("start", "--json")

    assert result.exit_code == 0
    [launch] = hosts.launches()
    solution = str(uno.root / "App.slnx")
    assert launch["argv"] == [
        _host_dll(uno.machine),
        *("--httpPort", str(result.json["port"])),
        *("--solution", solution),
        *("--addins", _addins(uno.machine)),
    ]
    assert launch["pid"] == result.json["processId"]


def test_everything_that_was_asked_for_reaches_the_host_in_order(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    me = str(os.getpid())

    uno.machine.run(
        "start", "--metadata-updates", "true", "--httpPort", "0", "--ppid", me, "--ideChannel", "chan-1", "--extra"
    )

    [launch] = hosts.launches()
    assert launch["argv"][1:2] + launch["argv"][3:] == [
        "--httpPort",
        *("--ppid", me),
        *("--solution", str(uno.root / "App.slnx")),
        *("--ideChannel", "chan-1"),
        *("--addins", _addins(uno.machine)),
        *("--metadata-updates", "true", "--extra"),
    ]


@pytest.mark.parametrize(
    "name", ["with blanks in it", "semi;colon", "quo\"tes and 'more'", "Größe ✓ 日本", "a$HOME&b|c"]
)
def test_odd_characters_in_paths_reach_the_host_unchanged(machine: Machine, hosts: StandInHosts, name: str) -> None:
    workspace = WorkspaceBuilder(machine, name).uno_6_5().project("App/App.csproj", [app_mcp()])
    workspace.solution(f"{name}.slnx")

    result = machine.run("start", "--json", cwd=workspace.root)

    [launch] = hosts.launches()
    argv = launch["argv"]
    assert argv[argv.index("--solution") + 1] == str(workspace.root / f"{name}.slnx")
    assert argv[argv.index("--addins") + 1].count(".dll") == 2
    assert launch["cwd"] == str(workspace.root)
    assert result.exit_code == 0


def test_the_users_addins_are_one_argument_and_win_over_discovery(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    given = "/a folder/One.dll;/über/Two.dll"

    uno.machine.run("start", "--addins", given)

    [launch] = hosts.launches()
    assert launch["argv"][-2:] == ["--addins", given]


def test_host_and_add_ins_in_the_home_of_the_dotnet_cli_are_the_users_own_and_need_no_agreement(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    machine = workspace.machine
    machine.nuget = machine.root / "cli-home" / ".nuget" / "packages"
    machine.environment = {"DOTNET_CLI_HOME": str(machine.root / "cli-home")}
    workspace.uno_6_5().project("App/App.csproj", [app_mcp()]).solution("App.slnx")

    result = machine.run("start", "--json")

    [launch] = hosts.launches()
    assert launch["argv"][0] == _host_dll(machine)
    assert app_mcp().dll(machine.nuget, "Uno.UI.App.Mcp.Server.dll") in launch["argv"][-1]
    assert "agree" not in result.stderr


@pytest.mark.parametrize("argv", [["--addins", ""], ["--addins="], ["--addins", ";"]])
def test_no_addins_are_told_with_a_value_that_does_not_get_lost(
    uno: WorkspaceBuilder, hosts: StandInHosts, argv: list[str]
) -> None:
    uno.machine.run("start", *argv)

    [launch] = hosts.launches()
    assert launch["argv"][-2:] == ["--addins", ";"]


def test_a_workspace_without_addins_does_not_make_the_host_ask_msbuild(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj").solution("App.slnx")

    workspace.machine.run("start")

    [launch] = hosts.launches()
    assert launch["argv"][-2:] == ["--addins", ";"]


def test_where_discovery_has_no_answer_the_host_may_look_itself(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    dll = _host_dll(workspace.machine)
    package = workspace.machine.nuget / "uno.sdk" / "6.5.31" / "targets" / "netstandard2.0" / "packages.json"
    package.write_text("{ broken")

    workspace.machine.run("start", "--host", dll, "--trust")

    [launch] = hosts.launches()
    assert "--addins" not in launch["argv"]


def test_a_build_that_failed_is_no_proof_that_there_are_no_addins(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    workspace.uno_sdk(groups=(CORE,)).package(host()).project("App/App.csproj").solution("App.slnx")

    workspace.machine.run("start", "--force-msbuild-discovery")

    [launch] = hosts.launches()
    assert "--addins" not in launch["argv"]


@pytest.mark.parametrize("named", [(), ("--addins", "/other.dll")], ids=["alone", "beside --addins"])
def test_msbuild_is_asked_where_the_user_wants_it(workspace: WorkspaceBuilder, named: tuple[str, ...]) -> None:
    mute = tools_only("Uno.UI.App.Mcp", "1.1.0")
    addin = mute.dll(workspace.machine.nuget)
    hosts = StandInHosts(workspace.machine.install_dotnet(FakeDotNet(build=Build(["net10.0"], {"net10.0": [addin]}))))
    workspace.uno_sdk(groups=(CORE, APP_MCP)).package(host(), mute).project("App/App.csproj").solution("App.slnx")

    workspace.machine.run("start", "--force-msbuild-discovery", *named)

    [launch] = hosts.launches()
    hosts.end_all()
    assert launch["argv"][-2:] == ["--addins", addin]


def test_the_host_runs_in_the_workspace_apart_from_us_with_its_output_in_a_private_file(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    result = uno.machine.run("start", "--json", "--solution-dir", str(uno.root), cwd=uno.machine.home)

    [launch] = hosts.launches()
    log = Path(result.json["logFile"])
    assert launch["cwd"] == str(uno.root)
    assert launch["stdin"] == "/dev/null"
    assert launch["session"] == launch["pid"]
    assert launch["stdout"] == str(log)
    assert log.parent == uno.machine.state / "logs"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "stand-in host --httpPort" in log.read_text()


def test_a_host_for_the_previous_net_is_rolled_forward(workspace: WorkspaceBuilder, hosts: StandInHosts) -> None:
    workspace.uno_sdk(groups=(CORE,)).package(host(frameworks=["net9.0"])).project("A/A.csproj").solution("App.slnx")

    workspace.machine.run("start", env={"DOTNET_ROLL_FORWARD": "Minor"})  # with which it would not run

    [launch] = hosts.launches()
    assert launch["roll_forward"] == "Major"
    assert launch["argv"][0] == _host_dll(workspace.machine, "net9.0")


# --- which solution ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["none.sln", "App/App.csproj"])
def test_a_missing_solution_and_a_file_that_is_none_are_told_at_once(
    uno: WorkspaceBuilder, hosts: StandInHosts, path: str
) -> None:
    result = uno.machine.run("start", "--solution", path, "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "SolutionNotFound"
    assert str(uno.root / path) in result.json["error"]["message"]
    assert hosts.launches() == []


def test_two_solutions_that_fit_equally_well_are_named(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.solution("Other.slnx")

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "WorkspaceAmbiguous"
    assert "App.slnx" in result.json["error"]["message"]
    assert "Other.slnx" in result.json["error"]["message"]
    # Both lie in one folder, so there is no other folder to run from.
    assert result.json["error"]["nextStep"] == "Name the one you mean: --solution <path>."
    assert hosts.launches() == []


def test_the_solution_that_is_named_is_served_from_anywhere(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    uno.solution("Other.slnx")

    result = uno.machine.run("start", "--solution", "../ws/Other.slnx", "--json", cwd=uno.machine.home)

    [launch] = hosts.launches()
    assert launch["argv"][launch["argv"].index("--solution") + 1] == str(uno.root / "Other.slnx")
    assert result.json["workspaceDirectory"] == launch["cwd"] == str(uno.root)


def test_the_port_is_told_to_the_projects_of_the_solution(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start", "--json")

    user = (uno.root / "src/App/App.csproj.user").read_text("utf-8-sig")
    assert f"<UnoRemoteControlPort>{result.json['port']}#</UnoRemoteControlPort>" in user


def test_a_project_file_that_cannot_be_understood_is_a_warning_only(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    broken = write(uno.root / "src/App/App.csproj.user", "<Project><oops")

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 0
    assert broken.read_text() == "<Project><oops"
    assert any(str(broken) in warning for warning in result.json["warnings"])
    assert str(broken) in result.stderr


def test_a_server_that_is_there_is_told_to_projects_that_are_new(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = uno.machine.run("start", "--json")
    user = uno.root / "src/App/App.csproj.user"
    user.unlink()

    second = uno.machine.run("start", "--json")

    assert second.json["outcome"] == "reused"
    assert f">{first.json['port']}#<" in user.read_text("utf-8-sig")


# --- which Host ----------------------------------------------------------------------------------------------------


def test_a_host_that_the_user_names_is_run_by_dotnet_if_it_is_a_library(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    write(uno.machine.root / "my hosts" / "Own.dll", "MZ")

    result = uno.machine.run("start", "--host", "../my hosts/Own.dll", "--json")

    [launch] = hosts.launches()
    assert launch["argv"][0] == str(uno.machine.root / "my hosts" / "Own.dll")
    assert result.json["host"] == "path"


def test_a_host_that_is_a_script_is_executed_and_the_server_behind_it_found(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    dotnet = uno.machine.root / "dotnet" / "dotnet"
    script = write(uno.machine.root / "run-host.sh", f'#!/bin/sh\n"{dotnet}" Own.dll "$@"\nexit $?\n')
    script.chmod(0o755)

    result = uno.machine.run("start", "--host", str(script), "--json")

    [launch] = hosts.launches()
    assert result.json["processId"] == launch["pid"]
    assert launch["session"] != launch["pid"]
    note = uno.machine.data / "Uno Platform" / "DevServers" / f"devserver-{launch['pid']}.aux.json"
    assert list(note.parent.glob("*.aux.json")) == [note], "none of the script, which runs as long as the Host"
    assert json.loads(note.read_text())["WorkspaceDirectory"] == str(uno.root)


def test_a_host_that_does_not_exist_is_named(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start", "--host", "nowhere.dll")

    assert result.exit_code == 1
    assert f"There is no Host at {uno.root / 'nowhere.dll'}" in result.stderr


def test_a_host_that_cannot_be_executed_is_told_with_the_systems_words(uno: WorkspaceBuilder) -> None:
    write(uno.machine.root / "host.sh", "#!/bin/sh\n")

    result = uno.machine.run("start", "--host", "../host.sh")

    assert result.exit_code == 1
    assert "host.sh: Permission denied" in result.stderr


def test_asking_for_dotnet_without_a_dotnet_host_is_an_error_that_says_why(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    workspace.uno_sdk().project("A/A.csproj").solution("App.slnx")

    result = workspace.machine.run("start", "--host", "dotnet", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "HostBinaryNotFound"
    assert "Uno.WinUI.DevServer 6.5.153 was not found in package folders" in result.json["error"]["message"]


def test_python_addins_of_the_workspace_beside_a_dotnet_host_are_mentioned(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    uno.file(".devtools/addins/hello.py", "")

    result = uno.machine.run("start", "--trust", "--json")

    [warning] = result.json["warnings"]
    assert "hello.py" in warning
    assert "--host bundled" in warning


# --- what is said --------------------------------------------------------------------------------------------------


def test_people_are_told_what_runs_where(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start")

    [launch] = hosts.launches()
    port = launch["argv"][2]
    lines = result.stdout.splitlines()
    assert lines[0] == f"DevServer is ready on port {port}."
    assert f"  processId: {launch['pid']}" in lines
    assert f"  mcpEndpoint: http://localhost:{port}/mcp" in lines
    assert f"  solutionPath: {uno.root / 'App.slnx'}" in lines
    assert "  host: dotnet" in lines
    assert "  addIns: 2" in lines
    assert result.stderr == ""


def test_the_launcher_leaves_a_note_of_the_workspace_beside_the_registration(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    result = uno.machine.run("start", "--json")

    registry = uno.machine.data / "Uno Platform" / "DevServers"
    note = json.loads((registry / f"devserver-{result.json['processId']}.aux.json").read_text())
    assert note["WorkspaceDirectory"] == str(uno.root)
    assert note["IdeChannelId"] is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_host_may_listen_on_either_kind_of_loopback_address(
    uno: WorkspaceBuilder, hosts: StandInHosts, address: str
) -> None:
    hosts.behave(Manners(address=address))

    assert uno.machine.run("start").exit_code == 0


# --- bad calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--httpPort", "abc"], "BadValue"),
        (["--httpPort", "70000"], "BadValue"),
        (["--httpPort", "0" * 20 + "70000"], "BadValue"),
        (["--httpPort", "-5"], "BadValue"),
        (["--ppid", "-1"], "BadValue"),
        (["--timeoutMs", "soon"], "BadValue"),
        (["somewhere"], "UnexpectedArgument"),
        (["--solution"], "MissingValue"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_ends_with_2_and_starts_nothing(
    uno: WorkspaceBuilder, hosts: StandInHosts, argv: list[str], code: str
) -> None:
    result = uno.machine.run("start", "--json", *argv)

    assert result.exit_code == 2
    assert result.json["error"]["code"] == code
    assert hosts.launches() == []


def test_a_parent_that_does_not_run_is_refused(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start", "--ppid", str(2**31 - 1), "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "ParentNotRunning"
    assert hosts.launches() == []


def test_a_folder_that_does_not_exist_is_named(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start", "--solution-dir", "nowhere")

    assert result.exit_code == 1
    assert str(uno.root / "nowhere") in result.stderr
