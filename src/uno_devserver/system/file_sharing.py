"""Files that several programs have open at the same time. Imported only on Windows.

There an open file cannot be opened, replaced or removed by others, unless every program that has it open allows that.
Readers, virus scanners and indexers have files open for some milliseconds, so a step that fails succeeds later.
Files that we read or keep open are opened so that others may rename and remove them, as editors do that save.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

LONGEST_PAUSE_SECONDS = 0.01  # pauses are random, so that two writers do not stay in step
# ERROR_ACCESS_DENIED (the file to replace is open, or is being removed), _SHARING_VIOLATION and _LOCK_VIOLATION
EXCLUDED = (5, 32, 33)
GENERIC_READ, GENERIC_READ_AND_WRITE = 0x8000_0000, 0xC000_0000
FILE_GENERIC_WRITE, FILE_WRITE_DATA, FILE_READ_ATTRIBUTES = 0x12_0116, 0x2, 0x80
SHARED = 7  # for reading, writing and deleting, which includes renaming
OPEN_EXISTING, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL = 3, 4, 0x80


def repeated(step: Callable[[], T], path: str, seconds: float) -> T:
    """The result of a step with the file `path`, repeated for a time while another program may exclude it.

    A step with a folder is not repeated: it fails with the same error, and always.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return step()
        except PermissionError as error:
            if not is_exclusion(error) or time.monotonic() >= deadline or os.path.isdir(path):
                raise
        from random import random  # imported late: it takes longer than most commands read files

        time.sleep(random() * LONGEST_PAUSE_SECONDS)  # noqa: S311


def is_exclusion(error: PermissionError) -> bool:
    """Whether another program may have the file open. Errors of the C runtime have no code of Windows; all count."""
    return getattr(error, "winerror", None) in (None, *EXCLUDED)


if sys.platform == "win32":  # the tests of `repeated` run on all systems

    def open_to_read(path: str, flags: int) -> int:
        """Open a file that exists, with the flags of `os.open`; raises OSError."""
        return _open(path, GENERIC_READ, OPEN_EXISTING, flags)

    def open_shared(path: str, flags: int) -> int:
        """Open a file to read and write it, with the flags of `os.open`; create it if it is missing. Raises OSError."""
        return _open(path, GENERIC_READ_AND_WRITE, OPEN_ALWAYS, flags)

    def open_to_append(path: str) -> int:
        """Open a file so that each write appends, also that of a child which inherits the handle; raises OSError.

        `O_APPEND` is a matter of the C runtime here, and a child does not inherit it: it would write where it, or this
        process, stopped last.
        """
        access = FILE_GENERIC_WRITE & ~FILE_WRITE_DATA | FILE_READ_ATTRIBUTES
        return _open(path, access, OPEN_ALWAYS, os.O_APPEND)

    def _open(path: str, access: int, which: int, flags: int) -> int:
        import _winapi
        import msvcrt

        handle = _winapi.CreateFile(path, access, SHARED, _winapi.NULL, which, FILE_ATTRIBUTE_NORMAL, _winapi.NULL)
        try:
            return msvcrt.open_osfhandle(handle, flags)
        except OSError:  # too many files are open
            _winapi.CloseHandle(handle)
            raise
