"""Repeats steps with files that other programs have open. Imported only on Windows.

There an open file cannot be opened, replaced or removed by others, unless every program that has it open allows that.
Readers, virus scanners and indexers have files open for some milliseconds, so the step succeeds a little later.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

LIMIT_SECONDS = 1.0  # a reader needs some milliseconds, a virus scanner up to some hundred
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.001, 0.005
# ERROR_ACCESS_DENIED (the file to replace is open, or is being removed), _SHARING_VIOLATION and _LOCK_VIOLATION
EXCLUDED = (5, 32, 33)


def repeated(step: Callable[[], T], path: str) -> T:
    """The result of a step with the file `path`, repeated while another program may exclude it; raises its last error.

    A step with a folder is not repeated: it fails with the same error, and always.
    """
    deadline, pause = time.monotonic() + LIMIT_SECONDS, FIRST_PAUSE_SECONDS
    while True:
        try:
            return step()
        except PermissionError as error:
            if not is_exclusion(error) or time.monotonic() >= deadline or os.path.isdir(path):
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def is_exclusion(error: PermissionError) -> bool:
    """Whether another program may have the file open; `os.open` does not tell Windows' own code, but what it means."""
    return getattr(error, "winerror", None) in (None, *EXCLUDED)
