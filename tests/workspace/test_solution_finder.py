"""Finding solution files below a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.files import write, write_all
from uno_devserver.workspace.solution_finder import find_candidates, find_files


def found(directory: Path) -> list[str]:
    return [Path(path).relative_to(directory).as_posix() for path in find_candidates(str(directory))]


def test_solutions_are_found_down_to_the_third_level(tmp_path: Path) -> None:
    write_all(tmp_path, {"A.sln": "", "1/B.slnx": "", "1/2/C.sln": "", "1/2/3/D.slnx": "", "1/2/3/4/E.sln": ""})

    assert found(tmp_path) == ["A.sln", "1/B.slnx", "1/2/C.sln", "1/2/3/D.slnx"]


def test_a_folder_gives_its_classic_solutions_first_and_folders_come_by_name(tmp_path: Path) -> None:
    write_all(tmp_path, dict.fromkeys(("b/B.sln", "a/A.slnx", "z.sln", "a.slnx", "m.sln", "k.slnx"), ""))

    assert found(tmp_path) == ["m.sln", "z.sln", "a.slnx", "k.slnx", "a/A.slnx", "b/B.sln"]


def test_other_files_are_found_by_their_extensions_in_that_order(tmp_path: Path) -> None:
    write_all(tmp_path, {"B.csproj": "", "A.vbproj": "", "src/C.CSPROJ": "", "X.sln": "", "bin/D.csproj": ""})

    found = find_files(str(tmp_path), (".csproj", ".vbproj"))

    assert [Path(path).name for path in found] == ["B.csproj", "A.vbproj", "C.CSPROJ"]


def test_filters_other_files_and_folders_named_like_solutions_do_not_count(tmp_path: Path) -> None:
    write_all(tmp_path, {"A.slnf": "{}", "A.sln.bak": "", "sln": "", "Folder.sln/readme.txt": ""})

    assert found(tmp_path) == []


def test_a_solution_inside_a_folder_named_like_a_solution_is_found(tmp_path: Path) -> None:
    write(tmp_path / "Old.sln" / "Real.sln", "")

    assert found(tmp_path) == ["Old.sln/Real.sln"]


def test_the_extension_may_be_in_upper_case(tmp_path: Path) -> None:
    write_all(tmp_path, {"A.SLN": "", "B.Slnx": ""})

    assert found(tmp_path) == ["A.SLN", "B.Slnx"]


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
