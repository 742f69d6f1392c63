"""File names that stand for paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from uno_devserver.system.state_files import name_for


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
