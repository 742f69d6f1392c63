"""The ancestors of this process, and waiting until one of them ends.

A process id may be given to another process later, so an ancestor is identified by its start time, too.
"""

from __future__ import annotations

import os
import select
import sys
import time

from . import proc
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LIMIT = 16  # the most ancestors: a client, a few wrappers, a terminal, a desktop session
POLL_SECONDS = 0.3  # used if the system does not report the end of a process


class Ancestor(Value):
    pid: int
    name: str
    arguments: tuple[str, ...]  # the command line, beginning with the program; empty if it is hidden
    started: float  # the start time, in a unit that depends on the system


def ancestors() -> tuple[Ancestor, ...]:
    """The ancestors of this process, the parent first, up to the first that has ended or is hidden."""
    return ancestors_of(os.getpid(), _ancestor)


def ancestors_of(pid: int, look_up: Callable[[int], tuple[Ancestor, int] | None]) -> tuple[Ancestor, ...]:
    """The same of any process; `look_up` returns a process and the id of its parent, None if it has ended.

    Windows keeps the id of a parent that has ended, and may give it to another process. That one is younger.
    """
    found: list[Ancestor] = []
    child = look_up(pid)
    while child is not None and child[1] > 0 and len(found) < LIMIT:
        parent = look_up(child[1])
        if parent is None or parent[0].started > child[0].started:
            break
        found.append(parent[0])
        child = parent
    return tuple(found)


def wait_for_end(those: Sequence[Ancestor]) -> Ancestor:
    """Block until one of these processes has ended, and return it. A zombie process has ended, too."""
    handles: dict[int, Ancestor] = {}
    try:
        for ancestor in those:
            handle = proc.pidfd(ancestor.pid)
            if handle is not None:
                handles[handle] = ancestor
        told = len(handles) == len(those)
        known = {} if told else {ancestor: _identity(ancestor.pid) for ancestor in those}
        # Checked after all that: an id may have been given to another process before.
        ended = next((ancestor for ancestor in those if not _lives(ancestor)), None)
        if ended is not None:
            return ended
        return handles[_first_readable(list(handles))] if told else _poll(known)
    finally:
        for handle in handles:
            os.close(handle)


def _identity(pid: int) -> object:
    from .processes import identity

    return identity(pid)


def _poll(known: Mapping[Ancestor, object]) -> Ancestor:
    """Not by the time of the start, which moves with the clock on macOS."""
    while True:
        for ancestor, identity in known.items():
            if identity is None or _identity(ancestor.pid) != identity:
                return ancestor
        time.sleep(POLL_SECONDS)


def _first_readable(handles: list[int]) -> int:
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    return waiting.poll()[0][0]


def _lives(ancestor: Ancestor) -> bool:
    now = _ancestor(ancestor.pid)
    return now is not None and now[0].started == ancestor.started


def _ancestor(pid: int) -> tuple[Ancestor, int] | None:
    """The process and the id of its parent; None if the process has ended or is hidden."""
    return _from_proc(pid) if sys.platform == "linux" else _from_psutil(pid)


def _from_proc(pid: int) -> tuple[Ancestor, int] | None:
    try:
        status = proc.stat(pid)
        arguments = tuple(filter(None, proc.command_line(pid)))
    except OSError:
        return None
    return None if status.dead else (Ancestor(pid, status.name, arguments, status.started), status.parent)


def _from_psutil(pid: int) -> tuple[Ancestor, int] | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        try:
            arguments = tuple(process.cmdline())
        except psutil.AccessDenied:  # a process of another user, whose end can still be noticed
            arguments = ()
        return Ancestor(pid, process.name(), arguments, process.create_time()), process.ppid()
    except psutil.Error:
        return None
