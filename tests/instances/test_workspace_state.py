"""What is kept of a workspace: the log is found again, the port is remembered, and nothing there can do harm."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.instances.registry import RegisteredServer, log_of
from uno_devserver.instances.start import log_path, remember_port, remembered_port


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


# --- the log --------------------------------------------------------------------------------------------------------


def test_the_log_that_the_launcher_recorded_is_named_while_it_is_there(tmp_path: Path) -> None:
    log = tmp_path / "host.log"
    server = RegisteredServer(1, 0, None, "", 5000, "", "", None, log_file=str(log))

    before = log_of(server)
    log.touch()

    assert (before, log_of(server), log_of(server.replace(log_file=None))) == (None, str(log), None)


def test_two_solutions_of_a_workspace_have_two_logs(state: str) -> None:
    assert log_path(state, "/ws", "/ws/A.sln") != log_path(state, "/ws", "/ws/B.sln")


# --- the port -------------------------------------------------------------------------------------------------------


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
