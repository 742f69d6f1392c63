"""What is kept of a workspace from one Host to the next: what it printed, and the port it had.

Names follow from the workspace, so that every command finds the files. Losing them costs nothing but convenience.
"""

from __future__ import annotations

import json
import os

from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.naming import name_for
from .membership import same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .entries import Server

MAX_PORT = 65_535
MAX_BYTES = 64 * 1024  # the file holds a path and a number


def log_path(state: str, workspace: str, solution: str | None) -> str:
    """Where a Host of this workspace that we launch prints to."""
    return os.path.join(state, "logs", f"host-{_name(workspace, solution)}.log")


def log_of(server: Server) -> str | None:
    """The log of a server; None where it was launched by somebody else, or the file is gone."""
    return server.log_file if server.log_file and os.path.isfile(server.log_file) else None


def remembered_port(state: str, workspace: str, solution: str | None) -> int:
    """The port that the workspace's last Host had; 0 when it is not known."""
    try:
        kept = parse(read_bytes(_port_path(state, workspace, solution), MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return 0
    if not isinstance(kept, dict) or not same_place(str(kept.get("path")), solution or workspace):
        return 0
    port = kept.get("port")
    return port if type(port) is int and 0 < port <= MAX_PORT else 0


def remember_port(state: str, workspace: str, solution: str | None, port: int) -> None:
    if remembered_port(state, workspace, solution) == port:
        return
    content = json.dumps({"path": solution or workspace, "port": port})
    try:
        write_atomic(_port_path(state, workspace, solution), content.encode("ascii"))
    except OSError as error:
        log.debug(f"the port is not remembered: {error}")


def _port_path(state: str, workspace: str, solution: str | None) -> str:
    return os.path.join(state, "ports", f"{_name(workspace, solution)}.json")


def _name(workspace: str, solution: str | None) -> str:
    return name_for(solution or workspace, shown=os.path.basename(workspace))
