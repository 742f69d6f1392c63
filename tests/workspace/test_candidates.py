"""The solutions that a user may mean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import uno_devserver
from support.files import write_all
from uno_devserver.workspace.solution_finder import find_candidates, twins

from .repositories import ENVIRONMENT, replace_git, repository


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def candidates(directory: Path) -> list[str]:
    return [Path(path).relative_to(directory).as_posix() for path in find_candidates(str(directory))]


def test_both_formats_of_one_name_in_one_folder_are_one_candidate(tmp_path: Path) -> None:
    write_all(tmp_path, {"App.sln": "", "app.slnx": "", "Other.sln": "", "src/App.sln": ""})

    assert candidates(tmp_path) == ["Other.sln", "app.slnx", "src/App.sln"]


def test_twins_share_folder_and_name_but_not_format() -> None:
    assert twins("/a/App.sln", "/a/APP.SLNX")
    assert not twins("/a/App.sln", "/b/App.slnx")
    assert not twins("/a/App.sln", "/a/App.sln")
    assert not twins("/a/App.sln", "/a/App.slnf")


def test_an_ignored_solution_is_no_candidate(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "gen/\n")
    write_all(root, {"App.slnx": "", "gen/G.slnx": ""})

    assert candidates(root) == ["App.slnx"]


def test_an_ignored_new_format_does_not_replace_the_tracked_old_one(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "*.slnx\n")
    write_all(root, {"App.sln": "", "App.slnx": ""})

    assert candidates(root) == ["App.sln"]


def test_where_all_solutions_are_ignored_all_are_candidates(tmp_path: Path) -> None:
    root = repository(tmp_path / "ws", "*.slnx\n")
    write_all(root, {"A.slnx": "", "B.slnx": ""})

    assert candidates(root) == ["A.slnx", "B.slnx"]


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for git is a shell script")
@pytest.mark.parametrize("solution", ["App.slnx", "src/App.slnx"])
def test_git_is_not_started_for_a_single_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solution: str
) -> None:
    root = repository(tmp_path / "ws", "*.slnx\n")
    write_all(root, {solution: ""})
    replace_git(tmp_path / "bin", f"touch '{tmp_path}/ran'", monkeypatch)

    assert candidates(root) == [solution]
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for git is a shell script")
def test_git_is_started_once_for_many_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "ws")
    write_all(root, {f"{number}/App.sln": "" for number in range(20)})
    replace_git(tmp_path / "bin", f"echo run >> '{tmp_path}/runs'; exit 1", monkeypatch)

    assert len(candidates(root)) == 20
    assert (tmp_path / "runs").read_text().splitlines() == ["run"]


def test_a_plain_workspace_loads_no_module_that_starts_processes(tmp_path: Path) -> None:
    # given
    write_all(tmp_path, {"App.slnx": "<Solution />", "global.json": '{"msbuild-sdks":{"Uno.Sdk":"6.5.31"}}'})
    program = (
        "import sys; from uno_devserver.workspace.resolver import resolve; assert resolve(sys.argv[1]).resolved;"
        "print(*sorted(sys.modules))"
    )

    # when
    command = [sys.executable, "-S", "-c", program, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(uno_devserver.__file__).parents[1])}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    # then
    loaded = set(run.stdout.split())
    heavy = {"typing", "dataclasses", "pathlib", "logging", "argparse", "tempfile", "shutil", "glob", "hashlib"}
    assert loaded & {"subprocess", "uno_devserver.workspace.git", *heavy} == set()
