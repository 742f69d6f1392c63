"""The user's agreement: kept outside the workspace, for its real path and its config, and never given by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.files import write, write_all
from uno_devserver.system.files import FileProblem
from uno_devserver.workspace.trust import (
    NOT_AGREED,
    TrustQuestion,
    agree,
    agreement_path,
    is_agreed,
    is_trusted,
    refusal,
    revoke,
    trust_question,
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write(tmp_path / "ws" / ".devtools" / "addins" / "greeter.py", "")
    write(tmp_path / "ws" / ".devtools" / "host.config.jsonc", "{}")
    return tmp_path / "ws"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "Uno Platform" / "uno.devserver")


def _environ(tmp_path: Path, trust: str = "") -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "UNO_DEVSERVER_TRUST": trust}


def test_an_agreement_is_kept_and_can_be_taken_back(workspace: Path, state: str, tmp_path: Path) -> None:
    assert not is_trusted(_environ(tmp_path), str(workspace))
    assert refusal(state, str(workspace)) == NOT_AGREED

    agree(state, trust_question(str(workspace)), "trust")
    assert is_agreed(state, str(workspace))
    assert is_trusted(_environ(tmp_path), str(workspace))

    assert revoke(state, str(workspace)) is True
    assert not is_agreed(state, str(workspace))
    assert revoke(state, str(workspace)) is False


def test_what_there_is_to_agree_to_is_named(workspace: Path) -> None:
    asked = trust_question(str(workspace))

    assert asked.addins == (str(workspace / ".devtools" / "addins" / "greeter.py"),)
    assert asked.config == str(workspace / ".devtools" / "host.config.jsonc")
    assert not asked.empty


def test_a_workspace_without_code_has_nothing_to_agree_to(tmp_path: Path) -> None:
    assert trust_question(str(tmp_path)) == TrustQuestion(str(tmp_path), (), None, "")
    assert trust_question(str(tmp_path)).empty


@pytest.mark.parametrize(("value", "trusted"), [("1", True), (" 1 ", True), ("0", False), ("true", False), ("", False)])
def test_automation_agrees_by_the_environment(workspace: Path, tmp_path: Path, value: str, trusted: bool) -> None:
    assert is_trusted(_environ(tmp_path, value), str(workspace)) is trusted


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"host.config.jsonc": '{"command": "rm -rf"}'}, "its config was changed since the user agreed to it"),
        ({"addins/greeter.py": "print('edited')", "addins/second.py": ""}, ""),
    ],
    ids=["another config is another question", "an edited or new add-in is not"],
)
def test_what_was_agreed_to_counts_until_the_config_changes(
    workspace: Path, state: str, files: dict[str, str], why: str
) -> None:
    agree(state, trust_question(str(workspace)), "trust")

    write_all(workspace / ".devtools", files)

    assert is_agreed(state, str(workspace)) is not bool(why)
    assert not why or refusal(state, str(workspace)) == why
    write(workspace / ".devtools" / "host.config.jsonc", "{}")
    assert is_agreed(state, str(workspace)), "what was agreed to is back"


@pytest.mark.parametrize("content", ["", "{}"])
def test_a_config_that_appears_is_another_question(tmp_path: Path, state: str, content: str) -> None:
    agree(state, trust_question(str(tmp_path)), "trust")

    write(tmp_path / ".devtools" / "host.config.jsonc", content)

    assert not is_agreed(state, str(tmp_path))


def test_the_agreement_holds_for_every_way_to_the_same_place(workspace: Path, state: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)

    agree(state, trust_question(str(tmp_path / "link")), "trust")

    assert is_agreed(state, str(workspace))
    assert is_agreed(state, f"{workspace}/.devtools/..")


def test_another_workspace_is_another_question(workspace: Path, state: str, tmp_path: Path) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    other = tmp_path / "other"

    workspace.rename(other)

    assert not is_agreed(state, str(other))


def test_a_file_that_names_another_workspace_agrees_to_nothing(workspace: Path, state: str, tmp_path: Path) -> None:
    """Two paths may share a file name, by chance or because somebody made it so."""
    agree(state, trust_question(str(workspace)), "trust")
    other = tmp_path / "other"
    other.mkdir()

    os.rename(agreement_path(state, str(workspace)), agreement_path(state, str(other)))

    assert not is_agreed(state, str(other))


def test_folders_that_differ_in_case_alone_are_two_questions(state: str, tmp_path: Path) -> None:
    for name in ("App", "app"):
        (tmp_path / name).mkdir()

    agree(state, trust_question(str(tmp_path / "App")), "trust")

    assert is_agreed(state, str(tmp_path / "App"))
    assert not is_agreed(state, str(tmp_path / "app"))


def test_the_file_is_the_users_alone_and_says_how_it_came_about(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "start")

    path = Path(agreement_path(state, str(workspace)))
    kept = json.loads(path.read_bytes())
    assert (path.stat().st_mode & 0o777, path.parent.name) == (0o600, "trust")
    assert (kept["workspace"], kept["agreedBy"]) == (str(workspace), "start")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b'{"workspace": 1}', b"[" * 5000])
def test_a_damaged_file_agrees_to_nothing(workspace: Path, state: str, content: bytes) -> None:
    agree(state, trust_question(str(workspace)), "trust")

    Path(agreement_path(state, str(workspace))).write_bytes(content)

    assert not is_agreed(state, str(workspace))


def test_a_config_that_cannot_be_read_is_never_agreed_to(workspace: Path, state: str) -> None:
    agree(state, trust_question(str(workspace)), "trust")
    config = workspace / ".devtools" / "host.config.jsonc"
    config.unlink()
    os.mkfifo(config)

    assert not is_agreed(state, str(workspace))
    with pytest.raises(FileProblem, match="not a regular file"):
        trust_question(str(workspace))


def test_a_name_that_is_no_text_can_be_agreed_to(tmp_path: Path, state: str) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe4")
    os.mkdir(folder)

    agree(state, trust_question(folder), "trust")

    assert is_agreed(state, folder)
