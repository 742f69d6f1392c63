"""The end of a session: the proxy is gone at once, with everything that it started, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.hosts import is_running
from support.machine import COMMAND, WINDOWS
from support.odd_servers import Notes, odd_server
from support.proxies import Proxies
from support.signals import SIGHUP
from support.waiting import wait_for
from uno_devserver.instances.registry import scan_registry

from .conftest import Workbench

GONE_SECONDS = 1.0  # what is promised; on a machine that has nothing else to do it takes a tenth of it
BUSY = 10.0  # how much longer it may take where other tests run at the same time
# A proxy that does not leave its status file to others when the disk, or the machine, is slow.
REMOVES_IN_ANY_CASE = """
import sys
from uno_devserver.proxy.health import status_file

status_file.REMOVE_SECONDS = 10.0
del sys.argv[0]
from uno_devserver.__main__ import main
sys.exit(main())
"""
TERMINATED = 1 if WINDOWS else -signal.SIGTERM  # the exit code of a process that had not begun to heed signals
FIRST_MOMENTS, MOMENT_SECONDS = 10, 0.013  # a first start is over after some 100 ms


def gone_within(seconds: float, *pids: int) -> bool:
    deadline = time.monotonic() + seconds
    while any(is_running(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.mark.parametrize("moment", ["at once", "connected"])
def test_when_stdin_closes_proxy_and_host_are_gone(proxies: Proxies, bench: Workbench, moment: str) -> None:
    client = proxies.start()
    client.initialize()
    if moment == "connected":
        client.wait_connected()

    client.close_stdin()

    assert client.exit_code(GONE_SECONDS * BUSY) == 0
    wait_for(lambda: not proxies.processes(), seconds=GONE_SECONDS * BUSY)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, SIGHUP])
def test_a_signal_right_behind_the_first_answer_leaves_no_status_file(
    proxies: Proxies, bench: Workbench, number: signal.Signals
) -> None:
    client = proxies.start(prefix=[sys.executable, "-P", "-c", REMOVES_IN_ANY_CASE])
    client.initialize()

    client.process.send_signal(number)

    assert client.exit_code(GONE_SECONDS * BUSY) == 0
    assert not (bench.machine.state / "proxies" / f"{client.pid}.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, SIGHUP])
def test_a_signal_ends_proxy_and_host(proxies: Proxies, bench: Workbench, number: signal.Signals) -> None:
    client = proxies.connected()
    host = client.health()["hostProcessId"]

    client.process.send_signal(number)

    client.exit_code(GONE_SECONDS * BUSY)
    assert gone_within(GONE_SECONDS * BUSY, host)


def test_a_proxy_that_is_killed_takes_its_host_with_it(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    host = client.health()["hostProcessId"]

    client.process.kill()

    assert gone_within(GONE_SECONDS * BUSY, client.pid, host)


def test_a_command_and_all_that_it_started_end_with_the_proxy(proxies: Proxies, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    client = proxies.connected("--", *odd_server(notes=notes, grandchild=True, stays=True, ignores_sigterm=True))

    client.close_stdin()

    client.exit_code()
    assert gone_within(GONE_SECONDS * BUSY, *notes.starts, *notes.children)


def test_making_a_catalogue_that_is_interrupted_leaves_nothing_and_is_no_success(
    proxies: Proxies, tmp_path: Path
) -> None:
    notes = Notes(tmp_path / "notes")
    command = odd_server(notes=notes, never_reads=True, stays=True, ignores_sigterm=True)
    client = proxies.start("--force-generate-tool-cache", "--", *command)
    wait_for(lambda: notes.starts)

    client.process.send_signal(signal.SIGTERM)

    assert client.exit_code(GONE_SECONDS * BUSY) == 1
    assert gone_within(GONE_SECONDS * BUSY, *notes.starts)


def test_stdin_that_closes_during_a_call_does_not_wait_for_the_call(
    proxies: Proxies, bench: Workbench, tmp_path: Path
) -> None:
    client = proxies.connected()
    begun = tmp_path / "begun"
    client.begin("tools/call", {"name": "hold", "arguments": {"begun": str(begun), "until": str(tmp_path / "never")}})
    wait_for(lambda: begun.exists() and begun.read_text())

    client.close_stdin()

    assert client.exit_code(GONE_SECONDS * BUSY) == 0


def test_what_was_asked_just_before_stdin_closed_is_answered_where_that_costs_no_waiting(proxies: Proxies) -> None:
    client = proxies.start()

    client.initialize()
    ping = client.begin("ping")
    client.close_stdin()

    assert client.answer(ping)["result"] == {}


def test_a_client_that_dies_behind_a_wrapper_takes_everything_with_it(proxies: Proxies, bench: Workbench) -> None:
    """As under npx or uvx: the client's child is a wrapper, which keeps the pipes open and does not forward signals."""
    wrapper = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:])\n"
        "[signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)]\n"
        "child.wait()\n"
    )
    client_program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'child.stdin.write(b\'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n\')\n'
        "child.stdin.flush()\n"
        "print(child.stdout.readline(), flush=True)\n"
        "time.sleep(1000)\n"
    )
    command = [sys.executable, "-c", wrapper, COMMAND, "mcp", "start"]
    process = subprocess.Popen(
        [sys.executable, "-c", client_program, *command],
        cwd=bench.machine.workspace,
        env=bench.machine.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout
    assert b"result" in process.stdout.readline()
    wait_for(lambda: len(proxies.processes()) >= 4)  # client, wrapper, proxy, Host

    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    wait_for(lambda: not proxies.processes(), seconds=GONE_SECONDS * BUSY)
    process.stdout.close()


def test_whenever_stdin_closes_in_the_first_moments_nothing_is_left_and_nothing_fails(
    proxies: Proxies, tmp_path: Path
) -> None:
    """A second thread imports and launches meanwhile; a server that it launches in the last moment ends, too."""
    notes = Notes(tmp_path / "notes")
    for moment in range(FIRST_MOMENTS):
        client = proxies.start("--", *odd_server(notes=notes, stays=True, ignores_sigterm=True))
        client.begin("tools/list")
        time.sleep(moment * MOMENT_SECONDS)

        client.close_stdin()

        assert client.exit_code(GONE_SECONDS * BUSY) == 0, client.stderr
        assert not client.stderr.count("went wrong"), client.stderr
        wait_for(lambda: not proxies.processes(), seconds=GONE_SECONDS * BUSY)


def test_whenever_a_signal_comes_in_the_first_moments_nothing_is_left(proxies: Proxies, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    for moment in range(FIRST_MOMENTS):
        client = proxies.start("--", *odd_server(notes=notes, stays=True, ignores_sigterm=True))
        client.begin("tools/list")
        time.sleep(moment * MOMENT_SECONDS)

        client.process.send_signal(signal.SIGTERM)

        assert client.exit_code(GONE_SECONDS * BUSY) in (0, TERMINATED), client.stderr
        wait_for(lambda: not proxies.processes(), seconds=GONE_SECONDS * BUSY)


def test_neither_a_status_file_nor_a_registry_entry_is_left_of_a_session(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected(prefix=[sys.executable, "-P", "-c", REMOVES_IN_ANY_CASE])
    file = bench.machine.state / "proxies" / f"{client.pid}.json"
    registry = bench.machine.data / "Uno Platform" / "DevServers"
    wait_for(file.exists)
    assert list(registry.iterdir())

    client.close_stdin()
    client.exit_code()

    assert not file.exists()
    # On a busy machine the Host has no time to remove its entry before it is killed; then the next reading removes it.
    wait_for(lambda: scan_registry(str(registry), removing=True).running == () and not list(registry.iterdir()))
