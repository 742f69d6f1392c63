"""What Linux tells of processes in the files of /proc. psutil tells the same, but takes 20 ms to import: as long as two
bare interpreter starts, at every launch.
"""

from __future__ import annotations

import os
import sys

AVAILABLE = sys.platform == "linux" and os.path.isfile("/proc/self/stat")
DEAD = ("Z", "X")  # a process that has ended, but whose parent has not asked how
LISTENING = b"0A"  # how the table of sockets writes the state


def is_alive(pid: int) -> bool:
    try:
        return _status(pid)[0] not in DEAD
    except PermissionError:  # another user's, where the system hides those
        return True
    except OSError:
        return False


def created(pid: int) -> float | None:
    """When the process was created, in seconds since 1970; None when it has ended, or is hidden."""
    try:
        fields = _status(pid)
        return None if fields[0] in DEAD else int(fields[19]) / os.sysconf("SC_CLK_TCK") + _boot_time()
    except OSError:
        return None


def listens_on(pid: int, port: int) -> bool:
    """Whether the process accepts TCP connections on that port; False also where it is another user's."""
    try:
        listening = {f"socket:[{inode}]" for inode in _listening_inodes(pid, port)}
        handles = os.listdir(f"/proc/{pid}/fd") if listening else []
    except OSError:
        return False
    return any(_target(f"/proc/{pid}/fd/{handle}") in listening for handle in handles)


def command_line(pid: int) -> tuple[str, ...]:
    """The words that started the process; none where it has ended, or is hidden."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words[:-1])


def _status(pid: int) -> list[str]:
    """The fields behind the name, which may hold blanks and brackets: the state comes first."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        return stream.read().rpartition(b") ")[2].decode("ascii").split()


def _boot_time() -> float:
    with open("/proc/stat", "rb") as stream:
        for line in stream:
            if line.startswith(b"btime "):
                return float(line.split()[1])
    raise OSError("/proc/stat does not tell when the system was started")


def _listening_inodes(pid: int, port: int) -> list[str]:
    """Of the sockets that the process can see: a container has its own."""
    wanted, inodes = b":%04X" % port, []
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", "rb") as stream:
                rows = [line.split() for line in stream if wanted in line]
        except FileNotFoundError:  # a machine without IPv6
            continue
        inodes += [row[9].decode() for row in rows if row[3] == LISTENING and row[1].endswith(wanted)]
    return inodes


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""
