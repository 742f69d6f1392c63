"""When a registered server is used, waited for or replaced; and what is kept of a workspace between two starts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.files import write
from support.machine import DATA_HOME
from support.servers import Processes, Registry
from support.stand_in_host import StandInHost, answer
from uno_devserver.instances.launch import StartObserver, StartOutcome
from uno_devserver.instances.launch_failure import LaunchFailure, LaunchFailureReason
from uno_devserver.instances.registry import RegisteredServer, write_sidecar
from uno_devserver.instances.start import log_path, remember_port, remembered_port, start, usable_server
from uno_devserver.issues import UserError
from uno_devserver.system.folders import folders
from uno_devserver.system.ports import free_port
from uno_devserver.system.processes import process_started

from .start_requests import start_request

DEAD = 2**22 + 1  # beyond what Linux gives to processes
A_WHILE = 0.3  # for a server that will not answer
SOLUTION = "/ws/A.sln"


@pytest.fixture
def mute(folder: Registry, processes: Processes) -> RegisteredServer:
    """A young server that does not listen; this test is its parent."""
    return folder.sign_in(processes.start().pid, port=free_port(), parent_process_id=os.getpid(), solution=SOLUTION)


class Patience(StartObserver):
    """Counts how often it was asked to go on."""

    def __init__(self, answer: bool = True) -> None:
        self.questions = 0
        self._answer = answer

    def go_on(self) -> bool:
        self.questions += 1
        return self._answer


def _usable(
    folder: Registry, patience: StartObserver | None = None, seconds: float = A_WHILE
) -> RegisteredServer | None:
    request = start_request("/ws", SOLUTION, ready_seconds=seconds)
    return usable_server(request, str(folder), patience or StartObserver(), with_addins=True)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("age", "waits"), [(A_WHILE + 1, False), (0, True)], ids=["grown up", "the clock stands still"]
)
def test_a_server_that_does_not_answer_is_waited_for_while_it_may_be_starting(
    folder: Registry, mute: RegisteredServer, monkeypatch: pytest.MonkeyPatch, age: float, waits: bool
) -> None:
    created = process_started(mute.process_id)
    assert created
    monkeypatch.setattr("uno_devserver.instances.start.time.time", lambda: created + age)
    patience = Patience()

    with pytest.raises(UserError, match="does not answer on its port"):
        _usable(folder, patience)

    assert (patience.questions > 0) is waits


@pytest.mark.usefixtures("mute")
def test_waiting_for_a_server_that_another_program_starts_can_be_given_up(folder: Registry) -> None:
    with pytest.raises(LaunchFailure) as failure:
        _usable(folder, Patience(answer=False), seconds=60)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP


def test_a_server_that_has_to_go_and_does_not_is_an_error(folder: Registry) -> None:
    """Process 1 is never stopped."""
    folder.sign_in(1, parent_process_id=DEAD, solution=SOLUTION)

    with pytest.raises(UserError, match="must be replaced, but cannot be stopped") as error:
        _usable(folder)

    assert error.value.next_step.startswith("End process 1")


def test_a_port_that_another_process_answers_on_does_not_speak_for_the_server(
    folder: Registry, tmp_path: Path, processes: Processes
) -> None:
    with StandInHost(tmp_path, [answer("GET /mcp", 406)]) as host:
        folder.sign_in(processes.start().pid, port=host.port, parent_process_id=os.getpid(), solution=SOLUTION)
        with pytest.raises(UserError, match="does not answer on its port"):
            _usable(folder)

        right = folder.sign_in(host.pid, port=host.port, parent_process_id=os.getpid(), solution="/ws/B.sln")
        request = start_request("/ws", "/ws/B.sln")
        assert usable_server(request, str(folder), StartObserver(), with_addins=True) == right


class Planned(Exception):
    pass


class UntilPlanned(StartObserver):
    """Lets a start wait once, and ends it where a Host would be launched."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def planning(self) -> None:
        raise Planned

    def go_on(self) -> bool:
        return not self.messages

    def said(self, message: str) -> None:
        self.messages.append(message)


@pytest.mark.parametrize(("age", "waits"), [(0, True), (61, False)], ids=["just launched", "never registered"])
def test_a_host_that_has_not_registered_is_waited_for_while_it_may_be_starting(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch, age: float, waits: bool
) -> None:
    environ = {**os.environ, DATA_HOME: str(tmp_path)}
    launched = processes.start().pid
    created = process_started(launched)
    assert created
    write_sidecar(folders(environ).registry, launched, ide_channel=None, workspace=str(tmp_path))
    monkeypatch.setattr("uno_devserver.instances.start.time.time", lambda: created + age)
    observer = UntilPlanned()

    with pytest.raises(Planned):
        start(start_request(tmp_path, ready_seconds=60), folders(environ), environ, observer)

    expected = [f"Waiting for a Host that was just launched (process {launched}) ..."] if waits else []
    assert observer.messages == expected


# --- what is kept of a workspace ------------------------------------------------------------------------------------


def test_a_proxy_tells_the_port_of_a_host_that_it_finds_only_in_a_trusted_workspace(tmp_path: Path) -> None:
    environ = {**os.environ, DATA_HOME: str(tmp_path / "data"), "UNO_DEVSERVER_TRUST": ""}
    write(tmp_path / "ws" / "App.csproj", "<Project/>")
    solution = write(tmp_path / "ws" / "App.slnx", '<Solution><Project Path="App.csproj"/></Solution>')
    told = tmp_path / "ws" / "App.csproj.user"
    request = start_request(tmp_path / "ws", str(solution), host="bundled", parent=os.getpid())
    running = start(request, folders(environ), environ, StartObserver())
    assert running.child is not None
    try:
        told.unlink()
        for trust, writes in (("", False), ("1", True)):
            environ["UNO_DEVSERVER_TRUST"] = trust

            found = start(request.replace(by_user=False), folders(environ), environ, StartObserver())

            assert (found.outcome, told.exists()) == (StartOutcome.REUSED, writes)
    finally:
        running.child.stop(10)


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def test_two_solutions_of_a_workspace_have_two_logs(state: str) -> None:
    assert log_path(state, "/ws", "/ws/A.sln") != log_path(state, "/ws", "/ws/B.sln")


def test_a_port_is_remembered_for_its_workspace_alone(state: str) -> None:
    remember_port(state, "/ws", None, 5001)
    remember_port(state, "/other", None, 5002)
    remember_port(state, "/ws", "/ws/App.slnx", 5003)

    assert remembered_port(state, "/ws", None) == 5001
    assert remembered_port(state, "/other", None) == 5002
    assert remembered_port(state, "/ws", "/ws/App.slnx") == 5003
    assert remembered_port(state, "/third", None) == 0


def test_the_file_is_the_users_alone_and_the_last_port_counts(state: str) -> None:
    for port in (5001, 5002):
        remember_port(state, "/ws", None, port)

    [file] = (Path(state) / "ports").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert remembered_port(state, "/ws", None) == 5002


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "5001", '{"port": 5001}', '{"path": "/elsewhere", "port": 5001}'],
    ids=["empty", "broken", "a list", "a number", "nobody's", "of a path with the same key"],
)
def test_what_is_not_understood_is_as_good_as_absent(state: str, content: str) -> None:
    remember_port(state, "/ws", None, 5001)
    [file] = (Path(state) / "ports").iterdir()
    file.write_text(content)

    assert remembered_port(state, "/ws", None) == 0


@pytest.mark.parametrize("port", ["0", "-1", "65536", "true", '"5001"', "5001.5", "null"])
def test_a_port_that_is_none_is_not_used(state: str, port: str) -> None:
    remember_port(state, "/ws", None, 5001)
    [file] = (Path(state) / "ports").iterdir()
    file.write_text(f'{{"path": "/ws", "port": {port}}}')

    assert remembered_port(state, "/ws", None) == 0


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    state = write(tmp_path / "state", "a file where the folder should be")

    remember_port(str(state), "/ws", None, 5001)

    assert os.listdir(tmp_path) == ["state"]
