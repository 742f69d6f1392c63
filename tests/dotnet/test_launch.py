"""`start`, `list` and `stop` with a Host in C# that real .NET runs: what reaches it, and what is read of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dotnet.conftest import Launches
from dotnet.sdk import PATIENCE, Client
from support.files import write
from support.hosts import is_running
from support.machine import Machine, Result
from support.packages import app_mcp, settings
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder


@pytest.fixture
def uno(net_workspace: WorkspaceBuilder) -> WorkspaceBuilder:
    return net_workspace.uno_6_5().project("src/App/App.csproj", [app_mcp(), settings()]).solution("My App.slnx")


def _start(uno: WorkspaceBuilder, launches: Launches, *options: str) -> Result:
    command = ("start", "--json", "--host", launches.dll, *options)
    result = uno.machine.run(*command, cwd=uno.root, timeout=PATIENCE)
    assert result.exit_code == 0, result
    return result


def _listed(machine: Machine) -> list[int]:
    return [server["processId"] for server in machine.run("list", "--json").json["servers"]]


def test_every_argument_reaches_the_host_as_it_was_meant(uno: WorkspaceBuilder, launches: Launches) -> None:
    me = str(os.getpid())
    started = _start(uno, launches, "--ppid", me, "--ideChannel", "a;b ü", "--metadata-updates", "true").json

    [launch] = launches.all()
    solution = str(uno.root / "My App.slnx")
    mcp = app_mcp().dll(uno.machine.nuget, "Uno.UI.App.Mcp.Server.dll")
    addins = ";".join([settings().dll(uno.machine.nuget), mcp])
    assert launch["arguments"] == [
        *("--httpPort", str(started["port"])),
        *("--ppid", me),
        *("--solution", solution),
        *("--ideChannel", "a;b ü"),
        *("--addins", addins),
        *("--metadata-updates", "true"),
    ]
    assert launch["flags"] == {
        "httpport": str(started["port"]),
        "ppid": me,
        "solution": solution,
        "idechannel": "a;b ü",
        "addins": addins,
        "metadata-updates": "true",
    }
    assert launch["folder"] == str(uno.root)
    assert launch["pid"] == started["processId"]


@pytest.mark.parametrize("given", ["", ";"])
def test_no_addins_is_a_value_that_dotnet_keeps(uno: WorkspaceBuilder, launches: Launches, given: str) -> None:
    _start(uno, launches, "--addins", given)

    [launch] = launches.all()
    assert launch["flags"]["addins"] == ";"


def test_an_addin_in_a_folder_with_blanks_and_umlauts_is_found_by_the_host(
    uno: WorkspaceBuilder, launches: Launches
) -> None:
    dll = write(uno.machine.root / "Größe 1 ✓" / "My add-in.dll", b"MZ")

    _start(uno, launches, "--addins", str(dll))

    [launch] = launches.all()
    assert launch["flags"]["addins"] == str(dll)


def test_the_hosts_entry_is_read_by_us_and_by_dotnet_alike(
    uno: WorkspaceBuilder, launches: Launches, client: Client
) -> None:
    started = _start(uno, launches).json

    [ours] = uno.machine.run("list", "--json").json["servers"]
    [theirs] = client.ask("servers")

    assert ours["processId"] == theirs["ProcessId"] == started["processId"]
    assert ours["port"] == theirs["Port"] == started["port"]
    assert ours["solutionPath"] == theirs["SolutionPath"] == str(uno.root / "My App.slnx")


def test_the_host_is_found_again_bound_to_an_ide_and_stopped(
    uno: WorkspaceBuilder, launches: Launches, client: Client
) -> None:
    first = _start(uno, launches).json

    again = _start(uno, launches).json
    bound = _start(uno, launches, "--ideChannel", "chan 1; ü").json
    [seen] = client.ask("servers")
    stopped = uno.machine.run("stop", "--json", cwd=uno.root, timeout=PATIENCE)

    assert (again["outcome"], again["processId"]) == ("reused", first["processId"])
    assert (bound["outcome"], bound["processId"]) == ("rebound", first["processId"])
    assert seen["Channel"] == "chan 1; ü"
    assert len(launches.all()) == 1
    assert stopped.exit_code == 0
    assert not is_running(first["processId"])
    assert _listed(uno.machine) == []
    assert client.ask("servers") == []


def test_a_host_that_was_killed_is_forgotten_and_replaced(uno: WorkspaceBuilder, launches: Launches) -> None:
    first = _start(uno, launches).json["processId"]
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not is_running(first), "the end of the Host")

    listed = _listed(uno.machine)
    second = _start(uno, launches).json

    assert listed == []
    assert second["outcome"] == "started"
    assert _listed(uno.machine) == [second["processId"]]


def test_a_framework_that_is_not_installed_is_named_with_the_place_where_dotnet_looks_for_it(
    uno: WorkspaceBuilder, launches: Launches
) -> None:
    dll = write(uno.machine.root / "newer" / "Small.Host.dll", Path(launches.dll).read_bytes())
    frameworks = [{"name": "Microsoft.NETCore.App", "version": "99.0.0"}]
    options = {"runtimeOptions": {"tfm": "net99.0", "frameworks": frameworks}}
    write(dll.with_name("Small.Host.runtimeconfig.json"), json.dumps(options))

    result = uno.machine.run("start", "--host", str(dll), "--addins", ";", cwd=uno.root, timeout=PATIENCE)

    assert result.exit_code == 1
    assert "it needs Microsoft.NETCore.App 99.0.0, which is not installed" in result.stderr
    assert os.path.join("shared", "Microsoft.NETCore.App") in result.stderr
    assert "Install Microsoft.NETCore.App 99.0.0" in result.stderr
    assert _listed(uno.machine) == []


def test_a_host_that_lacks_a_file_is_named_with_the_words_of_dotnet_and_no_add_in_is_blamed(
    uno: WorkspaceBuilder, launches: Launches
) -> None:
    dll = write(uno.machine.root / "cut" / "Small.Host.dll", Path(launches.dll).read_bytes())
    write(dll.with_suffix(".runtimeconfig.json"), Path(launches.dll).with_suffix(".runtimeconfig.json").read_bytes())
    target: dict[str, Any] = {"Lost/1.0": {"runtime": {"lib/Lost.dll": {}}}}
    library = {"type": "package", "serviceable": True, "sha512": "", "path": "lost/1.0"}
    name = ".NETCoreApp,Version=v3.1"
    parts = {"runtimeTarget": {"name": name}, "targets": {name: target}, "libraries": {"Lost/1.0": library}}
    write(dll.with_suffix(".deps.json"), json.dumps(parts))

    result = uno.machine.run("start", "--host", str(dll), "--addins", "/a.dll", cwd=uno.root, timeout=PATIENCE)

    assert result.exit_code == 1
    assert "dotnet could not run it (exit code 140)" in result.stderr
    assert "lib/Lost.dll" in result.stderr
    assert "Left out" not in result.stderr
    assert _listed(uno.machine) == []


def test_two_starts_at_the_same_moment_end_with_one_host(uno: WorkspaceBuilder, launches: Launches) -> None:
    for number in range(1, 6):
        command = ("start", "--json", "--host", launches.dll)
        both = [uno.machine.spawn(*command, cwd=uno.root) for _ in range(2)]
        answers = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in both]

        assert [process.returncode for process in both] == [0, 0]
        assert sorted(answer["outcome"] for answer in answers) == ["reused", "started"]
        assert len({answer["processId"] for answer in answers}) == 1
        assert len(launches.all()) == number
        uno.machine.run("stop", cwd=uno.root, timeout=PATIENCE)
