"""`list`: every registered server, as the .NET tool prints it and with what that tool does not tell."""

from __future__ import annotations

import json
import os
import re

from support.files import write
from support.golden import GOLDEN
from support.machine import Machine
from support.servers import Processes, Registry, an_hour_ago
from uno_devserver.instances.registry import write_sidecar
from uno_devserver.system.processes import machine_name, process_started, user_name

CONTROLLER = GOLDEN / "host" / "controller"


# --- text ---------------------------------------------------------------------------------------------------------


def test_without_servers_it_says_so(machine: Machine, registry: Registry) -> None:
    result = machine.run("list")

    assert (result.exit_code, result.stderr) == (0, "")
    assert lines(result.stdout) == theirs("zero-list")
    assert not registry.folder.exists(), "looking leaves nothing behind"


def test_a_server_is_listed_with_the_recorded_lines(machine: Machine, registry: Registry, processes: Processes) -> None:
    server, parent = processes.start(), processes.start()
    solution = machine.workspace / "App.sln"
    started = "2099-11-15T08:16:13.9Z"
    registry.sign_in(server.pid, parent_process_id=parent.pid, solution=str(solution), started=started)

    result = machine.run("list", cwd=machine.root)

    name = "python"
    expected = [
        line.replace("{HOSTPID} (dotnet)", f"{server.pid} ({name})")
        .replace("{PPID} (python3)", f"{parent.pid} ({name})")
        .replace("{DIR}", str(machine.workspace))
        .replace("{MACHINE}", machine_name())
        .replace("{USER}", user_name())
        .replace("2026-", "2099-")
        for line in theirs("one-list")
        if "Process Chain" not in line
    ]
    printed = re.sub(r"\(python[\d.]*(\.exe)?\)", f"({name})", result.stdout)
    assert [line for line in lines(printed) if line in expected] == expected
    assert re.search(rf"  Process Chain: .* → python\S* \({parent.pid}\) → python\S* \({server.pid}\)\n", result.stdout)


def test_what_scripts_search_for_is_there(machine: Machine, registry: Registry, processes: Processes) -> None:
    registry.sign_in(processes.start().pid, port=53821, solution=str(machine.workspace / "App.sln"))

    output = machine.run("list").stdout

    assert re.search(r"Port\s*:\s*53821", output)
    assert str(machine.workspace) in output


def test_a_server_without_parent_and_solution_says_so(
    machine: Machine, registry: Registry, processes: Processes
) -> None:
    """The .NET tool names a process for the parent 0."""
    registry.sign_in(processes.start().pid)

    printed = lines(machine.run("list").stdout)

    assert "  Parent PID: <none>" in printed
    assert "  Solution: N/A" in printed
    assert "  Workspace: N/A" in printed
    assert "  IDE Channel: <none>" in printed


def test_servers_are_sorted_by_process_id(machine: Machine, registry: Registry, processes: Processes) -> None:
    pids = sorted(processes.start().pid for _ in range(3))
    for port, pid in enumerate(reversed(pids), start=5000):
        registry.sign_in(pid, port=port)

    output = machine.run("list").stdout

    assert [int(pid) for pid in re.findall(r"^Process ID: (\d+)", output, re.MULTILINE)] == pids
    assert output.endswith("\nTotal active DevServers: 3\n")


def test_the_workspaces_server_is_marked(machine: Machine, registry: Registry, processes: Processes) -> None:
    mine, other = processes.start().pid, processes.start().pid
    registry.sign_in(mine, workspace=machine.workspace)
    registry.sign_in(other, workspace=machine.home)

    here, there = machine.run("list"), machine.run("list", "--solution-dir", str(machine.home))

    assert marked(here.stdout) == [mine]
    assert marked(there.stdout) == [other]


def test_control_characters_of_an_entry_are_escaped(machine: Machine, registry: Registry, processes: Processes) -> None:
    registry.sign_in(processes.start().pid, solution="/src/\x1b[2J\x07.sln", ide_channel="\x9b31m")

    output = machine.run("list").stdout

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output)


# --- JSON ---------------------------------------------------------------------------------------------------------


def test_json_has_the_fields_of_disco_and_more(machine: Machine, registry: Registry, processes: Processes) -> None:
    server = processes.start()
    solution = str(machine.workspace / "App.sln")
    entry = registry.sign_in(server.pid, port=53821, solution=solution, workspace=machine.workspace)

    (listed,) = machine.run("list", "--json").json["servers"]

    chain = listed.pop("processChain")
    expected = {
        "processId": server.pid,
        "port": 53821,
        "mcpEndpoint": "http://localhost:53821/mcp",
        "parentProcessId": 0,
        "startTime": entry.started,
        "ideChannelId": None,
        "solutionPath": solution,
        "isInWorkspace": True,
        "workspaceDirectory": str(machine.workspace),
        "leftOutAddIns": None,
        "hostKind": None,
        "controlChannel": None,
        "machineName": machine_name(),
        "userName": user_name(),
        "foreign": False,
    }
    assert list(listed.items()) == list(expected.items())
    assert [link["processId"] for link in chain[:2]] == [server.pid, os.getpid()]


def test_a_server_names_its_control_channel(machine: Machine, registry: Registry, processes: Processes) -> None:
    server = processes.start()
    registry.sign_in(server.pid)
    write_sidecar(str(registry), server.pid, ide_channel=None, control_channel="/tmp/CoreFxPipe_uno-1")

    text, data = machine.run("list").stdout, machine.run("list", "--json").json

    assert "  Control Channel: /tmp/CoreFxPipe_uno-1" in lines(text)
    assert data["servers"][0]["controlChannel"] == "/tmp/CoreFxPipe_uno-1"


def test_json_without_servers_is_an_empty_list(machine: Machine) -> None:
    assert machine.run("list", "--json").json == {"servers": [], "proxies": []}


# --- stale, foreign and broken entries ----------------------------------------------------------------------------


def test_the_entry_of_a_killed_server_is_removed(machine: Machine, registry: Registry, processes: Processes) -> None:
    server = processes.start()
    registry.sign_in(server.pid, solution=str(machine.workspace / "App.sln"), workspace=machine.workspace)
    (machine.workspace / "App.sln").write_text("Microsoft Visual Studio Solution File\n")
    (machine.workspace / "global.json").write_text('{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')
    assert [one["processId"] for one in machine.disco().json["activeServers"]] == [server.pid]

    server.kill()

    assert machine.disco().json["activeServers"] == []
    assert machine.run("list", "--json").json == {"servers": [], "proxies": []}
    assert registry.names() == []


def test_a_reused_process_id_is_no_server(machine: Machine, registry: Registry, processes: Processes) -> None:
    stranger = processes.start()
    registry.sign_in(stranger.pid, started=an_hour_ago())

    assert machine.run("list", "--json").json == {"servers": [], "proxies": []}
    assert stranger.runs


def test_a_server_of_another_machine_or_user_is_shown_as_such(machine: Machine, registry: Registry) -> None:
    """As recorded, but for the local process that the .NET tool takes for it."""
    recorded = json.loads((GOLDEN / "host" / "registry" / "foreign-machine-list.json").read_bytes())
    for name, content in recorded["files"].items():
        registry.file(name, content)

    text, data = machine.run("list"), machine.run("list", "--json").json

    assert lines(text.stdout)[1] == "Process ID: 1 [another machine or user]"
    for line in ("  Port: 77", "  Solution: N/A", "  Machine: other-machine", "  User: someone"):
        assert line in lines(recorded["list"]["stdout"])
        assert line in lines(text.stdout)
    (listed,) = data["servers"]
    assert (listed["foreign"], listed["isInWorkspace"], listed["processChain"]) == (True, False, [])
    assert registry.names() == sorted(recorded["files"])


def test_garbage_does_not_hide_a_server(machine: Machine, registry: Registry, processes: Processes) -> None:
    server = registry.sign_in(processes.start().pid)
    registry.file("devserver-1.json", "not json")
    registry.file("devserver-2.aux.json", "\0")

    result = machine.run("list", "--json")

    assert [one["processId"] for one in result.json["servers"]] == [server.process_id]
    assert result.stderr == ""


def test_it_works_in_a_folder_that_is_gone(machine: Machine, registry: Registry, processes: Processes) -> None:
    gone = machine.root / "gone"
    gone.mkdir()
    registry.sign_in(processes.start().pid)
    leave = ["/bin/sh", "-c", 'cd "$1" && /bin/rmdir "$1" && shift && exec "$@"', "sh", str(gone)]

    result = machine.run("list", prefix=leave)

    assert (result.exit_code, marked(result.stdout)) == (0, [])
    assert "Total active DevServers: 1" in result.stdout


def lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line]


def theirs(name: str) -> list[str]:
    """What the .NET tool printed, without the line about its own start."""
    recorded = json.loads((CONTROLLER / f"{name}.json").read_bytes())
    return lines(recorded["stdout"])[1:]


def marked(output: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"^Process ID: (\d+).* \[workspace\]$", output, re.MULTILINE)]


# --- proxies ------------------------------------------------------------------------------------------------------


def test_running_proxies_are_listed_with_their_inspectors(machine: Machine, processes: Processes) -> None:
    url, token = "http://localhost:6274/", "t" * 32
    one, other = sorted((processes.start().pid, processes.start().pid))
    told = {"state": "Connected", "status": "Healthy", "directory": "/src/app", "solution": "/src/app/App.sln"}
    page = {"inspector": url, "inspectorToken": token}
    keep_status(machine, one, {**told, "clients": ["claude-code"], **page, "toolCount": 7})
    keep_status(machine, other, {**told, "clients": [], "solution": None})

    as_json, text = machine.run("list", "--json").json, machine.run("list").stdout

    assert as_json["proxies"] == [
        {"processId": one, **told, "clients": ["claude-code"], "inspector": url},
        {"processId": other, **told, "solution": None, "clients": [], "inspector": None},
    ]
    assert f"Proxy: process {one}\n  State: Connected (Healthy)\n  Workspace: /src/app\n" in text
    assert f"  Clients: claude-code\n  Inspector: {url}\n" in text
    assert f"Proxy: process {other}\n" in text
    assert token not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_proxy_that_has_ended_is_not_listed(machine: Machine, processes: Processes) -> None:
    ended = processes.start()
    keep_status(machine, ended.pid, {"state": "Connected"})
    ended.kill()

    assert machine.run("list", "--json").json["proxies"] == []


def keep_status(machine: Machine, pid: int, status: dict[str, object]) -> None:
    """As a proxy of that process would."""
    path = machine.data / "Uno Platform" / "uno.devserver" / "proxies" / f"{pid}.json"
    write(path, json.dumps({**status, "processId": pid, "created": process_started(pid)}))
