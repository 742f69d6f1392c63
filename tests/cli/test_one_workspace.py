"""One workspace, seen from any folder in it: commands agree, and there is one Host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.hosts import Manners, Rival, StandInHosts, is_running
from support.machine import Machine
from support.packages import app_mcp
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder, slnx
from uno_devserver.instances.registry import entry_name, sidecar_name
from uno_devserver.system.folders import folders

FRAMEWORK_MISSING = """You must install or update .NET to run this application.

App: /packages/Uno.UI.RemoteControl.Host.dll
Architecture: x64
Framework: 'Microsoft.AspNetCore.App', version '11.0.0' (x64)
.NET location: /usr/share/dotnet

The following frameworks were found:
  10.0.1 at [/usr/share/dotnet/shared/Microsoft.AspNetCore.App]
"""


@pytest.fixture
def uno(workspace: WorkspaceBuilder, hosts: StandInHosts) -> WorkspaceBuilder:
    """A workspace with everything that a .NET Host needs, and a project in a folder of its own."""
    return workspace.uno_6_5().project("App/App.csproj", [app_mcp()]).solution("App.slnx")


def state_files(machine: Machine, folder: str) -> list[str]:
    """The names of the files that our state folder has for workspaces."""
    place = Path(folders(machine.variables()).state) / folder
    return sorted(path.name for path in place.glob("*")) if place.is_dir() else []


# --- any folder ----------------------------------------------------------------------------------------------------


def test_start_in_the_root_and_in_a_folder_of_it_gives_one_host_with_one_key(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    first = uno.machine.run("start", "--json").json
    second = uno.machine.run("start", "--json", cwd=uno.root / "App").json

    assert (second["outcome"], second["processId"]) == ("reused", first["processId"])
    assert second["workspaceDirectory"] == first["workspaceDirectory"]
    assert (
        len(hosts.launches()) == len(state_files(uno.machine, "ports")) == len(state_files(uno.machine, "locks")) == 1
    )


def test_so_does_a_start_by_a_link_to_a_folder_of_it(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = uno.machine.run("start", "--json").json
    link = uno.machine.root / "link"
    link.symlink_to(uno.root / "App")

    second = uno.machine.run("start", "--json", "--solution-dir", str(link)).json

    assert (second["outcome"], second["processId"]) == ("reused", first["processId"])
    assert second["workspaceDirectory"] == first["workspaceDirectory"]
    assert (
        len(hosts.launches()) == len(state_files(uno.machine, "ports")) == len(state_files(uno.machine, "locks")) == 1
    )


def test_in_a_folder_of_a_workspace_disco_health_and_addins_only_say_the_same(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    uno.machine.run("start")
    seen: list[Any] = []

    for folder in (uno.root, uno.root / "App"):
        found = uno.machine.disco(cwd=folder)
        health = uno.machine.run("health", "--json", cwd=folder).json
        paths = json.loads(uno.machine.run("disco", "--addins-only", "--json", cwd=folder).stdout)
        seen.append([found.add_ins, paths, health["hostProcessId"], health["selectedSolutionPath"]])
        seen[-1] += [found.json[name] for name in ("effectiveWorkspaceDirectory", "selectedSolutionPath", "hostPath")]
        seen[-1] += [found.json["activeServer"]["processId"], [issue["code"] for issue in health["issues"]]]

    assert seen[0] == seen[1]
    assert seen[0][0] == seen[0][1] != []


@pytest.mark.parametrize("trusted", [False, True])
def test_without_dotnet_disco_start_and_health_say_first_that_it_is_missing(
    workspace: WorkspaceBuilder, machine: Machine, trusted: bool
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"}).project("App/App.csproj", restored=False).solution("App.slnx")
    if trusted:
        machine.run("trust")

    found = machine.disco()
    refused = machine.run("start", "--json", "--host", "dotnet").json["error"]
    before = machine.run("health", "--json").json
    started = machine.run("start", "--json").json
    after = machine.run("health", "--json").json
    machine.run("stop")

    expected = ["DotNetNotFound", "SdkNotInCache", "RestoreMissing", "AddInDiscoveryFallback"]
    assert (found.exit_code, found.json["errors"], found.issue_codes) == (0, [], expected)
    assert [issue["code"] for issue in before["issues"]] == ["HostNotStarted", *expected]
    assert "MSBuild was asked" not in str(found.json)
    missing = found.json["issues"][0]
    assert (missing["message"] in refused["message"], refused["nextStep"]) == (True, missing["remediation"])
    assert (len(started["warnings"]), started["host"]) == (1, "bundled")
    assert missing["remediation"] in started["warnings"][0]
    assert (after["status"], [issue["code"] for issue in after["issues"]]) == ("Degraded", ["DotNetNotFound"])


def test_a_misnamed_folder_of_add_ins_is_told_by_each_command(machine: Machine) -> None:
    write(machine.workspace / ".devtools" / "addins" / "one.py", "def register(addin):\n    pass\n")
    name = str(machine.workspace / ".devtools" / "add-ins")
    write(machine.workspace / ".devtools" / "add-ins" / "two.py", "def register(addin):\n    pass\n")

    told = [machine.run(*words).json for words in (("disco", "--json"), ("health", "--json"), ("config", "--json"))]
    started = machine.run("start", "--json").json
    machine.run("stop")

    assert all(f"{name} is not read" in str(each) for each in (*told, started["warnings"]))


def test_add_ins_beside_the_solution_leave_one_workspace_with_its_solution(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    write(uno.root / ".devtools" / "addins" / "one.py", "def register(addin):\n    pass\n")
    first = uno.machine.run("start", "--json", cwd=uno.root / "App").json

    second = uno.machine.run("start", "--json").json

    assert first["solutionPath"] == str(uno.root / "App.slnx")
    assert (second["outcome"], second["processId"]) == ("reused", first["processId"])
    told = [uno.machine.run("health", "--json", cwd=folder).json for folder in (uno.root, uno.root / "App")]
    assert [each["hostProcessId"] for each in told] == [first["processId"]] * 2
    assert told[0]["issues"] == told[1]["issues"]


def test_of_two_solutions_health_reports_on_the_one_that_is_named_or_has_a_host(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    workspace.uno_6_5().project("App/App.csproj", [app_mcp()]).solution("One.slnx").solution("Two.slnx")
    undecided = workspace.machine.run("health", "--json").json["issues"]
    pid = workspace.machine.run("start", "--solution", "One.slnx", "--json").json["processId"]

    plain, two = (workspace.machine.run("health", "--json", *more) for more in ((), ("--solution", "Two.slnx")))

    codes = [issue["code"] for issue in undecided]
    assert codes.index("WorkspaceAmbiguous") < codes.index("HostNotStarted"), "the choice is the first step"
    steps = [issue["remediation"] for issue in undecided]
    assert len(steps) == len(set(steps))
    assert not [step for step in steps if step.startswith("Then")], "in JSON each stands alone"
    assert plain.json["selectedSolutionPath"] == str(workspace.root / "One.slnx")
    assert plain.json["hostProcessId"] == pid
    assert "WorkspaceAmbiguous" not in plain.issue_codes
    assert (two.json["hostProcessId"], two.json["hostEndpoint"]) == (None, None)
    assert "HostNotStarted" in two.issue_codes


def test_of_two_solutions_beside_add_ins_start_says_that_none_is_chosen(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"}).solution("One.slnx").solution("Two.slnx")
    workspace.file(".devtools/addins/one.py", "def register(addin):\n    pass\n")
    chosen = machine.run("start", "--solution", "One.slnx", "--json").json
    about = machine.run("health", "--json").json
    both = machine.run("start", "--json").json
    machine.run("stop")

    assert chosen["warnings"] != both["warnings"]
    assert (about["selectedSolutionPath"], about["hostProcessId"]) == (chosen["solutionPath"], chosen["processId"])
    assert both["solutionPath"] is None
    assert "2 solutions" in both["warnings"][0]
    assert "--solution" in both["warnings"][0]


def test_a_solution_that_does_not_exist_is_named_as_such_by_every_command(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"}).solution("App.slnx")
    missing = f"There is no solution {workspace.root / 'Nope.slnx'}."

    for command, code in (("start", 1), ("disco", 1), ("health", 1), ("config", 1), ("trust", 1), ("stop", 0)):
        result = machine.run(command, "--solution", "Nope.slnx")
        assert result.exit_code == code, command
        assert missing in result.stdout + result.stderr, command


def test_a_folder_that_belongs_to_none_says_what_lies_above_it(machine: Machine) -> None:
    write(machine.workspace / "global.json", '{"sdk": {"version": "10.0.100"}}')
    (machine.workspace / "tools").mkdir()

    result = machine.disco(cwd=machine.workspace / "tools")

    assert result.exit_code == 0
    assert result.issue("UnoSdkNotInGlobalJson")["severity"] == "Warning"
    assert str(machine.workspace / "global.json") in result.issue("UnoSdkNotInGlobalJson")["message"]


def test_a_solution_without_global_json_or_without_uno_has_the_code_of_its_cause(machine: Machine) -> None:
    write(machine.workspace / "App.slnx", slnx([]))
    for content, code in ((None, "GlobalJsonNotFound"), ("{}", "UnoSdkNotInGlobalJson")):
        if content is not None:
            write(machine.workspace / "global.json", content)

        told = [machine.disco().json["issues"], machine.run("health", "--json").json["issues"]]

        for issues in told:
            assert [issue["severity"] for issue in issues if issue["code"] == code] == ["Fatal"]


def test_in_a_folder_with_devtools_a_global_json_without_uno_is_nothing_fatal(machine: Machine) -> None:
    write(machine.workspace / "global.json", "{}")
    write(machine.workspace / ".devtools" / "addins" / "one.py", "def register(addin):\n    pass\n")

    result = machine.disco()

    assert (result.exit_code, result.json["issues"]) == (0, [])


# --- projects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["created", "renamed"])
def test_a_project_that_is_created_or_renamed_while_the_host_runs_gets_its_port(
    workspace: WorkspaceBuilder, change: str
) -> None:
    """Of the bundled Host; a proxy does it for the .NET Host."""
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    port = workspace.machine.run("start", "--host", "bundled", "--json").json["port"]
    try:
        if change == "created":
            write(workspace.root / "App.slnx", slnx(["App/App.csproj", "New/New.csproj"]))
            write(workspace.root / "New" / "New.csproj", '<Project Sdk="Uno.Sdk" />')
        else:
            os.rename(workspace.root / "App" / "App.csproj", workspace.root / "App" / "New.csproj")
            write(workspace.root / "App.slnx", slnx(["App/New.csproj"]))
        before = _other_files(workspace)
        user = workspace.root / ("New" if change == "created" else "App") / "New.csproj.user"

        wait_for(user.is_file, "the port of the new project")

        assert f"<UnoRemoteControlPort>{port}#</UnoRemoteControlPort>" in user.read_text("utf-8-sig")
        wait_for(lambda: _other_files(workspace) == before, "the end of the writing, whose temporary file is gone")
        assert "ProjectWithoutPort" not in workspace.machine.run("health", "--json").stdout
    finally:
        workspace.machine.run("stop")


def _other_files(workspace: WorkspaceBuilder) -> set[Path]:
    return {path for path in workspace.root.rglob("*") if not path.name.endswith(".csproj.user")}


def test_health_names_a_project_outside_the_solution_and_one_without_the_port(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    write(uno.root / "Other" / "Other.csproj", '<Project Sdk="Uno.Sdk" />')
    write(uno.root / "Tool" / "Tool.csproj", '<Project Sdk="Microsoft.NET.Sdk" />')
    library = "<PropertyGroup>\n  <OutputType> Library </OutputType>\n</PropertyGroup>"
    write(uno.root / "Lib" / "Lib.csproj", f'<Project Sdk="Uno.Sdk">{library}</Project>')
    uno.machine.run("start")
    (uno.root / "App" / "App.csproj.user").unlink()

    result = uno.machine.run("health", "--json")

    outside, without = result.issue("ProjectNotInSolution"), result.issue("ProjectWithoutPort")
    assert "Other.csproj" in outside["message"]
    assert "Tool.csproj" not in result.stdout
    assert "Lib.csproj" not in outside["message"], "a library connects to no Host"
    assert "dotnet sln add" in outside["remediation"]
    assert "App.csproj" in without["message"]
    uno.machine.run("start")
    assert "ProjectWithoutPort" not in uno.machine.run("health", "--json").issue_codes


def test_the_step_that_writes_a_port_works_where_two_solutions_fit(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    uno.solution("Other.slnx", ["App/App.csproj"])
    uno.machine.run("start", "--solution", "App.slnx")
    (uno.root / "App" / "App.csproj.user").unlink()

    step = uno.machine.run("health", "--json").issue("ProjectWithoutPort")["remediation"]

    command = step.removeprefix("Run ").partition(": ")[0].split()
    assert uno.machine.run(*command[1:]).exit_code == 0, step
    assert "ProjectWithoutPort" not in uno.machine.run("health", "--json").issue_codes


def test_a_start_says_which_other_host_loses_a_shared_project_and_health_names_the_host_that_has_it(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    uno.solution("Other.slnx", ["App/App.csproj"])
    first = uno.machine.run("start", "--solution", "App.slnx", "--json").json
    second = uno.machine.run("start", "--solution", "Other.slnx", "--json").json

    message = uno.machine.run("health", "--solution", "App.slnx", "--json").issue("ProjectWithoutPort")["message"]

    (taken,) = (warning for warning in second["warnings"] if "App.csproj" in warning)
    step = f"uno-devserver start --solution {uno.root / 'App.slnx'}."
    assert all(part in taken for part in ("App.slnx", f"process {first['processId']}", str(first["port"]), step))
    assert not any("App.csproj" in warning for warning in first["warnings"])
    assert all(part in message for part in ("Other.slnx", f"process {second['processId']}", str(second["port"])))
    back = uno.machine.run("start", "--solution", "App.slnx", "--json").json
    assert any("Other.slnx" in warning for warning in back["warnings"])
    assert "ProjectWithoutPort" not in uno.machine.run("health", "--solution", "App.slnx", "--json").issue_codes


# --- failed starts ---------------------------------------------------------------------------------------------------


def test_a_missing_framework_is_named_with_its_place_and_no_add_in_is_blamed(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=150, last_words=FRAMEWORK_MISSING))

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 1
    assert len(hosts.launches()) == 1, "without add-ins it would fail as well"
    error = result.json["error"]
    assert "Microsoft.AspNetCore.App 11.0.0" in error["message"]
    assert "/usr/share/dotnet" in error["message"]
    assert "Install Microsoft.AspNetCore.App 11.0.0" in error["nextStep"]


@pytest.mark.parametrize(
    ("exit_code", "last_words"),
    [
        (140, "Error:\n  An assembly specified in the application dependencies manifest (H.deps.json) was not found"),
        (147, "Invalid runtimeconfig.json [/packages/H.runtimeconfig.json]"),
        (131, "A fatal error was encountered. The library 'libhostpolicy.so' was not found"),
    ],
)
def test_a_host_that_dotnet_could_not_run_is_tried_once_and_no_add_in_is_blamed(
    uno: WorkspaceBuilder, hosts: StandInHosts, exit_code: int, last_words: str
) -> None:
    """The codes and sentences are those of a real `dotnet` whose program lacks a file."""
    hosts.behave(Manners(dies=True, exit_code=exit_code, last_words=last_words))

    result = uno.machine.run("start", "--json")

    assert len(hosts.launches()) == 1
    message = result.json["error"]["message"]
    assert f"dotnet could not run it (exit code {exit_code})" in message
    assert " ".join(last_words.removeprefix("Error:").split()) in message
    assert "Left out" not in result.stderr
    assert message in uno.machine.run("health", "--json").issue("HostNotStarted")["message"]


def test_after_a_failed_start_health_repeats_why_with_the_log_until_one_succeeds(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=134))
    failed = uno.machine.run("start", "--json").json["error"]

    issue = uno.machine.run("health", "--json").issue("HostNotStarted")

    assert failed["message"].splitlines()[0] in issue["message"]
    log = issue["remediation"].rpartition("What it printed is in ")[2].rstrip(".")
    assert "told to die" in Path(log).read_text("utf-8")
    hosts.behave(Manners())
    uno.machine.run("start")
    uno.machine.run("stop")
    assert "last start failed" not in uno.machine.run("health", "--json").stdout


def test_a_failed_start_is_forgotten_when_a_host_of_another_program_is_used(
    uno: WorkspaceBuilder, hosts: StandInHosts, rival: Rival
) -> None:
    hidden = rival.entry.rename(rival.entry.with_suffix(".hidden"))
    hosts.behave(Manners(dies=True, exit_code=134))
    assert uno.machine.run("start").exit_code == 1
    hidden.rename(rival.entry)
    rival.listen()

    used = uno.machine.run("start", "--json").json
    rival.process.terminate()
    rival.process.wait(20)

    assert (used["outcome"], used["processId"]) == ("reused", rival.process.pid)
    assert "last start failed" not in uno.machine.run("health", "--json").stdout


@pytest.mark.parametrize("becomes", ["ready before ours", "ready after ours", "dead"])
def test_a_host_that_another_program_registered_first_is_used_and_ours_ended(
    uno: WorkspaceBuilder, hosts: StandInHosts, rival: Rival, becomes: str
) -> None:
    """A .NET proxy does not know our lock, so that both start one after a crash; its Host registers, then listens."""
    go = uno.machine.root / "go-ours"
    hosts.behave(Manners(waits_for=str(go)))
    hidden = rival.entry.rename(rival.entry.with_suffix(".hidden"))  # until our start has looked for Hosts that run
    with uno.machine.spawn("start", "--json") as start:
        wait_for(lambda: len(hosts.launches()) == 2, "our Host")
        ours = hosts.launches()[1]["pid"]
        wait_for(rival.entry.with_name(entry_name(ours)).is_file, "its registration")
        hidden.rename(rival.entry)
        if becomes == "ready before ours":
            rival.listen()
            go.touch()
        else:
            with socket.create_server(("127.0.0.1", rival.port)) as early:
                early.settimeout(60)
                go.touch()
                early.accept()[0].close()  # ours is ready, and the other one is looked at
            rival.process.kill() if becomes == "dead" else rival.listen()

        answer = json.loads(start.communicate(timeout=60)[0])

    used = ours if becomes == "dead" else rival.process.pid
    assert (answer["outcome"], answer["processId"]) == ("started" if becomes == "dead" else "reused", used)
    assert is_running(ours) is (becomes == "dead")
    assert rival.entry.with_name(entry_name(ours)).exists() is (becomes == "dead")
    user = (uno.root / "App" / "App.csproj.user").read_text("utf-8-sig")
    assert f"<UnoRemoteControlPort>{answer['port']}#</UnoRemoteControlPort>" in user


def test_the_lines_for_which_scripts_wait_are_on_standard_error_with_trace(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    result = uno.machine.run("start", "--json", "-l", "Trace")

    registry = folders(uno.machine.variables()).registry
    assert f"DevServer registered: {os.path.join(registry, entry_name(result.json['processId']))}" in result.stderr
    assert f"monitor with the folder {uno.root}" in result.stderr


def test_the_sidecar_of_a_process_that_no_longer_runs_goes_at_any_reading(machine: Machine) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    sidecar = Path(folders(machine.variables()).registry) / sidecar_name(ended.pid)
    write(sidecar, json.dumps({"ProcessId": ended.pid, "WorkspaceDirectory": "/gone"}))

    machine.run("health", "--json")  # it reads, and removes no entries

    assert not sidecar.exists()


def test_list_stop_and_cleanup_work_without_an_sdk(machine: Machine) -> None:
    for command in ("list", "stop", "cleanup"):
        assert machine.run(command).exit_code == 0
