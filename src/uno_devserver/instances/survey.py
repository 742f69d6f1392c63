"""A walk through the registry: who runs, who is somebody else's, and what is stale.

Each file is judged and removed at once, before anybody could replace it. Whatever lies in the folder (pipes, links,
huge files, garbage by the thousand) is passed over quickly, and hides nothing but itself.
"""

from __future__ import annotations

import os

from ..system.values import Value
from .entries import (
    ENTRY,
    SIDECAR,
    Server,
    entry_name,
    process_in_name,
    read_members,
    server_of,
    sidecar_name,
    text,
    texts,
)

UNFINISHED_SECONDS = 0.02  # within which an entry that is being written is whole


class Pruned(Value):
    """What is in the registry after its stale entries were removed."""

    removed: tuple[str, ...] = ()  # paths
    running: tuple[Server, ...] = ()  # of this user on this machine, alive, by process id
    ended: tuple[Server, ...] = ()  # of this user, whose processes have gone without signing out
    foreign: tuple[Server, ...] = ()  # of another machine or user: nothing can be said of their processes
    unreadable: tuple[str, ...] = ()  # paths of files that are no entries, and stay
    problems: tuple[str, ...] = ()  # sentences: what stands in the way
    complete: bool = True  # False: the folder cannot be read, and nobody knows who runs


def survey(folder: str, *, removing: bool) -> Pruned:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return Pruned()
    except OSError as error:
        return Pruned(problems=(f"The registry {folder} cannot be read: {error.strerror}.",), complete=False)
    names = [name for name in names if name.startswith("devserver-") and name.endswith(".json")]
    if not names:
        return Pruned()  # almost always; what follows costs 20 ms of imports
    walk = _Walk(folder, removing)
    for name in filter(ENTRY.fullmatch, names):
        walk.look_at_entry(name)
    walk.look_at_unfinished()
    for name in filter(SIDECAR.fullmatch, names):
        walk.look_at_sidecar(name)
    return walk.result()


def creation_time(server: Server) -> float | None:
    """When the server's process was created; None when it has ended, or its id is another process's by now.

    A Host signs in after its creation, so a process that is younger than the entry has only got its id. But the clock
    alone must not decide: when a virtual machine wakes up, it jumps, and then all processes look younger. A process
    that listens on the entry's port is the Host.
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


class _Walk:
    def __init__(self, folder: str, removing: bool) -> None:
        from ..system.processes import is_alive, machine_name, process_started, user_name

        self._folder = folder
        self._removing = removing
        self._machine, self._user = machine_name(), user_name()
        self._is_alive = is_alive
        self._process_started = process_started
        self._running: list[Server] = []
        self._ended: list[Server] = []
        self._foreign: list[Server] = []
        self._removed: list[str] = []
        self._unreadable: list[str] = []
        self._unfinished: list[str] = []  # names
        self._problem = ""

    def look_at_unfinished(self) -> None:
        """Look again at the files that may have been half an entry: a .NET Host writes its own in place."""
        if self._unfinished:
            import time

            time.sleep(UNFINISHED_SECONDS)
            for name in self._unfinished:
                self.look_at_entry(name, again=True)

    def look_at_entry(self, name: str, *, again: bool = False) -> None:
        server = server_of(read_members(self._path(name)) or {})
        if server is None and not again and self._names_the_living(name):
            self._unfinished.append(name)
        elif server is None:
            gone = (self._names_the_dead(name) and self._remove(name)) or not os.path.lexists(self._path(name))
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
        """Without an entry, its Host has gone, or has been started just now and has not signed in yet."""
        pid = process_in_name(name)
        if pid is None or os.path.lexists(self._path(entry_name(pid))):
            return
        members = read_members(self._path(name)) or {}
        created, stamp = self._process_started(pid), text(members.get("StartTime")) or ""
        if self._may_be_ours(text(members.get("MachineName")), text(members.get("UserName"))) and (
            created is None or _is_before(stamp, created)
        ):
            self._remove(name)

    def result(self) -> Pruned:
        return Pruned(
            tuple(self._removed),
            tuple(sorted(self._running, key=lambda server: server.process_id)),
            tuple(sorted(self._ended, key=lambda server: server.started)),
            tuple(sorted(self._foreign, key=lambda server: server.process_id)),
            tuple(sorted(self._unreadable)),
            (self._problem,) if self._problem else (),
        )

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _may_be_ours(self, machine: str | None, user: str | None) -> bool:
        """Also a file that does not say whose it is: it can only be judged by its process."""
        return (machine or self._machine) == self._machine and (user or self._user) == self._user

    def _names_the_dead(self, name: str) -> bool:
        """What cannot be read may be half an entry of a living process."""
        pid = process_in_name(name)
        return pid is not None and not self._is_alive(pid)

    def _names_the_living(self, name: str) -> bool:
        pid = process_in_name(name)
        return pid is not None and self._is_alive(pid)

    def _with_sidecar(self, server: Server, created: float | None) -> Server:
        """The server with what its launcher recorded, unless that was about an earlier process of this id."""
        members = read_members(self._path(sidecar_name(server.process_id)))
        if members is None:
            return server
        stamp = text(members.get("StartTime")) or ""
        if created is not None and _is_before(stamp, created) and not _is_before(server.started, created):
            return server
        # Older Hosts do not record their IDE channel.
        channel = server.ide_channel or text(members.get("IdeChannelId"))
        return server.replace(
            ide_channel=channel,
            workspace=text(members.get("WorkspaceDirectory")),
            left_out=texts(members.get("LeftOutAddIns")),
            log_file=text(members.get("LogFile")),
            control_channel=text(members.get("ControlChannel")),
        )

    def _remove(self, name: str) -> bool:
        """Whether it is gone now."""
        if not self._removing:
            return False
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return True
        except IsADirectoryError:  # no entry was ever one; it is somebody's, and does no harm
            return False
        except OSError as error:
            # One sentence for all of them: they have the same cause.
            self._problem = self._problem or f"{self._path(name)} is stale and cannot be removed: {error.strerror}."
            return False
        self._removed.append(self._path(name))
        return True
