"""Facts about processes from /proc of Linux. psutil has the same facts, but takes 20 ms to import, at every launch."""

from __future__ import annotations

import os
import sys

from .values import Value

AVAILABLE = sys.platform == "linux" and os.path.isfile("/proc/self/stat")
LISTENING = b"0A"  # the state in the kernel's table of sockets
ORDINARY_SIGNALS = 0x7FFF_FFFF  # 1 to 31; the C library uses some of the others for itself


class ProcessStat(Value):
    name: str
    dead: bool  # whether it is a zombie: it has ended, but its parent has not waited for it
    parent: int
    group: int
    started: int  # the start time in clock ticks since the boot


def stat(pid: int) -> ProcessStat:
    """Read the status of a process; raises OSError if there is no such process, or it is hidden."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        head, _, rest = stream.read().rpartition(b") ")  # the name may contain blanks and parentheses
    state, parent, group, *others = rest.split()
    name = os.fsdecode(head.partition(b"(")[2])
    return ProcessStat(name, state in (b"Z", b"X"), int(parent), int(group), int(others[16]))


def command_line(pid: int) -> tuple[str, ...]:
    """The words of the command line; raises OSError if there is no such process, or it is hidden."""
    with open(f"/proc/{pid}/cmdline", "rb") as stream:
        return tuple(os.fsdecode(word) for word in stream.read().split(b"\0")[:-1])


def is_alive(pid: int) -> bool:
    try:
        return not stat(pid).dead
    except PermissionError:  # the system hides processes of other users
        return True
    except OSError:
        return False


def handles_signals(pid: int) -> bool:
    """Whether the process handles any signal itself; False if it has ended, or is hidden."""
    try:
        with open(f"/proc/{pid}/status", "rb") as stream:
            caught = stream.read().partition(b"\nSigCgt:")[2].split(maxsplit=1)
    except OSError:
        return False
    return bool(caught and int(caught[0], 16) & ORDINARY_SIGNALS)


def is_group_alive(group: int) -> bool:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                status = stat(int(name))
            except OSError:
                continue  # the process has just ended
            if status.group == group and not status.dead:
                return True
    return False


def ticks(pid: int) -> int | None:
    """When the process was created, in clock ticks since the boot; None if it has ended, or is hidden."""
    try:
        status = stat(pid)
    except OSError:
        return None
    return None if status.dead else status.started


def created(pid: int) -> float | None:
    """When the process was created, in seconds since 1970; None if it has ended, or is hidden."""
    started = ticks(pid)
    try:
        return None if started is None else started / os.sysconf("SC_CLK_TCK") + _boot_time()
    except OSError:
        return None


def pidfd(pid: int) -> int | None:
    """A handle that becomes readable when the process ends; None if the system cannot provide it."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox that forbids it, or the process is gone
        return None


def listens_on(pid: int, port: int) -> bool:
    """Whether the process accepts TCP connections on that port; False also for another user's process."""
    try:
        listening = {f"socket:[{inode}]" for inode in _listening_inodes(pid, port)}
        handles = os.listdir(f"/proc/{pid}/fd") if listening else []
    except OSError:
        return False
    return any(_target(f"/proc/{pid}/fd/{handle}") in listening for handle in handles)


def _boot_time() -> float:
    with open("/proc/stat", "rb") as stream:
        for line in stream:
            if line.startswith(b"btime "):
                return float(line.split()[1])
    raise OSError("/proc/stat does not tell when the system was started")


def _listening_inodes(pid: int, port: int) -> list[str]:
    """The inodes of the sockets that listen on the port, in the network of the process: a container has its own."""
    wanted, inodes = b":%04X" % port, []
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", "rb") as stream:
                rows = [line.split() for line in stream if wanted in line]
        except FileNotFoundError:  # the machine has no IPv6
            continue
        inodes += [row[9].decode() for row in rows if row[3] == LISTENING and row[1].endswith(wanted)]
    return inodes


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # the handle was closed since it was listed
        return ""
