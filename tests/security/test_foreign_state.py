"""Another user of the machine puts files into the state, or owns a part of it: nothing of that is believed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.files import write
from support.machine import Machine
from support.odd_servers import odd_server
from support.proxies import Proxies

from .marks import CONFIG, Marks, opened

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both"
)

NOBODY = 65534
# Run as nobody: writes each file, if it can, and prints which it could write.
ATTACK = r"""
import json, os, sys
os.umask(0); os.setgroups([]); os.setgid(65534); os.setuid(65534)
done = []
for path, content in json.loads(sys.argv[1]).items():
    try:
        with open(path, "w") as stream:
            stream.write(content)
        done.append(path)
    except OSError:
        pass
print(json.dumps(done))
"""


def as_nobody(files: dict[str, str]) -> list[str]:
    line = [sys.executable, "-ISc", ATTACK, json.dumps(files)]
    done = subprocess.run(line, capture_output=True, timeout=60, check=True)
    written: list[str] = json.loads(done.stdout)
    return written


@pytest.fixture
def machine() -> Iterator[Machine]:
    """In a folder that all users may enter."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Machine(Path(folder))


PLANTED = (
    "a file of theirs",
    "a file of theirs in an open folder",
    "words of theirs in an open file",
    "a folder of theirs",
    "a file of ours in a folder of theirs",
    "a link to a folder of theirs",
    "a link to a file of theirs",
    "a state of theirs",
)


def plant(how: str, trust: Path, name: str, content: str) -> None:
    """Have another user's agreement in the state, or one that another user can exchange."""
    open_folders, file = (trust, trust.parent, trust.parent.parent), trust / name
    theirs = trust.parent.parent.parent / "theirs"
    given: tuple[Path, ...] = ()
    match how:
        case "a file of theirs":
            given = (write(file, content),)
        case "a file of theirs in an open folder":
            for folder in open_folders:
                folder.chmod(0o777)
            assert as_nobody({str(file): content})
        case "words of theirs in an open file":
            for folder in open_folders:
                folder.chmod(0o711)
            write(file, "").chmod(0o666)
            assert as_nobody({str(file): content})
        case "a folder of theirs":
            given = (write(file, content), trust)
        case "a file of ours in a folder of theirs":
            write(file, content).chmod(0o600)
            given = (trust,)
        case "a link to a folder of theirs":
            trust.rename(theirs)
            trust.symlink_to(theirs)
            given = (write(file, content), theirs)
        case "a link to a file of theirs":
            file.symlink_to(write(theirs, content))
            given = (theirs,)
        case "a state of theirs":
            given = (write(file, content), trust, trust.parent)
    for path in given:
        os.chown(path, NOBODY, NOBODY)


@pytest.fixture
def marks(machine: Machine) -> Marks:
    """A workspace with an add-in to which the user has agreed."""
    marks = Marks(machine)
    marks.addin("first.py", "first")
    machine.run("trust")
    return marks


@pytest.mark.parametrize("how", PLANTED)
def test_an_agreement_that_another_user_planted_is_none(machine: Machine, marks: Marks, how: str) -> None:
    (genuine,) = (machine.state / "trust").iterdir()
    content = genuine.read_text("utf-8")
    genuine.unlink()

    plant(how, genuine.parent, genuine.name, content)
    with opened(machine) as (_, report):
        pass

    assert marks.left == set()
    assert "WorkspaceNotTrusted" in str(report["issues"])


def test_the_users_own_agreement_counts_also_where_others_may_read_it(machine: Machine, marks: Marks) -> None:
    """As a backup that was restored may leave it."""
    (genuine,) = (machine.state / "trust").iterdir()
    genuine.chmod(0o644)
    genuine.parent.chmod(0o755)

    with opened(machine):
        assert marks.left == {"first"}


def test_tools_that_another_user_planted_are_not_offered(machine: Machine) -> None:
    """A client is told the tools of the last time until the server answers: what they say reaches the model."""
    server = write(machine.root / "server", f"#!/bin/sh\nexec {shlex.join(odd_server())}\n")
    server.chmod(0o755)
    write(machine.workspace / CONFIG, json.dumps({"mcpServer": {"command": str(server)}}))
    machine.run("trust")
    with Proxies(machine) as proxies:
        client = proxies.connected()
        client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "kept")
    write(server, f"#!/bin/sh\nexec {shlex.join(odd_server(never_reads=1))}\n")
    (catalogue,) = (machine.state / "catalogue").iterdir()

    ours = offered(machine)
    os.chown(catalogue, NOBODY, NOBODY)
    theirs = offered(machine)

    assert "echo" in ours, "the user's own list is offered"
    assert "echo" not in theirs


def offered(machine: Machine) -> list[str]:
    """The tools that a client is told at once."""
    with Proxies(machine) as proxies:
        client = proxies.start()
        client.initialize()
        return client.tools()


def test_folders_that_were_left_open_are_closed_when_they_are_used(machine: Machine, marks: Marks) -> None:
    use(machine)
    roots = (machine.state, machine.state.parent / "DevServers")
    made = [folder for root in roots for folder in (root, *root.rglob("*")) if folder.is_dir()]
    machine.state.parent.chmod(0o755)
    for folder in made:
        folder.chmod(0o777)
    assert as_nobody({str(folder / "before"): "" for folder in made}), "they are open"

    use(machine)

    assert as_nobody({str(folder / "planted"): "" for folder in made}) == []


def use(machine: Machine) -> None:
    """Have the program write what it keeps."""
    for argv in (("trust",), ("mcp", "install", "cursor"), ("start",), ("stop",)):
        assert machine.run(*argv).exit_code == 0, argv
    with opened(machine):
        pass
