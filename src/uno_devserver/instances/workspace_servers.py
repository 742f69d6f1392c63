"""Which of the running servers belong to a workspace, and their ancestors.

Paths are compared as by all launchers: as a whole, and ignoring case on every system. Unlike theirs, the comparison
follows links, so that a workspace that is entered through a link does not get a second Host. It also distinguishes two
folders that differ only in case, if the file system has both.
"""

from __future__ import annotations

import os

from ..system.values import Value
from ..workspace.global_json import find_global_json
from ..workspace.paths import is_inside, same_place
from .registry import full_solution, scan_registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..system.processes import Process
    from ..workspace.resolver import Workspace
    from .registry import RegisteredServer


def of_workspace(servers: Iterable[RegisteredServer], workspace: Workspace) -> tuple[RegisteredServer, ...]:
    """The servers of the workspace; if it is not resolved, those of the requested folder or the nearest above it.

    If there are none of these either, the result is the servers of the solutions below that folder. A caller that stops
    or restarts a server should do so only if there is exactly one.
    """
    servers = tuple(servers)
    if workspace.resolved:
        return tuple(server for server in servers if _belongs(server, workspace))
    directory = workspace.requested_directory
    homes = [(server, home) for server in servers if (home := _home(server)) and _holds(home, directory)]
    if homes:
        nearest = max(len(home) for _, home in homes)  # all are above the directory, so the longest is the nearest
        return tuple(server for server, home in homes if len(home) == nearest)
    return tuple(
        server
        for server in servers
        if any(same_place(full_solution(server), candidate) for candidate in workspace.candidates)
    )


def _belongs(server: RegisteredServer, workspace: Workspace) -> bool:
    directory, solution = workspace.working_directory, full_solution(server)
    if same_place(server.workspace, directory):
        return True
    if solution is None or not is_inside(solution, directory):
        return same_place(solution, workspace.solution)
    # A global.json between the directory and the solution makes it another workspace, e.g. that of a submodule.
    nearest = find_global_json(os.path.dirname(solution))
    return nearest is None or same_place(nearest, workspace.global_json) or not is_inside(nearest, directory)


def _home(server: RegisteredServer) -> str | None:
    solution = full_solution(server)
    home = server.workspace or (os.path.dirname(solution) if solution else None)
    return os.path.normpath(home) if home else None


def _holds(home: str, directory: str) -> bool:
    return same_place(home, directory) or is_inside(directory, home)


class ActiveServer(Value):
    server: RegisteredServer
    in_workspace: bool
    chain: tuple[Process, ...]  # the server's process and its ancestors


def active_servers(registry: str, workspace: Workspace) -> tuple[ActiveServer, ...]:
    return with_ancestors(scan_registry(registry, removing=False).running, workspace)


def with_ancestors(running: tuple[RegisteredServer, ...], workspace: Workspace) -> tuple[ActiveServer, ...]:
    if not running:
        return ()
    from ..system.processes import chain

    mine = of_workspace(running, workspace)
    return tuple(
        ActiveServer(server, server in mine, chain(server.process_id, server.parent_process_id)) for server in running
    )
