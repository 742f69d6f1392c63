"""On which file system does a path lie, and does Linux tell of all that changes there?"""

from __future__ import annotations

import os
import re

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
