"""What can be told of other processes: real ones, started for the purpose."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.clocks import move_clock
from support.privileges import ROOT
from support.servers import IGNORES_SIGTERM, LISTENS, Processes
from support.waiting import wait_for
from uno_devserver.system import proc
from uno_devserver.system.ports import free_port
from uno_devserver.system.processes import (
    CHAIN_LIMIT,
    START_SLACK_SECONDS,
    StopOutcome,
    chain,
    command_line,
    identity,
    is_alive,
    listener,
    listener_in_family,
    listens_on,
    machine_name,
    process_started,
    stop_process,
    user_name,
    working_directory,
)

if sys.platform != "win32":
    import pwd

# Both ignore SIGTERM; the child's id is printed.
WITH_CHILD = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-ISc", "import sys; sys.stdin.read()"])
print("ready", child.pid, flush=True)
sys.stdin.read()
"""

# Each process starts the next one; the last prints its id; all wait for the end of the input.
ANCESTORS = """
import os, sys
for _ in range({depth}):
    if os.fork():
        break
else:
    print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-ISc", ""])
    process.wait(20)
    return process.pid


@pytest.fixture(params=["/proc", "psutil"] if proc.AVAILABLE else ["psutil"])
def told_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc, as on macOS and Windows, the same questions have the same answers."""
    monkeypatch.setattr(proc, "AVAILABLE", request.param == "/proc")


# --- alive --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("told_by")
def test_this_process_and_its_parent_live() -> None:
    assert is_alive(os.getpid())
    assert is_alive(os.getppid())
    assert is_alive(1)


@pytest.mark.usefixtures("told_by")
def test_a_process_that_ended_does_not_live(ended: int) -> None:
    assert not is_alive(ended)


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**63, 10**30])
def test_a_number_that_no_process_can_have_does_not_live(pid: int) -> None:
    assert not is_alive(pid)


@pytest.mark.usefixtures("told_by")
def test_a_process_that_nobody_has_asked_about_since_it_ended_does_not_live(processes: Processes) -> None:
    zombie = processes.zombie()

    assert os.path.exists(f"/proc/{zombie}"), "the system still knows it"
    assert not is_alive(zombie)
    assert process_started(zombie) is None


# --- since when ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("told_by")
def test_a_process_was_created_when_it_was_started(processes: Processes) -> None:
    before = time.time()
    process = processes.start()
    after = time.time()

    created = process_started(process.pid)

    assert created
    assert before - START_SLACK_SECONDS <= created <= after + START_SLACK_SECONDS


@pytest.mark.usefixtures("told_by")
@pytest.mark.parametrize("pid", [0, -1, 2**31, 10**30])
def test_what_is_no_process_was_never_created(pid: int, ended: int) -> None:
    assert process_started(pid) is None
    assert process_started(ended) is None


@pytest.mark.usefixtures("told_by")
def test_a_process_keeps_its_identity_when_the_clock_is_set(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    process = processes.start()
    before, created = identity(process.pid), process_started(process.pid)

    move_clock(monkeypatch, hours=1)

    assert process_started(process.pid) != created
    assert identity(process.pid) == before is not None
    later = (identity(processes.start().pid) for _ in range(10))  # the kernel counts in steps of 10 ms
    assert any(other not in (before, None) for other in later)
    assert identity(ended) is None


# --- what it does -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("told_by")
def test_a_process_listens_on_its_own_ports_only(processes: Processes) -> None:
    process, other = processes.start(LISTENS), processes.start(LISTENS)
    (port,), (other_port,) = process.said, other.said

    assert listens_on(process.pid, port)
    assert not listens_on(process.pid, other_port)
    assert not listens_on(other.pid, port)


def test_a_process_tells_its_folder_and_its_command_line(processes: Processes, tmp_path: Path) -> None:
    process = processes.start(cwd=tmp_path)

    assert working_directory(process.pid) == str(tmp_path)
    assert command_line(process.pid)[:2] == (sys.executable, "-ISc")


@pytest.mark.usefixtures("told_by")
def test_a_process_that_is_gone_tells_nothing(ended: int) -> None:
    assert (listens_on(ended, 80), working_directory(ended), command_line(ended)) == (False, None, ())


def test_an_error_of_windows_about_a_process_that_is_just_ending_tells_nothing(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = processes.start(LISTENS).pid

    def fail(*_: object, **__: object) -> None:
        raise OSError(22, "Invalid parameter: '(originated from NtQueryInformationProcess)'")

    monkeypatch.setattr(proc, "AVAILABLE", False)
    for name in ("cmdline", "cwd", "net_connections", "connections", "children", "create_time", "name"):
        monkeypatch.setattr(psutil.Process, name, fail, raising=False)

    assert (command_line(pid), working_directory(pid), process_started(pid)) == ((), None, None)
    assert (listens_on(pid, 80), listener_in_family(pid, 80)) == (False, None)
    assert [(link.pid, link.name) for link in chain(pid, 0)] == [(pid, None)]
    assert not stop_process(pid, 0.0).gone


# --- stopping -----------------------------------------------------------------------------------------------------


def created(pid: int) -> float:
    moment = process_started(pid)
    assert moment is not None
    return moment


def test_a_process_that_obeys_is_asked_and_not_killed(processes: Processes) -> None:
    process = processes.start()

    assert stop_process(process.pid, created(process.pid)) == StopOutcome()
    assert process.exit_code() == -signal.SIGTERM


def test_a_process_whose_parent_does_not_ask_about_it_is_gone_nevertheless(processes: Processes) -> None:
    """The .NET tool waits for such a process without end."""
    process = processes.start()
    begun = time.monotonic()

    outcome = stop_process(process.pid, created(process.pid), grace_seconds=20)

    assert outcome.gone
    assert time.monotonic() - begun < 10
    assert os.path.exists(f"/proc/{process.pid}"), "nobody asked meanwhile"


def test_a_process_that_does_not_obey_is_killed_after_the_grace(processes: Processes) -> None:
    process = processes.start(IGNORES_SIGTERM)

    outcome = stop_process(process.pid, created(process.pid), grace_seconds=0.1)

    assert outcome == StopOutcome(killed=True)
    assert process.exit_code() == -signal.SIGKILL


def test_the_children_of_a_killed_process_go_too(processes: Processes) -> None:
    process = processes.start(WITH_CHILD)
    (child,) = process.said
    assert is_alive(child)

    outcome = stop_process(process.pid, created(process.pid), grace_seconds=0.1)

    assert outcome == StopOutcome(killed=sys.platform != "win32"), "Windows has no way to ask, so none is told"
    wait_for(lambda: not is_alive(child))


def test_a_process_that_only_has_the_id_is_left_alone(processes: Processes) -> None:
    process = processes.start()

    outcome = stop_process(process.pid, created(process.pid) - 3600)

    assert outcome.gone, "the one that was meant is"
    assert process.runs


def test_a_process_that_has_ended_counts_as_stopped(ended: int, processes: Processes) -> None:
    assert stop_process(ended, time.time()) == StopOutcome()
    assert stop_process(processes.zombie(), time.time()) == StopOutcome()


@pytest.mark.parametrize("pid", [0, 1, -1, os.getpid()], ids=["0", "init", "all", "ourselves"])
def test_the_system_and_ourselves_are_not_stopped(pid: int) -> None:
    assert not stop_process(pid, process_started(pid) or 0).gone


# --- ancestors ----------------------------------------------------------------------------------------------------


def test_the_chain_leads_from_a_process_to_its_ancestors() -> None:
    links = chain(os.getpid(), 0)

    assert [link.pid for link in links][:2] == [os.getpid(), os.getppid()]
    assert links[0].name
    assert "python" in links[0].name


def test_the_registered_parent_comes_before_that_of_the_system() -> None:
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE) as child:
        links = chain(os.getppid(), child.pid)
        child.kill()

    assert [link.pid for link in links][:3] == [os.getppid(), child.pid, os.getpid()]


def test_a_process_that_is_gone_has_no_name_and_ends_the_chain(ended: int) -> None:
    links = chain(os.getpid(), ended)

    assert [(link.pid, link.name is None) for link in links] == [(os.getpid(), False), (ended, True)]


def test_a_parent_that_names_itself_does_not_make_a_circle() -> None:
    assert [link.pid for link in chain(os.getpid(), os.getpid())] == [os.getpid()]


@pytest.mark.parametrize("parent", [2**31, 10**30])
def test_a_registered_parent_that_no_process_can_be_ends_the_chain(parent: int) -> None:
    assert [link.name is None for link in chain(os.getpid(), parent)] == [False, True]


@pytest.mark.parametrize("pid", [0, -5])
def test_no_process_has_no_chain(pid: int) -> None:
    assert chain(pid, os.getpid()) == ()


def test_the_chain_is_cut_at_its_limit() -> None:
    code = ANCESTORS.format(depth=CHAIN_LIMIT + 2)
    with subprocess.Popen([sys.executable, "-ISc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as oldest:
        assert oldest.stdout
        youngest = int(oldest.stdout.readline())

        links = chain(youngest, 0)

        assert len(links) == CHAIN_LIMIT
        assert oldest.pid not in [link.pid for link in links]


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "name"),
    [("alpha", "alpha"), ("alpha.beta.example", "alpha"), ("MixedCase", "MixedCase"), (".dotfirst", "")],
)
def test_the_machines_name_ends_at_the_first_dot(monkeypatch: pytest.MonkeyPatch, host: str, name: str) -> None:
    """As recorded from .NET's Environment.MachineName."""
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", host, "", "", "")))

    assert machine_name() == name


@pytest.mark.skipif(sys.platform == "win32", reason="only POSIX has such entries")
def test_the_users_name_is_that_of_the_passwd_entry() -> None:
    assert user_name() == pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.skipif(sys.platform != "win32", reason="other systems have no such variables")
def test_both_names_are_those_that_windows_tells_its_programs() -> None:
    assert (machine_name(), user_name()) == (os.environ["COMPUTERNAME"], os.environ["USERNAME"])


@pytest.mark.parametrize("says", [None, "other"])
def test_the_environment_decides_neither_name(says: str | None) -> None:
    """AI clients start servers without such variables; a Host would then be taken for that of another user."""
    variables = ("HOSTNAME", "COMPUTERNAME", "USER", "LOGNAME", "USERNAME")
    environ = {name: value for name, value in os.environ.items() if name not in variables}
    if says:
        environ |= dict.fromkeys(variables, says)
    code = "from uno_devserver.system.processes import machine_name, user_name; print((machine_name(), user_name()))"

    result = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)

    assert result.stdout.strip() == str((machine_name(), user_name()))


@pytest.mark.skipif(not ROOT, reason="only root can become a user that the system does not know")
def test_a_user_without_a_passwd_entry_has_no_name() -> None:
    code = "import os, uno_devserver.system.processes as p; os.setuid(54321); print(repr(p.user_name()))"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    assert result.stdout == "''\n"


# --- listeners -------------------------------------------------------------------------------------------------------


LISTENER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[tuple[int, int]]:
    """The process id of a child of ours, and the port it listens on."""
    arguments = [sys.executable, "-c", LISTENER]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())
        process.kill()


def test_the_process_that_listens_is_found_with_its_name(child: tuple[int, int]) -> None:
    pid, port = child

    found = listener(port)

    assert found
    assert found.pid == pid
    assert found.name
    assert found.name.startswith("python")


def test_a_port_that_nobody_has_has_no_listener() -> None:
    assert listener(free_port()) is None


def test_a_port_that_is_only_connected_from_has_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert listener(client.getsockname()[1]) is None


def test_a_process_and_its_descendants_are_one_family(child: tuple[int, int]) -> None:
    pid, port = child

    assert listener_in_family(pid, port) == pid
    assert listener_in_family(os.getpid(), port) == pid
    assert listener_in_family(pid, free_port()) is None


def test_a_process_that_is_gone_has_no_family() -> None:
    assert listener_in_family(2**31 - 1, 80) is None


def test_where_the_system_does_not_tell_nobody_is_named(
    child: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)  # as on macOS, for everybody but root

    assert listener(child[1]) is None
