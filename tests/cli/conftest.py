"""Shared by the tests of commands that launch Hosts."""

from __future__ import annotations

import pytest

from support.hosts import StandInHosts
from support.packages import app_mcp, settings
from support.workspace import WorkspaceBuilder


@pytest.fixture
def uno(workspace: WorkspaceBuilder, hosts: StandInHosts) -> WorkspaceBuilder:
    """A restored Uno workspace with a project and two add-ins, on a machine with .NET."""
    return workspace.uno_6_5().project("src/App/App.csproj", [app_mcp(), settings()]).solution("App.slnx")
