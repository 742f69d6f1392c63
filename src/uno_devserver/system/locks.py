"""A lock between processes: whoever holds it is the only one on this machine who does what it stands for.

It is held through an open file, so it ends with its holder, however that ends; a stale lock does not exist. The file
itself stays. It says which process holds the lock, if the disk has room for that.
"""

from __future__ import annotations

import os
import sys
import time

from .files import make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STEP_SECONDS = 0.01  # between two attempts: a waiting command goes on as soon as a person could notice
HOLDER_BYTES = 20  # a process id in decimal digits, with room to spare
# Windows forbids reading a locked byte, so the lock lies far behind the holder's number.
LOCKED_BYTE = 1 << 30


class FileLock:
    """`acquire`, and `release` in a `finally`; the file's folder is created where it is missing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(
        self, seconds: float, on_wait: Callable[[int | None], None], go_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Whether it is ours within that time, and before `go_on` says that nobody wants it any more.

        `on_wait` is told once who holds it. OSError: it cannot be used.
        """
        make_folders(os.path.dirname(self._path))
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            taken = _wait(handle, seconds, lambda: on_wait(self.holder()), go_on)
            if taken:
                _say_who(handle)
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
        """The process that has the lock, or was killed while it had it; None when nobody has it."""
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


def _say_who(handle: int) -> None:
    try:
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        pass  # a full disk; the lock holds all the same


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
