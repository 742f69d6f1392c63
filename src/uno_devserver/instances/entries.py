"""One file of the registry: an entry `devserver-<pid>.json`, or its sidecar `devserver-<pid>.aux.json`.

The Host writes the entry. Its launcher, or our Host itself, may add the sidecar, with what has no place in an entry.
Bytes and members are those of .NET, which ignores members that it does not know: the sidecar has some of ours. Reading
tolerates everything.
"""

from __future__ import annotations

import re

from ..system.files import FileProblem, read_bytes, write_atomic
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

MAX_BYTES = 64 * 1024

ENTRY = re.compile(r"devserver-.*(?<!\.aux)\.json", re.DOTALL)  # the names that .NET's readers look at
SIDECAR = re.compile(r"devserver-.*\.aux\.json", re.DOTALL)
_NUMBER = re.compile(r"devserver-(\d{1,10})(?:\.aux)?\.json")


class Server(Value):
    """A Host, as it signed in."""

    process_id: int
    parent_process_id: int
    solution: str | None  # as it was given to the Host: it may be relative to the Host's folder
    started: str  # when it signed in, as .NET writes it
    port: int
    machine: str
    user: str
    ide_channel: str | None
    workspace: str | None = None  # from the sidecar: tells the server of a workspace that has no solution
    # From the sidecar, where it died with its add-ins and was launched without; empty: it would have found them itself.
    left_out: tuple[str, ...] | None = None
    log_file: str | None = None  # from the sidecar: where its launcher let it print to
    control_channel: str | None = None  # from the sidecar: where the proxy that owns it is asked for its newest code

    @property
    def mcp_endpoint(self) -> str:
        return f"http://localhost:{self.port}/mcp"


def entry_name(pid: int) -> str:
    return f"devserver-{pid}.json"


def sidecar_name(pid: int) -> str:
    return f"devserver-{pid}.aux.json"


def process_in_name(name: str) -> int | None:
    number = _NUMBER.fullmatch(name)
    return int(number.group(1)) if number else None


def read_members(path: str) -> dict[str, object] | None:
    """The members of a file; None when it is not there, or no JSON object."""
    try:
        document = parse(read_bytes(path, MAX_BYTES))
    except FileNotFoundError:
        return None
    except (FileProblem, JsonProblem) as problem:
        log.debug(f"passing over {path}: {problem}")
        return None
    return document if isinstance(document, dict) else None


def server_of(members: Mapping[str, object]) -> Server | None:
    """What an entry says; fields that are missing or of another type are as good as absent."""
    pid, port, parent = members.get("ProcessId"), members.get("Port"), members.get("ParentProcessId")
    if not _is_number(pid) or not _is_number(port) or pid <= 0:
        return None
    return Server(
        pid,
        parent if _is_number(parent) else 0,
        text(members.get("SolutionPath")),
        text(members.get("StartTime")) or "",
        port,
        text(members.get("MachineName")) or "",
        text(members.get("UserName")) or "",
        text(members.get("IdeChannelId")),
    )


def members_of(server: Server) -> dict[str, object]:
    return {
        "ProcessId": server.process_id,
        "ParentProcessId": server.parent_process_id,
        "SolutionPath": server.solution,
        "StartTime": server.started,
        "Port": server.port,
        "MachineName": server.machine,
        "UserName": server.user,
        "IdeChannelId": server.ide_channel,
    }


def write_members(path: str, members: Mapping[str, object], *, new: bool = False) -> None:
    """Raises FileProblem; FileExistsError where a `new` file is there already.

    The temporary name ends in .tmp, so that no reader takes it for an entry.
    """
    from ..system.dotnet_formats import to_json

    try:
        write_atomic(path, to_json(members).encode("ascii"), new=new)
    except FileExistsError:
        raise
    except OSError as error:
        raise FileProblem(path, error.strerror or str(error)) from error


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def texts(value: object) -> tuple[str, ...] | None:
    """The texts of a list; None when it is no list."""
    return tuple(filter(None, map(text, value))) if isinstance(value, list) else None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
