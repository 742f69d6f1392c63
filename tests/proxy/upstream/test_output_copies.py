"""Copies of the output of a .NET build, from which servers are started: what changes them, and what removes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.files import write, write_all
from uno_devserver.proxy.upstream.output_copies import OutputCopies
from uno_devserver.workspace.server_command import ServerLine


@pytest.fixture
def server(tmp_path: Path) -> ServerLine:
    output = tmp_path / "bin" / "net10.0"
    write_all(output, {"S": "host", "S.dll": "old", "runtimes/linux/native.so": "large"})
    line = (str(output / "S"), "exec", str(output / "S.dll"), str(output) + "-other")
    copies = str(tmp_path / "obj" / "uno-devserver")
    return ServerLine(line, str(tmp_path), (), "S.csproj", output=str(output), copies=copies)


def test_a_server_is_started_from_a_copy_that_no_build_changes(server: ServerLine) -> None:
    copied = OutputCopies().copied(server)
    for name in ("S.dll", "runtimes/linux/native.so"):
        with open(os.path.join(server.output, name), "r+b") as stream:  # a build may write in place
            stream.write(b"new")

    copy = Path(copied.output)
    assert copy.parent == Path(server.copies)
    assert copied.line == (f"{copy}/S", "exec", f"{copy}/S.dll", server.line[3])
    assert (copy / "S.dll").read_text() == "old"
    assert (copy / "runtimes" / "linux" / "native.so").read_text() == "large"


def test_the_same_output_is_copied_once(server: ServerLine) -> None:
    copies = OutputCopies()

    assert copies.copied(server) == copies.copied(server)


def test_a_new_build_gets_a_new_copy_in_which_only_its_changes_take_room(server: ServerLine) -> None:
    copies = OutputCopies()
    old = Path(copies.copied(server).output)
    write(Path(server.output) / "S.dll", "newer")

    new = Path(copies.copied(server).output)

    assert (new / "S.dll").read_text() == "newer"
    assert (old / "S.dll").read_text() == "old"
    assert os.path.samefile(new / "runtimes/linux/native.so", old / "runtimes/linux/native.so")
    assert not os.path.samefile(new / "runtimes/linux/native.so", Path(server.output) / "runtimes/linux/native.so")


def test_a_copy_stays_as_long_as_its_server_runs(server: ServerLine) -> None:
    copies = OutputCopies()
    first = copies.copied(server).output
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    copies.used(first, process.pid)
    for content in ("second", "third one"):
        write(Path(server.output) / "S.dll", content)
        copies.copied(server)
    assert os.path.isdir(first)

    process.communicate(timeout=60)
    write(Path(server.output) / "S.dll", "fourth again")
    copies.copied(server)

    assert not os.path.exists(first)
    assert len(os.listdir(server.copies)) == 2


def test_copies_of_processes_that_have_ended_are_removed_and_those_of_others_stay(server: ServerLine) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    write_all(Path(server.copies), {f"{ended.pid}-1/S.dll": "", f"{os.getppid()}-1/S.dll": "", "notes/x": ""})

    OutputCopies().copied(server)

    assert set(os.listdir(server.copies)) == {f"{os.getppid()}-1", f"{os.getpid()}-1", "notes"}


def test_without_an_output_or_room_for_a_copy_the_command_stays(server: ServerLine, tmp_path: Path) -> None:
    write(tmp_path / "file", "")

    assert OutputCopies().copied(server.replace(copies=str(tmp_path / "file" / "x"))).line == server.line
    assert OutputCopies().copied(server.replace(output=str(tmp_path / "gone"))).line == server.line


def test_no_copy_is_made_and_nothing_removed_behind_a_link(server: ServerLine, tmp_path: Path) -> None:
    kept = write(tmp_path / "elsewhere" / "2019-1" / "taxes", "")
    os.makedirs(os.path.dirname(server.copies), exist_ok=True)
    os.symlink(tmp_path / "elsewhere", server.copies)

    assert OutputCopies().copied(server) == server
    assert kept.exists()
    assert os.listdir(tmp_path / "elsewhere") == ["2019-1"]
