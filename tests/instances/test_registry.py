"""The registry of running Hosts: which entries count, what they say, and what is passed over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.files import snapshot
from uno_devserver.instances.entries import MAX_BYTES
from uno_devserver.instances.registry import Server, is_in_workspace, running_servers
from uno_devserver.system.dotnet_formats import to_time
from uno_devserver.system.processes import machine_name, user_name

ALIVE = os.getpid()
# A Host signs in after it was created; this process was, before it read this line.
NOW = to_time(time.time_ns())


class Registry:
    """The folder, filled as a .NET Host fills it: indented, names in Pascal case, null written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entry(self, pid: int = ALIVE, /, **fields: object) -> Registry:
        content = {
            "ProcessId": pid,
            "ParentProcessId": 0,
            "SolutionPath": None,
            "StartTime": NOW,
            "Port": 5611,
            "MachineName": machine_name(),
            "UserName": user_name(),
            "IdeChannelId": None,
        }
        return self.file(f"devserver-{pid}.json", json.dumps(content | fields, indent=2))

    def file(self, name: str, content: str | bytes) -> Registry:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def servers(self) -> tuple[Server, ...]:
        return running_servers(str(self.folder))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "DevServers")


@pytest.fixture
def other_process() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


# --- what an entry says -------------------------------------------------------------------------------------------


def test_an_entry_of_a_living_process_is_a_running_server(registry: Registry) -> None:
    registry.entry(SolutionPath="/src/App/App.sln", ParentProcessId=99, Port=53821, IdeChannelId="chan-abc")

    assert registry.servers() == (
        Server(
            ALIVE,
            99,
            "/src/App/App.sln",
            NOW,
            53821,
            machine_name(),
            user_name(),
            "chan-abc",
        ),
    )
    assert registry.servers()[0].mcp_endpoint == "http://localhost:53821/mcp"


def test_a_plain_start_has_neither_solution_nor_channel_nor_parent(registry: Registry) -> None:
    (server,) = registry.entry().servers()

    assert (server.solution, server.ide_channel, server.parent_process_id) == (None, None, 0)


def test_fields_that_are_missing_or_of_another_type_are_as_good_as_absent(registry: Registry) -> None:
    (server,) = registry.entry(ParentProcessId="99", SolutionPath=3, StartTime=None, IdeChannelId=[]).servers()

    assert (server.parent_process_id, server.solution, server.started, server.ide_channel) == (0, None, "", None)


def test_net_escapes_are_read(registry: Registry) -> None:
    text = '"SolutionPath": "C:\\\\src\\\\P\\u0159\\u00EDklad \\u0026 Co\\\\App\\u0027s.slnx"'
    content = f'{{"ProcessId": {ALIVE}, "Port": 1, {text}, "MachineName": "{machine_name()}", "UserName": '

    (server,) = registry.file(f"devserver-{ALIVE}.json", content + f'"{user_name()}"}}').servers()

    assert server.solution == "C:\\src\\Příklad & Co\\App's.slnx"


def test_servers_come_in_the_order_of_their_process_ids(registry: Registry, other_process: int) -> None:
    living = [1, *sorted([ALIVE, other_process])]
    for pid, name in zip(living, ["9", "10", "100"], strict=True):  # as texts, the names have another order
        registry.entry(pid)
        (registry.folder / f"devserver-{pid}.json").rename(registry.folder / f"devserver-{name}.json")

    assert [server.process_id for server in registry.servers()] == living


# --- the sidecar --------------------------------------------------------------------------------------------------


def test_the_sidecar_gives_the_channel_that_an_older_host_does_not_record(registry: Registry) -> None:
    registry.entry().file(f"devserver-{ALIVE}.aux.json", f'{{"ProcessId": {ALIVE}, "IdeChannelId": "chan-s"}}')

    (server,) = registry.servers()

    assert server.ide_channel == "chan-s"


@pytest.mark.parametrize("own", ["", "  "])
def test_a_blank_channel_is_filled_from_the_sidecar_too(registry: Registry, own: str) -> None:
    registry.entry(IdeChannelId=own).file(f"devserver-{ALIVE}.aux.json", '{"IdeChannelId": "chan-s"}')

    assert registry.servers()[0].ide_channel == "chan-s"


def test_the_hosts_own_channel_counts_more_than_the_sidecar(registry: Registry) -> None:
    registry.entry(IdeChannelId="chan-own").file(f"devserver-{ALIVE}.aux.json", '{"IdeChannelId": "chan-s"}')

    assert registry.servers()[0].ide_channel == "chan-own"


@pytest.mark.parametrize("content", ["", "not json", "[]", "null", '{"IdeChannelId": 3}', "{}"])
def test_a_sidecar_of_garbage_says_nothing(registry: Registry, content: str) -> None:
    registry.entry().file(f"devserver-{ALIVE}.aux.json", content)

    assert registry.servers()[0].ide_channel is None


def test_a_sidecar_alone_is_no_server(registry: Registry) -> None:
    registry.file(f"devserver-{ALIVE}.aux.json", f'{{"ProcessId": {ALIVE}, "IdeChannelId": "chan-s"}}')

    assert registry.servers() == ()


# --- what does not count ------------------------------------------------------------------------------------------


def test_a_process_that_has_ended_is_passed_over(registry: Registry) -> None:
    process = subprocess.Popen([sys.executable, "-ISc", ""])
    process.wait(20)

    assert registry.entry(process.pid).servers() == ()


@pytest.mark.parametrize("field", ["MachineName", "UserName"])
@pytest.mark.parametrize("value", ["another", "", None])
def test_another_machine_or_user_is_passed_over(registry: Registry, field: str, value: str | None) -> None:
    """The folder may be shared over the network, and process ids mean nothing elsewhere."""
    assert registry.entry(**{field: value}).servers() == ()


def test_names_are_compared_exactly(registry: Registry) -> None:
    assert registry.entry(MachineName=machine_name() + ".local").servers() == ()
    assert registry.entry(UserName=user_name().swapcase()).servers() == ()


def test_names_in_another_case_are_other_names(registry: Registry) -> None:
    content = {"processId": ALIVE, "port": 1, "machineName": machine_name(), "userName": user_name()}

    assert registry.file(f"devserver-{ALIVE}.json", json.dumps(content)).servers() == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"ProcessId": 0},
        {"ProcessId": -1},
        {"ProcessId": True},
        {"ProcessId": str(ALIVE)},
        {"ProcessId": float(ALIVE)},
        {"ProcessId": None},
        {"ProcessId": 2**31},
        {"ProcessId": 10**30},
        {"Port": None},
        {"Port": "5611"},
        {"Port": False},
    ],
    ids=lambda fields: str(fields).replace(str(ALIVE), "own pid"),  # each test worker has another one
)
def test_an_entry_without_a_usable_process_or_port_is_passed_over(registry: Registry, fields: dict[str, Any]) -> None:
    assert registry.entry(**fields).servers() == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"\0" * 100,
        b"[" * 60_000,
        b" " * (MAX_BYTES + 1),
    ],
    ids=["empty", "text", "cut", "list", "null", "string", "BOM", "zeros", "deep", "huge"],
)
def test_garbage_hides_only_itself(registry: Registry, content: bytes) -> None:
    registry.file("devserver-1.json", content).entry()

    assert [server.process_id for server in registry.servers()] == [ALIVE]


@pytest.mark.timeout(10)
def test_what_is_no_file_hides_only_itself(registry: Registry) -> None:
    registry.entry()
    (registry.folder / "devserver-1.json").mkdir()
    os.mkfifo(registry.folder / "devserver-2.json")
    (registry.folder / "devserver-3.json").symlink_to("missing")
    (registry.folder / "devserver-4.json").symlink_to("devserver-4.json")

    assert [server.process_id for server in registry.servers()] == [ALIVE]


@pytest.mark.parametrize(
    "name",
    [
        "other.json",
        "devserver-1.json.tmp",
        "devserver-1.json.77-0.tmp",
        "x-1.json",
        "Devserver-1.json",
        "devserver-1.aux.json",
    ],
)
def test_files_of_other_names_are_not_looked_at(registry: Registry, name: str) -> None:
    registry.entry()
    (registry.folder / f"devserver-{ALIVE}.json").rename(registry.folder / name)

    assert registry.servers() == ()


def test_a_registry_that_is_missing_or_a_file_is_empty(registry: Registry, tmp_path: Path) -> None:
    assert registry.servers() == ()

    (tmp_path / "DevServers").write_text("")

    assert registry.servers() == ()


def test_reading_removes_nothing(registry: Registry) -> None:
    """The .NET tool deletes what it does not understand whenever it looks; we only look."""
    registry.entry().entry(2**31 - 1).file("devserver-1.json", "not json")
    before = snapshot(registry.folder)

    registry.servers()

    assert snapshot(registry.folder) == before


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["ProcessId", "ParentProcessId", "SolutionPath", "StartTime", "Port", "IdeChannelId"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_fields_of_any_kind_are_read_without_an_error(registry: Registry, fields: dict[str, object]) -> None:
    for server in registry.entry(**fields).servers():
        is_in_workspace(server, "/src")


# --- whose server -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solution", "directory", "inside"),
    [
        ("/src/App/App.sln", "/src/App", True),
        ("/src/App/App.sln", "/src/App/", True),
        ("/src/App/App.sln", "/src", True),
        ("/src/App/App.sln", "/", True),
        ("/src/App/../App/./App.sln", "/src/x/../App", True),
        ("/SRC/app/APP.SLN", "/src/App", True),
        ("/src/Application/App.sln", "/src/App", False),
        ("/src/App.sln", "/src/App", False),
        ("/src/App", "/src/App", False),
        ("/src/App/../Other/App.sln", "/src/App", False),
        ("App.sln", "/src/App", False),
        (None, "/src/App", False),
    ],
)
def test_a_server_belongs_to_the_folders_above_its_solution(solution: str | None, directory: str, inside: bool) -> None:
    server = Server(1, 0, solution, "", 1, "", "", None)

    assert is_in_workspace(server, directory) == inside
