"""A proxy that a command runs; what it serves is held by the tests of `inspect`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.waiting import wait_for
from uno_devserver.cli import proxy_child
from uno_devserver.cli.proxy_child import ProxyChild


def test_the_newest_unread_lines_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # given one that says much, and a terminal that is held
    monkeypatch.setattr(proxy_child, "WAITING_LINES", 2)
    proxy = ProxyChild(str(tmp_path), ["--inspector", "0", "-l", "Debug"])
    wait_for(lambda: proxy._left_out > 0)

    # when it goes on
    proxy.end()
    runs = proxy.stay(lambda: False, {})

    # then it has not been held up, and what is missing is told
    assert not runs
    assert "lines left out" in capsys.readouterr().err
    assert proxy.last_lines  # how many of them depends on when each was printed
