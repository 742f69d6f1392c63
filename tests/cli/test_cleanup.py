"""`cleanup`: stale registrations go, everything else stays, and no process is ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.files import snapshot, write
from support.golden import GOLDEN
from support.machine import DATA_HOME, Machine
from support.servers import Processes, Registry, an_hour_ago
from uno_devserver.system.files import TEMPORARY

DEAD = 2**22 + 1  # beyond what Linux gives to processes
LISTENS = """
import socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind({path!r})
listening.listen(1)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temp(machine: Machine) -> Iterator[Path]:
    """A temp folder with a path that is short enough for sockets: else they are elsewhere."""
    with tempfile.TemporaryDirectory(prefix="u") as folder:
        machine.environment["TMPDIR"] = folder
        yield Path(folder)


def test_without_leftovers_it_prints_the_recorded_lines(
    machine: Machine, registry: Registry, processes: Processes
) -> None:
    registry.sign_in(processes.start().pid)
    recorded = json.loads((GOLDEN / "host" / "controller" / "one-cleanup.json").read_bytes())
    before = snapshot(registry.folder)

    result = machine.run("cleanup")

    assert (result.exit_code, result.stdout.splitlines()) == (0, recorded["stdout"].splitlines()[1:])
    assert snapshot(registry.folder) == before


def test_what_is_stale_goes_and_is_named(machine: Machine, registry: Registry, processes: Processes) -> None:
    reused, alive = processes.start(), processes.start()
    registry.sign_in(DEAD)
    registry.sign_in(reused.pid, started=an_hour_ago())
    registry.sign_in(alive.pid)
    registry.sign_in(DEAD + 1, machine="other")
    registry.file(f"devserver-{DEAD + 2}.json", "garbage")
    kept = registry.file(f"devserver-{os.getpid()}.json", "garbage")

    result = machine.run("cleanup", "--json").json

    stale = [f"devserver-{pid}.json" for pid in (DEAD, reused.pid, DEAD + 2)]
    assert sorted(result["removed"]) == sorted(str(registry.folder / name) for name in stale)
    assert (result["running"], result["unreadable"], result["problems"]) == ([alive.pid], [str(kept)], [])
    assert registry.names() == sorted([f"devserver-{alive.pid}.json", f"devserver-{DEAD + 1}.json", kept.name])
    assert reused.runs
    assert alive.runs


def test_expired_keys_of_pages_and_tokens_of_earlier_versions_go(machine: Machine) -> None:
    now = {"a": "0", "b": f"{time.time():.0f}"}
    expired, used = (write(machine.state / "inspector" / (digit * 64), now[digit]) for digit in "ab")
    token = write(machine.state / "inspector" / "app-01234567.json", '{"token": "t"}')

    removed = machine.run("cleanup", "--json").json["removed"]

    assert sorted(removed) == sorted(map(str, (expired, token)))
    assert [file.name for file in used.parent.iterdir()] == [used.name]


def test_the_text_names_each_file(machine: Machine, registry: Registry) -> None:
    registry.sign_in(DEAD)
    kept = registry.file(f"devserver-{os.getpid()}.json", "garbage")

    assert machine.run("cleanup").stdout.splitlines() == [
        "Cleaning up stale DevServer registrations...",
        f"Removed {registry.folder / f'devserver-{DEAD}.json'}",
        f"Left {kept}: it is not a registration and may not be stale.",
        "Cleanup completed.",
    ]


def test_control_channels_of_proxies_that_were_killed_go(machine: Machine, temp: Path) -> None:
    # given sockets of ours, one that is listened on and one that is not; one of another program; and no socket
    ours = [temp / f"CoreFxPipe_uno-{digit * 24}" for digit in "abc"]
    live, left, file = ours
    other = temp / "CoreFxPipe_other"
    file.touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(live))
        listening.listen()
        for path in (left, other):
            with socket.socket(socket.AF_UNIX) as ended:
                ended.bind(str(path))
                ended.listen()

        # when it is cleaned up
        result = machine.run("cleanup", "--json")

    # then only the one that no process uses is removed
    assert (result.exit_code, result.json["removed"]) == (0, [str(left)])
    assert sorted(temp.iterdir()) == sorted((live, file, other))


@pytest.mark.parametrize("asked", ["the kernel's list", "the socket"])
def test_control_channels_of_processes_that_live_stay_whatever_they_do_and_whosoever_they_are(
    machine: Machine, processes: Processes, temp: Path, asked: str
) -> None:
    # given processes that know nothing of this user's data folder: one is stopped, of one the queue is full
    stopped, busy = (temp / f"CoreFxPipe_uno-{digit * 24}" for digit in "de")
    owner = processes.start(LISTENS.format(path=str(stopped)))
    processes.start(LISTENS.format(path=str(busy)))
    os.kill(owner.pid, signal.SIGSTOP)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(10)]
    for knocking in waiting:
        knocking.setblocking(False)
    full = [knocking.connect_ex(str(busy)) for knocking in waiting]
    assert full[-1] != 0, "the queue is full"
    machine.environment[DATA_HOME] = str(machine.root / "fresh")
    if asked == "the socket":  # the kernel knows it by another path
        (temp / "link").symlink_to(temp)
        machine.environment["TMPDIR"] = str(temp / "link")

    # when it is cleaned up
    result = machine.run("cleanup", "--json")

    # then their sockets are still there
    for knocking in waiting:
        knocking.close()
    os.kill(owner.pid, signal.SIGCONT)
    assert (result.exit_code, result.json["removed"]) == (0, [])
    assert stopped.is_socket()
    assert busy.is_socket()


def test_status_files_of_killed_proxies_are_removed(machine: Machine, registry: Registry, processes: Processes) -> None:
    # given the files of a proxy that is gone, one of them half written; and what is no file of a proxy that is gone
    folder = machine.state / "proxies"
    left = [write(folder / name, "{}") for name in (f"{DEAD}.json", f"{DEAD}.json.{DEAD}-0{TEMPORARY}")]
    proxy = processes.start("import sys; 'uno_devserver'; print('ready', flush=True); sys.stdin.read()")
    kept = [
        write(folder / name, "{}")
        for name in (f"{proxy.pid}.json", f"{proxy.pid}.json.{proxy.pid}-0{TEMPORARY}", "a.json")
    ]

    # when it is cleaned up
    result = machine.run("cleanup", "--json")

    # then only the first go
    assert (result.exit_code, result.json["removed"]) == (0, [str(path) for path in left])
    assert sorted(folder.iterdir()) == sorted(kept)
    assert proxy.runs
