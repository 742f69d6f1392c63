"""What is in the registry: who runs, who is somebody else's, what is stale and goes, and what stays."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.files import snapshot
from support.golden import GOLDEN
from support.privileges import AS_A_USER, ROOT, needs_a_user
from support.servers import LISTENS, Processes, Registry, an_hour_ago
from uno_devserver.instances.registry import (
    LaunchedHost,
    RegistryScan,
    creation_time,
    prune,
    running_servers,
    write_sidecar,
)
from uno_devserver.system.dotnet_formats import to_time
from uno_devserver.system.processes import START_SLACK_SECONDS, process_started

DEAD = 2**22 + 1  # beyond what Linux gives to processes


def files(*names: str) -> list[str]:
    return sorted(names)


# --- who runs -----------------------------------------------------------------------------------------------------


def test_a_living_server_is_running_and_stays(folder: Registry, processes: Processes, tmp_path: Path) -> None:
    pid = processes.start().pid
    server = folder.sign_in(pid, workspace=tmp_path)
    before = snapshot(folder.folder)

    pruned = prune(str(folder))

    assert pruned == RegistryScan(running=(server.replace(workspace=str(tmp_path)),))
    assert snapshot(folder.folder) == before


def test_a_killed_server_is_gone_with_its_sidecar(folder: Registry, processes: Processes, tmp_path: Path) -> None:
    server = processes.start()
    folder.sign_in(server.pid, workspace=tmp_path)

    server.kill()

    assert running_servers(str(folder)) == ()
    pruned = prune(str(folder))
    assert (pruned.running, folder.names()) == ((), [])
    assert [os.path.basename(path) for path in pruned.removed] == [
        f"devserver-{server.pid}.json",
        f"devserver-{server.pid}.aux.json",
    ]


def test_a_server_that_ended_and_was_not_asked_about_is_gone(folder: Registry, processes: Processes) -> None:
    """The .NET tool still lists it."""
    folder.sign_in(processes.zombie())

    assert prune(str(folder)).running == ()
    assert folder.names() == []


@pytest.mark.skipif(not ROOT, reason="only root can give a file to another user")
def test_an_entry_that_another_user_has_written_is_no_server(folder: Registry, processes: Processes) -> None:
    pid = processes.start().pid
    folder.sign_in(pid)
    entry = folder.folder / f"devserver-{pid}.json"
    os.chown(entry, 65534, -1)

    pruned = prune(str(folder))

    assert (pruned.running, pruned.unreadable) == ((), (str(entry),))
    os.chown(folder.folder, 65534, -1)
    pruned = prune(str(folder))
    assert pruned.problems == (f"The registry {folder} cannot be read: it belongs to another user.",)
    assert not pruned.complete


def test_looking_removes_nothing(folder: Registry) -> None:
    folder.sign_in(DEAD)
    folder.file(f"devserver-{DEAD + 1}.json", "garbage")
    before = snapshot(folder.folder)

    assert running_servers(str(folder)) == ()
    assert snapshot(folder.folder) == before


# --- a process id that came again ---------------------------------------------------------------------------------


def test_a_process_that_is_younger_than_the_entry_only_has_its_id(
    folder: Registry, processes: Processes, tmp_path: Path
) -> None:
    process = processes.start()
    folder.sign_in(process.pid, started=an_hour_ago(), workspace=tmp_path)

    assert running_servers(str(folder)) == ()
    assert prune(str(folder)).running == ()
    assert folder.names() == []
    assert process.runs, "it has nothing to do with this"


def test_the_sidecar_of_a_new_host_survives_the_stale_entry_of_its_process_id(
    folder: Registry, processes: Processes
) -> None:
    process = processes.start()
    folder.sign_in(process.pid, started=an_hour_ago())
    sidecar = write_sidecar(str(folder), process.pid, ide_channel="chan-s")

    prune(str(folder))

    assert folder.names() == [os.path.basename(sidecar)]


def test_the_clock_may_be_a_little_off(folder: Registry, processes: Processes) -> None:
    process = processes.start()
    created = process_started(process.pid)
    assert created
    just_before = to_time(int((created - START_SLACK_SECONDS + 0.5) * 10**9))

    folder.sign_in(process.pid, started=just_before)

    assert [server.process_id for server in running_servers(str(folder))] == [process.pid]


def test_a_process_that_listens_on_the_entrys_port_is_the_server_whatever_the_clock_says(
    folder: Registry, processes: Processes, tmp_path: Path
) -> None:
    """When a virtual machine wakes up, its clock jumps, and every process looks younger than it is."""
    process = processes.start(LISTENS)
    server = folder.sign_in(process.pid, port=process.said[0], started=an_hour_ago(), workspace=tmp_path)

    assert prune(str(folder)).running == (server.replace(workspace=str(tmp_path)),), "and so is its sidecar"
    assert creation_time(server) == process_started(process.pid)


@pytest.mark.parametrize("started", ["", "0001-01-01T00:00:00", "soon"])
def test_an_entry_without_a_time_is_judged_by_the_process_alone(
    folder: Registry, processes: Processes, started: str
) -> None:
    server = folder.sign_in(processes.start().pid, started=started)

    assert prune(str(folder)).running == (server,)


def test_the_sidecar_of_an_earlier_process_says_nothing_of_a_later_one(
    folder: Registry, processes: Processes, tmp_path: Path
) -> None:
    process = processes.start()
    path = Path(write_sidecar(str(folder), process.pid, ide_channel="old", workspace=str(tmp_path)))
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"StartTime": an_hour_ago()}))

    folder.sign_in(process.pid)

    (server,) = running_servers(str(folder))
    assert (server.ide_channel, server.workspace) == (None, None)


# --- sidecars -----------------------------------------------------------------------------------------------------


def test_a_sidecar_that_comes_before_its_entry_stays(folder: Registry, processes: Processes) -> None:
    """The launcher may be faster than the Host."""
    pid = processes.start().pid
    created = process_started(pid)
    assert created
    write_sidecar(str(folder), pid, ide_channel="chan-s", workspace="/ws")

    assert prune(str(folder)) == RegistryScan(launched=(LaunchedHost(pid, "/ws", created),))
    assert len(folder.names()) == 1


@pytest.mark.parametrize("content", [f'{{"ProcessId": {DEAD}, "IdeChannelId": "chan-s"}}', "{}", "garbage", ""])
def test_a_sidecar_of_nobody_goes(folder: Registry, content: str) -> None:
    path = folder.file(f"devserver-{DEAD}.aux.json", content)

    assert prune(str(folder)).removed == (str(path),)


def test_a_sidecar_of_another_machine_stays(folder: Registry) -> None:
    content = {"ProcessId": DEAD, "IdeChannelId": None, "MachineName": "other", "UserName": "someone"}
    folder.file(f"devserver-{DEAD}.aux.json", json.dumps(content))

    assert prune(str(folder)).removed == ()


# --- somebody else's ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whose", [{"machine": "other"}, {"user": "someone"}, {"machine": "other", "user": ""}])
@pytest.mark.parametrize("pid", [DEAD, os.getpid()], ids=["no process here", "a process here"])
def test_an_entry_of_another_machine_or_user_is_shown_and_never_removed(
    folder: Registry, whose: dict[str, Any], pid: int
) -> None:
    server = folder.sign_in(pid, **whose)
    before = snapshot(folder.folder)

    assert prune(str(folder)) == RegistryScan(foreign=(server,))
    assert running_servers(str(folder)) == ()
    assert snapshot(folder.folder) == before


def test_an_entry_that_does_not_say_whose_it_is_goes_with_its_process(folder: Registry, processes: Processes) -> None:
    folder.sign_in(DEAD, machine="", user="")
    alive = folder.sign_in(processes.start().pid, machine="", user="")

    pruned = prune(str(folder))

    assert pruned.foreign == (alive,), "nobody can tell that it is ours"
    assert folder.names() == [f"devserver-{alive.process_id}.json"]


# --- garbage ------------------------------------------------------------------------------------------------------

GARBAGE = [b"", b"not json", b"{", b"[]", b"null", b"\xff\xfe", b"\0" * 100, b"[" * 60_000, b" " * 1_000_000]


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:8]))
def test_garbage_goes_when_no_process_can_be_writing_it(folder: Registry, processes: Processes, content: bytes) -> None:
    """A .NET Host does not write its entry at once: what is half an entry now may be a whole one soon."""
    alive = processes.start().pid
    kept = folder.file(f"devserver-{alive}.json", content)
    stale = folder.file(f"devserver-{DEAD}.json", content)
    nameless = folder.file("devserver-x.json", content)

    pruned = prune(str(folder))

    assert pruned == RegistryScan(removed=(str(stale),), unreadable=tuple(sorted([str(kept), str(nameless)])))


def test_an_entry_that_is_just_being_written_counts(
    folder: Registry, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .NET Host writes it in place; whoever looks in that moment must not start a second Host."""
    server = folder.sign_in(processes.start().pid)
    path = folder.folder / f"devserver-{server.process_id}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(whole))

    assert [one.process_id for one in running_servers(str(folder))] == [server.process_id]


def test_files_of_others_are_not_touched(folder: Registry) -> None:
    folder.file("other.json", "x")
    folder.file("devserver-1.json.tmp", "x")
    folder.file(f"devserver-{DEAD}.txt", "x")
    before = snapshot(folder.folder)

    assert prune(str(folder)) == RegistryScan()
    assert snapshot(folder.folder) == before


@pytest.mark.timeout(20)
def test_pipes_links_and_folders_hide_only_themselves(folder: Registry, processes: Processes, tmp_path: Path) -> None:
    server = folder.sign_in(processes.start().pid)
    outside = tmp_path / "outside"
    outside.write_text("not json")
    os.mkfifo(folder.folder / f"devserver-{DEAD}.json")
    (folder.folder / f"devserver-{DEAD + 1}.json").symlink_to(outside)
    (folder.folder / f"devserver-{DEAD + 2}.json").symlink_to("missing")
    (folder.folder / f"devserver-{DEAD + 3}.json").mkdir()

    pruned = prune(str(folder))

    assert (pruned.running, pruned.problems) == ((server,), ())
    assert outside.read_text() == "not json", "the link goes, not what it leads to"
    assert folder.names() == files(f"devserver-{server.process_id}.json", f"devserver-{DEAD + 3}.json")


@pytest.mark.timeout(30)
def test_thousands_of_files_are_no_burden(folder: Registry, processes: Processes) -> None:
    server = folder.sign_in(processes.start().pid)
    for number in range(3000):
        folder.file(f"devserver-{DEAD + number}.json", "garbage" if number % 2 else json.dumps({"ProcessId": 1}))
    begun = time.monotonic()

    pruned = prune(str(folder))

    assert time.monotonic() - begun < 10
    assert (pruned.running, len(pruned.removed)) == ((server,), 3000)


def test_a_missing_folder_is_an_empty_registry_and_a_file_in_its_place_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "DevServers"
    assert prune(str(path)) == RegistryScan()
    assert not path.exists()
    path.write_text("")

    assert prune(str(path)).problems == (f"The registry {path} cannot be read: Not a directory.",)
    assert path.exists()


@needs_a_user
def test_in_a_folder_that_cannot_be_written_stale_entries_are_passed_over(
    folder: Registry, processes: Processes
) -> None:
    alive = folder.sign_in(processes.start().pid)
    folder.sign_in(DEAD)
    folder.sign_in(DEAD + 1)
    folder.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    code = (
        f"from uno_devserver.instances.registry import prune; pruned = prune({str(folder)!r}); "
        "print([server.process_id for server in pruned.running], *pruned.problems)"
    )

    result = subprocess.run([*AS_A_USER, sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    folder.folder.chmod(0o700)
    assert result.stdout.startswith(f"[{alive.process_id}] {folder}/devserver-{DEAD}"), result.stderr
    assert result.stdout.count("cannot be removed: Permission denied.") == 1
    assert len(folder.names()) == 3


# --- as recorded --------------------------------------------------------------------------------------------------


def test_what_the_net_tool_cleans_up_goes_here_too_except_what_a_living_process_may_be_writing(
    folder: Registry,
) -> None:
    recorded = json.loads((GOLDEN / "host" / "registry" / "cleanup.json").read_bytes())
    for name, content in recorded["before"].items():
        folder.file(name, content)

    pruned = prune(str(folder))

    assert set(folder.names()) - set(recorded["after"]) == {"devserver-1.json"}
    assert set(recorded["after"]) <= set(folder.names())
    assert [(server.process_id, server.machine) for server in pruned.foreign] == [(1, "other-machine")]
