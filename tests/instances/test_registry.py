"""The registry of running Hosts: which entries count, what they say, and what is passed over."""

from __future__ import annotations

import json
import os
import stat
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
from support.golden import GOLDEN
from support.servers import Processes
from support.servers import Registry as Signed
from uno_devserver.instances.registry import (
    MAX_ENTRY_BYTES,
    RegisteredServer,
    is_in_workspace,
    log_of,
    members_of,
    new_entry,
    on_port,
    process_in_name,
    prune,
    read_members,
    register,
    running_servers,
    server_of,
    serving,
    unregister,
    update_channel,
    write_members,
    write_sidecar,
)
from uno_devserver.system.dotnet_formats import to_time
from uno_devserver.system.files import FileProblem
from uno_devserver.system.processes import machine_name, user_name

ALIVE = os.getpid()
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
            "StartTime": to_time(time.time_ns()),
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

    def servers(self) -> tuple[RegisteredServer, ...]:
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
    registry.entry(
        SolutionPath="/src/App/App.sln", ParentProcessId=99, Port=53821, IdeChannelId="chan-abc", StartTime=NOW
    )

    assert registry.servers() == (
        RegisteredServer(
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
    ids=range(11),  # one of them is its own process id, and each test worker has another one
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
        b" " * (MAX_ENTRY_BYTES + 1),
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


# --- signing in and out -------------------------------------------------------------------------------------------


def test_a_host_signs_itself_in_and_is_found(folder: Signed) -> None:
    server = new_entry(5611, parent=os.getppid(), solution="/src/App/App.sln", ide_channel="chan-abc")

    path = register(str(folder), server)

    assert path == str(folder.folder / f"devserver-{os.getpid()}.json")
    assert running_servers(str(folder)) == (server,)
    assert (server.process_id, server.machine, server.user) == (os.getpid(), machine_name(), user_name())


def test_signing_in_again_replaces_the_entry(folder: Signed) -> None:
    register(str(folder), new_entry(5611))
    register(str(folder), new_entry(5612))

    assert [server.port for server in running_servers(str(folder))] == [5612]
    assert len(folder.names()) == 1, "and leaves nothing else"


def test_signing_out_takes_the_sidecar_along(folder: Signed, tmp_path: Path) -> None:
    other = folder.sign_in(1)
    folder.sign_in(os.getpid(), workspace=tmp_path)

    unregister(str(folder), os.getpid())

    assert folder.names() == [f"devserver-{other.process_id}.json"]
    unregister(str(folder), os.getpid())  # once more does no harm


def test_a_host_that_is_bound_to_another_channel_says_so(folder: Signed) -> None:
    register(str(folder), new_entry(5611, solution="/src/App/Příklad.sln", ide_channel="old"))
    write_sidecar(str(folder), os.getpid(), ide_channel="old", workspace="/src/App")

    assert update_channel(str(folder), os.getpid(), "new")

    (server,) = running_servers(str(folder))
    assert (server.ide_channel, server.solution, server.workspace) == ("new", "/src/App/Příklad.sln", "/src/App")


def test_a_host_that_has_no_channel_any_more_is_not_given_one_by_its_sidecar(folder: Signed) -> None:
    register(str(folder), new_entry(5611, ide_channel="old"))
    write_sidecar(str(folder), os.getpid(), ide_channel="old")

    update_channel(str(folder), os.getpid(), None)

    assert running_servers(str(folder))[0].ide_channel is None


def test_members_that_we_do_not_know_survive_the_change_of_a_channel(folder: Signed) -> None:
    path = Path(register(str(folder), new_entry(5611)))
    content = json.loads(path.read_bytes()) | {"Later": {"List": [1, "x", None], "Yes": True}}
    path.write_text(json.dumps(content))

    update_channel(str(folder), os.getpid(), "new")

    assert json.loads(path.read_bytes()) == content | {"IdeChannelId": "new"}


def test_a_channel_is_not_recorded_for_a_host_that_is_not_signed_in(folder: Signed) -> None:
    assert not update_channel(str(folder), os.getpid(), "new")
    assert folder.names() == []


def test_a_sidecar_begins_with_the_recorded_lines(folder: Signed) -> None:
    recorded = (GOLDEN / "host" / "registry" / "aux-sidecar" / "devserver-PID.aux.json").read_text()

    path = write_sidecar(str(folder), 4242, ide_channel="chan-s", workspace="/src/App")

    written = Path(path).read_text()
    assert written.startswith(recorded.replace("{HOSTPID_CHAN}", "4242").removesuffix("\n}") + ",\n")
    assert json.loads(written)["WorkspaceDirectory"] == "/src/App"
    assert Path(path).name == "devserver-4242.aux.json"


def test_a_folder_that_cannot_be_used_is_a_problem_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "DevServers").write_text("")

    with pytest.raises(FileProblem, match=f"devserver-{os.getpid()}.json"):
        register(str(tmp_path / "DevServers"), new_entry(5611))
    with pytest.raises(FileProblem, match=f"devserver-{os.getpid()}.json"):
        unregister(str(tmp_path / "DevServers"), os.getpid())


READS_WHILE = """
import json, sys
folder, pid = sys.argv[1:]
print("ready", flush=True)
seen = set()
for _ in range(100_000):
    try:
        with open(f"{folder}/devserver-{pid}.json", "rb") as file:
            seen.add(json.loads(file.read())["IdeChannelId"])
    except PermissionError:  # of Windows, while it is replaced
        continue
    if len(seen) > 3:
        break
print(len(seen))
"""


def test_a_reader_never_sees_half_an_entry(folder: Signed) -> None:
    register(str(folder), new_entry(5611, ide_channel="0"))
    arguments = [sys.executable, "-ISc", READS_WHILE, str(folder), str(os.getpid())]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        reader.stdout.readline()
        deadline = time.monotonic() + 20
        number = 0
        while reader.poll() is None and time.monotonic() < deadline:
            number += 1
            update_channel(str(folder), os.getpid(), str(number) * 1000)
        reader.kill()
        assert reader.stdout.read().split() == [b"4"]


# --- finding one --------------------------------------------------------------------------------------------------


def test_the_server_of_a_solution_is_found_whatever_the_case(folder: Signed, processes: Processes) -> None:
    folder.sign_in(processes.start().pid, solution="/src/Other/Other.sln")
    app = folder.sign_in(processes.start().pid, solution="/src/App/App.sln")

    assert serving(str(folder), solution="/SRC/app/./App.SLN") == app
    assert serving(str(folder), solution="/src/App/App.slnx") is None


def test_a_solution_that_is_entered_by_a_link_is_the_same(folder: Signed, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "App.sln").write_text("")
    (tmp_path / "link").symlink_to("real")
    server = folder.sign_in(os.getpid(), solution=str(tmp_path / "real" / "App.sln"))

    assert serving(str(folder), solution=str(tmp_path / "link" / "App.sln")) == server


def test_a_relative_solution_is_one_of_the_hosts_folder(folder: Signed, processes: Processes, tmp_path: Path) -> None:
    server = folder.sign_in(processes.start(cwd=tmp_path).pid, solution="App.sln")

    assert serving(str(folder), solution=str(tmp_path / "App.sln")) == server
    assert serving(str(folder), solution=os.path.abspath("App.sln")) is None


def test_the_server_of_a_workspace_without_a_solution_is_found_by_its_sidecar(
    folder: Signed, processes: Processes, tmp_path: Path
) -> None:
    folder.sign_in(processes.start().pid, solution=str(tmp_path / "App.sln"), workspace=tmp_path)
    folder.sign_in(processes.start().pid)
    server = folder.sign_in(processes.start().pid, workspace=tmp_path)

    assert serving(str(folder), workspace=str(tmp_path)) == server.replace(workspace=str(tmp_path))
    assert serving(str(folder), workspace=str(tmp_path / "deeper")) is None
    assert serving(str(folder)) is None


def test_a_server_is_found_by_its_port(folder: Signed, processes: Processes) -> None:
    server = folder.sign_in(processes.start().pid, port=5612)
    folder.sign_in(processes.start().pid, port=0)

    assert on_port(str(folder), 5612) == server
    assert on_port(str(folder), 5613) is None
    assert on_port(str(folder), 0) is None


def test_servers_of_others_and_dead_ones_serve_nobody(folder: Signed, processes: Processes) -> None:
    folder.sign_in(os.getpid(), solution="/src/App.sln", user="someone")
    dead = processes.start()
    folder.sign_in(dead.pid, solution="/src/App.sln")
    dead.kill()

    assert serving(str(folder), solution="/src/App.sln") is None
    assert on_port(str(folder), 5611) is None
    assert [server.user for server in prune(str(folder)).foreign] == ["someone"]


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
    server = RegisteredServer(1, 0, solution, "", 1, "", "", None)

    assert is_in_workspace(server, directory) == inside


def test_the_log_that_the_launcher_recorded_is_named_while_it_is_there(tmp_path: Path) -> None:
    log = tmp_path / "host.log"
    server = RegisteredServer(1, 0, None, "", 5000, "", "", None, log_file=str(log))

    before = log_of(server)
    log.touch()

    assert (before, log_of(server), log_of(server.replace(log_file=None))) == (None, str(log), None)


# --- the log and foreign entries -------------------------------------------------------------------------------------


BYTES = GOLDEN / "bytes" / "json"
HOST = GOLDEN / "host" / "registry"

PLAIN = RegisteredServer(
    4242, 4241, "/home/dev/My App/My App.sln", "2025-03-09T14:05:06.1234567Z", 53821, "DEVBOX", "dev", None
)
SPECIAL = RegisteredServer(
    77,
    1,
    "C:\\src\\Příklad & Co\\App's <1>.slnx",
    "2025-03-09T14:05:06Z",
    0,
    "BÜRO-PC",
    "jürgen+1",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (PLAIN, "registry-entry.json"),
        (PLAIN, "registry-entry-stream.json"),
        (SPECIAL, "registry-entry-special-characters.json"),
    ],
)
def test_an_entry_has_the_bytes_that_net_writes(tmp_path: Path, server: RegisteredServer, name: str) -> None:
    path = tmp_path / "devserver-1.json"

    write_members(str(path), members_of(server))

    assert path.read_bytes() == (BYTES / name).read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["all", "idechannel", "plain", "ppid", "relative-solution", "solution-addins"])
def test_what_a_real_host_signed_in_with_is_read_and_written_the_same(tmp_path: Path, name: str) -> None:
    recorded = (HOST / name / "devserver-PID.json").read_text("utf-8")
    recorded = recorded.replace("{HOSTPID}", "4242").replace("{PPID}", "99")
    path = tmp_path / "devserver-4242.json"
    path.write_text(recorded, "utf-8")

    server = server_of(read_members(str(path)) or {})

    assert server
    assert (server.process_id, server.port, server.machine, server.user) == (4242, 5611, "{MACHINE}", "{USER}")
    assert server.parent_process_id == (99 if name in ("all", "ppid") else 0)
    assert server.ide_channel == ("chan-abc" if name in ("all", "idechannel") else None)
    write_members(str(path), members_of(server))
    assert path.read_text("utf-8") == recorded


def test_members_that_are_missing_are_as_good_as_null() -> None:
    members = json.loads((BYTES / "registry-entry-ignore-null.json").read_bytes())

    assert server_of(members) == PLAIN


def test_members_in_camel_case_are_other_members() -> None:
    assert server_of(json.loads((BYTES / "registry-entry-camelcase.json").read_bytes())) is None


@pytest.mark.parametrize(
    ("name", "pid"),
    [
        ("devserver-12.json", 12),
        ("devserver-12.aux.json", 12),
        ("devserver-x.json", None),
        ("devserver--1.json", None),
        ("devserver-12.json.tmp", None),
        (f"devserver-{'1' * 5000}.json", None),
    ],
)
def test_a_name_tells_its_process(name: str, pid: int | None) -> None:
    assert process_in_name(name) == pid


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "DevServers").write_text("a file where the folder should be")
    path = tmp_path / "DevServers" / "devserver-1.json"

    with pytest.raises(FileProblem) as problem:
        write_members(str(path), {})

    assert problem.value.path == str(path)
