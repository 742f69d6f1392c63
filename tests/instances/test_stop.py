"""Stopping registered servers: they end, their registrations go, and nobody else is harmed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from support.servers import IGNORES_SIGTERM, Processes, Registry, an_hour_ago
from uno_devserver.instances.stop import stop_server, stop_servers
from uno_devserver.system.processes import StopOutcome


def test_a_server_ends_and_its_registration_goes(folder: Registry, processes: Processes, tmp_path: Path) -> None:
    process = processes.start()
    server = folder.sign_in(process.pid, workspace=tmp_path)

    assert stop_server(str(folder), server) == StopOutcome()
    assert process.exit_code() == -signal.SIGTERM
    assert folder.names() == []


def test_a_server_that_only_shares_its_id_with_a_process_is_signed_out_and_the_process_lives(
    folder: Registry, processes: Processes
) -> None:
    process = processes.start()
    server = folder.sign_in(process.pid, started=an_hour_ago())

    assert stop_server(str(folder), server).gone
    assert process.runs
    assert folder.names() == []


def test_stubborn_servers_are_waited_for_together(folder: Registry, processes: Processes) -> None:
    stubborn = [processes.start(IGNORES_SIGTERM) for _ in range(4)]
    servers = [folder.sign_in(process.pid) for process in stubborn]
    begun = time.monotonic()

    outcomes = stop_servers(str(folder), servers, grace_seconds=1)

    assert outcomes == (StopOutcome(killed=True),) * 4
    assert time.monotonic() - begun < 3, "one after the other would take 4 s"
    assert folder.names() == []


def test_nothing_to_stop_is_no_problem(folder: Registry) -> None:
    assert stop_servers(str(folder), []) == ()
