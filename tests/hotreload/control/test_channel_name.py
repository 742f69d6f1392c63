"""The names of control channels: never the same, and a socket has room for each."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from uno_devserver.hotreload.control.channel_name import channel_name, remove_left_channels
from uno_devserver.system.pipes import pipe_path


def test_no_name_comes_twice_and_each_leads_into_the_temp_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/")

    names = {channel_name() for _ in range(100)}

    assert len(names) == 100
    assert all(pipe_path(name, "darwin").startswith("/var/folders/zz/") for name in names)


def test_where_the_temp_folder_has_too_long_a_path_another_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/" + "x" * 100)

    assert pipe_path(channel_name()).startswith("/tmp/CoreFxPipe_uno-")


def _socket_at(path: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(path)
    bound.listen()
    return bound


def test_only_sockets_of_ours_that_nobody_listens_on_are_removed(temp: Path) -> None:
    # given: a proxy that was killed, one that runs, and what others have there
    left, used = pipe_path(channel_name()), pipe_path(channel_name())
    _socket_at(left).close()
    (temp / "theirs").write_text("")
    _socket_at(str(temp / "CoreFxPipe_theirs")).close()

    with _socket_at(used):
        # when
        removed = remove_left_channels()

        # then
        assert removed == [left]
        assert {str(path) for path in temp.iterdir()} == {used, str(temp / "theirs"), str(temp / "CoreFxPipe_theirs")}


def test_a_temp_folder_that_is_gone_has_no_left_channels(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(temp / "gone"))

    assert remove_left_channels() == []


def test_on_windows_no_channel_is_left(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = pipe_path(channel_name())
    _socket_at(left).close()
    monkeypatch.setattr(sys, "platform", "win32")

    assert remove_left_channels() == []
    assert Path(left).is_socket()
