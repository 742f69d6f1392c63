"""Events of real folders, read at the moment of the question."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from uno_devserver.system import inotify
from uno_devserver.system.inotify import Inotify, file_system_of, reports_changes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")

ALL = inotify.MODIFY | inotify.CREATE | inotify.DELETE | inotify.MOVED_TO | inotify.DELETE_SELF


@pytest.fixture
def queue() -> Iterator[Inotify]:
    one = Inotify()
    yield one
    one.close()


def test_a_write_that_has_returned_is_in_the_queue(queue: Inotify, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path), ALL)
    handle = os.open(tmp_path / "naïve.py", os.O_CREAT | os.O_WRONLY)
    created = queue.read()

    for _ in range(1000):
        os.write(handle, b"x")
        assert [(event.watch, event.mask, event.name) for event in queue.read()] == [
            (watch, inotify.MODIFY, "naïve.py")
        ]

    os.close(handle)
    assert [event.mask for event in created] == [inotify.CREATE]


def test_reading_an_empty_queue_does_not_block(queue: Inotify, tmp_path: Path) -> None:
    queue.add(str(tmp_path), ALL)

    assert queue.read() == []


def test_a_name_that_is_no_text_is_kept(queue: Inotify, tmp_path: Path) -> None:
    queue.add(str(tmp_path), ALL)
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.py", os.O_CREAT))

    [event] = queue.read()

    assert os.fsencode(event.name) == b"\xff.py"


def test_two_ways_to_a_folder_have_one_watch_and_both_masks(queue: Inotify, tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    (tmp_path / "link").symlink_to("real")

    first = queue.add(str(folder), inotify.CREATE)
    second = queue.add(str(tmp_path / "link"), inotify.DELETE)
    (folder / "a").touch()
    (folder / "a").unlink()

    assert first == second
    assert [event.mask for event in queue.read()] == [inotify.CREATE, inotify.DELETE]


def test_a_removed_watch_is_silent_and_may_be_removed_twice(queue: Inotify, tmp_path: Path) -> None:
    watch = queue.add(str(tmp_path), ALL)
    queue.remove(watch)
    (tmp_path / "a").touch()

    assert [event.mask for event in queue.read()] == [inotify.IGNORED]
    queue.remove(watch)


def test_what_does_not_fit_into_the_queue_is_told(queue: Inotify, tmp_path: Path) -> None:
    queue.add(str(tmp_path), ALL)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    first, second = tmp_path / "a", tmp_path / "b"
    for _ in range(limit // 4 + 10):  # equal events in a row would be one
        first.touch()
        first.unlink()
        second.touch()
        second.unlink()

    events = queue.read()

    assert events[-1].mask & inotify.OVERFLOW
    assert queue.read() == []


def test_a_missing_folder_is_an_error_that_names_it(queue: Inotify, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        queue.add(str(tmp_path / "missing"), ALL)

    assert caught.value.filename == str(tmp_path / "missing")


# --- file systems that report changes --------------------------------------------------------------------------------


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
