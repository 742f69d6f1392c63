"""Processes of this machine: does one live, what is it called, who started it. Never changes anything."""

from __future__ import annotations

import os
import sys

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PID = 2**31 - 1  # what a process id can be at most; a file may say anything
CHAIN_LIMIT = 8  # deeper ancestors are the desktop session, of no use to anybody


class Process(Value):
    pid: int
    name: str | None  # None: it is gone, or another user's


def is_alive(pid: int) -> bool:
    import psutil

    return 0 < pid <= MAX_PID and bool(psutil.pid_exists(pid))


def chain(pid: int, registered_parent: int) -> tuple[Process, ...]:
    """The process, the parent it was registered with, and their ancestors, up to the limit."""
    links: list[Process] = []
    following = pid
    while following > 0 and len(links) < CHAIN_LIMIT and all(link.pid != following for link in links):
        name, parent = _name_and_parent(following)
        links.append(Process(following, name))
        following = registered_parent if len(links) == 1 and registered_parent > 0 else parent
    return tuple(links)


def _name_and_parent(pid: int) -> tuple[str | None, int]:
    import psutil

    try:
        process = psutil.Process(pid)
        return process.name(), process.ppid()
    except psutil.Error:
        return None, 0


def machine_name(environ: Mapping[str, str] | None = None) -> str:
    """As .NET's Environment.MachineName: on Unix the host name up to its first dot."""
    if sys.platform == "win32":
        return (os.environ if environ is None else environ).get("COMPUTERNAME", "")
    return os.uname().nodename.partition(".")[0]


def user_name(environ: Mapping[str, str] | None = None) -> str:
    """As .NET's Environment.UserName: on Unix the passwd entry, never $USER."""
    if sys.platform == "win32":
        return (os.environ if environ is None else environ).get("USERNAME", "")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's arbitrary user id
        return ""
