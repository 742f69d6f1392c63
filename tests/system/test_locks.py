"""One at a time, among real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from uno_devserver.system.locks import FileLock

# Takes the lock, says so, and keeps it until it is told to go.
HOLDER = """
import sys
from uno_devserver.system.locks import FileLock
lock = FileLock(sys.argv[1])
assert lock.acquire(5, lambda holder: None)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "locks" / "workspace.lock")


@pytest.fixture
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    arguments = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_free_lock_is_taken_at_once_and_says_by_whom(path: str) -> None:
    waited: list[int | None] = []
    lock = FileLock(path)

    taken = lock.acquire(0, waited.append)

    assert taken
    assert waited == []
    assert lock.holder() == os.getpid()
    lock.release()
    assert lock.holder() is None


def test_a_lock_that_another_process_holds_is_not_taken_and_its_holder_is_named(
    path: str, holder: subprocess.Popen[str]
) -> None:
    waited: list[int | None] = []

    taken = FileLock(path).acquire(0.05, waited.append)

    assert not taken
    assert waited == [holder.pid]


def test_a_waiting_process_goes_on_when_the_holder_ends_in_order(path: str, holder: subprocess.Popen[str]) -> None:
    def let_go(_: int | None) -> None:
        assert holder.stdin
        holder.stdin.close()

    lock = FileLock(path)

    assert lock.acquire(10, let_go)
    assert lock.holder() == os.getpid()
    lock.release()


def test_the_lock_of_a_killed_process_is_free(path: str, holder: subprocess.Popen[str]) -> None:
    lock = FileLock(path)

    assert lock.acquire(10, lambda _: os.kill(holder.pid, signal.SIGKILL))
    lock.release()


def test_a_released_lock_can_be_taken_again_by_another(path: str) -> None:
    first, second = FileLock(path), FileLock(path)
    assert first.acquire(0, lambda _: None)
    assert not second.acquire(0, lambda _: None)

    first.release()

    assert second.acquire(0, lambda _: None)
    second.release()


def test_a_program_that_the_holder_started_does_not_keep_the_lock(path: str) -> None:
    lock = FileLock(path)
    assert lock.acquire(0, lambda _: None)
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        lock.release()

        assert lock.acquire(0, lambda _: None)
        lock.release()
    finally:
        child.kill()
        child.wait()


def test_a_full_disk_does_not_take_the_lock_away(path: str) -> None:
    """Then there is no room for the holder's number, but there are not two holders either."""
    code = f"""
import resource
from uno_devserver.system.locks import FileLock
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
first, second = FileLock({path!r}), FileLock({path!r})
print(first.acquire(0, lambda holder: None), second.acquire(0, lambda holder: None), first.holder())
"""

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    assert (result.stdout, result.stderr) == ("True False None\n", "")


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file where the folder should be")

    with pytest.raises(OSError):
        FileLock(str(tmp_path / "locks" / "workspace.lock")).acquire(0, lambda _: None)


def test_the_holder_of_a_file_with_nonsense_is_unknown(path: str) -> None:
    lock = FileLock(path)
    assert lock.holder() is None
    Path(path).parent.mkdir()
    Path(path).write_text("not a number")

    assert lock.holder() is None
