"""The words that start a Host."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from uno_devserver.instances.host_program import (
    HostArguments,
    HostProgram,
    ProgramKind,
    addin_paths,
    addins_value,
    bundled_host,
    command_line,
    dotnet_host,
    host_at,
)
from uno_devserver.issues import UserError

GOLDEN = Path(__file__).parent.parent / "golden" / "host" / "start"
SOLUTION = "{DIR}/App.sln"
ADDIN = "{CACHE}/sample.addin/1.0.0/tools/devserver/Sample.AddIn.dll"
DOTNET = HostProgram(ProgramKind.DOTNET, ("/usr/bin/dotnet", "/p/Host.dll"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A PATH with a dotnet."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dotnet").touch(mode=0o755)
    return {"PATH": str(tmp_path / "bin")}


def test_a_host_is_told_only_what_there_is_to_tell() -> None:
    assert command_line(DOTNET, HostArguments(5000, "/ws")) == [*DOTNET.command, "--httpPort", "5000"]


def test_the_order_is_that_of_all_launchers() -> None:
    arguments = HostArguments(5000, "/ws", 7, "/ws/A b.sln", "chan", "/a;/b", ("--metadata-updates", "true"))

    assert command_line(DOTNET, arguments)[2:] == [
        *("--httpPort", "5000"),
        *("--ppid", "7"),
        *("--solution", "/ws/A b.sln"),
        *("--ideChannel", "chan"),
        *("--addins", "/a;/b"),
        *("--metadata-updates", "true"),
    ]


def test_only_the_bundled_host_is_told_its_folder() -> None:
    line = command_line(bundled_host(), HostArguments(0, "/ws"))

    assert line[:4] == [sys.executable, "-P", "-m", "uno_devserver.host"]
    assert line[-2:] == ["--workingDir", "/ws"]


def test_a_library_is_run_by_dotnet_and_rolled_forward_where_it_has_to_be(environ: dict[str, str]) -> None:
    dotnet = environ["PATH"] + "/dotnet"

    assert dotnet_host("/p/Host.dll", environ, roll_forward=False).command == (dotnet, "/p/Host.dll")
    assert dotnet_host("/p/Host.dll", environ, roll_forward=False).environment == ()
    assert dotnet_host("/p/Host.dll", environ, roll_forward=True).environment == (("DOTNET_ROLL_FORWARD", "Major"),)


def test_a_program_is_run_as_it_is() -> None:
    assert dotnet_host("C:/p/Host.exe", {}, roll_forward=False).command == ("C:/p/Host.exe",)


def test_a_library_without_dotnet_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "Host.DLL").touch()

    with pytest.raises(UserError) as error:
        host_at(str(tmp_path / "Host.DLL"), {"PATH": ""})

    assert error.value.code == "DotNetNotFound"
    assert "--host bundled" in error.value.next_step


@pytest.mark.parametrize(
    ("record", "arguments"),
    [
        ("start", HostArguments(5651, "{DIR}", None, SOLUTION, None, ADDIN)),
        ("start-with-ppid", HostArguments(46617, "{DIR}", None, SOLUTION, None, ADDIN)),
        ("idechannel-cli", HostArguments(5651, "{DIR}", None, SOLUTION, "chan-s", ADDIN)),
    ],
)
def test_the_words_are_those_that_the_net_tool_was_seen_to_use(record: str, arguments: HostArguments) -> None:
    """It prints them joined by blanks; `{PPID}` and the like stand where a process id was."""
    said = json.loads((GOLDEN / f"{record}.json").read_text("utf-8"))["stdout"]
    recorded = next(line for line in said.splitlines() if line.startswith("Starting DevServer in direct mode: "))
    program = HostProgram(ProgramKind.DOTNET, ("dotnet", "{HOSTDIR}/Uno.UI.RemoteControl.Host.dll"))

    words = command_line(program, arguments)

    without_parent = re.sub(r" --ppid \{\w+\}", "", recorded)
    assert without_parent.partition(": ")[2] == " ".join(words)
    assert ("--ppid" in recorded) == (record != "start")


@pytest.mark.parametrize(
    ("paths", "workspace", "value", "lost"),
    [
        ([], "/ws", ";", ()),
        (["/a/One.dll", "/a b/ü.py"], "/ws", "/a/One.dll;/a b/ü.py", ()),
        (["/a;b/ws/x.py", "/c/y.py"], "/a;b/ws", "x.py;/c/y.py", ()),
        (["/a;b/cache/x.dll"], "/a;b/ws", "../cache/x.dll", ()),
        (["/a;b/x.py", "/c/y.py"], "/ws", "/c/y.py", ("/a;b/x.py",)),
        (["/ws/x;y.py"], "/ws", ";", ("/ws/x;y.py",)),
    ],
)
def test_addins_are_one_value_and_a_semicolon_in_a_path_is_avoided_if_it_can_be(
    paths: list[str], workspace: str, value: str, lost: tuple[str, ...]
) -> None:
    assert addins_value(paths, workspace) == (value, lost)


@pytest.mark.parametrize(
    ("value", "paths"),
    [(None, ()), ("", ()), (";", ()), (" ; ", ()), ("/a", ("/a",)), (" /a ;;/b c; ", ("/a", "/b c"))],
)
def test_a_value_is_read_as_the_host_reads_it(value: str | None, paths: tuple[str, ...]) -> None:
    assert addin_paths(value) == paths
