"""Steps with files that other programs have open: repeated on Windows, for a limited time."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from uno_devserver.system.file_sharing import repeated
from uno_devserver.system.files import open_regular, read_bytes, remove_file, write_atomic

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="other systems do not exclude programs from open files")

PATIENCE = 30.0
SHARING_VIOLATION, WRITE_PROTECTED = 32, 19


def denied(code: int | None) -> PermissionError:
    error = PermissionError(13, "Permission denied")
    if code is not None:
        error.winerror = code  # type: ignore[attr-defined, unused-ignore]  # only Windows has it
    return error


class Step:
    """Fails with these errors, one after the other, and succeeds then."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("code", [5, SHARING_VIOLATION, 33, None])
def test_a_step_that_another_program_excludes_is_repeated_until_it_succeeds(tmp_path: Path, code: int | None) -> None:
    step = Step(denied(code), denied(code))

    assert repeated(step, str(tmp_path / "file"), PATIENCE) == "done"
    assert step.count == 3


@pytest.mark.parametrize(
    "error", [denied(WRITE_PROTECTED), FileNotFoundError(2, "not there"), OSError(28, "disk full")]
)
def test_any_other_error_is_raised_at_once(tmp_path: Path, error: OSError) -> None:
    step = Step(error)

    with pytest.raises(OSError) as raised:
        repeated(step, str(tmp_path / "file"), PATIENCE)

    assert (raised.value, step.count) == (error, 1)


def test_a_folder_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    step = Step(denied(None))

    with pytest.raises(PermissionError):
        repeated(step, str(tmp_path), PATIENCE)

    assert step.count == 1


def test_a_file_that_stays_excluded_is_given_up(tmp_path: Path) -> None:
    step = Step(*(denied(SHARING_VIOLATION) for _ in range(10_000)))

    with pytest.raises(PermissionError):
        repeated(step, str(tmp_path / "file"), 0.05)

    assert step.count > 1


@on_windows
def test_a_file_that_others_read_again_and_again_is_written_each_time_and_read_whole(tmp_path: Path) -> None:
    path, writes, failures = str(tmp_path / "state.json"), 300, []
    contents = {str(number % 10).encode() * 20_000 for number in range(writes)}
    write_atomic(path, b"0" * 20_000, durable=False)
    done = threading.Event()

    def read() -> None:
        while not done.wait(0.001):
            try:
                if read_bytes(path) not in contents:
                    failures.append("a mixed content")
            except Exception as error:
                failures.append(repr(error))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(writes):
            write_atomic(path, str(number % 10).encode() * 20_000, durable=False)
    finally:
        done.set()
        for reader in readers:
            reader.join()

    assert failures == []


@on_windows
def test_a_file_that_is_being_read_can_be_renamed_and_removed_by_others(tmp_path: Path) -> None:
    path, before = tmp_path / "server.py", tmp_path / "server.py~"
    path.write_bytes(b"old")

    with open_regular(str(path)) as stream:
        path.rename(before)
        path.write_bytes(b"new")
        with open_regular(str(path)):
            path.unlink()
        read = stream.read()

    assert (read, before.read_bytes(), path.exists()) == (b"old", b"old", False)


@on_windows
def test_a_file_that_is_open_for_a_moment_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"{}")
    stream = path.open("rb")

    def close() -> None:
        time.sleep(0.1)
        stream.close()

    closing = threading.Thread(target=close)
    closing.start()
    remove_file(str(path))
    closing.join()

    assert not path.exists()
