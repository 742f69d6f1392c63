"""Which files of a workspace are add-ins."""

from __future__ import annotations

import os
from pathlib import Path

from uno_devserver.workspace.addins import workspace_addins


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
