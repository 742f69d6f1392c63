"""Programs by their names, as a shell finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.system.programs import about_path, find_program, program_candidates


def _program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_program_is_looked_for_in_absolute_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a workspace that carries a program named git
    _program(tmp_path / "ws" / "git")
    real = _program(tmp_path / "bin" / "git")
    monkeypatch.chdir(tmp_path / "ws")

    assert find_program("git", {"PATH": f":.:{tmp_path / 'bin'}"}, "linux") == str(real)
    assert find_program("git", {"PATH": ":.:"}, "linux") is None
    assert find_program("git", {}, "linux") is None


def test_a_file_without_the_right_to_run_is_no_program(tmp_path: Path) -> None:
    _program(tmp_path / "git", 0o644)

    assert find_program("git", {"PATH": str(tmp_path)}, "linux") is None


def test_on_windows_extensions_are_tried_and_relative_folders_left_out() -> None:
    environ = {"PATH": r'.;C:\Git\bin;"D:\My Tools";tools;\\server\share', "PATHEXT": ".EXE;.CMD"}

    assert program_candidates("git", environ, "win32") == [
        r"C:\Git\bin\git.exe",
        r"C:\Git\bin\git.cmd",
        r"D:\My Tools\git.exe",
        r"D:\My Tools\git.cmd",
        r"\\server\share\git.exe",
        r"\\server\share\git.cmd",
    ]


@pytest.mark.parametrize("path", ["/usr/bin:/bin:/usr/sbin:/sbin", "/usr/bin/:/bin", ""])
def test_the_short_path_that_applications_of_macos_get_is_named(path: str) -> None:
    assert "not started from a terminal" in about_path({"PATH": path}, "darwin")


@pytest.mark.parametrize(
    ("path", "platform"),
    [
        ("/opt/homebrew/bin:/usr/bin:/bin", "darwin"),
        ("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "darwin"),
        ("/usr/bin:/bin", "linux"),
        ("C:\\Windows\\System32", "win32"),
    ],
)
def test_nothing_is_said_of_any_other_path(path: str, platform: str) -> None:
    assert about_path({"PATH": path}, platform) == ""
