"""The token: one per workspace, kept, and for its user alone."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from uno_devserver.inspector.access import token_for


def test_it_stays_the_same_for_a_workspace_however_its_path_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)

    tokens = {token_for(str(tmp_path / "state"), str(path)) for path in (folder, tmp_path / "link", f"{folder}/.")}

    assert len(tokens) == 1


def test_each_workspace_has_its_own(tmp_path: Path) -> None:
    state = str(tmp_path / "state")

    assert token_for(state, str(tmp_path / "a")) != token_for(state, str(tmp_path / "b"))


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    token = token_for(str(tmp_path / "state"), str(tmp_path))

    (file,) = (tmp_path / "state" / "inspector").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text())["token"] == token


def test_all_who_ask_at_the_same_moment_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: token_for(str(tmp_path / "state"), str(tmp_path)), range(32)))

    assert len(tokens) == 1


@pytest.mark.parametrize("token", ["", "short", "x" * 33, "&" * 32, 7, None])
def test_a_token_that_could_be_guessed_or_not_sent_is_replaced(tmp_path: Path, token: object) -> None:
    state = str(tmp_path / "state")
    token_for(state, str(tmp_path))
    (file,) = (tmp_path / "state" / "inspector").iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"token": token}))

    after = token_for(state, str(tmp_path))

    assert after != token
    assert token_for(state, str(tmp_path)) == after


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00"])
def test_a_file_that_is_no_token_is_replaced(tmp_path: Path, content: bytes) -> None:
    state = str(tmp_path / "state")
    before = token_for(state, str(tmp_path))
    (file,) = (tmp_path / "state" / "inspector").iterdir()
    file.write_bytes(content)

    after = token_for(state, str(tmp_path))

    assert after != before
    assert token_for(state, str(tmp_path)) == after


def test_the_token_of_another_folder_whose_file_has_the_same_name_is_not_used(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    before = token_for(state, str(tmp_path))
    (file,) = (tmp_path / "state" / "inspector").iterdir()
    file.write_text(json.dumps({"folder": "/elsewhere", "token": before}))

    assert token_for(state, str(tmp_path)) != before


def test_where_nothing_can_be_kept_there_is_one_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")

    token = token_for(str(tmp_path / "state"), str(tmp_path))

    assert len(token) == 32
    assert os.listdir(tmp_path) == ["state"]
