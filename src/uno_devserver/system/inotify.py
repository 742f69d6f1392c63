"""The changes of files and folders that Linux reports; they can be read at any moment without blocking.

The kernel queues an event before the system call that makes the change returns, so the event of a completed write can
always be read. Events that do not fit into the queue are reported as an overflow.
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
IGNORED = 0x8000  # the watch was removed, by `remove` or together with the watched file
ONLY_FOLDERS = 0x0100_0000
_MASK_ADD = 0x2000_0000  # a second watch of a file extends the first instead of replacing it
IS_FOLDER = 0x4000_0000

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_READ_BYTES = 64 * 1024
# More than the default queue of 16,384 events; without a limit a flood of events would keep the reader forever.
_MAX_READS = 64


class InotifyEvent(Value):
    watch: int  # the number of the watch; -1 for an overflow
    mask: int
    name: str  # the name in the watched folder; empty for the watched file or folder itself


_LIMITS = {
    errno.ENOSPC: "the user's limit of watches is reached (fs.inotify.max_user_watches)",
    errno.EMFILE: "the user's limit of watchers is reached (fs.inotify.max_user_instances)",
}


class Inotify:
    """A queue of events. Raises OSError, whose `strerror` names the limit where one of the user's is reached."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        self._queued = select.poll()
        self._queued.register(self._handle, select.POLLIN)

    def add(self, path: str, mask: int) -> int:
        """Add a watch and return its number, which is the same for two paths of the same folder."""
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(path), ctypes.c_uint32(mask | _MASK_ADD))
        return self._checked(number, path)

    def remove(self, watch: int) -> None:
        """Remove a watch; does nothing if it was already removed together with its folder."""
        if self._libc.inotify_rm_watch(self._handle, watch) < 0 and ctypes.get_errno() != errno.EINVAL:
            self._checked(-1, "inotify")

    def fileno(self) -> int:
        """Ready to be read when there are events."""
        return self._handle

    def read(self) -> list[InotifyEvent]:
        """Return all queued events, the oldest first; the last one is an overflow if there are too many."""
        events: list[InotifyEvent] = []
        for _ in range(_MAX_READS):
            if not self._queued.poll(0):  # usually there is no event, and this is cheaper than a read that fails
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
            reason = _LIMITS.get(number) or f"the system does not let us watch {path}: {os.strerror(number)}"
            raise OSError(number, reason, path)
        return result


MOUNTS_FILE = "/proc/self/mountinfo"

# File systems whose files only this kernel changes. On others (nfs, cifs, 9p, fuse, virtiofs, vboxsf, drvfs, …) another
# machine, the host of a virtual machine, or a program may change files without an event.
_REPORTING = frozenset({
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "nilfs2", "ntfs3",
    "overlay", "ramfs", "reiserfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs",
})  # fmt: skip


def file_system_of(mounts: str, path: str) -> str:
    """The type of the file system at an absolute path without links; empty if the table has none.

    `mounts` is the text of /proc/self/mountinfo, in which a later mount at the same path hides an earlier one.
    """
    types: dict[str, str] = {}
    for line in mounts.splitlines():
        mount, separator, source = line.partition(" - ")
        fields, kinds = mount.split(" "), source.split(" ")
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
    """The field with escapes replaced: the kernel writes blanks, tabs, line ends and backslashes as octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), field)
