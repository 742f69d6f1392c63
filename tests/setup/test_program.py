"""The command that starts this very program, wherever it was started from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.setup.entry_command import is_temporary, own_command


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


def test_what_lies_in_a_cache_or_a_temporary_folder_will_not_stay() -> None:
    environ = {"HOME": "/home/u", "UV_CACHE_DIR": "/big/uv", "TMPDIR": "/scratch"}

    assert is_temporary("/home/u/.cache/uv/archive-v0/x/bin/uno-devserver", environ)
    assert is_temporary("/big/uv/x/bin/uno-devserver", environ)
    assert is_temporary("/scratch/venv/bin/uno-devserver", environ)
    assert not is_temporary("/home/u/.local/bin/uno-devserver", environ)
    assert not is_temporary("/home/u/.local/share/uv/tools/uno-devserver/bin/uno-devserver", environ)
    assert not is_temporary("/big/uv-tools/bin/uno-devserver", environ)
    assert not is_temporary("uvx", environ)
