"""Who started us, and who started that; and waiting until one of them ends.

A process id names somebody else one day, so an ancestor has the moment of its start too.
"""

from __future__ import annotations

import os
import select
import sys
import time

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 16  # a client, a few wrappers, a terminal, a desktop; nobody nests deeper on purpose
POLL_SECONDS = 0.3  # where the system does not tell us of an end


class Ancestor(Value):
    pid: int
    name: str
    arguments: tuple[str, ...]  # with the program at the front; empty where the system does not tell
    started: float  # in whatever the system counts


def ancestors() -> tuple[Ancestor, ...]:
    """Our parent first; as far as they live and the system tells."""
    found: list[Ancestor] = []
    pid = os.getppid()
    while pid > 0 and len(found) < LIMIT:
        following = _ancestor(pid)
        if following is None:
            break
        ancestor, pid = following
        found.append(ancestor)
    return tuple(found)


def wait_for_end(those: Sequence[Ancestor]) -> Ancestor:
    """Blocks until one of them has ended, also if nobody has asked yet how; returns which."""
    handles: dict[int, Ancestor] = {}
    try:
        for ancestor in those:
            handle = _pidfd(ancestor.pid)
            if handle is not None:
                handles[handle] = ancestor
        ended = _ended(those)  # asked behind the handles, which else could be those of other processes
        if ended is not None:
            return ended
        return handles[_first_readable(list(handles))] if len(handles) == len(those) else _poll(those)
    finally:
        for handle in handles:
            os.close(handle)


def _ended(those: Sequence[Ancestor]) -> Ancestor | None:
    return next((ancestor for ancestor in those if not _lives(ancestor)), None)


def _poll(those: Sequence[Ancestor]) -> Ancestor:
    while (ended := _ended(those)) is None:
        time.sleep(POLL_SECONDS)
    return ended


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox that forbids it, or the process is gone
        return None


def _first_readable(handles: list[int]) -> int:
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    return waiting.poll()[0][0]


def _lives(ancestor: Ancestor) -> bool:
    now = _ancestor(ancestor.pid)
    return now is not None and now[0].started == ancestor.started


def _ancestor(pid: int) -> tuple[Ancestor, int] | None:
    """A living process, and its parent; None where there is none, or none of our business."""
    return _from_proc(pid) if sys.platform == "linux" else _from_psutil(pid)


def _from_proc(pid: int) -> tuple[Ancestor, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, rest = file.read().rpartition(b")")  # a name may have parentheses itself
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    state, parent, *others = rest.split()
    if state in (b"Z", b"X"):
        return None
    arguments = tuple(os.fsdecode(word) for word in words if word)
    name = os.fsdecode(head.partition(b"(")[2])
    return Ancestor(pid, name, arguments, int(others[17])), int(parent)


def _from_psutil(pid: int) -> tuple[Ancestor, int] | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        try:
            arguments = tuple(process.cmdline())
        except psutil.AccessDenied:  # another user's; its end can be seen all the same
            arguments = ()
        return Ancestor(pid, process.name(), arguments, process.create_time()), process.ppid()
    except psutil.Error:
        return None
