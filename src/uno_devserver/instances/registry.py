"""The registry: the folder in which every Host signs itself in, shared with .NET Hosts and IDE extensions.

An entry counts while its process lives and is the one that signed in. Only what certainly belongs to nobody is removed:
an entry of this user on this machine whose process has ended, and a file that is no entry and whose name holds the id
of no living process. Writing is atomic; a file that cannot be written or removed is a FileProblem.
"""

from __future__ import annotations

import os

from ..system.files import FileProblem
from ..system.log import log
from .entries import Server, entry_name, members_of, read_members, sidecar_name, write_members
from .membership import full_solution, is_in_workspace, same_place
from .survey import Pruned, creation_time, survey

__all__ = [
    "Pruned",
    "Server",
    "creation_time",
    "has_sidecar",
    "is_in_workspace",
    "new_entry",
    "on_port",
    "prune",
    "register",
    "running_servers",
    "serving",
    "unregister",
    "update_channel",
    "write_sidecar",
]


# Who is there?


def running_servers(folder: str) -> tuple[Server, ...]:
    """The Hosts of this user on this machine that are alive, by process id. Removes nothing."""
    found = survey(folder, removing=False)
    for problem in found.problems:
        log.warn(problem)
    return found.running


def prune(folder: str) -> Pruned:
    """Remove what is stale, and tell what there is. Whoever lists, starts or stops servers begins with this."""
    return survey(folder, removing=True)


def serving(folder: str, *, solution: str | None = None, workspace: str | None = None) -> Server | None:
    """The running Host of a solution (a full path), or else of a workspace folder that has no solution."""
    for server in running_servers(folder):
        if solution and same_place(full_solution(server), solution):
            return server
        if not solution and server.solution is None and same_place(server.workspace, workspace):
            return server
    return None


def on_port(folder: str, port: int) -> Server | None:
    """The running Host that signed in with this port."""
    return next((server for server in running_servers(folder) if server.port == port > 0), None)


# Signing in and out.


def new_entry(port: int, *, parent: int = 0, solution: str | None = None, ide_channel: str | None = None) -> Server:
    """What this process signs in with, now."""
    import time

    from ..system.dotnet_formats import to_time
    from ..system.processes import machine_name, user_name

    now = to_time(time.time_ns())
    return Server(os.getpid(), parent, solution, now, port, machine_name(), user_name(), ide_channel)


def register(folder: str, server: Server) -> str:
    """Write the entry, creating the folder; returns its path."""
    path = os.path.join(folder, entry_name(server.process_id))
    write_members(path, members_of(server))
    return path


def unregister(folder: str, pid: int) -> None:
    """Remove the entry and the sidecar of a process, if they are there."""
    for name in (entry_name(pid), sidecar_name(pid)):
        path = os.path.join(folder, name)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise FileProblem(path, error.strerror or str(error)) from error


def update_channel(folder: str, pid: int, channel: str | None) -> bool:
    """Record the IDE channel that a Host is bound to from now on; False when it is not signed in."""
    path, sidecar = os.path.join(folder, entry_name(pid)), os.path.join(folder, sidecar_name(pid))
    for file in (path, sidecar):  # they must not contradict each other
        if members := read_members(file):
            write_members(file, {**members, "IdeChannelId": channel})
    return os.path.isfile(path)


def has_sidecar(folder: str, pid: int) -> bool:
    return os.path.isfile(os.path.join(folder, sidecar_name(pid)))


def write_sidecar(
    folder: str,
    pid: int,
    *,
    ide_channel: str | None,
    workspace: str | None = None,
    left_out: tuple[str, ...] | None = None,
    log_file: str | None = None,
    control_channel: str | None = None,
    new: bool = False,
) -> str:
    """Record what a Host that has just been started does not say in its entry; returns the path.

    `new`: FileExistsError where it is recorded already.
    """
    now = new_entry(0)
    path = os.path.join(folder, sidecar_name(pid))
    members: dict[str, object] = {
        "ProcessId": pid,
        "IdeChannelId": ide_channel,
        "WorkspaceDirectory": workspace,
        "StartTime": now.started,  # tells this process from an earlier one of the same id
        "MachineName": now.machine,
        "UserName": now.user,
    }
    if left_out is not None:
        members["LeftOutAddIns"] = list(left_out)
    if log_file is not None:
        members["LogFile"] = log_file
    if control_channel is not None:
        members["ControlChannel"] = control_channel
    write_members(path, members, new=new)
    return path
