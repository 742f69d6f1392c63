"""Changes in real folders, told by each kind of notifier that this system has."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.files import write
from uno_devserver.system.folder_notifier import ADDED, DELETED, MODIFIED, folder_notifier

if TYPE_CHECKING:
    from uno_devserver.system.folder_notifier import FolderNotifier

PATIENCE = 60.0
LINUX = sys.platform == "linux"
only_linux = pytest.mark.skipif(not LINUX, reason="it holds the limits and the counters of Linux")


@pytest.fixture(params=["linux", "other"] if LINUX else [sys.platform])
def notifier(request: pytest.FixtureRequest) -> Iterator[FolderNotifier]:
    one = folder_notifier(request.param)
    yield one
    one.close()


def _told_until(notifier: FolderNotifier, path: Path) -> set[tuple[int, str]]:
    """Everything that is told up to the first change of this path."""
    told: set[tuple[int, str]] = set()
    deadline = time.monotonic() + PATIENCE
    while str(path) not in {where for _, where in told}:
        assert time.monotonic() < deadline, told
        told |= set(notifier.wait(1.0))
    return told


def test_files_that_come_change_and_go_are_told(notifier: FolderNotifier, tmp_path: Path) -> None:
    changed, gone = write(tmp_path / "changed", "1"), write(tmp_path / "gone", "")
    notifier.watch([str(tmp_path)])

    gone.unlink()
    changed.write_text("2", "utf-8")
    told = _told_until(notifier, write(tmp_path / "new", ""))

    assert {(DELETED, str(gone)), (MODIFIED, str(changed)), (ADDED, str(tmp_path / "new"))} <= told


def test_folders_below_are_not_watched(notifier: FolderNotifier, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    notifier.watch([str(tmp_path)])

    hidden = write(tmp_path / "below" / "file", "")
    told = _told_until(notifier, write(tmp_path / "last", ""))

    assert str(hidden) not in {path for _, path in told}


def test_other_folders_can_be_watched_instead(notifier: FolderNotifier, tmp_path: Path) -> None:
    first, second, gone = tmp_path / "first", tmp_path / "second", tmp_path / "gone"
    for folder in (first, second):
        folder.mkdir()
    notifier.watch([str(first)])
    notifier.watch([str(second)])

    write(first / "file", "")
    told = _told_until(notifier, write(second / "file", ""))
    notifier.watch([str(gone), str(first)] if LINUX else [str(first)])
    write(first / "another", "")

    assert str(first / "file") not in {path for _, path in told}
    assert _told_until(notifier, first / "another")


def test_a_wait_ends_after_its_time_or_when_it_is_woken(notifier: FolderNotifier, tmp_path: Path) -> None:
    notifier.watch([str(tmp_path)])
    began = time.monotonic()
    assert not set(notifier.wait(0.2))
    assert time.monotonic() - began >= 0.19

    notifier.wake()  # before anybody waits
    assert not set(notifier.wait(PATIENCE))
    waiting = threading.Thread(target=lambda: notifier.wait(PATIENCE))
    waiting.start()
    notifier.wake()
    waiting.join(PATIENCE / 2)

    assert not waiting.is_alive()


def test_waking_one_that_was_closed_does_nothing(tmp_path: Path) -> None:
    notifier = folder_notifier()
    notifier.watch([str(tmp_path)])
    notifier.close()
    taken = os.open(tmp_path, os.O_RDONLY) if LINUX else -1  # perhaps with the number that the notifier had

    notifier.wake()

    if taken >= 0:
        os.close(taken)


@only_linux
def test_reading_and_writing_without_closing_wakes_nobody(tmp_path: Path) -> None:
    file = write(tmp_path / "log", "")
    notifier = folder_notifier("linux")
    notifier.watch([str(tmp_path)])

    with file.open("a") as log:
        log.write("line\n")
        log.flush()
        os.listdir(tmp_path)
        file.read_text("utf-8")
        assert not set(notifier.wait(0.1))

    assert set(notifier.wait(PATIENCE)) == {(MODIFIED, str(file))}
    notifier.close()


@only_linux
def test_more_events_than_the_queue_takes_are_told_as_a_change_of_the_folder(tmp_path: Path) -> None:
    notifier = folder_notifier("linux")
    notifier.watch([str(tmp_path)])
    file = write(tmp_path / "file", "")
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("utf-8"))

    for number in range(queue):
        os.utime(file, (number, number))
        os.rename(file, file := tmp_path / f"file{number % 2}")

    assert (ADDED, str(tmp_path)) in set(notifier.wait(PATIENCE))
    notifier.close()


@only_linux
def test_a_wait_takes_no_processor_time(tmp_path: Path) -> None:
    notifier = folder_notifier("linux")
    notifier.watch([str(tmp_path)])
    status = Path("/proc/self/task") / str(threading.get_native_id()) / "status"

    def switches() -> int:
        return sum(
            int(line.split()[1]) for line in status.read_text("utf-8").splitlines() if "voluntary_ctxt" in line[:14]
        )

    before = switches()
    notifier.wait(1.0)

    assert switches() - before < 10  # a notifier that looks twenty times a second has twice as many
    notifier.close()


@only_linux
@pytest.mark.parametrize("platform", ["linux", "other"])
def test_when_no_file_can_be_opened_any_more_it_says_so(platform: str, tmp_path: Path) -> None:
    """In a process of its own, whose files are all taken."""
    program = f"""
import os, resource, sys
from uno_devserver.system.folder_notifier import folder_notifier, rust_notify
rust_notify()
resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
try:
    folder_notifier({platform!r}).watch([{str(tmp_path)!r}])
except Exception as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "too many" in done.stderr.lower() or "limit of watchers" in done.stderr, done.stderr


def test_anyio_and_the_rest_of_watchfiles_are_not_imported() -> None:
    program = (
        "import sys; from uno_devserver.system.folder_notifier import rust_notify; rust_notify(); print(*sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 0, done.stderr
    assert not {"anyio", "watchfiles", "logging"} & set(done.stdout.split())
