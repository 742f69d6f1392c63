"""`start` with the bundled Host: on a machine without .NET, with the workspace's own add-ins, once per workspace."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.bundled import BOTH, ask
from support.hosts import is_running
from support.machine import Machine
from support.packages import app_mcp, settings
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.system.ports import free_port
from uno_devserver.system.processes import command_line

GREETER = '''
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool
    def greet(name: str) -> str:
        """Say hello."""
        return f"Hello, {name}!"
'''

CONFIG = ".devtools/host.config.jsonc"
ADDIN = ".devtools/addins/greeter.py"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """An empty machine whose user trusts every workspace; no process is left on it when the test ends."""
    machine = Machine(tmp_path)
    machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    yield machine
    for process in _processes_of(machine):
        process.kill()


def _processes_of(machine: Machine) -> list[psutil.Process]:
    """Everything that runs for this machine, and nothing else: its folder is in their command lines."""
    return [
        process
        for process in psutil.process_iter()
        if any(str(machine.root) in word for word in command_line(process.pid)) and is_running(process.pid)
    ]


def _addins(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """When all are through; `start` waits for that, too, but only for a second."""
    wait_for(lambda: not ask(fields["port"], "GET", "/health").json["loading"], "the loading of the add-ins")
    addins: list[dict[str, Any]] = ask(fields["port"], "GET", "/health").json["addIns"]
    return addins


def _call(port: int, tool: str, arguments: dict[str, Any]) -> Any:
    """A call in the newest era, which needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": BOTH,
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return ask(port, "POST", "/mcp", json.dumps(message).encode(), headers).json["result"]


def test_without_net_the_workspaces_own_addins_are_served_and_stop_leaves_nothing(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(CONFIG, "{}").file(ADDIN, GREETER)

    started = machine.run("start", "--json")

    assert started.exit_code == 0
    fields = started.json
    assert fields["host"] == "bundled"
    assert fields["warnings"] == []
    assert started.stderr == ""
    assert fields["addIns"] == [str(workspace.root / ADDIN)]
    assert _call(fields["port"], "greet", {"name": "you"})["content"][0]["text"] == "Hello, you!"
    assert [process.pid for process in _processes_of(machine)] == [fields["processId"]]

    stopped = machine.run("stop")

    assert stopped.exit_code == 0
    assert _processes_of(machine) == []
    assert list((machine.data / "Uno Platform" / "DevServers").iterdir()) == []


def test_the_host_is_told_the_workspace_and_its_addins(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file(ADDIN, GREETER).file(".devtools/addins/pack/__init__.py", GREETER)

    fields = machine.run("start", "--json", "--metadata-updates", "true").json

    words = psutil.Process(fields["processId"]).cmdline()
    folder = workspace.root / ".devtools" / "addins"
    assert words[1:] == [
        *("-P", "-m", "uno_devserver.host"),
        *("--httpPort", str(fields["port"])),
        *("--addins", f"{folder / 'greeter.py'};{folder / 'pack'}"),
        *("--workingDir", str(workspace.root)),
        *("--metadata-updates", "true"),
    ]
    assert psutil.Process(fields["processId"]).cwd() == str(workspace.root)


def test_an_uno_workspace_without_net_gets_the_bundled_host_and_is_told_why(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.uno_6_5().project("App/App.csproj", [app_mcp(), settings()]).solution("App.slnx").file(ADDIN, GREETER)

    result = machine.run("start", "--json")

    assert result.json["host"] == "bundled"
    assert result.json["solutionPath"] == str(workspace.root / "App.slnx")
    assert any("No 'dotnet' was found" in warning for warning in result.json["warnings"])
    addins = _addins(result.json)
    assert [addin["loaded"] for addin in addins] == [True, False, False]
    assert all("only the .NET Host loads" in addin["error"] for addin in addins[1:])


def test_the_bundled_host_in_place_of_one_that_is_not_restored_is_told_with_the_cause(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    machine.install_dotnet()
    workspace.global_json({"Uno.Sdk": "6.5.31"}).project("App/App.csproj", restored=False).solution("App.slnx")

    first, again = (machine.run("start", "--json").json for _ in range(2))

    assert first["host"] == "bundled"
    assert any("so the bundled Host is used" in warning for warning in first["warnings"])
    assert any("Uno.Sdk 6.5.31 was not found" in warning for warning in first["warnings"])
    assert again["warnings"] == [], "nothing was chosen"


def test_the_bundled_host_is_not_sent_to_msbuild_for_addins_that_it_could_not_load(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"}).project("App/App.csproj", restored=False).solution("App.slnx")

    fields = machine.run("start", "--json").json

    words = psutil.Process(fields["processId"]).cmdline()
    assert words[words.index("--addins") + 1] == ";"


def test_the_bundled_host_can_be_chosen_where_there_is_net(workspace: WorkspaceBuilder, machine: Machine) -> None:
    machine.install_dotnet()
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")

    result = machine.run("start", "--host", "bundled", "--addins", ";", "--json")

    assert result.json["host"] == "bundled"
    assert result.json["warnings"] == []


def test_a_solution_that_is_not_about_uno_can_be_served(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.project("Lib/Lib.csproj", restored=False, sdk="Microsoft.NET.Sdk").solution("Plain.sln")

    result = machine.run("start", "--solution", "Plain.sln", "--json")

    assert (result.json["host"], result.json["solutionPath"]) == ("bundled", str(workspace.root / "Plain.sln"))
    [warning] = result.json["warnings"]
    assert "Plain.sln (no global.json beside it or above it)" in warning
    assert (workspace.root / "Lib/Lib.csproj.user").exists()


@pytest.mark.parametrize("addin", [False, True], ids=["plain", "with-addin"])
def test_with_a_broken_global_json_it_is_told_that_no_app_finds_the_host(
    workspace: WorkspaceBuilder, machine: Machine, addin: bool
) -> None:
    workspace.file("global.json", '{"msbuild-sdks": {').project("App/App.csproj", restored=False).solution("App.slnx")
    if addin:
        workspace.file(ADDIN, GREETER)

    result = machine.run("start", "--json")

    assert result.exit_code == 0
    assert not (workspace.root / "App" / "App.csproj.user").exists()
    assert any("global.json" in warning and "Make it a readable file" in warning for warning in result.json["warnings"])
    assert any(warning.startswith("No app finds this Host") for warning in result.json["warnings"])


def test_a_bare_folder_gets_a_host_too(machine: Machine) -> None:
    result = machine.run("start", "--json", cwd=machine.home)

    assert result.exit_code == 0
    assert (result.json["host"], result.json["solutionPath"]) == ("bundled", None)
    assert result.json["workspaceDirectory"] == str(machine.home)
    again = machine.run("start", "--json", cwd=machine.home)
    assert (again.json["outcome"], again.json["processId"]) == ("reused", result.json["processId"])


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ('{"mcpServer": ', "1:15: this is not valid JSON: Expecting value. Correct the file (comments and"),
        (
            '{"proxy": {"waitCalls": 1}}',
            "1:25: proxy.waitCalls: it must be true or false. Correct the file; until then",
        ),
    ],
)
def test_what_is_wrong_with_the_config_is_told_by_each_start(
    workspace: WorkspaceBuilder, machine: Machine, config: str, told: str
) -> None:
    path = workspace.root / CONFIG
    workspace.file(CONFIG, config)

    for outcome in ("started", "reused"):
        result = machine.run("start", "--json")

        assert (result.exit_code, result.json["outcome"]) == (0, outcome)
        assert f"warn: {path}:{told}" in result.stderr
        assert any(told in warning for warning in result.json["warnings"])


def test_a_host_that_was_started_by_hand_is_the_one_of_its_folder(machine: Machine) -> None:
    host = machine.spawn("host", "--httpPort", "0", cwd=machine.home)
    registry = machine.data / "Uno Platform" / "DevServers"
    wait_for(lambda: (registry / f"devserver-{host.pid}.json").exists(), "the registration")

    found = machine.run("start", "--json", cwd=machine.home)
    stopped = machine.run("stop", cwd=machine.home)

    host.communicate(timeout=20)
    assert (found.json["outcome"], found.json["processId"]) == ("reused", host.pid)
    assert "Successfully stopped 1 DevServer(s)" in stopped.stdout
    assert list(registry.iterdir()) == []


def test_a_workspace_whose_folder_has_a_semicolon_keeps_its_addins(machine: Machine) -> None:
    workspace = WorkspaceBuilder(machine, "a;b c").file(CONFIG, "{}").file(ADDIN, GREETER)

    result = machine.run("start", "--json", cwd=workspace.root)

    assert result.json["warnings"] == []
    assert [addin["loaded"] for addin in _addins(result.json)] == [True]


def test_a_broken_addin_does_not_prevent_the_start(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file(ADDIN, "raise RuntimeError('not today')")

    result = machine.run("start", "--json")

    assert result.exit_code == 0
    assert result.json["safeMode"] is False
    assert "not today" in _addins(result.json)[0]["error"]


def test_a_module_of_the_workspace_is_not_taken_for_pythons_own(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}").file("asyncio.py", "raise SystemExit('code of the workspace ran')")

    assert machine.run("start").exit_code == 0


def test_a_flag_that_the_host_refuses_is_told_in_its_words(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")

    result = machine.run("start", "--addins", ";", "--workingDir", "nowhere")

    assert result.exit_code == 1
    assert "The value 'nowhere' of --workingDir cannot be used" in result.stderr
    assert _processes_of(machine) == []


def test_a_killed_host_is_forgotten_and_replaced(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")
    first = machine.run("start", "--json").json
    os.kill(first["processId"], signal.SIGKILL)
    wait_for(lambda: not is_running(first["processId"]), "the end of the Host")

    listed, found, second = machine.run("list"), machine.disco(), machine.run("start", "--json").json

    assert str(first["processId"]) not in listed.stdout
    assert found.json["activeServers"] == []
    assert second["outcome"] == "started"
    assert [process.pid for process in _processes_of(machine)] == [second["processId"]]


def test_the_running_host_is_bound_to_the_channel_of_an_ide(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")
    first = machine.run("start", "--json").json

    second = machine.run("start", "--ideChannel", "c1", "--json")

    assert (second.exit_code, second.json["outcome"]) == (0, "rebound")
    entry = machine.data / "Uno Platform" / "DevServers" / f"devserver-{first['processId']}.json"
    assert json.loads(entry.read_text())["IdeChannelId"] == "c1"


def test_of_two_starts_at_the_same_moment_one_launches_and_the_other_finds_it(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(CONFIG, "{}")
    for _ in range(20):
        both = [machine.spawn("start", "--json"), machine.spawn("start", "--json")]
        answers = [json.loads(process.communicate(timeout=60)[0]) for process in both]

        assert [process.returncode for process in both] == [0, 0]
        assert sorted(answer["outcome"] for answer in answers) == ["reused", "started"]
        pid = answers[0]["processId"]
        assert [process.pid for process in _processes_of(machine)] == [pid]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not _processes_of(machine), "the end of the Host")


# --- a workspace by its add-ins alone ------------------------------------------------------------------------------


def test_a_folder_of_addins_is_a_workspace_for_every_command_and_from_below(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(ADDIN, GREETER).file("src/deep/readme.txt", "")
    below = workspace.root / "src" / "deep"

    started = machine.run("start", "--json", cwd=below).json
    again = machine.run("start", "--json").json
    health, found = (machine.run(command, "--json", cwd=below) for command in ("health", "disco"))

    assert (started["workspaceDirectory"], started["addIns"]) == (str(workspace.root), [str(workspace.root / ADDIN)])
    assert (again["outcome"], again["processId"]) == ("reused", started["processId"])
    assert (health.exit_code, health.json["hostProcessId"]) == (0, started["processId"])
    assert (found.exit_code, found.json["configPath"], found.json["errors"]) == (0, None, [])
    assert found.json["effectiveWorkspaceDirectory"] == str(workspace.root)
    assert found.json["activeServer"]["processId"] == started["processId"]


def test_addins_beside_several_uno_solutions_leave_the_choice_to_the_user(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.uno_6_5().project("A/A.csproj").solution("A.slnx").solution("B.slnx").file(ADDIN, GREETER)

    result = machine.run("disco", "--json", "--solution", "B.slnx")

    assert result.json["selectedSolutionPath"] == str(workspace.root / "B.slnx")


# --- what is said of add-ins ---------------------------------------------------------------------------------------


def test_a_broken_addin_is_told_at_once_with_its_reason(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, GREETER).file(".devtools/addins/broken.py", "raise RuntimeError('not today')")

    result = machine.run("start")

    assert result.exit_code == 0
    assert "  addIns: 1 of 2 loaded" in result.stdout.splitlines()
    assert "The add-in broken was not loaded: RuntimeError: not today (" in result.stderr
    assert result.stderr.count("broken.py") == 1, "the path stands once"
    assert "Run 'uno-devserver health'" in result.stderr


def test_an_addin_that_takes_its_time_is_not_waited_for(
    workspace: WorkspaceBuilder, machine: Machine, tmp_path: Path
) -> None:
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
    workspace.file(ADDIN, wait + GREETER)

    result = machine.run("start")

    (tmp_path / "go").touch()
    assert "  addIns: 0 of 1 loaded, still loading" in result.stdout.splitlines()


def test_an_addin_that_ends_the_host_is_left_out_also_when_the_host_had_answered_already(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(ADDIN, "import os\nos._exit(3)")

    started = machine.run("start", "--json").json
    health = machine.run("health", "--json")

    assert (started["safeMode"], started["addIns"]) == (True, [])
    assert [process.pid for process in _processes_of(machine)] == [started["processId"]]
    assert (health.exit_code, health.issue_codes) == (1, ["AddInsLeftOut"])
    assert str(workspace.root / ADDIN) in health.issue("AddInsLeftOut")["message"]


# --- the port ------------------------------------------------------------------------------------------------------


def test_a_workspace_gets_its_port_again(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")
    first = machine.run("start", "--json").json
    machine.run("stop")

    second = machine.run("start", "--json").json

    assert second["port"] == first["port"]
    assert second["processId"] != first["processId"]


def test_a_port_that_is_taken_meanwhile_is_replaced_and_the_new_one_is_kept(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(CONFIG, "{}")
    first = machine.run("start", "--json").json
    machine.run("stop")
    with socket.create_server(("127.0.0.1", first["port"])):
        second = machine.run("start", "--json")
    machine.run("stop")

    third = machine.run("start", "--json").json

    assert (second.exit_code, second.json["warnings"]) == (0, [])
    assert second.json["port"] != first["port"]
    assert third["port"] == second.json["port"]


def test_a_port_that_was_asked_for_is_remembered_too(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")
    port = free_port()
    assert machine.run("start", "--httpPort", str(port)).exit_code == 0
    machine.run("stop")

    assert machine.run("start", "--json").json["port"] == port


# --- restart -------------------------------------------------------------------------------------------------------


def test_a_restart_loads_what_was_edited_and_keeps_the_port(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, GREETER)
    first = machine.run("start", "--json").json
    workspace.file(ADDIN, GREETER.replace("Hello", "Good morning"))

    second = machine.run("start", "--restart", "--json").json

    assert (second["outcome"], second["port"]) == ("started", first["port"])
    assert [process.pid for process in _processes_of(machine)] == [second["processId"]]
    assert _call(second["port"], "greet", {"name": "you"})["content"][0]["text"] == "Good morning, you!"


def test_a_restart_where_nothing_runs_is_a_start(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(CONFIG, "{}")

    assert machine.run("start", "--restart", "--json").json["outcome"] == "started"


def test_whoever_starts_a_server_with_addins_is_told_of_hot_reload(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(ADDIN, GREETER).file(".devtools/addins/_part.py", "")

    first, second = machine.run("start"), machine.run("start")

    told = f"Hot reload: 2 source files in {Path('.devtools/addins')}; edits take effect at the next call of a tool"
    assert (told in first.stdout, told in second.stdout) == (True, True)
    assert second.stderr == ""


def test_where_hot_reload_is_off_whoever_meets_a_running_server_is_told_of_restart(
    workspace: WorkspaceBuilder, machine: Machine
) -> None:
    workspace.file(ADDIN, GREETER).file(".devtools/host.config.jsonc", '{"hotReload": {"enabled": false}}')

    first, second = machine.run("start"), machine.run("start")

    for hint in ("use --restart", "'uno-devserver stop': the proxy starts it again"):
        assert (hint in first.stdout, hint in second.stdout) == (False, True)
    assert "Hot reload" not in first.stdout + second.stdout


# --- flags that the Host refuses -----------------------------------------------------------------------------------


def test_a_refused_flag_is_not_blamed_on_the_addins(workspace: WorkspaceBuilder, machine: Machine) -> None:
    workspace.file(ADDIN, GREETER)

    result = machine.run("start", "--bind", "300.1.1.1", "--json")

    assert result.exit_code == 1
    assert "'300.1.1.1' is no address of this machine" in result.json["error"]["message"]
    assert result.json["error"]["nextStep"] == "Choose another --httpPort or --bind."
    assert "without add-ins" not in result.stderr
    assert _processes_of(machine) == []


@pytest.mark.parametrize(("address", "open_to_all"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_whoever_opens_the_host_to_the_network_is_warned(
    workspace: WorkspaceBuilder, machine: Machine, address: str, open_to_all: bool
) -> None:
    workspace.file(CONFIG, "{}")

    result = machine.run("start", "--bind", address, "--json")

    assert result.exit_code == 0
    words = psutil.Process(result.json["processId"]).cmdline()
    assert words[-2:] == ["--bind", address]
    assert [("without authentication" in warning) for warning in result.json["warnings"]] == [True] * open_to_all
