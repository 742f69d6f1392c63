"""`start` with Hosts that misbehave and machines that are in the way: a clear answer, soon, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.dotnet import write_program
from support.files import write
from support.hosts import Manners, StandInHosts, is_running
from support.machine import WINDOWS, Machine
from support.packages import app_mcp, host
from support.signals import SIGHUP
from support.terminals import Terminal, shown
from support.waiting import wait_for
from support.workspace import WorkspaceBuilder
from uno_devserver.system.ports import free_port

# Long enough for a Host that listens, short enough to wait for one that does not.
SOON = ("--timeoutMs", "2000")


@contextmanager
def _stranger() -> Iterator[socket.socket]:
    """This test's own process has a port, and accepts connections without a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def _registered(machine: Machine) -> list[str]:
    registry = machine.data / "Uno Platform" / "DevServers"
    return sorted(path.name for path in registry.iterdir()) if registry.exists() else []


def _no_host_is_left(hosts: StandInHosts) -> bool:
    return not [launch["pid"] for launch in hosts.launches() if is_running(launch["pid"])]


# --- a Host that dies ----------------------------------------------------------------------------------------------


def test_a_host_that_dies_at_once_is_noticed_at_once_and_its_last_words_are_shown(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=3))
    begun = time.monotonic()

    result = uno.machine.run("start", "--addins", ";")

    assert time.monotonic() - begun < 5  # and not 30 s
    assert result.exit_code == 1
    assert "exit code 3" in result.stderr
    assert "  | Unhandled exception: the stand-in was told to die" in result.stderr
    assert len(hosts.launches()) == 1
    assert _registered(uno.machine) == []


def test_a_host_that_dies_of_its_addins_is_started_once_more_without(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies_of_addins=True, exit_code=134))

    result = uno.machine.run("start", "--json")

    first, second = hosts.launches()
    assert app_mcp().dll(uno.machine.nuget, "Uno.UI.App.Mcp.Server.dll") in first["argv"][-1]
    assert second["argv"][-2:] == ["--addins", ";"]
    assert result.exit_code == 0
    assert result.json["safeMode"] is True
    assert result.json["addIns"] == []
    [warning] = result.json["warnings"]
    assert "Uno.UI.App.Mcp.Server.dll" in warning
    assert "was told to die" in warning
    assert Path(result.json["logFile"]).read_text().count("stand-in host") == 2


def test_a_host_that_dies_of_what_it_discovers_itself_is_started_once_more_without(
    workspace: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies_of_addins=True, exit_code=134))
    workspace.uno_6_5().project("App/App.csproj").solution("App.slnx")
    nuget = workspace.machine.nuget
    dll = nuget / host().path / "tools/rc/host/net10.0/Uno.UI.RemoteControl.Host.dll"
    (nuget / "uno.sdk/6.5.31/targets/netstandard2.0/packages.json").write_text("{ broken")

    result = workspace.machine.run("start", "--host", str(dll), "--trust", "--json")

    first, second = hosts.launches()
    assert "--addins" not in first["argv"]
    assert second["argv"][-2:] == ["--addins", ";"]
    assert result.json["safeMode"] is True


def test_what_goes_wrong_with_both_attempts_is_told_once(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(dies_of_addins=True, exit_code=134))
    write(uno.root / "src/App/App.csproj.user", "<Project><oops")

    result = uno.machine.run("start", "--httpPort", str(free_port()), "--json")

    assert result.json["safeMode"] is True
    assert len([warning for warning in result.json["warnings"] if "was left as it is" in warning]) == 1


def test_a_host_that_dies_without_addins_too_is_not_tried_a_third_time(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    hosts.behave(Manners(dies=True, exit_code=9))

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "HostCrashed"
    assert len(hosts.launches()) == 2


def test_a_program_that_is_no_host_is_called_so_and_not_tried_twice(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    write_program(uno.machine.root / "silent", f"#!{sys.executable}\n")
    silent = uno.machine.root / ("silent.exe" if WINDOWS else "silent")

    result = uno.machine.run("start", "--host", str(silent), "--json")

    assert (result.exit_code, result.stderr) == (1, "")
    assert "It printed nothing, so it may not be a Host at all." in result.json["error"]["message"]
    assert "--host" in result.json["error"]["nextStep"]


def test_a_script_that_dies_leaves_nothing_behind(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(listens=False))
    launched = uno.machine.root / "dotnet" / "hosts.jsonl"
    script = _script(uno, f'"$dotnet" Own.dll "$@" &\nwhile [ ! -e "{launched}" ]; do :; done\nexit 3\n')

    result = uno.machine.run("start", "--host", str(script), "--addins", ";")

    assert "exit code 3" in result.stderr
    wait_for(lambda: _no_host_is_left(hosts), "the end of what the script had started")


def _script(workspace: WorkspaceBuilder, text: str) -> Path:
    """A script that runs a Host, and is run in its place."""
    dotnet = workspace.machine.root / "dotnet" / "dotnet"
    script = write(workspace.machine.root / "run-host.sh", f'#!/bin/sh\ndotnet="{dotnet}"\n{text}')
    script.chmod(0o755)
    return script


# --- a Host that does not serve ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "manners",
    [Manners(listens=False), Manners(answers=False), Manners(takes_another_port=True)],
    ids=["never listens", "never answers", "listens elsewhere"],
)
def test_a_host_that_does_not_answer_in_time_is_stopped_and_the_rest_is_clean(
    uno: WorkspaceBuilder, hosts: StandInHosts, manners: Manners
) -> None:
    hosts.behave(manners)

    result = uno.machine.run("start", *SOON)

    assert result.exit_code == 1
    assert "within 2 s" in result.stderr
    assert "  | stand-in host --httpPort" in result.stderr
    assert "--timeoutMs" in result.stderr
    assert len(hosts.launches()) == 1  # safe mode is for crashes
    assert _no_host_is_left(hosts)
    assert _registered(uno.machine) == []


def test_a_script_whose_host_does_not_answer_is_stopped_with_it(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(listens=False))
    script = _script(uno, '"$dotnet" Own.dll "$@"\nexit $?\n')

    result = uno.machine.run("start", "--host", str(script), *SOON)

    assert result.exit_code == 1
    assert len(hosts.launches()) == 1
    assert _no_host_is_left(hosts)
    assert _registered(uno.machine) == []


def test_a_host_that_ignores_sigterm_is_killed(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(listens=False, ignores_sigterm=True))

    result = uno.machine.run("start", *SOON, timeout=20)

    assert result.exit_code == 1
    assert _no_host_is_left(hosts)
    assert _registered(uno.machine) == []


def test_a_host_without_mcp_is_ready_and_the_lack_is_told(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    hosts.behave(Manners(status=404))

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 0
    assert result.json["hasMcp"] is False
    [warning] = result.json["warnings"]
    assert warning.startswith("HostMcpEndpointNotAvailable")


def test_a_host_that_listens_late_is_waited_for(uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    starting = uno.machine.spawn("start")

    wait_for(hosts.launches, "the launch")
    assert starting.poll() is None
    (tmp_path / "go").touch()

    out, _ = starting.communicate(timeout=20)
    assert starting.returncode == 0
    assert out.startswith("DevServer is ready on port ")


# --- ports ---------------------------------------------------------------------------------------------------------


def test_a_port_that_a_stranger_has_is_never_called_ready(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    with _stranger() as listener:
        port = listener.getsockname()[1]

        result = uno.machine.run("start", "--httpPort", str(port), "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "PortTaken"
    assert f"Port {port} is taken by process {os.getpid()} (" in result.json["error"]["message"]
    assert hosts.launches() == []


def test_a_stranger_who_takes_the_port_while_the_host_starts_is_not_taken_for_it(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    starting = uno.machine.spawn("start", "--httpPort", str(port), "--addins", ";")
    wait_for(hosts.launches, "the launch")

    with subprocess.Popen([sys.executable, "-c", _WEB_SERVER, str(port)], stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout
        assert stranger.stdout.readline().rstrip() == b"listening"
        wait_for(
            lambda: stranger.stdout and stranger.stdout.readline().rstrip() == b"asked", "a question to the stranger"
        )
        (tmp_path / "go").touch()
        _, errors = starting.communicate(timeout=20)
        stranger.kill()

    assert starting.returncode == 1
    assert f"Port {port} is taken by process {stranger.pid}" in errors


# Answers everything, as a web server would.
_WEB_SERVER = r"""
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    print("asked", flush=True)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    connection.close()
"""


def test_a_port_that_was_lost_in_the_last_moment_is_replaced_by_another(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    starting = uno.machine.spawn("start", "--json")
    wait_for(hosts.launches, "the launch")
    [first] = hosts.launches()

    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", int(first["argv"][2])))
        stranger.listen()
        (tmp_path / "go").touch()
        starting.communicate(timeout=20)

    assert starting.returncode == 0
    second = hosts.launches()[1]
    assert second["argv"][2] != first["argv"][2]
    assert second["argv"][3:] == first["argv"][3:]  # with its add-ins: it was not they who were at fault
    user = (uno.root / "src/App/App.csproj.user").read_text("utf-8-sig")
    assert f">{second['argv'][2]}#<" in user


# --- folders -------------------------------------------------------------------------------------------------------


def test_a_registry_that_cannot_be_written_does_not_prevent_the_start(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    write(uno.machine.data / "Uno Platform" / "DevServers", "a file where the folder should be")
    hosts.behave(Manners(signs_in=False))

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 0
    assert result.json["processId"] == hosts.launches()[0]["pid"]
    assert [warning.partition(": ")[0] for warning in result.json["warnings"]] == [
        f"The registry {uno.machine.data / 'Uno Platform' / 'DevServers'} cannot be read",
        "The registry cannot be written",
    ]


def test_a_registry_full_of_garbage_does_not_matter(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    registry = uno.machine.data / "Uno Platform" / "DevServers"
    for number, content in enumerate([b"", b"{", b"\xff\xfe\x00", b"[]", b'{"ProcessId": "x"}', b"null" * 1000]):
        write(registry / f"devserver-{9_000_000 + number}.json", content)

    result = uno.machine.run("start")

    assert result.exit_code == 0


def test_a_state_folder_that_cannot_be_used_is_named(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    write(uno.machine.data / "Uno Platform" / "uno.devserver", "a file where the folder should be")

    result = uno.machine.run("start", "--json")

    assert result.exit_code == 1
    assert result.json["error"]["code"] == "StateNotWritable"
    assert str(uno.machine.state / "logs") in result.json["error"]["message"]


# --- people --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, SIGHUP])
def test_an_interrupted_start_stops_the_host_that_it_started(
    uno: WorkspaceBuilder, hosts: StandInHosts, number: signal.Signals
) -> None:
    hosts.behave(Manners(listens=False))
    starting = uno.machine.spawn("start")
    wait_for(lambda: _registered(uno.machine), "the registration")

    starting.send_signal(number)

    _, errors = starting.communicate(timeout=20)
    assert starting.returncode == 128 + number
    assert "nothing is left running" in errors
    assert _no_host_is_left(hosts)
    assert _registered(uno.machine) == []


INTERRUPTED_WHEN_READY = """
import signal, sys
from uno_devserver.cli.main import main
from uno_devserver.instances import launch
wait = launch.wait_until_ready
def interrupted(*arguments, **options):
    ready = wait(*arguments, **options)
    signal.raise_signal(signal.SIGINT)
    return ready
launch.wait_until_ready = interrupted
sys.exit(main(["start", "--json"]))
"""


def test_a_start_that_is_interrupted_when_the_host_has_become_ready_stops_it(
    uno: WorkspaceBuilder, hosts: StandInHosts
) -> None:
    starting = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHEN_READY],
        cwd=uno.root,
        env=uno.machine.variables(),
        capture_output=True,
        timeout=20,
    )

    assert (starting.returncode, json.loads(starting.stdout)["error"]["code"]) == (130, "Interrupted")
    assert len(hosts.launches()) == 1
    assert _no_host_is_left(hosts)


PIPE_BYTES = 65536  # what a pipe holds before its writer has to wait


def test_an_interrupt_while_the_result_is_written_is_too_late(uno: WorkspaceBuilder, hosts: StandInHosts) -> None:
    """There is a server then; to call that interrupted would be wrong."""
    fill = ("/bin/sh", "-c", f'/usr/bin/head -c {PIPE_BYTES} /dev/zero; exec "$@"', "sh")
    starting = uno.machine.spawn("start", "--json", prefix=fill)
    wait_for(hosts.requests, "the question whether the Host is ready")
    wait_for(lambda: all(not lock.read_text() for lock in (uno.machine.state / "locks").iterdir()), "the readiness")
    wait_for(lambda: _waits_for_stdout(starting.pid), "the writing")

    starting.send_signal(signal.SIGINT)

    answer = json.loads(starting.communicate(timeout=20)[0].lstrip("\0"))
    assert (starting.returncode, answer.get("outcome")) == (0, "started")
    assert is_running(answer["processId"])


def _waits_for_stdout(pid: int) -> bool:
    """Whether it is in a system call whose first argument is 1."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[1:2] == ["0x1"]


def test_a_person_at_a_terminal_sees_that_time_passes(
    uno: WorkspaceBuilder, hosts: StandInHosts, tmp_path: Path
) -> None:
    hosts.behave(Manners(waits_for=str(tmp_path / "go")))
    starting = Terminal(uno.machine, "start", stdout=subprocess.DEVNULL)

    starting.until("Waiting for the Host (process ")
    starting.until(" 1 s")
    (tmp_path / "go").touch()
    starting.end()

    assert starting.sent.endswith("\r\x1b[K")
    assert shown(starting.sent) == []
    assert starting.process.returncode == 0
