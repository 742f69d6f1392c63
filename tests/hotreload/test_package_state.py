"""Python's compiled copies of changed sources."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

from uno_devserver.hotreload.package_state import remove_bytecode


def _imported(folder: Path) -> str:
    line = [sys.executable, "-c", "import words; print(words.WORD)"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def _saved_within_the_same_second(source: Path, word: str) -> None:
    source.write_text(f'WORD = "{word}"\n', "utf-8")
    os.utime(source, (1_000_000, 1_000_000))


def test_an_edit_that_python_cannot_tell_from_the_code_before_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "words.py"
    _saved_within_the_same_second(source, "one")
    py_compile.compile(str(source))
    _saved_within_the_same_second(source, "two")
    assert _imported(tmp_path) == "one", "else this test shows nothing"

    remove_bytecode(str(tmp_path), ["words.py"])

    assert _imported(tmp_path) == "two"


def test_only_copies_of_the_changed_sources_go(tmp_path: Path) -> None:
    copies = tmp_path / "pkg" / "__pycache__"
    copies.mkdir(parents=True)
    names = ("a.cpython-311.pyc", "a.cpython-313.opt-1.pyc", "ab.cpython-311.pyc", "a.txt", "b.cpython-311.pyc")
    for name in names:
        (copies / name).touch()

    remove_bytecode(str(tmp_path), ["pkg/a.py", "pkg/b.txt", "gone/c.py"])

    assert sorted(path.name for path in copies.iterdir()) == ["a.txt", "ab.cpython-311.pyc", "b.cpython-311.pyc"]
