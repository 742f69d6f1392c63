"""Finding solution files below a directory, and those that a user may mean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import uno_devserver
from support.files import write, write_all
from uno_devserver.workspace.solution_finder import find_candidates, find_files, twins

from .repositories import replace_git, repository


def found(directory: Path) -> list[str]:
    return [Path(path).relative_to(directory).as_posix() for path in find_candidates(str(directory))]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("A.sln 1/B.slnx 1/2/C.sln 1/2/3/D.slnx 1/2/3/4/E.sln", "A.sln 1/B.slnx 1/2/C.sln 1/2/3/D.slnx"),
        ("b/B.sln a/A.slnx z.sln a.slnx m.sln k.slnx", "m.sln z.sln a.slnx k.slnx a/A.slnx b/B.sln"),
        ("A.slnf A.sln.bak sln Folder.sln/readme.txt", ""),
        ("Old.sln/Real.sln", "Old.sln/Real.sln"),
        ("A.SLN B.Slnx", "A.SLN B.Slnx"),
        ("App.sln app.slnx Other.sln src/App.sln", "Other.sln app.slnx src/App.sln"),
    ],
    ids=[
        "down to the third level",
        "of a folder the classic ones first, and folders by name",
        "filters, other files and folders named like solutions do not count",
        "inside a folder named like a solution",
        "with an extension in upper case",
        "both formats of one name in one folder are one",
    ],
)
def test_solutions_are_found(tmp_path: Path, files: str, expected: str) -> None:
    write_all(tmp_path, dict.fromkeys(files.split(), ""))

    assert found(tmp_path) == expected.split()


def test_other_files_are_found_by_their_extensions_in_that_order(tmp_path: Path) -> None:
    write_all(tmp_path, {"B.csproj": "", "A.vbproj": "", "src/C.CSPROJ": "", "X.sln": "", "bin/D.csproj": ""})

    found = find_files(str(tmp_path), (".csproj", ".vbproj"))

    assert [Path(path).name for path in found] == ["B.csproj", "A.vbproj", "C.CSPROJ"]


@pytest.mark.parametrize(
    "folder",
    [".git", "node_modules", "Node_Modules", "bin", "BIN", "obj", ".vs", ".idea", "packages", ".codex", ".codex-tmp"],
)
def test_folders_of_tools_and_build_output_are_skipped(tmp_path: Path, folder: str) -> None:
    write_all(tmp_path, {f"{folder}/X.sln": "", f"src/{folder}/Y.slnx": "", "src/Z.sln": ""})

    assert found(tmp_path) == ["src/Z.sln"]


def test_a_missing_directory_and_a_file_have_no_solutions(tmp_path: Path) -> None:
    file = write(tmp_path / "App.sln", "")

    assert find_candidates(str(tmp_path / "missing")) == ()
    assert find_candidates(str(file)) == ()


def test_a_relative_directory_gives_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "src" / "App.sln", "")
    monkeypatch.chdir(tmp_path)

    assert find_candidates("src") == (str(tmp_path / "src" / "App.sln"),)


def test_a_removed_current_folder_has_no_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert find_candidates(".") == ()


def test_a_folder_that_vanishes_during_the_search_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a folder that is moved away after it was listed, and before it is looked into
    write_all(tmp_path, {"ws/a/A.sln": "", "ws/b/B.sln": ""})
    scandir = os.scandir

    def move_then_scan(path: str) -> object:
        if path.endswith("a"):
            os.rename(path, tmp_path / "elsewhere")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", move_then_scan)

    assert found(tmp_path / "ws") == ["b/B.sln"]


def test_a_folder_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    write_all(tmp_path, {"a/A.sln": "", "b/B.sln": ""})
    (tmp_path / "a").chmod(0)
    if os.access(tmp_path / "a", os.R_OK):
        pytest.skip("this user may read every folder")

    assert found(tmp_path) == ["b/B.sln"]


def test_links_in_a_circle_show_each_solution_once(tmp_path: Path) -> None:
    # given links to the folder itself, to one above, to one below, and to each other
    write_all(tmp_path, {"ws/App.sln": "", "ws/src/Lib.sln": ""})
    workspace = tmp_path / "ws"
    (workspace / "self").symlink_to(workspace, target_is_directory=True)
    (workspace / "above").symlink_to(tmp_path, target_is_directory=True)
    (workspace / "src" / "again").symlink_to(workspace / "src", target_is_directory=True)
    (workspace / "ping").symlink_to(workspace / "pong")
    (workspace / "pong").symlink_to(workspace / "ping")
    (workspace / "ping.sln").symlink_to(workspace / "ping.sln")

    assert found(workspace) == ["App.sln", "src/Lib.sln"]


def test_a_link_to_another_place_is_followed_once(tmp_path: Path) -> None:
    write_all(tmp_path, {"ws/App.sln": "", "elsewhere/Lib.sln": ""})
    (tmp_path / "ws" / "one").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "ws" / "two").symlink_to(tmp_path / "elsewhere", target_is_directory=True)

    assert found(tmp_path / "ws") == ["App.sln", "one/Lib.sln"]


def test_a_thousand_links_to_the_start_cost_no_search_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "App.sln", "")
    for number in range(1000):
        (tmp_path / f"link{number}").symlink_to(tmp_path, target_is_directory=True)
    scans: list[str] = []
    scandir = os.scandir

    def count_and_scan(path: str) -> object:
        scans.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", count_and_scan)

    assert found(tmp_path) == ["App.sln"]
    assert scans == [str(tmp_path)]


def test_a_linked_solution_file_counts_and_a_dangling_link_does_not(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "Real.txt", "")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "App.sln").symlink_to(tmp_path / "elsewhere" / "Real.txt")
    (tmp_path / "ws" / "Gone.sln").symlink_to(tmp_path / "nowhere")

    assert found(tmp_path / "ws") == ["App.sln"]


def test_twins_share_folder_and_name_but_not_format() -> None:
    assert twins("/a/App.sln", "/a/APP.SLNX")
    assert not twins("/a/App.sln", "/b/App.slnx")
    assert not twins("/a/App.sln", "/a/App.sln")
    assert not twins("/a/App.sln", "/a/App.slnf")


@pytest.mark.parametrize(
    ("ignored", "files", "expected"),
    [
        ("gen/", ["App.slnx", "gen/G.slnx"], ["App.slnx"]),
        ("*.slnx", ["App.sln", "App.slnx"], ["App.sln"]),
        ("*.slnx", ["A.slnx", "B.slnx"], ["A.slnx", "B.slnx"]),
    ],
    ids=["an ignored one is none", "an ignored new format does not replace the old one", "all, if all are ignored"],
)
def test_ignored_solutions_are_no_candidates(
    tmp_path: Path, ignored: str, files: list[str], expected: list[str]
) -> None:
    root = repository(tmp_path / "ws", f"{ignored}\n")
    write_all(root, dict.fromkeys(files, ""))

    assert found(root) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for git is a shell script")
@pytest.mark.parametrize("solution", ["App.slnx", "src/App.slnx"])
def test_git_is_not_started_for_a_single_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solution: str
) -> None:
    root = repository(tmp_path / "ws", "*.slnx\n")
    write_all(root, {solution: ""})
    replace_git(tmp_path / "bin", f"touch '{tmp_path}/ran'", monkeypatch)

    assert found(root) == [solution]
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for git is a shell script")
def test_git_is_started_once_for_many_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "ws")
    write_all(root, {f"{number}/App.sln": "" for number in range(20)})
    replace_git(tmp_path / "bin", f"echo run >> '{tmp_path}/runs'; exit 1", monkeypatch)

    assert len(found(root)) == 20
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
