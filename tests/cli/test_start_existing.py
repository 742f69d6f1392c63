"""`start` where a server is registered already: used, bound to another IDE, waited for, or replaced; never doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.hosts import Manners, StandInHosts, is_running
from support.machine import DATA_HOME, Machine
from support.packages import app_mcp
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.system.ports import free_port


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a Host can have as its parent."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _entry(machine: Machine, pid: int) -> Path:
    return machine.data / "Uno Platform" / "DevServers" / f"devserver-{pid}.json"


def _started(workspace: WorkspaceBuilder, *options: str) -> dict[str, Any]:
    result = workspace.machine.run("start", "--json", *options, cwd=workspace.root)
    assert result.exit_code == 0, result
    assert result.json["outcome"] == "started"
    fields: dict[str, Any] = result.json
    return fields


def _kill(host: int) -> None:
    os.kill(host, signal.SIGKILL)
    wait_for(lambda: not is_running(host), "the end of the Host")


def _change_parent(machine: Machine, pid: int, parent: int) -> None:
    path = _entry(machine, pid)
    path.write_text(json.dumps({**json.loads(path.read_text()), "ParentProcessId": parent}))


# --- reuse ---------------------------------------------------------------------------------------------------------


def test_a_server_that_nobody_owns_is_reused_and_not_killed(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)

    result = uno.machine.run("start")

    assert result.exit_code == 0
    pid, port = first["processId"], first["port"]
    line = f"DevServer already running for solution (PID {pid}, Port {port}). Reusing."
    assert result.stdout.splitlines()[0] == line
    assert len(hosts.launches()) == 1
    assert is_running(pid)


def test_a_server_with_a_living_parent_is_reused(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    first = _started(uno, "--ppid", str(parent.pid))

    second = uno.machine.run("start", "--json").json

    assert (second["outcome"], second["processId"], second["port"]) == ("reused", first["processId"], first["port"])


def test_the_solution_is_the_same_however_it_is_spelled(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)
    (uno.machine.root / "link").symlink_to(uno.root)

    second = uno.machine.run("start", "--solution", "link/src/../App.slnx", "--json", cwd=uno.machine.root)

    assert second.json["processId"] == first["processId"]


def test_a_server_of_another_solution_is_not_reused(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)
    other = WorkspaceBuilder(uno.machine, "other").uno_6_5().project("B/B.csproj", [app_mcp()]).solution("B.slnx")

    second = _started(other)

    assert second["processId"] != first["processId"]
    assert is_running(first["processId"])


def test_a_server_that_is_not_on_the_wanted_port_is_reused_and_that_is_told(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    first = _started(uno)
    wanted = first["port"] + 1 if first["port"] < 65_535 else 1024

    second = uno.machine.run("start", "--httpPort", str(wanted), "--addins", "/a.dll", "--json").json

    assert second["port"] == first["port"]
    assert any(f"port {first['port']}, not {wanted}" in warning for warning in second["warnings"])
    assert any("--addins" in warning and "already running" in warning for warning in second["warnings"])


def test_a_server_on_the_wanted_port_is_reused_without_a_word(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)

    second = uno.machine.run("start", "--httpPort", str(first["port"]), "--json")

    assert (second.json["outcome"], second.json["warnings"], second.stderr) == ("reused", [], "")


def test_a_server_that_was_killed_is_not_found_and_leaves_no_trace(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)
    _kill(first["processId"])

    second = _started(uno)

    assert second["processId"] != first["processId"]
    names = sorted(path.name for path in _entry(uno.machine, 1).parent.iterdir())
    assert names == [f"devserver-{second['processId']}.aux.json", f"devserver-{second['processId']}.json"]


def test_a_server_of_a_port_that_serves_something_else_is_named(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)
    other = WorkspaceBuilder(uno.machine, "other").uno_6_5().project("B/B.csproj", [app_mcp()]).solution("B.slnx")

    result = uno.machine.run("start", "--httpPort", str(first["port"]), "--json", cwd=other.root)

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "PortTaken"
    assert str(uno.root / "App.slnx") in result.json["error"]["message"]
    assert is_running(first["processId"])
    assert len(hosts.launches()) == 1


def test_a_server_of_a_port_of_which_nobody_knows_what_it_serves_is_not_taken_for_ours(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    with _launched_by_an_ide(uno) as other:
        entry = _entry(uno.machine, other.pid)
        fields = json.loads(entry.read_text())
        entry.write_text(json.dumps({**fields, "SolutionPath": None}))

        result = uno.machine.run("start", "--httpPort", str(fields["Port"]), "--json")

    assert (result.exit_code, result.json["error"]["code"]) == (1, "PortTaken")
    assert f"process {other.pid}" in result.json["error"]["message"]


# --- the IDE channel -----------------------------------------------------------------------------------------------


def test_an_ide_gets_the_running_server_bound_to_its_channel(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    first = _started(uno, "--ppid", str(parent.pid))
    user = uno.root / "src/App/App.csproj.user"
    user.unlink()

    result = uno.machine.run("start", "--ideChannel", "ide/7 ü")

    assert result.exit_code == 0
    pid, port = first["processId"], first["port"]
    line = f"DevServer already running for solution (PID {pid}, Port {port}). Rebinding IDE channel."
    assert result.stdout.splitlines()[0] == line
    assert "POST /devserver/idechannel/ide%2F7%20%C3%BC HTTP/1.1" in hosts.requests()
    assert f">{port}#<" in user.read_text("utf-8-sig")
    assert len(hosts.launches()) == 1


def test_a_server_that_refuses_the_channel_is_an_error(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(rebind_status=500))
    first = _started(uno)

    result = uno.machine.run("start", "--ideChannel", "chan", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "IdeChannelRefused"
    assert "HTTP status 500" in result.json["error"]["message"]
    assert is_running(first["processId"])


# --- replacement ---------------------------------------------------------------------------------------------------


def test_an_orphan_is_stopped_and_replaced(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    first = _started(uno, "--ppid", str(parent.pid))
    parent.kill()
    parent.wait()

    result = uno.machine.run("start", "--json")

    assert result.json["outcome"] == "started"
    assert result.json["processId"] != first["processId"]
    assert not is_running(first["processId"])
    assert f"its parent, process {parent.pid}, is gone" in result.stderr


def test_an_orphan_that_has_the_wanted_port_makes_room_whatever_it_serves(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    orphan = _started(uno, "--ppid", str(parent.pid))
    other = WorkspaceBuilder(uno.machine, "other").uno_6_5().project("B/B.csproj", [app_mcp()]).solution("B.slnx")
    parent.kill()
    parent.wait()

    second = _started(other, "--httpPort", str(orphan["port"]))

    assert second["port"] == orphan["port"]
    assert not is_running(orphan["processId"])


def test_an_orphan_whose_parents_number_is_another_process_by_now_is_recognised(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    first = _started(uno)
    with _born_after(first["processId"]) as another:
        _change_parent(uno.machine, first["processId"], another.pid)

        result = uno.machine.run("start", "--json")

    assert result.json["outcome"] == "started"
    assert not is_running(first["processId"])


@contextmanager
def _born_after(pid: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is clearly younger, by a clock that is coarse."""
    while True:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            clearly = psutil.Process(process.pid).create_time() > psutil.Process(pid).create_time() + 2.1
            try:
                if clearly:
                    yield process
                    return
            finally:
                process.kill()


@contextmanager
def _launched_by_an_ide(workspace: WorkspaceBuilder, parent: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """A Host of the workspace, launched by a program that knows no lock and does not wait."""
    # The script itself: on Windows, the stand-in for `dotnet` is a launcher, and its child would register.
    stand_in = str(workspace.machine.root / "dotnet" / "host.py")
    solution = str(workspace.root / "App.slnx")
    with subprocess.Popen(
        [
            sys.executable,
            stand_in,
            "Host.dll",
            "--httpPort",
            str(free_port()),
            "--solution",
            solution,
            "--ppid",
            str(parent),
        ],
        env={**os.environ, DATA_HOME: str(workspace.machine.data)},
        stdout=subprocess.DEVNULL,
    ) as host:
        try:
            wait_for(lambda: _entry(workspace.machine, host.pid).exists(), "the registration")
            yield host
        finally:
            host.kill()


def test_a_server_that_never_answers_and_that_nobody_owns_is_replaced_when_its_time_is_over(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(answers=False))
    with _launched_by_an_ide(uno) as mute:
        hosts.behave(Manners())

        result = uno.machine.run("start", "--json", "--timeoutMs", "2000")

        assert result.json["outcome"] == "started"
        assert not is_running(mute.pid)
        assert "does not answer" in result.stderr


def test_a_server_that_does_not_answer_but_has_a_living_owner_is_left_alone(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    hosts.behave(Manners(answers=False))
    with _launched_by_an_ide(uno, parent.pid) as mute:
        result = uno.machine.run("start", "--json", "--timeoutMs", "400")

        assert result.exit_code == 1
        assert result.json["error"]["code"] == "HostUnreachable"
        assert f"process {parent.pid}" in result.json["error"]["message"]
        assert is_running(mute.pid)
        assert len(hosts.launches()) == 1


def test_a_server_that_is_still_starting_is_waited_for(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    with _launched_by_an_ide(uno) as slow:
        starting = uno.machine.spawn("start", "--json")
        wait_for(lambda: _holds_lock(uno.machine, starting.pid), "the look at the registry")
        (tmp_path / "go").touch()
        out, _ = starting.communicate(timeout=20)

    fields = json.loads(out)
    assert (fields["outcome"], fields["processId"]) == ("reused", slow.pid)
    assert len(hosts.launches()) == 1


def _holds_lock(machine: Machine, pid: int) -> bool:
    return any(path.read_text() == str(pid) for path in (machine.state / "locks").glob("*.lock"))


# --- two at the same moment ----------------------------------------------------------------------------------------


def _waiting_start(
    uno: WorkspaceBuilder, hosts: StandInHosts, *options: str, launches: int = 1
) -> tuple[subprocess.Popen[str], subprocess.Popen[str], str]:
    """A start that has launched Hosts, a second one that waits for it, and what that says first."""
    first = uno.machine.spawn("start", "--json")
    wait_for(lambda: len(hosts.launches()) == launches, "the launch")
    second = uno.machine.spawn("start", "--json", *options)
    assert second.stderr
    return first, second, second.stderr.readline()


def test_two_starts_at_the_same_moment_end_with_one_host_and_two_successes(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    for _ in range(3):
        before = len(hosts.launches())

        both = [uno.machine.spawn("start", "--json"), uno.machine.spawn("start", "--json")]
        answers = [json.loads(process.communicate(timeout=30)[0]) for process in both]

        assert [process.returncode for process in both] == [0, 0]
        assert sorted(answer["outcome"] for answer in answers) == ["reused", "started"]
        assert answers[0]["processId"] == answers[1]["processId"]
        assert len(hosts.launches()) == before + 1
        _kill(answers[0]["processId"])


def test_two_starts_that_spell_the_workspace_differently_end_with_one_host(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    (uno.machine.root / "link").symlink_to(uno.root)
    first, second, said = _waiting_start(uno, hosts, "--solution-dir", str(uno.machine.root / "link"))
    (tmp_path / "go").touch()

    answers = [json.loads(process.communicate(timeout=20)[0]) for process in (first, second)]
    assert said.startswith("Waiting for another start of this workspace")
    assert [answer["outcome"] for answer in answers] == ["started", "reused"]
    assert len(hosts.launches()) == 1


def test_a_start_that_waits_for_another_says_for_whom(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    first, second, said = _waiting_start(uno, hosts)
    (tmp_path / "go").touch()
    first.communicate(timeout=20)
    second.communicate(timeout=20)

    assert said == f"Waiting for another start of this workspace (process {first.pid}) ...\n"
    assert second.returncode == 0


def test_a_start_that_waited_for_another_keeps_the_host_that_had_to_do_without_its_addins(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(dies_of_addins=True, exit_code=134, waits_for=str(tmp_path / "go")))
    first, second, _ = _waiting_start(uno, hosts, launches=2)
    (tmp_path / "go").touch()

    answers = [json.loads(process.communicate(timeout=20)[0]) for process in (first, second)]

    assert [(answer["outcome"], answer["safeMode"]) for answer in answers] == [("started", True), ("reused", True)]
    assert answers[0]["processId"] == answers[1]["processId"]
    assert len(hosts.launches()) == 2


def test_a_start_that_was_killed_does_not_lock_the_workspace(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    first = uno.machine.spawn("start")
    wait_for(hosts.launches, "the launch")
    first.kill()
    first.communicate()
    (tmp_path / "go").touch()  # the Host goes on by itself

    result = uno.machine.run("start", "--json")

    assert result.json["outcome"] == "reused"
    assert len(hosts.launches()) == 1


def test_the_host_of_a_start_that_was_killed_is_waited_for_before_it_has_registered(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    """The lock ends with its holder; the Host that it launched goes on, and would have a second one beside it."""
    hosts.behave(Manners(signs_in_after=str(tmp_path / "go")))
    first = uno.machine.spawn("start")
    wait_for(hosts.launches, "the launch")
    launched = hosts.launches()[0]["pid"]
    wait_for(_entry(uno.machine, launched).with_suffix(".aux.json").exists, "the launcher's record")
    first.kill()
    first.communicate()

    second = uno.machine.spawn("start", "--json")
    assert second.stderr
    said = second.stderr.readline()
    (tmp_path / "go").touch()
    answer = json.loads(second.communicate(timeout=20)[0])

    assert said == f"Waiting for a Host that was just launched (process {launched}) ...\n"
    assert (answer["outcome"], answer["processId"]) == ("reused", launched)
    assert len(hosts.launches()) == 1


def test_a_start_that_waits_for_another_can_be_interrupted(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    first, second, _ = _waiting_start(uno, hosts)

    second.send_signal(signal.SIGINT)

    out, _ = second.communicate(timeout=20)
    assert (second.returncode, json.loads(out)["error"]["code"]) == (130, "Interrupted")
    (tmp_path / "go").touch()
    first.communicate(timeout=20)
    assert first.returncode == 0


# --- restart -------------------------------------------------------------------------------------------------------


def test_a_server_that_another_program_owns_is_not_restarted(
    uno: WorkspaceBuilder, hosts: StandInHosts, parent: subprocess.Popen[bytes]
) -> None:
    first = _started(uno, "--ppid", str(parent.pid))

    result = uno.machine.run("start", "--restart", "--json")

    assert (result.exit_code, result.json["error"]["code"]) == (1, "ServerOwned")
    assert f"process {parent.pid}" in result.json["error"]["message"]
    assert is_running(first["processId"])
    assert len(hosts.launches()) == 1


def test_a_restart_stays_on_its_port_and_with_its_ide(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno, "--ppid", str(os.getpid()), "--ideChannel", "ide")
    _change_parent(uno.machine, first["processId"], 0)

    second = _started(uno, "--restart")

    assert (second["port"], second["ideChannelId"]) == (first["port"], "ide")
    assert not is_running(first["processId"])


def test_a_restart_of_what_cannot_be_launched_leaves_the_server_alone(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    first = _started(uno)

    result = uno.machine.run("start", "--restart", "--host", "nowhere.dll")

    assert result.exit_code == 1
    assert is_running(first["processId"])


# --- the log -------------------------------------------------------------------------------------------------------


def test_a_server_that_is_reused_is_named_with_its_log(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    first = _started(uno)

    second, shown = uno.machine.run("start", "--json").json, uno.machine.run("start").stdout

    assert second["logFile"] == first["logFile"]
    assert f"  logFile: {first['logFile']}" in shown.splitlines()


def test_the_log_of_a_server_that_was_killed_is_there_after_the_next_start(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    first = _started(uno)
    _kill(first["processId"])
    printed = Path(first["logFile"]).read_text()

    _started(uno)

    assert printed
    assert Path(first["logFile"]).with_suffix(".previous.log").read_text() == printed
