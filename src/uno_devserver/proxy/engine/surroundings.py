"""The other servers of this machine, for whoever looks on: the Hosts in the registry, and the proxies.

The registry is not changed by looking: stale entries stay, for those whose business they are. Waits for the disk.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...instances.host_kind import host_kind
from ...instances.membership import of_workspace
from ...instances.survey import survey
from ...system.processes import command_line
from ..health.status_file import running_proxies

if TYPE_CHECKING:
    from ...instances.entries import Server
    from ...system.folders import Folders
    from ...workspace.resolver import Workspace
    from ..health.status_file import Status

MOST = 100  # of each; nobody has that many, but a folder may be full of anything
_SHOWN = ("processId", "state", "status", "directory", "solution", "clients", "toolCount", "inspector")


def surroundings(folders: Folders, workspace: Workspace | None) -> dict[str, object]:
    """`workspace`: the present one, whose Hosts are marked."""
    found = survey(folders.registry, removing=False).running[:MOST]
    ours = of_workspace(found, workspace) if workspace is not None else ()
    return {
        "servers": [_server(server, server in ours) for server in found],
        "proxies": [_proxy(status) for status in running_proxies(folders.state)[:MOST]],
    }


def _server(server: Server, in_workspace: bool) -> dict[str, object]:
    """As `list --json` has it, without the chain of processes."""
    return {
        "processId": server.process_id,
        "port": server.port,
        "mcpEndpoint": server.mcp_endpoint,
        "startTime": server.started,
        "solutionPath": server.solution,
        "workspaceDirectory": server.workspace,
        "isInWorkspace": in_workspace,
        "hostKind": host_kind(command_line(server.process_id)),
    }


def _proxy(status: Status) -> dict[str, object]:
    return {**{name: status.get(name) for name in _SHOWN}, "own": status.get("processId") == os.getpid()}
