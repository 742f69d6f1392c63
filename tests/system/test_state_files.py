"""File names that stand for paths."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from uno_devserver.system.state_files import name_for, sha256


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/src/My App", "my_app"), ("/src/größe.ui", "größe.ui"), ("/", "root"), ("/a/b;c'd", "b_c_d")],
)
def test_a_name_shows_what_it_stands_for(path: str, shown: str) -> None:
    assert re.fullmatch(rf"{re.escape(shown)}-[0-9a-f]{{8}}", name_for(path))


def test_another_name_can_be_shown_for_the_same_path() -> None:
    assert name_for("/src/app/App.sln", shown="App") == "App" + name_for("/src/app/App.sln").removeprefix("app.sln")


def test_two_folders_of_one_name_get_two_names() -> None:
    assert name_for("/one/app") != name_for("/two/app")


def test_a_link_and_another_case_are_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "app")

    assert name_for(str(tmp_path / "link")) == name_for(str(tmp_path / "app"))
    assert name_for("/src/App") == name_for("/src/aPP")


def test_a_name_is_short_and_valid_whatever_the_path_is() -> None:
    name = name_for("/src/" + "\udce9\n" + "x" * 300)

    assert len(name) == 40 + 1 + 8
    assert name.startswith("__xxx")


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 1000])
def test_the_digest_is_hashlibs(data: bytes) -> None:
    assert sha256(data) == hashlib.sha256(data).hexdigest()


def test_it_does_without_hashlib() -> None:
    code = "import sys; from uno_devserver.system.state_files import sha256; sha256(b'');"
    code += "sys.exit('hashlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_another_python_has_no_module_of_that_name_and_uses_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, None)  # which makes its import fail

    assert sha256(b"a") == hashlib.sha256(b"a").hexdigest()
