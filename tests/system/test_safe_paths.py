"""Paths that others wrote stay inside a folder, or are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from uno_devserver.system.safe_paths import PathEscape, odd_name, path_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "Main.xaml").write_text("x")
    (tmp_path / "secret.txt").write_text("s")
    return root


@pytest.mark.parametrize(
    "path",
    [
        "src/Main.xaml",
        "src/../src/Main.xaml",
        "./src//Main.xaml",
        "{root}/src/Main.xaml",
        "{root}/../work/src/Main.xaml",
    ],
)
def test_a_path_inside_is_found_however_it_is_spelt(root: Path, path: str) -> None:
    assert path_inside(str(root), path.format(root=root)) == os.path.realpath(root / "src" / "Main.xaml")


def test_what_is_still_to_be_made_is_inside_too(root: Path) -> None:
    assert path_inside(str(root), "new/deep/er/a.cs") == os.path.realpath(root) + "/new/deep/er/a.cs"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "src/../../secret.txt",
        "{root}/../secret.txt",
        "{root}-evil/a.cs",
        "/etc/passwd",
        "/dev/null",
        "/proc/self/mem",
        "/",
        "..",
        ".",
        "{root}",
        "{ROOT}/src/Main.xaml",
        "~/../secret.txt/../../x",
        "missing/../../secret.txt",
    ],
)
def test_path_escape_is_refused(root: Path, path: str) -> None:
    with pytest.raises(PathEscape, match="leads out"):
        path_inside(str(root), path.format(root=root, ROOT=str(root).upper()))


@pytest.mark.parametrize("path", ["", "a\0b", "\0"])
def test_path_escape_by_no_name_at_all_is_refused(root: Path, path: str) -> None:
    with pytest.raises(PathEscape, match=r"empty|NUL"):
        path_inside(str(root), path)


def test_path_escape_through_links_is_refused(root: Path, tmp_path: Path) -> None:
    # given: links to a file, to a folder, to nothing yet, and by way of another link
    (root / "file").symlink_to(tmp_path / "secret.txt")
    (root / "folder").symlink_to(tmp_path)
    (root / "dangling").symlink_to(tmp_path / "not-yet.txt")
    (root / "chain").symlink_to("folder")
    (root / "relative").symlink_to("../secret.txt")

    for path in ("file", "folder/secret.txt", "folder/new.txt", "dangling", "chain/secret.txt", "relative"):
        with pytest.raises(PathEscape, match="leads out"):
            path_inside(str(root), path)


def test_a_link_that_stays_inside_leads_to_its_target(root: Path) -> None:
    (root / "link.xaml").symlink_to("src/Main.xaml")

    assert path_inside(str(root), "link.xaml") == os.path.realpath(root / "src" / "Main.xaml")


def test_a_root_that_is_a_link_itself_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)

    assert path_inside(str(tmp_path / "alias"), str(root / "src" / "Main.xaml")).endswith("/work/src/Main.xaml")
    assert path_inside(str(root), str(tmp_path / "alias" / "src" / "Main.xaml")).endswith("/work/src/Main.xaml")


def test_a_loop_of_links_does_not_hang(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    try:
        assert path_inside(str(root), "a/x").startswith(os.path.realpath(root))
    except PathEscape:
        pass


def test_a_name_that_is_too_long_is_refused(root: Path) -> None:
    with pytest.raises(PathEscape, match="looked up"):
        path_inside(str(root), "n" * 5000 + "/x")


def test_a_root_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(PathEscape, match="looked up"):
        path_inside(str(tmp_path / "gone"), "a.cs")


@pytest.mark.parametrize(
    "path",
    [
        "NUL",
        "src\\con",
        "C:\\work\\aux.txt",
        "lpt1",
        "COM9.log",
        "nul .txt",
        "prn.",
        "CONOUT$",
        "a.cs:evil",
        "C:\\work\\a.cs::$DATA",
        "\\\\.\\PhysicalDrive0",
        "\\\\?\\C:\\work\\a.cs",
        "//./pipe/x",
        "folder./a.cs",
        "a.cs ",
    ],
)
def test_names_that_windows_takes_for_something_else_are_odd_there(path: str) -> None:
    assert odd_name(path, windows=True) is not None
    assert odd_name(path, windows=False) is None


@pytest.mark.parametrize(
    "path", ["C:\\work\\src\\Main.xaml", "src/..\\Console.cs", ".\\nullable.cs", "com10.txt", "\\\\server\\share\\a.cs"]
)
def test_usual_names_are_not_odd_on_windows(path: str) -> None:
    assert odd_name(path, windows=True) is None
