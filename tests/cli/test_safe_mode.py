"""A Host that was launched without its add-ins is Degraded, and the next start tries them again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts import Manners, StandInHosts, is_running
from support.machine import Machine
from support.packages import app_mcp
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder


@pytest.fixture
def crashing(hosts: StandInHosts) -> StandInHosts:
    """Hosts that die with their add-ins."""
    hosts.behave(Manners(dies_of_addins=True, exit_code=134))
    return hosts


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _sidecar(machine: Machine, pid: int) -> Path:
    return machine.data / "Uno Platform" / "DevServers" / f"devserver-{pid}.aux.json"


def test_what_was_left_out_is_recorded_and_listed(uno: WorkspaceBuilder, crashing: StandInHosts) -> None:
    started = uno.machine.run("start", "--json").json

    addin = app_mcp().dll(uno.machine.nuget, "Uno.UI.App.Mcp.Server.dll")
    left_out = json.loads(_sidecar(uno.machine, started["processId"]).read_text())["LeftOutAddIns"]
    assert addin in left_out
    assert uno.machine.run("list", "--json").json["servers"][0]["leftOutAddIns"] == left_out
    assert f"Left out: {', '.join(left_out)}" in uno.machine.run("list").stdout


def test_a_host_with_its_addins_has_nothing_left_out(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    started = uno.machine.run("start", "--json").json

    assert "LeftOutAddIns" not in _sidecar(uno.machine, started["processId"]).read_text()
    assert uno.machine.run("list", "--json").json["servers"][0]["leftOutAddIns"] is None
    assert "Left out" not in uno.machine.run("list").stdout


def test_the_warning_of_the_start_has_a_next_step_and_the_log(uno: WorkspaceBuilder, crashing: StandInHosts) -> None:
    started = uno.machine.run("start", "--json").json

    [warning] = started["warnings"]
    assert "Fix the one at fault, then run 'uno-devserver start' again" in warning
    assert started["logFile"] in warning


def test_the_result_does_not_look_as_if_there_were_no_addins(uno: WorkspaceBuilder, crashing: StandInHosts) -> None:
    result = uno.machine.run("start")

    assert "  addIns: left out, because the Host died with them" in result.stdout.splitlines()


def test_health_names_what_was_left_out_and_the_next_step(uno: WorkspaceBuilder, crashing: StandInHosts) -> None:
    started = uno.machine.run("start", "--json").json

    result = uno.machine.run("health", "--json", timeout=20)

    assert result.exit_code == 1
    issue = result.issue("AddInsLeftOut")
    assert issue["severity"] == "Warning"
    assert app_mcp().dll(uno.machine.nuget, "Uno.UI.App.Mcp.Server.dll") in issue["message"]
    assert "'uno-devserver stop' and 'uno-devserver start'" in issue["remediation"]
    assert started["logFile"] in issue["remediation"]
    assert result.json["logFile"] == started["logFile"]


def test_the_next_start_replaces_it_and_tries_the_addins_again(uno: WorkspaceBuilder, crashing: StandInHosts) -> None:
    first = uno.machine.run("start", "--json").json
    crashing.behave(Manners())  # they were repaired

    second = uno.machine.run("start", "--json")

    assert "runs without its add-ins. Replacing it" in second.stderr
    assert (second.json["outcome"], second.json["safeMode"], len(second.json["addIns"])) == ("started", False, 2)
    assert not is_running(first["processId"])


@pytest.mark.parametrize("owner", ["a parent", "an IDE"])
def test_one_that_is_in_use_is_reused_with_a_warning(
    uno: WorkspaceBuilder, crashing: StandInHosts, parent: subprocess.Popen[bytes], owner: str
) -> None:
    options = ["--ppid", str(parent.pid)] + (["--ideChannel", "c"] if owner == "an IDE" else [])
    first = uno.machine.run("start", "--json", *options).json
    if owner == "an IDE":
        entry = _sidecar(uno.machine, first["processId"]).with_name(f"devserver-{first['processId']}.json")
        entry.write_text(json.dumps({**json.loads(entry.read_text()), "ParentProcessId": 0}))

    second = uno.machine.run("start", "--json").json

    assert (second["outcome"], second["processId"], second["safeMode"]) == ("reused", first["processId"], True)
    [warning] = second["warnings"]
    assert "The server runs without its add-ins" in warning
    assert "Uno.UI.App.Mcp.Server.dll" in warning


def test_of_two_starts_at_the_same_moment_the_second_does_not_undo_the_first(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(dies_of_addins=True, waits_for=str(tmp_path / "go")))
    first = uno.machine.spawn("start", "--json")
    wait_for(lambda: len(hosts.launches()) == 2, "the launch without add-ins")
    second = uno.machine.spawn("start", "--json")
    assert second.stderr
    second.stderr.readline()  # it waits for the first one
    (tmp_path / "go").touch()

    answers = [json.loads(process.communicate(timeout=20)[0]) for process in (first, second)]

    assert [answer["outcome"] for answer in answers] == ["started", "reused"]
    assert [answer["safeMode"] for answer in answers] == [True, True]
    assert len(hosts.launches()) == 2
