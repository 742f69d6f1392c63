"""`dotnet` runs the SDK that `sdk.paths` of a repository names: it is not started where `global.json` may hold that.

The stand-in `dotnet` notes how it was called. All that the real one answers without an SDK are the two lists; whatever
else is asked of it, `--version` too, runs `dotnet.dll` of the folder that `sdk.paths` names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.files import write
from support.machine import WINDOWS, Machine
from support.privileges import AS_A_USER, needs_a_user
from support.proxies import Proxies

from .marks import CONFIG, settled

HARMLESS = (["--list-sdks"], ["--list-runtimes"])
MANY = 1 << 20
EVIL = json.dumps({"sdk": {"version": "99.0.100", "paths": ["evil", "$host$"]}, "msbuild-sdks": {"Uno.Sdk": "6.5.31"}})
PLAIN = '{"sdk": {"version": "99.0.100"}}'


Content = str | bytes | Callable[[Path], object]


def unreadable(path: Path) -> None:
    write(path, EVIL).chmod(0)


# Contents, or what makes something at the path, that a reader may fail to understand.
UNREAD: dict[str, Content] = {
    "blanks behind it": EVIL + " " * MANY,
    "blanks before it": " " * MANY + EVIL,
    "a long comment": f"/*{'x' * MANY}*/{EVIL}",
    "a long other member": EVIL[:-1] + f', "x": "{"x" * MANY}"}}',
    "UTF-16": EVIL.encode("utf-16"),
    "unreadable": unreadable,
    "a folder": Path.mkdir,
    **({} if WINDOWS else {"a FIFO": lambda path: os.mkfifo(path)}),
    "a link to a long file": lambda path: path.symlink_to(write(path.parent / "docs/sdk.json", EVIL + " " * MANY)),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
}
# What was refused before as well, and has to stay so.
TRICKY: dict[str, Content] = {
    "as it is": EVIL,
    "an escaped letter of paths": EVIL.replace("paths", r"p\u0061ths"),
    "an escaped letter of sdk": EVIL.replace('"sdk"', r'"\u0073dk"'),
    "two sdk, the first one evil": EVIL[:-1] + ', "sdk": {"version": "10.0.401"}}',
    "two sdk, the second one evil": PLAIN[:-1] + ", " + EVIL[1:],
    "two paths": EVIL.replace('"paths"', '"paths": [], "paths"'),
    "words behind the end": EVIL + " and more",
    "a byte that is no UTF-8": EVIL.encode().replace(b"evil", b"evil\xff"),
    "many levels": EVIL[:-1] + f', "x": {"[" * 100_000}',
    "exactly a MiB": EVIL.ljust(MANY),
}


LOOKS = (("disco",), ("health",))


def lay(path: Path, content: Content) -> None:
    path.parent.mkdir(exist_ok=True)
    if callable(content):
        content(path)
    else:
        write(path, content)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With .NET, and two workspaces, one below the other."""
    machine = Machine(tmp_path)
    machine.install_dotnet()
    for folder in (".", "below"):
        write(machine.workspace / folder / CONFIG, "{}")
    return machine


def started(machine: Machine) -> list[list[str]]:
    """What was asked of `dotnet` that has it run an SDK."""
    assert machine.dotnet is not None
    return [argv for argv in machine.dotnet.calls() if argv not in HARMLESS]


def look(machine: Machine, folder: str = ".") -> None:
    for argv in LOOKS:
        machine.run(*argv, cwd=machine.workspace / folder, prefix=AS_A_USER, timeout=20)


@needs_a_user
@pytest.mark.parametrize("content", UNREAD.values(), ids=UNREAD)
def test_what_cannot_be_read_may_name_an_sdk_so_nothing_is_started(machine: Machine, content: Content) -> None:
    lay(machine.workspace / "global.json", content)

    look(machine)
    look(machine, "below")
    with Proxies(machine) as proxies:
        client = proxies.start(command=("--mcp-app",), prefix=AS_A_USER)
        client.initialize()
        settled(client)

    assert started(machine) == []


@needs_a_user
@pytest.mark.parametrize("content", UNREAD.values(), ids=UNREAD)
def test_nor_does_it_hide_one_that_names_an_sdk_further_up(machine: Machine, content: Content) -> None:
    lay(machine.workspace / "global.json", EVIL)
    lay(machine.workspace / "below" / "global.json", content)

    look(machine, "below")

    assert started(machine) == []


@needs_a_user
@pytest.mark.parametrize("content", TRICKY.values(), ids=TRICKY)
def test_an_sdk_that_is_named_in_an_odd_way_is_seen(machine: Machine, content: Content) -> None:
    lay(machine.workspace / "global.json", content)

    look(machine)

    assert started(machine) == []


# --- what must keep working -----------------------------------------------------------------------------------------


def test_the_report_names_the_file(machine: Machine) -> None:
    lay(machine.workspace / "global.json", EVIL + " " * MANY)

    assert any(str(machine.workspace / "global.json") in issue["message"] for issue in machine.disco().json["issues"])


def test_a_file_without_sdk_paths_is_answered_for(machine: Machine) -> None:
    lay(machine.workspace / "global.json", '// the SDK of the team\n{"sdk": {"version": "10.0.401"}}')

    assert machine.disco().json["dotNetVersion"] == "10.0.401"


def test_dotnet_is_asked_where_a_file_leaves_a_doubt_and_names_no_folder(machine: Machine) -> None:
    lay(machine.workspace / "global.json", '{"sdk": {"version": "10.0.401",}}')

    machine.disco()

    assert started(machine) == [["--version"]]


def test_dotnet_is_asked_where_the_user_has_agreed(machine: Machine) -> None:
    lay(machine.workspace / "global.json", EVIL)

    machine.disco(env={"UNO_DEVSERVER_TRUST": "1"})

    assert started(machine) == [["--version"]]
