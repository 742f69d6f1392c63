"""What an entry's command is, whichever system wrote it; and the command of this very program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.setup.entry_command import base_name, command_problem, is_absolute, is_temporary, own_command


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


def test_the_script_that_was_called_is_named_by_its_path_and_not_by_what_it_leads_to(tmp_path: Path) -> None:
    script = write(tmp_path / "tools" / "bin" / "uno-devserver", "")
    link = tmp_path / "bin" / "uno-devserver"
    link.parent.mkdir()
    link.symlink_to(script)

    assert own_command(str(tmp_path / "tools" / "bin" / "python"), str(link)) == (str(link),)


def test_a_script_beside_the_interpreter_is_taken_where_the_module_was_run(tmp_path: Path) -> None:
    script = write(tmp_path / "uno.devserver", "")

    assert own_command(str(tmp_path / "python"), "/x/uno_devserver/__main__.py") == (str(script),)


def test_without_a_script_the_interpreter_runs_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = str(tmp_path / "bin" / "python")
    monkeypatch.chdir(write(tmp_path / "here" / "uno-devserver", "not what was called").parent)

    assert own_command(python, "uno-devserver") == (python, "-P", "-m", "uno_devserver")


def test_the_real_one_is_absolute_and_there() -> None:
    assert os.path.isfile(own_command()[0])
    assert os.path.dirname(own_command()[0]) == os.path.dirname(os.path.abspath(sys.executable))


@pytest.mark.parametrize(
    ("path", "temporary"),
    [
        ("/home/u/.cache/uv/archive-v0/x/bin/uno-devserver", True),
        ("/big/uv/x/bin/uno-devserver", True),
        ("/scratch/venv/bin/uno-devserver", True),
        ("/home/u/.local/pipx/.cache/x/bin/uno-devserver", True),
        ("/home/u/.local/share/pipx/.cache/x/bin/uno-devserver", True),
        ("/home/u/.local/share/pipx/venvs/uno-devserver/bin/uno-devserver", False),
        ("/home/u/.local/bin/uno-devserver", False),
        ("/home/u/.local/share/uv/tools/uno-devserver/bin/uno-devserver", False),
        ("/big/uv-tools/bin/uno-devserver", False),
        ("uvx", False),
    ],
)
def test_what_lies_in_a_cache_or_a_temporary_folder_will_not_stay(path: str, temporary: bool) -> None:
    environ = {"HOME": "/home/u", "UV_CACHE_DIR": "/big/uv", "TMPDIR": "/scratch"}

    assert is_temporary(path, environ) is temporary


def test_the_cache_of_pipx_is_where_its_variable_says() -> None:
    environ = {"HOME": "/home/u", "PIPX_HOME": "/opt/pipx"}

    assert is_temporary("/opt/pipx/.cache/x/bin/uno-devserver", environ)
    assert not is_temporary("/opt/pipx/venvs/uno-devserver/bin/uno-devserver", environ)
