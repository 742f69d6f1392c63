"""Agreeing to a workspace's code by asking for its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import write
from uno_devserver.cli.trust import agree_to
from uno_devserver.workspace.trust import is_trusted


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "ws"


def test_what_may_run_is_told_once_and_counts_from_then_on(workspace: Path, tmp_path: Path) -> None:
    addin = write(workspace / ".devtools" / "addins" / "mine.py", "")

    first, second = agree_to(str(workspace), "start"), agree_to(str(workspace), "start")

    assert first == (str(addin),)
    assert second == ()
    assert is_trusted({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, str(workspace))


def test_an_empty_workspace_is_not_agreed_to_since_code_may_come_later(workspace: Path, tmp_path: Path) -> None:
    workspace.mkdir()

    assert agree_to(str(workspace), "start") == ()
    assert not is_trusted({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, str(workspace))


@pytest.mark.parametrize("config", ["{}", '{"proxy": {"waitCalls": true}}', '{"nonsense": 1}'])
def test_a_config_that_names_no_command_is_not_agreed_to_since_code_may_come_later(
    workspace: Path, tmp_path: Path, config: str
) -> None:
    write(workspace / ".devtools" / "host.config.jsonc", config)

    assert agree_to(str(workspace), "start") == ()
    assert not is_trusted({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, str(workspace))


def test_a_config_that_cannot_be_seen_is_not_agreed_to(workspace: Path) -> None:
    write(workspace / ".devtools" / "host.config.jsonc", "{ broken")

    assert agree_to(str(workspace), "start") == ()


def test_a_state_that_cannot_be_kept_is_no_reason_to_fail_and_is_told(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(workspace / ".devtools" / "addins" / "mine.py", "")
    (tmp_path / "gone").symlink_to(tmp_path / "gone")  # no folder can be made there, not even by root
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "gone" / "data"))

    assert agree_to(str(workspace), "start") == ()
    said = capsys.readouterr().err
    assert str(tmp_path / "gone" / "data") in said
    assert "Make the folder writable" in said


def test_a_dry_run_tells_what_would_run_and_agrees_to_nothing(workspace: Path, tmp_path: Path) -> None:
    addin = write(workspace / ".devtools" / "addins" / "mine.py", "")

    assert agree_to(str(workspace), "start", dry_run=True) == (str(addin),)
    assert not is_trusted({"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}, str(workspace))
