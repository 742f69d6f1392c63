"""`stop`: this workspace's servers, one by its process id, or all of this user; never anything else."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support.files import write
from support.golden import GOLDEN
from support.machine import WINDOWS, Machine
from support.servers import IGNORES_SIGTERM, Processes, Registry, StandIn, an_hour_ago
from uno_devserver.system.processes import process_started

UNO = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'

STOPPED = signal.SIGTERM if WINDOWS else -signal.SIGTERM  # the exit code of a process that was told to end


class Workspaces:
    """Workspaces of one machine, with servers."""

    def __init__(self, machine: Machine, registry: Registry, processes: Processes) -> None:
        self._machine = machine
        self._registry = registry
        self._processes = processes

    def add(self, name: str) -> Path:
        folder = self._machine.root / "repos" / name
        write(folder / "global.json", UNO)
        write(folder / f"{name}.slnx", "<Solution />")
        return folder

    def server(self, folder: Path, code: str = "", port: int = 5611) -> StandIn:
        """A running server of the workspace's solution."""
        server = self._processes.start(code) if code else self._processes.start()
        self._registry.sign_in(server.pid, port=port, solution=str(folder / f"{folder.name}.slnx"))
        return server


@pytest.fixture
def workspaces(machine: Machine, registry: Registry, processes: Processes) -> Workspaces:
    return Workspaces(machine, registry, processes)


def recorded(name: str) -> list[str]:
    """What the .NET tool printed, without the line about its own start."""
    lines = json.loads((GOLDEN / "host" / "controller" / f"{name}.json").read_bytes())["stdout"].splitlines()
    return [str(line) for line in lines[1:]]


# --- this workspace -----------------------------------------------------------------------------------------------


def test_without_servers_it_says_so(machine: Machine) -> None:
    result = machine.run("stop")

    assert (result.exit_code, result.stdout.splitlines(), result.stderr) == (0, recorded("zero-stop"), "")


def test_only_the_workspaces_server_is_stopped(machine: Machine, registry: Registry, workspaces: Workspaces) -> None:
    """The .NET tool stops every server, of every solution and user."""
    app, lib = workspaces.add("app"), workspaces.add("lib")
    mine, other = workspaces.server(app), workspaces.server(lib, port=5612)

    result = machine.run("stop", cwd=app)

    expected = [line.replace("{HOSTPID}", str(mine.pid)) for line in recorded("one-stop")]
    assert (result.exit_code, result.stdout.splitlines()) == (0, expected)
    assert mine.exit_code() == STOPPED
    assert other.runs
    assert registry.names() == [f"devserver-{other.pid}.json"]


def test_the_workspace_can_be_named(machine: Machine, workspaces: Workspaces) -> None:
    app = workspaces.add("app")
    server = workspaces.server(app)

    assert machine.run("stop", "--solution-dir", str(app)).exit_code == 0
    assert server.exit_code() == STOPPED


def test_a_server_without_a_solution_belongs_to_a_folder(
    machine: Machine, registry: Registry, processes: Processes
) -> None:
    """No Uno workspace and no .NET is needed."""
    mine, other = processes.start(), processes.start()
    registry.sign_in(mine.pid, workspace=machine.workspace)
    registry.sign_in(other.pid, workspace=machine.home)

    assert machine.run("stop", cwd=machine.workspace).exit_code == 0

    assert mine.exit_code() == STOPPED
    assert other.runs


def test_elsewhere_nothing_is_stopped_and_the_others_are_named(machine: Machine, workspaces: Workspaces) -> None:
    app = workspaces.add("app")
    server = workspaces.server(app)

    result = machine.run("stop")

    first, hint = result.stdout.splitlines()
    assert (result.exit_code, first) == (0, "No active DevServers found to stop.")
    assert hint == (
        f"These run elsewhere: PID {server.pid} on port 5611 ({app / 'app.slnx'}). "
        "Stop one with --pid, or all with --all."
    )
    assert server.runs


def test_all_servers_of_the_workspace_are_stopped(
    machine: Machine, registry: Registry, workspaces: Workspaces, processes: Processes
) -> None:
    app = workspaces.add("app")
    second = processes.start()
    registry.sign_in(second.pid, port=5612, solution=str(write(app / "tools" / "Tools.slnx", "<Solution />")))
    first = workspaces.server(app)

    result = machine.run("stop", cwd=app)

    assert result.stdout.endswith("Successfully stopped 2 DevServer(s)\n")
    assert (first.exit_code(), second.exit_code()) == (STOPPED, STOPPED)


def test_above_several_workspaces_it_does_not_guess(machine: Machine, workspaces: Workspaces) -> None:
    servers = [workspaces.server(workspaces.add(name)) for name in ("app", "lib")]

    result = machine.run("stop", "--json", cwd=machine.root / "repos")

    assert (result.exit_code, result.json["error"]["code"]) == (1, "WorkspaceAmbiguous")
    assert all(f"PID {server.pid} on port" in result.json["error"]["message"] for server in servers)
    assert all(server.runs for server in servers)


# --- all, and one -------------------------------------------------------------------------------------------------


def test_all_servers_of_this_user_are_stopped(machine: Machine, registry: Registry, workspaces: Workspaces) -> None:
    first, second = sorted(
        (workspaces.server(workspaces.add(name)) for name in ("app", "lib")), key=lambda server: server.pid
    )
    foreign = registry.sign_in(os.getpid(), user="someone")

    result = machine.run("stop", "--all")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Stopping DevServer with PID {first.pid} on port 5611...",
        f"Stopping DevServer with PID {second.pid} on port 5611...",
        "Successfully stopped 2 DevServer(s)",
    ]
    assert (first.exit_code(), second.exit_code()) == (STOPPED, STOPPED)
    assert registry.names() == [f"devserver-{foreign.process_id}.json"]


def test_one_server_is_stopped_by_its_process_id_from_anywhere(machine: Machine, workspaces: Workspaces) -> None:
    mine, other = workspaces.server(workspaces.add("app")), workspaces.server(workspaces.add("lib"))

    result = machine.run("stop", "--pid", str(mine.pid), "--json")

    assert result.json == {
        "results": [
            {
                "processId": mine.pid,
                "port": 5611,
                "solutionPath": str(machine.root / "repos" / "app" / "app.slnx"),
                "workspaceDirectory": None,
                "stopped": True,
                "killed": False,
                "error": None,
                "startedAgainBy": [],
            }
        ],
        "otherProcessIds": [other.pid],
    }
    assert mine.exit_code() == STOPPED
    assert other.runs


def test_a_process_that_is_no_server_is_not_stopped(machine: Machine, processes: Processes) -> None:
    stranger = processes.start()

    result = machine.run("stop", "--pid", str(stranger.pid))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: No server with PID {stranger.pid} is registered; nothing was stopped.\n")
    assert stranger.runs


def test_a_process_that_reuses_an_id_is_not_stopped(machine: Machine, registry: Registry, processes: Processes) -> None:
    stranger = processes.start()
    registry.sign_in(stranger.pid, started=an_hour_ago(), workspace=machine.workspace)

    by_id = machine.run("stop", "--pid", str(stranger.pid))
    registry.sign_in(stranger.pid, started=an_hour_ago(), workspace=machine.workspace)
    all_of_them = machine.run("stop", "--all")

    assert (by_id.exit_code, all_of_them.exit_code) == (1, 0)
    assert stranger.runs
    assert registry.names() == []


def test_a_server_of_another_user_is_not_stopped(machine: Machine, registry: Registry, processes: Processes) -> None:
    server = processes.start()
    registry.sign_in(server.pid, user="someone", machine="other")

    result = machine.run("stop", "--pid", str(server.pid))

    assert result.exit_code == 1
    assert "belongs to user 'someone' on machine 'other'" in result.stderr
    assert server.runs
    assert registry.names() == [f"devserver-{server.pid}.json"]


@pytest.mark.parametrize("pid", ["abc", "-1", "1.5", "0x10", "²", "9" * 5000])
def test_what_is_no_process_id_is_refused(machine: Machine, pid: str) -> None:
    result = machine.run("stop", f"--pid={pid}", "--json")

    assert (result.exit_code, result.json["error"]["code"]) == (2, "BadValue")


def test_the_server_of_a_solution_is_stopped_from_anywhere(machine: Machine, workspaces: Workspaces) -> None:
    first, second = workspaces.add("one"), workspaces.add("two")
    servers = [workspaces.server(first), workspaces.server(second, port=5612)]

    result = machine.run("stop", "--solution", "two/../two/two.slnx", cwd=first.parent)

    assert (result.exit_code, [server.runs for server in servers]) == (0, [True, False])


def test_a_solution_without_a_server_stops_nothing(machine: Machine, workspaces: Workspaces) -> None:
    folder = workspaces.add("one")
    server = workspaces.server(folder)

    result = machine.run("stop", "--solution", "other.slnx", cwd=folder)

    assert (result.exit_code, server.runs) == (0, True)
    assert result.stdout.startswith("No active DevServers found to stop.")


@pytest.mark.parametrize("choices", ["--solution a.slnx --all", "--solution a.slnx --pid 5", "--all --pid 1"])
def test_two_choices_contradict_each_other(machine: Machine, choices: str) -> None:
    result = machine.run("stop", "--json", *choices.split())

    assert (result.exit_code, result.json["error"]["code"]) == (2, "BadValue")


def test_a_proxy_that_is_the_parent_starts_it_again(machine: Machine, registry: Registry, processes: Processes) -> None:
    """Its status names the Host when that is connected, and not before."""
    proxy, host = processes.start(), processes.start()
    status = {"processId": proxy.pid, "created": process_started(proxy.pid), "state": "Initializing"}
    write(machine.state / "proxies" / f"{proxy.pid}.json", json.dumps(status))
    registry.sign_in(host.pid, workspace=machine.workspace, parent_process_id=proxy.pid)

    [result] = machine.run("stop", "--json").json["results"]

    assert result["startedAgainBy"] == [{"processId": proxy.pid, "clients": None}]


# --- servers that misbehave ---------------------------------------------------------------------------------------


def test_a_server_that_ignores_sigterm_is_killed(machine: Machine, registry: Registry, workspaces: Workspaces) -> None:
    app = workspaces.add("app")
    server = workspaces.server(app, IGNORES_SIGTERM)

    result = machine.run("stop", cwd=app, timeout=30)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Stopping DevServer with PID {server.pid} on port 5611...",
        f"DevServer with PID {server.pid} did not end when it was asked to, and was killed.",
        "Successfully stopped 1 DevServer(s)",
    ]
    assert server.exit_code() == -signal.SIGKILL
    assert registry.names() == []


def test_a_zombie_does_not_hold_up_the_command(machine: Machine, registry: Registry, processes: Processes) -> None:
    """The .NET tool waits for it without end; here its parent, this test, asks only after the command."""
    server = processes.start()
    registry.sign_in(server.pid, workspace=machine.workspace)

    result = machine.run("stop")

    assert result.stdout.endswith("Successfully stopped 1 DevServer(s)\n")
    assert registry.names() == []
    assert server.exit_code() == STOPPED


def test_an_entry_that_names_the_first_process_stops_nothing(machine: Machine, registry: Registry) -> None:
    registry.sign_in(1)

    result = machine.run("stop", "--all")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "fail: Error stopping DevServer with PID 1: process 1 is not one to stop",
        "fail: Failed to stop 1 DevServer(s)",
    ]
