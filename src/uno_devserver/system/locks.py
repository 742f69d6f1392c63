"""A lock between the processes of this machine.

A process holds the lock through an open file, so the lock ends with its holder and is never stale. The file itself
stays; it contains the id of the process that holds the lock, unless the disk is full.
"""

from __future__ import annotations

import os
import sys
import time

from .state_files import open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STEP_SECONDS = 0.01  # the time between two attempts, which people do not notice
HOLDER_BYTES = 20  # more than the digits of a process id
# Windows forbids reading a locked byte, so the locked byte is far beyond the holder's id.
LOCKED_BYTE = 1 << 30


class FileLock:
    """The lock of one file, whose folder is created if it is missing. Call `release` in a `finally` after `acquire`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(
        self, seconds: float, on_wait: Callable[[int | None], None], go_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Try to acquire the lock for `seconds`, or until `go_on` returns False; returns whether it was acquired.

        If the lock is taken, `on_wait` is called once with its holder. Raises OSError if the file cannot be used.
        """
        handle = open_own(self._path)
        try:
            taken = _wait(handle, seconds, lambda: on_wait(self.holder()), go_on)
            if taken:
                _write_holder(handle)
                self._handle, handle = handle, -1
            return taken
        finally:
            if handle >= 0:
                os.close(handle)

    def release(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None

    def holder(self) -> int | None:
        """The id of the process that holds the lock, or was killed while holding it; None if it is not known."""
        try:
            with open(self._path, "rb") as stream:
                text = stream.read(HOLDER_BYTES).strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None


def _wait(handle: int, seconds: float, on_wait: Callable[[], None], go_on: Callable[[], bool]) -> bool:
    if _try(handle):
        return True
    on_wait()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and go_on():
        time.sleep(STEP_SECONDS)
        if _try(handle):
            return True
    return False


def _write_holder(handle: int) -> None:
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        pass  # the disk is full; the lock works without the id


if sys.platform == "win32":

    def _try(handle: int) -> bool:
        import msvcrt

        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(handle, 0, os.SEEK_SET)
        return True

else:

    def _try(handle: int) -> bool:
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
