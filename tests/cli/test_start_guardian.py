"""`start --ideChannel` without a parent: the command stays as the Host's parent until the Host ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.hosts import Manners, StandInHosts, is_running
from support.signals import SIGHUP
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def test_the_host_has_the_command_as_its_parent_which_stays_and_passes_its_exit_code_on(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(exit_code=7))
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s")
    assert _first_line(guardian).startswith("DevServer is ready on port ")
    [launch] = hosts.launches()
    argv = launch["argv"]
    assert argv[argv.index("--ppid") + 1] == str(guardian.pid)
    assert argv[argv.index("--ideChannel") + 1] == "chan-s"
    assert guardian.poll() is None

    os.kill(launch["pid"], signal.SIGTERM)

    guardian.communicate(timeout=20)
    assert guardian.returncode == 7


def test_whoever_is_kept_waiting_is_told_for_what(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s")
    assert guardian.stderr

    said = guardian.stderr.readline()

    guardian.terminate()
    guardian.communicate(timeout=20)
    assert said == "Serving the IDE on channel 'chan-s' until this command ends (Ctrl+C).\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, SIGHUP])
def test_a_signal_to_the_guardian_ends_the_host(
    uno: WorkspaceBuilder, hosts: StandInHosts, number: signal.Signals
) -> None:
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s")
    _first_line(guardian)
    [launch] = hosts.launches()

    guardian.send_signal(number)

    guardian.communicate(timeout=20)
    assert guardian.returncode == 0
    assert not is_running(launch["pid"])


def test_a_host_that_was_killed_ends_the_guardian_as_a_shell_would_tell_it(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s", "--json")
    assert guardian.stdout
    lines = [guardian.stdout.readline()]
    while lines[-1] != "}\n":
        lines.append(guardian.stdout.readline())
    fields: dict[str, Any] = json.loads("".join(lines))

    os.kill(fields["processId"], signal.SIGKILL)

    rest, _ = guardian.communicate(timeout=20)
    assert guardian.returncode == 128 + signal.SIGKILL
    assert rest == ""
    assert fields["ideChannelId"] == "chan-s"


def test_the_channel_is_noted_beside_the_registration(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s")
    _first_line(guardian)
    [launch] = hosts.launches()

    registry = uno.machine.data / "Uno Platform" / "DevServers"
    note = json.loads((registry / f"devserver-{launch['pid']}.aux.json").read_text())

    guardian.terminate()
    guardian.communicate(timeout=20)
    assert note["IdeChannelId"] == "chan-s"


def test_with_a_parent_of_its_own_the_host_is_left_to_it(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    result = uno.machine.run("start", "--ideChannel", "chan-s", "--ppid", str(os.getpid()))

    assert result.exit_code == 0
    assert is_running(hosts.launches()[0]["pid"])


def test_the_workspace_is_not_locked_while_the_guardian_stays(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s")
    _first_line(guardian)

    result = uno.machine.run("start", "--json")

    guardian.terminate()
    guardian.communicate(timeout=20)
    assert result.json["outcome"] == "reused"


def test_a_guardian_that_was_told_to_ignore_the_end_of_its_terminal_does(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    nohup = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    guardian = uno.machine.spawn("start", "--ideChannel", "chan-s", prefix=nohup)
    _first_line(guardian)
    [launch] = hosts.launches()

    wait_for(lambda: _handles(guardian.pid, signal.SIGCHLD), "the guard")
    guardian.send_signal(signal.SIGHUP)
    guardian.send_signal(signal.SIGCHLD)  # wakes it, and means nothing while the Host lives
    uno.machine.run("start")  # long enough for it to have ended

    assert guardian.poll() is None
    assert is_running(launch["pid"])
    guardian.terminate()
    guardian.communicate(timeout=20)


def _handles(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for signals of that number."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
