"""What Linux says about changes below folders, at the moment somebody asks.

The system queues an event before the call that made the change returns, so whoever has seen a write return finds its
event here. Reading never blocks. What did not fit into the queue is told as an overflow, never left out in silence.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import struct

from .values import Value

MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000  # the watch is gone: removed by us, or with what it watched
ONLY_FOLDERS = 0x0100_0000
_MASK_ADD = 0x2000_0000  # one file may be watched for several reasons; the second must not replace the first
IS_FOLDER = 0x4000_0000

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_READ_BYTES = 64 * 1024
# More than the default queue of 16,384 events holds; beyond that a flood would keep the reader for ever.
_MAX_READS = 64


class InotifyEvent(Value):
    watch: int  # -1 with an overflow
    mask: int
    name: str  # inside the watched folder; empty where it is about what is watched itself


def available(platform: str) -> bool:
    return platform == "linux"


class Inotify:
    """A queue of events. OSError with EMFILE or ENOSPC: the user's limits for queues and watches are reached."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        self._queued = select.poll()
        self._queued.register(self._handle, select.POLLIN)

    def add(self, path: str, mask: int) -> int:
        """The number of the watch; two paths that lead to the same folder get the same."""
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(path), ctypes.c_uint32(mask | _MASK_ADD))
        return self._checked(number, path)

    def remove(self, watch: int) -> None:
        """A watch that has gone with its folder is as good as removed."""
        if self._libc.inotify_rm_watch(self._handle, watch) < 0 and ctypes.get_errno() != errno.EINVAL:
            self._checked(-1, "inotify")

    def read(self) -> list[InotifyEvent]:
        """All that has happened until now, oldest first."""
        events: list[InotifyEvent] = []
        for _ in range(_MAX_READS):
            if not self._queued.poll(0):  # cheaper than to be refused, and as a rule there is nothing
                return events
            data = os.read(self._handle, _READ_BYTES)
            position = 0
            while position < len(data):
                watch, mask, _cookie, length = _HEAD.unpack_from(data, position)
                position += _HEAD.size
                name = data[position : position + length].rstrip(b"\0")
                position += length
                events.append(InotifyEvent(watch, mask, os.fsdecode(name)))
        events.append(InotifyEvent(-1, OVERFLOW, ""))
        return events

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    @staticmethod
    def _checked(result: int, path: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return result


MOUNTS_FILE = "/proc/self/mountinfo"

# Where every change is made by this machine's kernel. On the others (nfs, cifs, 9p, fuse, virtiofs, vboxsf, drvfs, …)
# another machine, the host of a virtual one, or a program may change files without a word.
_REPORTING = frozenset(
    {
        "bcachefs",
        "btrfs",
        "erofs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "iso9660",
        "jfs",
        "nilfs2",
        "ntfs3",
        "overlay",
        "ramfs",
        "reiserfs",
        "squashfs",
        "tmpfs",
        "vfat",
        "xfs",
        "zfs",
    }
)


def file_system_of(mounts: str, path: str) -> str:
    """The type of the file system at an absolute path without links; empty where the table does not tell.

    `mounts` is the text of /proc/self/mountinfo. Of two mounts at one place the later one hides the earlier.
    """
    types: dict[str, str] = {}
    for line in mounts.splitlines():
        place, separator, source = line.partition(" - ")
        fields, kinds = place.split(" "), source.split(" ")
        if separator and len(fields) > 4:
            types[_plain(fields[4])] = kinds[0]
    folder = path
    while folder not in types:
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return types[folder]


def reports_changes(file_system: str) -> bool:
    return file_system in _REPORTING


def _plain(field: str) -> str:
    """The kernel writes blanks, tabs, line ends and backslashes as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), field)
