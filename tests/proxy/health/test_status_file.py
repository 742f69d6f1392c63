"""The status files of proxies: written without anybody waiting, believed while their writer lives, then removed."""

from __future__ import annotations

import itertools
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from support.files import write
from support.machine import Machine
from support.servers import Processes
from support.waiting import wait_for
from uno_devserver.cli import health
from uno_devserver.cli.parse import parse
from uno_devserver.instances.host_kind import HostKind
from uno_devserver.instances.probe import Probe
from uno_devserver.proxy.health import status_file
from uno_devserver.proxy.health.report import report
from uno_devserver.proxy.health.status_file import StatusFile, inspector_page, running_proxies, status_of
from uno_devserver.proxy.options import ProxyOptions
from uno_devserver.proxy.state import ConnectionState, ProxyFacts, UpstreamFacts
from uno_devserver.proxy.upstream.base import Ending
from uno_devserver.system import processes as processes_module
from uno_devserver.system.files import TEMPORARY
from uno_devserver.system.processes import process_started

FACTS = ProxyFacts(
    ProxyOptions("/ws"),
    ConnectionState.CONNECTED,
    upstream=UpstreamFacts(HostKind.BUNDLED, 42, "http://localhost:5651/mcp", owned=True),
    host=Probe(),
    tool_count=3,
    generation=2,
    restarts=1,
    last_end=Ending("it ended with exit code 3", 3, ("boom",)),
    catalogue_written=1.0,
    timeline=(("connected", 240),),
    clients=("claude-code",),
)


@pytest.fixture
def status(tmp_path: Path) -> Iterator[StatusFile]:
    status = StatusFile(str(tmp_path))
    yield status
    status.remove()


def own_file(state: Path) -> Path:
    return state / "proxies" / f"{os.getpid()}.json"


def test_the_newest_facts_are_on_disk_soon_and_only_for_the_user(status: StatusFile, tmp_path: Path) -> None:
    status.update(ProxyFacts(ProxyOptions("/ws")))
    wait_for(lambda: [each["state"] for each in running_proxies(str(tmp_path))] == ["Initializing"])

    status.update(FACTS)

    wait_for(lambda: [each["state"] for each in running_proxies(str(tmp_path))] == ["Connected"])
    assert stat.S_IMODE(own_file(tmp_path).stat().st_mode) == 0o600
    [told] = running_proxies(str(tmp_path))
    assert (told["processId"], told["directory"], told["restarts"]) == (os.getpid(), "/ws", 1)
    assert (told["status"], told["issues"]) == ("Healthy", [])


def test_the_age_of_the_catalogue_is_that_of_the_moment_of_reading(status: StatusFile, tmp_path: Path) -> None:
    before = time.time()
    status.update(FACTS.replace(catalogue_written=before - 100))
    wait_for(lambda: bool(running_proxies(str(tmp_path))))

    [told] = running_proxies(str(tmp_path))

    age = told["catalogueAgeSeconds"]
    assert isinstance(age, float)
    assert 99 < age < 100 + time.time() - before + 1


def test_at_the_end_the_file_is_gone_and_nothing_comes_after(tmp_path: Path) -> None:
    status = StatusFile(str(tmp_path))
    status.update(FACTS)
    wait_for(own_file(tmp_path).exists)

    status.remove()

    wait_for(lambda: not own_file(tmp_path).exists())
    status.update(FACTS)
    assert os.listdir(tmp_path / "proxies") == []


@pytest.mark.parametrize("name", ["uno-devserver", "uno.devserver"])
def test_a_proxy_can_be_found_before_anything_is_known_of_it(
    status: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(processes_module, "command_line", lambda _: ("python", f"/usr/bin/{name}", "mcp", "start"))

    status.write_first(ProxyOptions("/ws"))

    [told] = running_proxies(str(tmp_path))
    learned = report(ProxyFacts(ProxyOptions("/ws")))
    assert (told["processId"], told["state"], told["directory"]) == (os.getpid(), "Initializing", "/ws")
    assert (told["status"], told["issues"]) == (learned["status"], learned["issues"])
    assert status_of(str(tmp_path), os.getpid()) == told
    assert stat.S_IMODE(own_file(tmp_path).stat().st_mode) == 0o600


def test_what_is_written_first_is_replaced_by_what_is_learned(status: StatusFile, tmp_path: Path) -> None:
    status.write_first(ProxyOptions("/ws"))

    status.update(FACTS)

    wait_for(lambda: [each["state"] for each in running_proxies(str(tmp_path))] == ["Connected"])
    assert len(os.listdir(tmp_path / "proxies")) == 1


def test_a_proxy_that_ends_before_it_has_learned_anything_leaves_no_file(tmp_path: Path) -> None:
    status = StatusFile(str(tmp_path))
    status.write_first(ProxyOptions("/ws"))

    status.remove()

    assert os.listdir(tmp_path / "proxies") == []
    status.update(FACTS)  # by the engine, which another thread still runs
    assert status._writer is None


def test_an_end_while_the_first_update_is_under_way_leaves_no_file(
    status: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def end_meanwhile(writer: threading.Thread) -> None:
        status.remove()
        start(writer)

    monkeypatch.setattr(threading.Thread, "start", end_meanwhile)

    status.update(FACTS)

    assert status._writer is not None
    status._writer.join(10)
    assert not own_file(tmp_path).exists()


def test_facts_that_change_all_the_time_are_written_all_the_same(status: StatusFile, tmp_path: Path) -> None:
    written: set[int] = set()
    changes = itertools.count()

    def changed() -> bool:
        status.update(FACTS.replace(generation=next(changes)))
        written.update(cast(int, each["generation"]) for each in running_proxies(str(tmp_path)))
        return len(written) >= 3

    wait_for(changed)


def test_the_end_does_not_wait_until_facts_have_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_file, "QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(status_file, "REMOVE_SECONDS", 10.0)
    status = StatusFile(str(tmp_path))
    status.update(FACTS)

    status.remove()

    assert status._writer is not None
    assert not status._writer.is_alive()


def test_where_nothing_can_be_written_the_proxy_does_not_care(tmp_path: Path) -> None:
    write(tmp_path / "proxies", "a file where the folder should be")

    for write_status in (lambda status: status.write_first(ProxyOptions("/ws")), lambda status: status.update(FACTS)):
        status = StatusFile(str(tmp_path))
        write_status(status)  # type: ignore[no-untyped-call]
        status.remove()

        assert running_proxies(str(tmp_path)) == ()


@pytest.mark.parametrize("name", ["{0}.json", f"{{0}}.json.{{0}}-1{TEMPORARY}"])
def test_what_a_dead_process_left_is_ignored_and_removed(tmp_path: Path, processes: Processes, name: str) -> None:
    left = write(tmp_path / "proxies" / name.format(processes.zombie()), json.dumps({"created": time.time()}))

    assert running_proxies(str(tmp_path)) == ()
    assert not left.exists()


def test_a_process_that_only_has_the_id_of_a_proxy_is_none(tmp_path: Path, processes: Processes) -> None:
    other = processes.start()
    status = {"processId": other.pid, "created": time.time() - 3600, "state": "Connected"}
    left = write(tmp_path / "proxies" / f"{other.pid}.json", json.dumps(status))

    assert running_proxies(str(tmp_path)) == ()
    assert not left.exists()
    assert other.runs


def test_a_file_that_is_replaced_while_it_is_judged_stays(
    status: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy may get the id of one that was killed, and write its file while somebody removes the old one."""
    stale = {"processId": os.getpid(), "created": time.time() - 3600, "state": "Connected"}
    write(own_file(tmp_path), json.dumps(stale))

    def judged(_: int) -> tuple[str, ...]:
        status.update(FACTS)
        wait_for(lambda: json.loads(own_file(tmp_path).read_bytes()) != stale)
        return ()

    monkeypatch.setattr(processes_module, "command_line", judged)

    assert [told["restarts"] for told in running_proxies(str(tmp_path))] == [FACTS.restarts]
    assert own_file(tmp_path).exists()


def test_a_jump_of_the_clock_does_not_make_a_proxy_disappear(tmp_path: Path, processes: Processes) -> None:
    proxy = processes.start("import sys; 'uno_devserver'; print('ready', flush=True); sys.stdin.read()")
    status = {"processId": proxy.pid, "created": time.time() - 3600, "state": "Connected"}
    write(tmp_path / "proxies" / f"{proxy.pid}.json", json.dumps(status))

    assert [told["processId"] for told in running_proxies(str(tmp_path))] == [proxy.pid]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[]", b'{"processId": 1}', b"{" * 5000])
def test_a_file_that_says_anything_else_is_passed_over(tmp_path: Path, processes: Processes, content: bytes) -> None:
    write(tmp_path / "proxies" / f"{processes.start().pid}.json", content)
    write(tmp_path / "proxies" / "99999999999999999999.json", content)
    strangers = [write(tmp_path / "proxies" / name, "not ours") for name in ("notes.json", "12.text")]

    assert running_proxies(str(tmp_path)) == ()
    assert all(stranger.exists() for stranger in strangers)


TOKEN = "t" * 31 + "_"


def test_the_token_of_the_page_is_in_the_file_and_in_no_status_that_is_read(status: StatusFile, tmp_path: Path) -> None:
    facts = FACTS.replace(inspector="http://localhost:6274/", inspector_token=TOKEN)
    status.update(facts)
    page = wait_for(lambda: inspector_page(str(tmp_path), os.getpid()))

    assert page == (6274, TOKEN)
    (told,) = running_proxies(str(tmp_path))
    assert told["inspector"] == "http://localhost:6274/"
    assert TOKEN not in json.dumps([told, status_of(str(tmp_path), os.getpid()), report(facts)])


@pytest.mark.parametrize(
    ("address", "token"),
    [
        (None, None),
        ("http://localhost:6274/", None),
        ("http://localhost:6274/", "short"),
        ("http://localhost:6274/", TOKEN + "\r\nX-Other: header"),
        ("http://localhost:6274/", [TOKEN]),
        *((address, TOKEN) for address in (None, 6274, "http://evil.example:80/", "http://localhost:80@evil.example/")),
        ("http://localhost:6274/\n", TOKEN),
    ],
)
def test_a_file_that_names_no_page_of_this_machine_or_no_token_names_none(
    tmp_path: Path, processes: Processes, address: object, token: object
) -> None:
    pid = processes.start().pid
    content = {"processId": pid, "created": process_started(pid), "inspector": address, "inspectorToken": token}
    write(tmp_path / "proxies" / f"{pid}.json", json.dumps(content))

    assert inspector_page(str(tmp_path), pid) is None


def test_without_a_folder_there_are_no_proxies(tmp_path: Path) -> None:
    assert running_proxies(str(tmp_path)) == ()


# --- `uno-devserver health` -----------------------------------------------------------------------------------------


def leave_status(machine: Machine, pid: int, directory: Path, **changes: Any) -> None:
    """As a proxy of that process would have written it."""
    status = {
        "processId": pid,
        "created": process_started(pid),
        "directory": str(directory),
        "state": "Connected",
        "generation": 2,
        "restarts": 1,
        "toolCount": 3,
        "listsFresh": True,
        "catalogueWritten": time.time(),
        "upstream": {"kind": "bundled", "processId": 42, "endpoint": "http://localhost:5651/mcp", "owned": True},
        "lastExit": {
            "reason": "it ended with exit code 3",
            "exitCode": 3,
            "lastLines": ["Unhandled exception:", "boom"],
        },
        "timeline": {"initialize": 12, "connected": 240},
        "clients": ["claude-code"],
    }
    write(machine.state / "proxies" / f"{pid}.json", json.dumps(status | changes))


def test_health_shows_the_proxies_of_the_workspace_and_no_others(machine: Machine, processes: Processes) -> None:
    mine, inside, elsewhere = (processes.start().pid for _ in range(3))
    leave_status(machine, mine, machine.workspace)
    leave_status(machine, inside, machine.workspace / "src")
    leave_status(machine, elsewhere, machine.root / "other")

    report = machine.run("health", "--json").json

    assert sorted(proxy["processId"] for proxy in report["proxies"]) == sorted([mine, inside])
    shown = next(proxy for proxy in report["proxies"] if proxy["processId"] == mine)
    assert (shown["state"], shown["restarts"], shown["clients"]) == ("Connected", 1, ["claude-code"])
    assert shown["timeline"] == {"initialize": 12, "connected": 240}


@pytest.mark.parametrize(
    "passing",
    [
        {"state": "Connecting", "issues": [{"code": "HostUnreachable", "severity": "Warning", "message": "Not yet."}]},
        {"state": "Initializing", "upstream": None},
        {"listsFresh": False},
        {"upstream": {"kind": "command", "processId": 2**22 + 1}},  # no process has such an id
    ],
    ids=["connecting", "initializing", "old lists", "ended process"],
)
def test_health_waits_for_a_status_that_is_about_to_change(
    machine: Machine, processes: Processes, monkeypatch: pytest.MonkeyPatch, passing: dict[str, Any]
) -> None:
    pid = processes.start().pid
    running = {"issues": [], "upstream": {"kind": "command", "processId": os.getpid(), "name": "mine"}}
    leave_status(machine, pid, machine.workspace, **running | passing)
    for name, value in machine.variables().items():
        monkeypatch.setenv(name, value)
    # The proxy writes the next status as soon as health has seen that it has to wait.
    monkeypatch.setattr(health, "say", lambda _: leave_status(machine, pid, machine.workspace, **running))

    told = health.run(parse(["health", "--solution-dir", str(machine.workspace)]))

    report = cast("dict[str, Any]", told.data)
    assert (told.exit_code, report["hostProcessId"], report["toolCount"]) == (0, os.getpid(), 3)
    assert report["proxies"][0]["listsFresh"] is True


def test_health_does_not_wait_long_for_a_server_that_starts_slowly(machine: Machine, processes: Processes) -> None:
    leave_status(machine, processes.start().pid, machine.workspace, state="Connecting", issues=[])

    told = machine.run("health")

    assert "Connection: Not connected" in told.stdout.splitlines()


def test_health_tells_people_what_a_proxy_does_and_how_its_server_ended(machine: Machine, processes: Processes) -> None:
    pid = processes.start().pid
    leave_status(machine, pid, machine.workspace)

    lines = machine.run("health").stdout.splitlines()

    assert lines[lines.index("Proxies:") :] == [
        "Proxies:",
        f"- PID: {pid} (Connected, 1 restart)",
        "  Client: claude-code",
        "  Upstream: bundled, process 42, http://localhost:5651/mcp, started by it",
        "  Tools: 3, as the upstream has them",
        "  Timeline: initialize 12 ms, connected 240 ms",
        "  Last Exit: it ended with exit code 3",
        "    Unhandled exception:",
        "    boom",
    ]


def test_of_a_config_that_cannot_be_read_health_says_what_counts_until_then(
    machine: Machine, processes: Processes
) -> None:
    write(machine.workspace / ".devtools" / "host.config.jsonc", "{")
    before = machine.run("health", "--json").issue("ConfigInvalid")["remediation"]

    leave_status(machine, processes.start().pid, machine.workspace)

    assert before.endswith("proxies start no server.")
    now = machine.run("health", "--json").issue("ConfigInvalid")["remediation"]
    assert now.endswith("what was read before counts.")


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (None, ["Hot Reload: off, because the workspace is not trusted"]),
        ({"owner": False}, ["Hot Reload: on, by the proxy that started the Host"]),
        (
            {"strategy": "restart", "packages": [{"files": None}], "lastRestart": None},
            ["Hot Reload: on, restart, files counted at the first call", "Last Reload: none since the proxy started"],
        ),
        (
            {
                "strategy": "swap",
                "packages": [{"files": 7}, {"files": 5}],
                "lastBuild": {"at": "today", "ok": False, "named": "npm run build", "logFile": "/b.log"},
                "lastRestart": {"at": "yesterday", "ok": True},
                "client": {"running": True, "ready": True, "processId": 7, "problem": None},
            },
            [
                "Hot Reload: on, swap, 12 files watched",
                "Last Build: npm run build, today, failed; see /b.log",
                "Last Reload: yesterday, succeeded",
                "Client Process: ready (process 7)",
            ],
        ),
        (
            {
                "strategy": "restart",
                "packages": [{"files": 2}],
                "lastRestart": {"at": "today", "ok": True, "problem": "a.py is not loaded."},
            },
            ["Hot Reload: on, restart, 2 files watched", "Last Reload: today, loaded in part: a.py is not loaded."],
        ),
        (
            {
                "strategy": "swap",
                "packages": ["?", {"files": 1}],
                "lastRestart": {"at": "today", "ok": False, "problem": "It ended."},
                "client": {"running": False, "problem": "It ended.", "logFile": "/c.log"},
            },
            [
                "Hot Reload: on, swap, 1 file watched",
                "Last Reload: today, failed: It ended.",
                "Client Process: does not run; see /c.log",
            ],
        ),
    ],
)
def test_health_tells_people_where_new_code_is_asked_for_and_how_that_goes(
    machine: Machine, processes: Processes, told: object, shown: list[str]
) -> None:
    why = "the workspace is not trusted"
    channel = "/tmp/CoreFxPipe_uno-1"
    leave_status(
        machine, processes.start().pid, machine.workspace, controlChannel=channel, hotReload=told, hotReloadOff=why
    )

    lines = machine.run("health").stdout.splitlines()

    begin = lines.index(f"  Control Channel: {channel}") + 1
    assert lines[begin : begin + len(shown)] == [f"  {line}" for line in shown]
    assert lines[begin + len(shown)].startswith("  Timeline: ")


def test_health_names_the_log_of_a_command_behind_a_proxy(machine: Machine, processes: Processes) -> None:
    upstream = {"kind": "command", "processId": 42, "endpoint": None, "owned": True, "logFile": "/logs/mine.log"}
    leave_status(machine, processes.start().pid, machine.workspace, upstream=upstream, issues=[])

    assert machine.run("health", "--json").json["logFile"] == "/logs/mine.log"
    assert "Log: /logs/mine.log" in machine.run("health").stdout.splitlines()


def test_numbers_that_no_clock_has_are_as_good_as_none(tmp_path: Path) -> None:
    pid = os.getpid()
    created = process_started(pid)

    write(own_file(tmp_path), json.dumps({"processId": pid, "created": created, "catalogueWritten": 10**400}))
    [told] = running_proxies(str(tmp_path))
    write(own_file(tmp_path), json.dumps({"processId": pid, "created": 10**400}))

    assert told["catalogueAgeSeconds"] is None
    assert running_proxies(str(tmp_path)) in ((), ({"processId": pid, "catalogueAgeSeconds": None},))


def test_health_survives_a_status_of_any_shape(machine: Machine, processes: Processes) -> None:
    pid = processes.start().pid
    nonsense = {
        name: ["?"] for name in ("upstream", "lastExit", "timeline", "clients", "toolCount", "issues", "hotReload")
    }
    leave_status(machine, pid, machine.workspace, **nonsense, listsFresh=False, catalogueWritten="?", restarts=None)

    assert f"- PID: {pid} (Connected)" in machine.run("health").stdout.splitlines()


def test_without_proxies_health_says_nothing_of_them(machine: Machine) -> None:
    assert "Proxies:" not in machine.run("health").stdout
    assert machine.run("health", "--json").json["proxies"] == []
