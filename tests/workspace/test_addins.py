"""Which files of a workspace are add-ins, and whether they are still the same."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from support.files import write
from uno_devserver.workspace import addins
from uno_devserver.workspace.addins import addin_sources, sources_key, workspace_addins


def test_files_and_packages_are_found_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / ".devtools" / "addins"
    for name in ("b.py", "a/__init__.py", "c d/__init__.py", "_helper.py", ".hidden.py", "__pycache__/x.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for name in ("notes.txt", "b.pyc", "empty/data.json", "_private/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    found = workspace_addins(str(tmp_path))

    assert found == [str(folder / "a"), str(folder / "b.py"), str(folder / "c d")]
    assert all(os.path.isabs(path) for path in found)


def test_a_workspace_without_add_ins_has_none(tmp_path: Path) -> None:
    (tmp_path / ".devtools").mkdir()
    (tmp_path / ".devtools" / "addins").touch()

    assert workspace_addins(str(tmp_path)) == []
    assert workspace_addins(str(tmp_path / "missing")) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / ".devtools" / "addins"
    write(folder / "greeter.py", "a = 1")
    write(folder / "_shared.py", "b = 1")
    write(folder / "package" / "__init__.py", "")
    write(folder / "package" / "inner" / "deep.py", "")
    return folder


def test_sources_are_all_python_files_below_the_folder(folder: Path, tmp_path: Path) -> None:
    write(folder / "notes.txt", "")
    write(folder / "__pycache__" / "greeter.py", "")
    write(folder / ".venv" / "lib.py", "")

    found = [str(Path(path).relative_to(folder)) for path in addin_sources(str(tmp_path))]

    assert found == ["_shared.py", "greeter.py", "package/__init__.py", "package/inner/deep.py"]


def test_without_add_ins_there_are_none(tmp_path: Path) -> None:
    assert addin_sources(str(tmp_path)) == []
    assert sources_key(str(tmp_path)) == 0


def test_their_number_is_bounded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addins, "MAX_SOURCES", 2)

    assert len(addin_sources(str(tmp_path))) == 2


@pytest.mark.parametrize("name", ["greeter.py", "_shared.py", "package/inner/deep.py", "new.py"])
def test_another_content_has_another_key_and_another_time_has_not(folder: Path, tmp_path: Path, name: str) -> None:
    before = sources_key(str(tmp_path))

    (folder / "greeter.py").touch()
    assert sources_key(str(tmp_path)) == before
    write(folder / name, "a = 2")
    assert sources_key(str(tmp_path)) != before


def test_a_file_that_goes_is_another_key(folder: Path, tmp_path: Path) -> None:
    before = sources_key(str(tmp_path))

    (folder / "package" / "inner" / "deep.py").unlink()

    assert sources_key(str(tmp_path)) != before


def test_a_link_to_a_pipe_that_nobody_writes_is_passed_over(folder: Path, tmp_path: Path) -> None:
    before = sources_key(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    (folder / "_helper.py").symlink_to(tmp_path / "pipe")
    keys: list[int] = []

    reading = threading.Thread(target=lambda: keys.append(sources_key(str(tmp_path))), daemon=True)
    reading.start()
    reading.join(10)

    assert keys == [before]
