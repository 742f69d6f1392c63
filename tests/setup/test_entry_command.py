"""What an entry's command is, whichever system wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.setup.entry_command import base_name, command_problem, is_absolute


@pytest.mark.parametrize(
    ("command", "name", "absolute"),
    [
        ("uvx", "uvx", False),
        ("/usr/bin/uvx", "uvx", True),
        ("C:\\tools\\uvx.EXE", "uvx", True),
        ("c:/tools/uno.devserver.exe", "uno.devserver", True),
        ("\\\\server\\share\\dnx.cmd", "dnx", True),
        ("./uvx", "uvx", False),
        ("", "", False),
    ],
)
def test_a_command_has_a_name_and_may_be_a_whole_path(command: str, name: str, absolute: bool) -> None:
    assert (base_name(command), is_absolute(command)) == (name, absolute)


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.touch(mode=0o755)
    environ = {"PATH": str(tmp_path)}

    assert command_problem("tool", environ, "linux") == ""
    assert command_problem(str(tool), {}, "linux") == ""
    assert command_problem("other", environ, "linux") == "'other' is not on PATH"
    assert command_problem(f"{tool}2", environ, "linux") == f"'{tool}2' does not exist"


@pytest.mark.parametrize("command", ["./tool", "${HOME}/tool", "~/tool", "%USERPROFILE%\\tool", "$TOOL"])
def test_a_command_that_only_the_client_can_find_is_not_judged(command: str) -> None:
    assert command_problem(command, {"PATH": "/nowhere"}, "linux") == ""
