"""The table of mounts tells where a path lies, and the type whether changes are reported there."""

from __future__ import annotations

import pytest

from uno_devserver.system.inotify import file_system_of, reports_changes

TABLE = r"""22 1 254:0 / / rw,relatime - ext4 /dev/root rw,discard
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 0:44 / /home/me/share rw,relatime shared:1 master:2 - 9p drvfs rw,dirsync
31 22 0:45 / /home/me/with\040blank rw - nfs4 server:/x rw
32 22 0:46 / /layers rw - ext4 /dev/sdb rw
33 32 0:47 / /layers rw - overlay overlay rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/home/me/code", "ext4"),
        ("/home/me/share", "9p"),
        ("/home/me/share/deep/er", "9p"),
        ("/home/me/shared", "ext4"),
        ("/home/me/with blank/x", "nfs4"),
        ("/layers/x", "overlay"),
    ],
)
def test_the_longest_mount_point_above_a_path_counts_and_of_two_the_later(path: str, expected: str) -> None:
    assert file_system_of(TABLE, path) == expected


def test_an_empty_table_tells_nothing_and_that_reports_nothing() -> None:
    assert file_system_of("", "/home") == ""
    assert not reports_changes("")


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"])
def test_local_file_systems_report_all_changes(kind: str) -> None:
    assert reports_changes(kind)


@pytest.mark.parametrize(
    "kind", ["9p", "nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.sshfs", "fuseblk", "virtiofs", "vboxsf"]
)
def test_those_that_others_write_to_do_not(kind: str) -> None:
    assert not reports_changes(kind)
