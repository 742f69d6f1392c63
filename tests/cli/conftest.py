"""Shared by the tests of commands that launch Hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.hosts import StandInHosts
from support.machine import Machine
from support.packages import app_mcp, settings
from support.workspace import WorkspaceBuilder


@pytest.fixture
def hosts(machine: Machine) -> Iterator[StandInHosts]:
    """.NET on the machine, and stand-ins for the Hosts that it runs."""
    hosts = StandInHosts(machine.install_dotnet())
    yield hosts
    hosts.end_all()


@pytest.fixture
def uno(workspace: WorkspaceBuilder, hosts: StandInHosts) -> WorkspaceBuilder:
    """A restored Uno workspace with a project and two add-ins, on a machine with .NET."""
    return workspace.uno_6_5().project("src/App/App.csproj", [app_mcp(), settings()]).solution("App.slnx")
