"""A machine, a workspace with an add-in that can do everything, and proxies that are all gone when a test ends."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.machine import Machine
from support.proxies import Proxies

WORKBENCH = Path(__file__).parent / "workbench.py"


@pytest.fixture
def proxies(machine: Machine) -> Iterator[Proxies]:
    """The proxies of a user who has agreed that the code of the workspace runs."""
    machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    with Proxies(machine) as proxies:
        yield proxies


@pytest.fixture
def bench(machine: Machine) -> Workbench:
    """A workspace that needs no .NET: its folder of add-ins makes it one."""
    return Workbench(machine)


class Workbench:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.addins = machine.workspace / ".devtools" / "addins"
        self.addins.mkdir(parents=True)
        self.file = self.addins / "workbench.py"
        shutil.copyfile(WORKBENCH, self.file)

    @property
    def gate(self) -> Path:
        """While it exists, the add-in is not loaded, and the Host has no list of tools."""
        return self.addins / "gate"

    def close_gate(self) -> None:
        self.gate.touch()

    def open_gate(self) -> None:
        self.gate.unlink()

    def write_addin(self, name: str, source: str) -> None:
        (self.addins / name).write_text(source, "utf-8")
