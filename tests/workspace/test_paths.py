"""Path equality, by each system's rules on every system."""

from __future__ import annotations

import pytest

from uno_devserver.workspace.paths import path_key, upwards

SAME = [
    ("win32", "C:\\Src\\App", "c:/src/app"),
    ("win32", "C:\\Src\\App\\", "C:\\Src\\App"),
    ("win32", "\\\\Server\\Share\\App", "//server/share/app"),
    ("linux", "/mnt/c/Src/App", "/mnt/c/src/app/"),
    ("linux", "/home/me/App/", "/home/me/App"),
    ("linux", "/home/me\\App", "/home/me/App"),
    ("darwin", "/Users/me/App//", "/Users/me/App"),
    ("linux", "/", "//"),
]

DIFFERENT = [
    ("linux", "/home/me/App", "/home/me/app"),
    ("linux", "/mntc/App", "/mntc/app"),
    ("darwin", "/Users/me/App", "/Users/me/app"),
    ("win32", "C:\\App", "D:\\App"),
]


@pytest.mark.parametrize(("platform", "one", "other"), SAME)
def test_two_spellings_of_one_path_have_one_key(platform: str, one: str, other: str) -> None:
    assert path_key(one, platform) == path_key(other, platform)


@pytest.mark.parametrize(("platform", "one", "other"), DIFFERENT)
def test_two_paths_have_two_keys(platform: str, one: str, other: str) -> None:
    assert path_key(one, platform) != path_key(other, platform)


def test_the_way_upwards_begins_with_the_folder_and_ends_with_the_root() -> None:
    assert list(upwards("/a/b")) == ["/a/b", "/a", "/"]
