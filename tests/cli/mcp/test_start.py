"""`mcp start`, as a person types it; `tests/proxy` has what it does for AI clients."""

from __future__ import annotations

import sys

import pytest

from support.machine import Machine
from support.terminals import Terminal
from uno_devserver.cli.mcp.start import end_keys


@pytest.mark.parametrize(("platform", "keys"), [("linux", "Ctrl+D"), ("darwin", "Ctrl+D"), ("win32", "Ctrl+Z, Enter")])
def test_the_keys_that_end_the_input_are_those_of_the_system(platform: str, keys: str) -> None:
    assert end_keys(platform) == keys


@pytest.mark.skipif(sys.platform == "win32", reason="it needs a terminal of POSIX")
def test_who_types_it_is_told_how_to_end_it_and_those_keys_do(machine: Machine) -> None:
    terminal = Terminal(machine, "mcp", "start")
    terminal.until(f"End the input ({end_keys()}) to stop.")

    terminal.press(b"\x04")
    terminal.end()

    assert terminal.process.returncode == 0
