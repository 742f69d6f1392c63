"""Paths in reports are short, and have the separators of their system."""

from __future__ import annotations

import pytest

from support.systems import LINUX, MACOS, WINDOWS, machine
from uno_devserver.cli.mcp.arguments import shown_path


@pytest.mark.parametrize(
    ("platform", "path", "shown"),
    [
        (LINUX, "/home/me/.config/x.json", "~/.config/x.json"),
        (LINUX, "/home/me/app/.mcp.json", ".mcp.json"),
        (LINUX, "/home/mean/x.json", "/home/mean/x.json"),
        (MACOS, "/Users/me/Library/Application Support/x.json", "~/Library/Application Support/x.json"),
        (WINDOWS, "C:\\Users\\me\\AppData\\Roaming\\x.json", "~\\AppData\\Roaming\\x.json"),
        (WINDOWS, "D:\\app\\.mcp.json", ".mcp.json"),
    ],
)
def test_a_path_in_the_workspace_or_the_home_folder_is_shortened(platform: str, path: str, shown: str) -> None:
    assert shown_path(path, machine(platform)) == shown
