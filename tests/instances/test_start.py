"""Whether a server that is registered is used, waited for or replaced: the cases that need a process of one's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.servers import Processes, Registry
from support.stand_in_host import StandInHost, answer
from uno_devserver.instances.launch import LaunchFailure, LaunchFailureReason
from uno_devserver.instances.local_http import Loopback
from uno_devserver.instances.registry import RegisteredServer
from uno_devserver.instances.start import answers, wait_until_usable
from uno_devserver.issues import UserError
from uno_devserver.system.ports import free_port
from uno_devserver.system.processes import process_started

DEAD = 2**22 + 1  # beyond what Linux gives to processes
A_WHILE = 0.3  # for a server that will not answer


@pytest.fixture
def mute(folder: Registry, processes: Processes) -> RegisteredServer:
    """A young server that does not listen; this test is its parent."""
    return folder.sign_in(processes.start().pid, port=free_port(), parent_process_id=os.getpid())


def _usable(
    folder: Registry,
    server: RegisteredServer,
    go_on: Callable[[float], bool] = lambda _: True,
    seconds: float = A_WHILE,
) -> RegisteredServer | None:
    found: Iterator[RegisteredServer] = iter([server] * 1000)
    return wait_until_usable(
        str(folder),
        lambda: next(found, None),
        starting_seconds=seconds,
        go_on=go_on,
        say=lambda _: None,
        with_addins=True,
    )


def test_a_server_that_had_time_to_start_is_not_waited_for(
    folder: Registry, mute: RegisteredServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_clock(monkeypatch, mute, seconds_after=A_WHILE + 1)
    patience = _Patience()

    with pytest.raises(UserError, match="does not answer on its port"):
        _usable(folder, mute, patience)

    assert patience.questions == 0


@pytest.mark.timeout(20)
def test_a_clock_that_stands_still_does_not_make_it_wait_for_ever(
    folder: Registry, mute: RegisteredServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_clock(monkeypatch, mute, seconds_after=0)
    patience = _Patience()

    with pytest.raises(UserError, match="does not answer on its port"):
        _usable(folder, mute, patience)

    assert patience.questions > 0


class _Patience:
    """Always goes on, and counts how often it was asked."""

    questions = 0

    def __call__(self, _: float) -> bool:
        self.questions += 1
        return True


def _set_clock(monkeypatch: pytest.MonkeyPatch, server: RegisteredServer, *, seconds_after: float) -> None:
    created = process_started(server.process_id)
    assert created
    monkeypatch.setattr("uno_devserver.instances.start.time.time", lambda: created + seconds_after)


def test_waiting_for_a_server_that_somebody_else_starts_can_be_given_up(
    folder: Registry, mute: RegisteredServer
) -> None:
    with pytest.raises(LaunchFailure) as failure:
        _usable(folder, mute, lambda _: False, seconds=60)

    assert failure.value.reason is LaunchFailureReason.GIVEN_UP


def test_a_server_that_has_to_go_and_does_not_is_an_error(folder: Registry) -> None:
    """Process 1 is never stopped."""
    server = folder.sign_in(1, parent_process_id=DEAD)

    with pytest.raises(UserError, match="has to be replaced and cannot be stopped") as error:
        _usable(folder, server)

    assert error.value.next_step.startswith("End process 1")


def test_a_port_that_another_process_answers_on_does_not_speak_for_the_server(
    tmp_path: Path, mute: RegisteredServer
) -> None:
    with StandInHost(tmp_path, [answer("GET /mcp", 406)]) as stranger:
        assert not answers(mute.replace(port=stranger.port), Loopback(), 10)
        assert answers(mute.replace(port=stranger.port, process_id=stranger.pid), Loopback(), 10)
