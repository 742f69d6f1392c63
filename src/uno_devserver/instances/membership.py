"""Whose server is it? Which solution, which folder, which workspace a server belongs to.

Paths are compared as all launchers do: whole, and ignoring case on every system. Other than theirs, a link and the
folder it leads to are the same place here, so that a workspace that is entered by a link does not get a second Host.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .entries import Server


def full_solution(server: Server) -> str | None:
    """The solution's full path; None when there is none, or it is relative and the Host's folder is not known."""
    if server.solution is None or os.path.isabs(server.solution):
        return server.solution
    from ..system.processes import working_directory

    folder = working_directory(server.process_id)
    return os.path.join(folder, server.solution) if folder else None


def same_place(one: str | None, other: str | None) -> bool:
    return bool(one and other) and not _spellings(one).isdisjoint(_spellings(other))


def is_inside(path: str, directory: str) -> bool:
    """Whether the path lies below the directory, at any depth."""
    return any(
        inner.startswith(outer.rstrip(os.sep) + os.sep) for inner in _spellings(path) for outer in _spellings(directory)
    )


def is_in_workspace(server: Server, directory: str) -> bool:
    """Whether the server's solution lies below the directory, or its workspace is there."""
    solution, workspace = full_solution(server), server.workspace
    return (solution is not None and is_inside(solution, directory)) or (
        workspace is not None and (same_place(workspace, directory) or is_inside(workspace, directory))
    )


def _spellings(path: str | None) -> set[str]:
    if not path:
        return set()
    try:
        return {os.path.normpath(path).lower(), os.path.realpath(path).lower()}
    except (OSError, ValueError):  # a file may say anything: a NUL, a path beyond the system's limits
        return {os.path.normpath(path).lower()}
