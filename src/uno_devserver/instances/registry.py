"""The registry: the folder in which every Host registers itself, shared with .NET Hosts and IDE extensions.

An entry is valid while the process that registered is alive. Only stale files are removed: entries of this user on this
machine whose process has ended, and files that are not entries if no process with the id in their name is alive.
Writing is atomic; a file that cannot be written or removed is a FileProblem.
"""

from __future__ import annotations

import os
import re

from ..system.files import FileProblem, remove_file
from ..system.jsonc import JsonProblem, parse
from ..system.log import log
from ..system.state_files import read_own, secure_folder, write_own
from ..system.values import Value
from ..workspace.paths import is_inside, same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

MAX_ENTRY_BYTES = 64 * 1024
PORTS_BELOW = "PortsBelow"  # a member of the sidecar
UNFINISHED_SECONDS = 0.02  # an entry that is being written is complete after this time
ENTRY = re.compile(r"devserver-.*(?<!\.aux)\.json", re.DOTALL)  # the names that .NET programs read
SIDECAR = re.compile(r"devserver-.*\.aux\.json", re.DOTALL)
_NUMBER = re.compile(r"devserver-(\d{1,10})(?:\.aux)?\.json")


class RegisteredServer(Value):
    """A Host as it registered itself, with what its launcher recorded in the sidecar."""

    process_id: int
    parent_process_id: int
    solution: str | None  # the path that was given to the Host; it may be relative to the Host's folder
    started: str  # the time of the registration, as .NET writes times
    port: int
    machine: str
    user: str
    ide_channel: str | None
    # From the sidecar:
    workspace: str | None = None  # identifies the server of a workspace without a solution
    left_out: tuple[str, ...] | None = None  # the add-ins with which it died; empty if it had to discover them itself
    log_file: str | None = None  # the file for its output
    names_addins: bool = False  # whether its launcher named add-ins, instead of those of the workspace
    control_channel: str | None = None  # the channel of the proxy that owns the Host and reloads its code

    @property
    def mcp_endpoint(self) -> str:
        return f"http://localhost:{self.port}/mcp"

    def to_json(self) -> dict[str, object]:
        """The members that `list`, `disco` and `health` share; names and order are those of the .NET tool."""
        return {
            "processId": self.process_id,
            "port": self.port,
            "mcpEndpoint": self.mcp_endpoint,
            "parentProcessId": self.parent_process_id,
            "startTime": self.started,
            "ideChannelId": self.ide_channel,
            "solutionPath": self.solution,
        }


# Reading.


def prune(folder: str) -> RegistryScan:
    """Remove stale files, and return the content of the registry."""
    return scan_registry(folder, removing=True)


def running_servers(folder: str) -> tuple[RegisteredServer, ...]:
    """The running Hosts of this user on this machine, sorted by process id. Removes nothing."""
    found = scan_registry(folder, removing=False)
    for problem in found.problems:
        log.warn(problem)
    return found.running


def serving(folder: str, *, solution: str | None = None, workspace: str | None = None) -> RegisteredServer | None:
    """The running Host of a solution (a full path); if none is given, that of a workspace folder without a solution."""
    for server in running_servers(folder):
        if solution and same_place(full_solution(server), solution):
            return server
        if not solution and server.solution is None and same_place(server.workspace, workspace):
            return server
    return None


def on_port(folder: str, port: int) -> RegisteredServer | None:
    """The running Host that registered with this port; None if there is none."""
    return next((server for server in running_servers(folder) if server.port == port > 0), None)


def full_solution(server: RegisteredServer) -> str | None:
    """The solution's full path; None if there is none, or it is relative and the Host's folder is not known."""
    if server.solution is None or os.path.isabs(server.solution):
        return server.solution
    from ..system.processes import working_directory

    folder = working_directory(server.process_id)
    return os.path.join(folder, server.solution) if folder else None


def is_in_workspace(server: RegisteredServer, directory: str) -> bool:
    """Whether the server's solution or workspace is below the directory, or is the directory."""
    solution, workspace = full_solution(server), server.workspace
    return (solution is not None and is_inside(solution, directory)) or (
        workspace is not None and (same_place(workspace, directory) or is_inside(workspace, directory))
    )


def log_of(server: RegisteredServer) -> str | None:
    """The file with the output of a server; None if another program launched it, or the file does not exist."""
    return server.log_file if server.log_file and os.path.isfile(server.log_file) else None


class LaunchedHost(Value):
    """A process that its launcher recorded as a Host, and that has not registered yet."""

    process_id: int
    workspace: str | None
    created: float


class RegistryScan(Value):
    """The content of the registry."""

    removed: tuple[str, ...] = ()  # the paths of the stale files that were removed
    running: tuple[RegisteredServer, ...] = ()  # running Hosts of this user on this machine, by process id
    launched: tuple[LaunchedHost, ...] = ()  # those that have not registered yet
    ended: tuple[RegisteredServer, ...] = ()  # Hosts of this user that have ended without removing their entry
    foreign: tuple[RegisteredServer, ...] = ()  # Hosts of another machine or user, which cannot be checked
    unreadable: tuple[str, ...] = ()  # the paths of files that are not entries, and were not removed
    problems: tuple[str, ...] = ()  # sentences: what could not be read or removed
    complete: bool = True  # False if the folder cannot be read, so running Hosts are not known


def scan_registry(folder: str, *, removing: bool) -> RegistryScan:
    try:
        secure_folder(folder)
        names = os.listdir(folder)
    except FileNotFoundError:
        return RegistryScan()
    except OSError as error:
        return RegistryScan(problems=(f"The registry {folder} cannot be read: {error.strerror}.",), complete=False)
    names = [name for name in names if name.startswith("devserver-") and name.endswith(".json")]
    if not names:
        return RegistryScan()  # the usual case, without the imports below, which take 20 ms
    walk = _Scan(folder, removing)
    for name in filter(ENTRY.fullmatch, names):
        walk.look_at_entry(name)
    walk.look_at_unfinished()
    for name in filter(SIDECAR.fullmatch, names):
        walk.look_at_sidecar(name)
    return walk.result()


def creation_time(server: RegisteredServer) -> float | None:
    """When the server's process was created; None if it has ended, or another process has its id by now.

    A Host registers after its creation, so a process that is younger than the entry is another one with the same id,
    unless it listens on the entry's port: the clock may have jumped when a virtual machine woke up, and then all
    processes look younger.
    """
    from ..system.processes import listens_on, process_started

    created = process_started(server.process_id)
    if created is None or not _is_before(server.started, created):
        return created
    return created if server.port > 0 and listens_on(server.process_id, server.port) else None


def _is_before(stamp: str, created: float) -> bool:
    from ..system.dotnet_formats import from_time
    from ..system.processes import START_SLACK_SECONDS

    moment = from_time(stamp)
    return moment is not None and moment + START_SLACK_SECONDS < created


class _Scan:
    def __init__(self, folder: str, removing: bool) -> None:
        from ..system.processes import is_alive, machine_name, process_started, user_name

        self._folder = folder
        self._removing = removing
        self._machine, self._user = machine_name(), user_name()
        self._is_alive = is_alive
        self._process_started = process_started
        self._running: list[RegisteredServer] = []
        self._launched: list[LaunchedHost] = []
        self._ended: list[RegisteredServer] = []
        self._foreign: list[RegisteredServer] = []
        self._removed: list[str] = []
        self._unreadable: list[str] = []
        self._unfinished: list[str] = []  # the names of files that may be incomplete
        self._problem = ""

    def look_at_unfinished(self) -> None:
        """Look again at files that may have been incomplete, because a .NET Host writes its entry in place."""
        if self._unfinished:
            import time

            time.sleep(UNFINISHED_SECONDS)
            for name in self._unfinished:
                self.look_at_entry(name, again=True)

    def look_at_entry(self, name: str, *, again: bool = False) -> None:
        server = server_of(read_members(self._path(name)) or {})
        pid = process_in_name(name) if server is None else None
        is_alive = pid is not None and self._is_alive(pid)
        if server is None and is_alive and not again:
            self._unfinished.append(name)
        elif server is None:  # while its process is alive, an unreadable file may be an incomplete entry
            stale = pid is not None and not is_alive
            gone = (stale and self._remove(name)) or not os.path.lexists(self._path(name))
            self._unreadable += [] if gone else [self._path(name)]
        elif not self._may_be_ours(server.machine, server.user):
            self._foreign.append(self._with_sidecar(server, None))
        elif (created := creation_time(server)) is None:
            self._ended.append(self._with_sidecar(server, None))
            self._remove(name)
        elif (server.machine, server.user) == (self._machine, self._user):
            self._running.append(self._with_sidecar(server, created))
        else:
            self._foreign.append(server)

    def look_at_sidecar(self, name: str) -> None:
        """Remove a sidecar without an entry, unless its Host was just started and has not registered yet.

        Every scan does: beside the entry of a Host that crashed it tells where the log is, without it nothing.
        """
        pid = process_in_name(name)
        if pid is None or os.path.lexists(self._path(entry_name(pid))):
            return
        members = read_members(self._path(name)) or {}
        if not self._may_be_ours(text_member(members.get("MachineName")), text_member(members.get("UserName"))):
            return
        created, stamp = self._process_started(pid), text_member(members.get("StartTime")) or ""
        if created is None or _is_before(stamp, created):
            self._remove(name, always=True)
        else:
            self._launched.append(LaunchedHost(pid, text_member(members.get("WorkspaceDirectory")), created))

    def result(self) -> RegistryScan:
        return RegistryScan(
            tuple(self._removed),
            tuple(sorted(self._running, key=lambda server: server.process_id)),
            tuple(self._launched),
            tuple(sorted(self._ended, key=lambda server: server.started)),
            tuple(sorted(self._foreign, key=lambda server: server.process_id)),
            tuple(sorted(self._unreadable)),
            (self._problem,) if self._problem else (),
        )

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _may_be_ours(self, machine: str | None, user: str | None) -> bool:
        """Whether a file may be this user's on this machine; one without these names is judged by its process alone."""
        return (machine or self._machine) == self._machine and (user or self._user) == self._user

    def _with_sidecar(self, server: RegisteredServer, created: float | None) -> RegisteredServer:
        """The server with its launcher's record, unless that was made for an earlier process with this id."""
        members = read_members(self._path(sidecar_name(server.process_id)))
        if members is None:
            return server
        stamp = text_member(members.get("StartTime")) or ""
        if created is not None and _is_before(stamp, created) and not _is_before(server.started, created):
            return server
        return server.replace(
            # Older Hosts do not record their IDE channel.
            ide_channel=server.ide_channel or text_member(members.get("IdeChannelId")),
            workspace=text_member(members.get("WorkspaceDirectory")),
            left_out=text_members(members.get("LeftOutAddIns")),
            log_file=text_member(members.get("LogFile")),
            names_addins=members.get("NamesAddIns") is True,
            control_channel=text_member(members.get("ControlChannel")),
        )

    def _remove(self, name: str, *, always: bool = False) -> bool:
        """Remove a stale file if this scan removes files, or `always`; returns whether the file is gone."""
        if not self._removing and not always:
            return False
        try:
            remove_file(self._path(name))
        except FileNotFoundError:
            return True
        except IsADirectoryError:  # a folder is never an entry
            return False
        except OSError as error:
            # One sentence is enough for all files, because the cause is the same.
            self._problem = self._problem or f"{self._path(name)} is stale and cannot be removed: {error.strerror}."
            return False
        self._removed.append(self._path(name))
        return True


# Writing.


def new_entry(
    port: int, *, parent: int = 0, solution: str | None = None, ide_channel: str | None = None
) -> RegisteredServer:
    """A new entry for this process, with the present time."""
    import time

    from ..system.dotnet_formats import to_time
    from ..system.processes import machine_name, user_name

    now = to_time(time.time_ns())
    return RegisteredServer(os.getpid(), parent, solution, now, port, machine_name(), user_name(), ide_channel)


def register(folder: str, server: RegisteredServer) -> str:
    """Write the entry, in a folder that is created if it is missing; returns the entry's path."""
    path = os.path.join(folder, entry_name(server.process_id))
    write_members(path, members_of(server))
    return path


def unregister(folder: str, pid: int) -> None:
    """Remove the entry and the sidecar of a process, if they exist; raises FileProblem."""
    for name in (entry_name(pid), sidecar_name(pid)):
        path = os.path.join(folder, name)
        try:
            remove_file(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise FileProblem(path, error.strerror or str(error)) from error


def update_channel(folder: str, pid: int, channel: str | None) -> bool:
    """Record the IDE channel of a Host; returns False if the Host is not registered."""
    path, sidecar = os.path.join(folder, entry_name(pid)), os.path.join(folder, sidecar_name(pid))
    for file in (path, sidecar):  # so that they do not contradict each other
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
    names_addins: bool = False,
    control_channel: str | None = None,
    ports_below: str | None = None,
    new: bool = False,
) -> str:
    """Record the facts about a new Host that it does not write into its own entry; returns the sidecar's path.

    `ports_below` is the folder in which a bundled Host keeps its port in the projects of its solution. Raises
    FileProblem, and with `new` FileExistsError if there is a sidecar already.
    """
    now = new_entry(0)
    path = os.path.join(folder, sidecar_name(pid))
    optional = {
        "LeftOutAddIns": None if left_out is None else list(left_out),
        "LogFile": log_file,
        "NamesAddIns": True if names_addins else None,
        "ControlChannel": control_channel,
        PORTS_BELOW: ports_below,
    }
    members = {
        "ProcessId": pid,
        "IdeChannelId": ide_channel,
        "WorkspaceDirectory": workspace,
        "StartTime": now.started,  # distinguishes this process from an earlier one with the same id
        "MachineName": now.machine,
        "UserName": now.user,
        **{name: value for name, value in optional.items() if value is not None},
    }
    write_members(path, members, new=new)
    return path


# The files.


def entry_name(pid: int) -> str:
    return f"devserver-{pid}.json"


def sidecar_name(pid: int) -> str:
    return f"devserver-{pid}.aux.json"


def process_in_name(name: str) -> int | None:
    number = _NUMBER.fullmatch(name)
    return int(number.group(1)) if number else None


def read_members(path: str) -> dict[str, object] | None:
    """The members of a file; None if it does not exist, cannot be read, or is not a JSON object."""
    try:
        document = parse(read_own(path, MAX_ENTRY_BYTES))
    except FileNotFoundError:
        return None
    except (FileProblem, JsonProblem) as problem:
        log.debug(f"{path} is ignored: {problem}")
        return None
    return document if isinstance(document, dict) else None


def server_of(members: Mapping[str, object]) -> RegisteredServer | None:
    """The server of an entry; None if it has no process id or port. Other fields of a wrong type are ignored."""
    pid, port, parent = members.get("ProcessId"), members.get("Port"), members.get("ParentProcessId")
    if not _is_number(pid) or not _is_number(port) or pid <= 0:
        return None
    return RegisteredServer(
        pid,
        parent if _is_number(parent) else 0,
        text_member(members.get("SolutionPath")),
        text_member(members.get("StartTime")) or "",
        port,
        text_member(members.get("MachineName")) or "",
        text_member(members.get("UserName")) or "",
        text_member(members.get("IdeChannelId")),
    )


def members_of(server: RegisteredServer) -> dict[str, object]:
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
    """Write a file atomically; raises FileProblem, or FileExistsError if it must be `new` but exists.

    The name of the temporary file ends in .tmp, so that no reader takes it for an entry.
    """
    from ..system.dotnet_formats import to_json

    try:
        write_own(path, to_json(members).encode("ascii"), new=new)
    except FileExistsError:
        raise
    except OSError as error:
        raise FileProblem(path, error.strerror or str(error)) from error


def text_member(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def text_members(value: object) -> tuple[str, ...] | None:
    """The texts in a list, without blank ones; None if the value is not a list."""
    return tuple(filter(None, map(text_member, value))) if isinstance(value, list) else None


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
