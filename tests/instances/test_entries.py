"""One file of the registry: ours are the bytes that .NET writes, and theirs are understood."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from support.golden import GOLDEN
from uno_devserver.instances.registry import (
    RegisteredServer,
    members_of,
    process_in_name,
    read_members,
    server_of,
    write_members,
)
from uno_devserver.system.files import FileProblem

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
