"""How far a package may use others: its Git repository, and the workspace folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotreload.trees import as_ordinary_user
from support.files import write
from support.privileges import ROOT
from uno_devserver.workspace.repository import repository_of


def packages(root: Path, place: str, workspace: Path | None = None) -> list[str]:
    found = repository_of(str(root), str(workspace or "")).packages(str(root), [place])
    return [os.path.relpath(folder, root) for folder in found]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    for name in ("repo/server/inner", "repo/shared", "repo/node_modules/x", "beside"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "repo/server"


@pytest.mark.parametrize(
    ("place", "counts"),
    [
        ("../shared", True),
        ("inner", True),
        ("../../beside", False),
        ("../node_modules/x", False),
        ("..", False),
        (".", False),
        ("../missing", False),
        ("\0", False),
        ("\ud800", False),
    ],
)
def test_packages_of_the_repository_count_but_for_those_around_the_package(
    server: Path, place: str, counts: bool
) -> None:
    (server.parent / ".git").mkdir()

    assert packages(server, place) == ([place] if counts else [])


def test_a_worktree_and_a_submodule_have_a_file_in_place_of_the_folder(server: Path) -> None:
    write(server.parent / ".git", "gitdir: elsewhere")

    assert packages(server, "../shared") == ["../shared"]


def test_the_workspace_folder_counts_with_and_without_a_repository(server: Path) -> None:
    assert packages(server, "../shared") == []
    assert packages(server, "../shared", server.parent) == ["../shared"]

    (server / ".git").mkdir()
    assert packages(server, "../shared") == []
    assert packages(server, "../shared", server.parent) == ["../shared"]


@pytest.mark.skipif(not ROOT, reason="only root can give files to others")
def test_a_repository_that_another_user_made_around_ours_does_not_count() -> None:
    with as_ordinary_user() as folder:
        for name in ("server", "shared"):
            (folder / name).mkdir()
        (folder / ".git").mkdir()
        assert packages(folder / "server", "../shared") == ["../shared"]
        os.seteuid(0)
        os.chown(folder / ".git", 12345, 12345)
        os.seteuid(folder.stat().st_uid)

        assert packages(folder / "server", "../shared") == []
