"""The registry: the folder of `devserver-<pid>.json` files in which every launcher of a Host signs it in.

Reading tolerates everything: a file that is not understood, or whose process has ended, is passed over.
"""

from __future__ import annotations

import os
import re

from ..system.files import FileProblem, read_bytes
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

_FILE = re.compile(r"devserver-(\d{1,10})\.json")
MAX_BYTES = 64 * 1024


class Server(Value):
    """A running Host, as it signed in."""

    process_id: int
    parent_process_id: int
    solution: str | None
    started: str
    port: int
    machine: str
    user: str
    ide_channel: str | None

    @property
    def mcp_endpoint(self) -> str:
        return f"http://localhost:{self.port}/mcp"


def running_servers(folder: str) -> tuple[Server, ...]:
    """The Hosts of this user on this machine that are alive, by process id."""
    try:
        names = [name for name in os.listdir(folder) if _FILE.fullmatch(name)]
    except OSError:
        return ()
    if not names:
        return ()
    # Looking at processes costs 20 ms of imports; almost always there is nothing to look at.
    from ..system.processes import is_alive, machine_name, user_name

    here, me = machine_name(), user_name()
    servers = (_read(folder, name) for name in names)
    ours = [server for server in servers if server and server.machine == here and server.user == me]
    return tuple(sorted((one for one in ours if is_alive(one.process_id)), key=lambda server: server.process_id))


def is_in_workspace(server: Server, directory: str) -> bool:
    """Whether the server's solution lies in the directory or below it; case is ignored, as by all launchers."""
    if not server.solution:
        return False
    solution = os.path.normpath(server.solution).lower()
    return solution.startswith(os.path.normpath(directory).lower().rstrip(os.sep) + os.sep)


def _read(folder: str, name: str) -> Server | None:
    path = os.path.join(folder, name)
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem) as problem:
        log.debug(f"passing over {path}: {problem}")
        return None
    fields = document if isinstance(document, dict) else {}
    pid, port = fields.get("ProcessId"), fields.get("Port")
    if not _is_number(pid) or not _is_number(port) or pid <= 0:
        return None
    parent = fields.get("ParentProcessId")
    return Server(
        pid,
        parent if _is_number(parent) else 0,
        _text(fields.get("SolutionPath")),
        _text(fields.get("StartTime")) or "",
        port,
        _text(fields.get("MachineName")) or "",
        _text(fields.get("UserName")) or "",
        _text(fields.get("IdeChannelId")) or _sidecar_channel(folder, pid),
    )


def _sidecar_channel(folder: str, pid: int) -> str | None:
    """Older Hosts do not record their IDE channel; their launcher does, beside the entry."""
    try:
        document = parse(read_bytes(os.path.join(folder, f"devserver-{pid}.aux.json"), MAX_BYTES))
    except (FileNotFoundError, FileProblem, JsonProblem):
        return None
    return _text(document.get("IdeChannelId")) if isinstance(document, dict) else None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
