"""Showing a page to the user: with the user's own browser, where there is a screen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.waiting import wait_for
from uno_devserver.cli.inspect import can_show_pages, open_in_browser

URL = "http://localhost:6274/?code=abc&more='1'"


@pytest.mark.parametrize(
    ("platform", "environ", "screen"),
    [
        ("win32", {}, True),
        ("darwin", {}, True),
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"BROWSER": "/vscode/bin/helpers/browser.sh"}, True),
    ],
)
def test_pages_are_shown_where_the_system_has_the_means(platform: str, environ: dict[str, str], screen: bool) -> None:
    assert can_show_pages(platform, environ) is screen


def test_the_users_browser_gets_the_url_as_it_is(tmp_path: Path) -> None:
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{shown}.new"\nmv "{shown}.new" "{shown}"\n')
    browser.chmod(0o755)

    assert open_in_browser(URL, {**os.environ, "DISPLAY": ":0", "BROWSER": str(browser)})

    assert wait_for(lambda: shown.read_text() if shown.exists() else None) == URL


def test_without_a_screen_no_browser_is_started() -> None:
    assert not open_in_browser(URL, {"PATH": os.environ["PATH"]})


def test_a_browser_that_cannot_be_started_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))

    assert not open_in_browser(URL, {**os.environ, "DISPLAY": ":0"})
