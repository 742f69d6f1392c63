"""The names of control channels: never the same, and a socket has room for each."""

from __future__ import annotations

import pytest

from uno_devserver.hotreload.channel_name import channel_name
from uno_devserver.system.pipes import pipe_path


def test_no_name_comes_twice_and_each_leads_into_the_temp_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/")

    names = {channel_name() for _ in range(100)}

    assert len(names) == 100
    assert all(pipe_path(name, "darwin").startswith("/var/folders/zz/") for name in names)


def test_where_the_temp_folder_has_too_long_a_path_another_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/" + "x" * 100)

    assert pipe_path(channel_name()).startswith("/tmp/CoreFxPipe_uno-")
