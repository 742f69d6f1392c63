"""What Python would say to a file, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from uno_devserver.hotreload.package_state import syntax_errors


def test_an_error_is_told_as_python_prints_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nprint(x y)\n")

    told = syntax_errors(str(tmp_path), ["a.py"])

    assert told is not None
    assert told.splitlines()[:3] == [f'  File "{tmp_path}/a.py", line 2', "    print(x y)", "          ^^^"]
    assert told.splitlines()[3].startswith("SyntaxError: ")


def test_all_files_with_errors_are_told(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("def f(:\n")

    told = syntax_errors(str(tmp_path), ["b.py", "a.py"])

    assert told is not None
    assert told.index("a.py") < told.index("b.py")


@pytest.mark.parametrize(
    "content", [b"a = 1\0", b"\xff\xfe", b"# coding: nonsense\n", b"if x:\nreturn", b"(" * 100_000]
)
def test_whatever_python_cannot_read_is_an_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)

    assert "a.py" in (syntax_errors(str(tmp_path), ["a.py"]) or "")


def test_nothing_is_run_and_what_is_no_code_or_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n")
    (tmp_path / "notes.txt").write_text("no code at all")
    (tmp_path / "folder.py").mkdir()

    assert syntax_errors(str(tmp_path), ["a.py", "notes.txt", "folder.py", "missing.py"]) is None
    assert not (tmp_path / "ran").exists()
