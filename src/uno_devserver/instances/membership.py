"""Whose server is it? Which solution, which folder, which workspace a server belongs to.

Paths are compared as all launchers do: whole, and ignoring case on every system. Other than theirs, a link and the
folder it leads to are the same place here, so that a workspace that is entered by a link does not get a second Host;
and two folders that differ in case alone, where the file system has both, are two places.
"""

from __future__ import annotations

import os
import re

from ..workspace.globaljson import find_global_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..workspace.resolver import Workspace
    from .entries import Server

UNDECODABLE = re.compile("[\ud800-\udfff]")


def full_solution(server: Server) -> str | None:
    """The solution's full path; None when there is none, or it is relative and the Host's folder is not known."""
    if server.solution is None or os.path.isabs(server.solution):
        return server.solution
    from ..system.processes import working_directory

    folder = working_directory(server.process_id)
    return os.path.join(folder, server.solution) if folder else None


def same_place(one: str | None, other: str | None) -> bool:
    return any(_are_one(mine, theirs) for mine in _spellings(one) for theirs in _spellings(other))


def is_inside(path: str, directory: str) -> bool:
    """Whether the path lies below the directory, at any depth."""
    return any(
        inner[len(outer) : len(outer) + 1] == os.sep and _are_one(inner[: len(outer)], outer)
        for inner in _spellings(path)
        for outer in (spelling.rstrip(os.sep) for spelling in _spellings(directory))
    )


def is_in_workspace(server: Server, directory: str) -> bool:
    """Whether the server's solution lies below the directory, or its workspace is there."""
    solution, workspace = full_solution(server), server.workspace
    return (solution is not None and is_inside(solution, directory)) or (
        workspace is not None and (same_place(workspace, directory) or is_inside(workspace, directory))
    )


def of_workspace(servers: Iterable[Server], workspace: Workspace) -> tuple[Server, ...]:
    """The servers of the workspace; of one that is not resolved, those of the folder that one stands in.

    Where there are none of that folder either, those of the solutions that lie below it: whoever acts on them should
    do so only if there is one.
    """
    servers = tuple(servers)
    if workspace.resolved:
        return tuple(server for server in servers if _belongs(server, workspace))
    directory = workspace.requested_directory
    homes = [(server, home) for server in servers if (home := _home(server)) and _holds(home, directory)]
    if homes:
        nearest = max(len(home) for _, home in homes)  # each of them lies in the next shorter one
        return tuple(server for server, home in homes if len(home) == nearest)
    return tuple(
        server
        for server in servers
        if any(same_place(full_solution(server), candidate) for candidate in workspace.candidates)
    )


def _belongs(server: Server, workspace: Workspace) -> bool:
    directory, solution = workspace.working_directory, full_solution(server)
    if same_place(server.workspace, directory):
        return True
    if solution is None or not is_inside(solution, directory):
        return same_place(solution, workspace.solution)
    # A global.json of its own between them makes it another workspace, a submodule's for example.
    nearest = find_global_json(os.path.dirname(solution))
    return nearest is None or same_place(nearest, workspace.global_json) or not is_inside(nearest, directory)


def _home(server: Server) -> str | None:
    solution = full_solution(server)
    home = server.workspace or (os.path.dirname(solution) if solution else None)
    return os.path.normpath(home) if home else None


def _holds(home: str, directory: str) -> bool:
    return same_place(home, directory) or is_inside(directory, home)


def _spellings(path: str | None) -> set[str]:
    if not path:
        return set()
    try:
        spellings = {os.path.normpath(path), os.path.realpath(path)}
    except (OSError, ValueError):  # a file may say anything: a NUL, a path beyond the system's limits
        spellings = {os.path.normpath(path)}
    # The registry has no way to write bytes that are no text; what it says instead has to mean the same.
    return {UNDECODABLE.sub("\ufffd", spelling) for spelling in spellings}


def _are_one(path: str, other: str) -> bool:
    if path == other or path.lower() != other.lower():
        return path == other
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them is not there: it is only another way to write it
        return True
