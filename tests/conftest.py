"""Shared by all tests; the builders live in tests/support."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.machine import Machine
from support.workspace import WorkspaceBuilder


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """An empty machine, without dotnet."""
    return Machine(tmp_path)


@pytest.fixture
def workspace(machine: Machine) -> WorkspaceBuilder:
    return WorkspaceBuilder(machine)
