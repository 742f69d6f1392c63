"""The log: one line per event on stderr, and in a file if asked for. Never on stdout.

The standard `logging` package costs 8 ms to import, most of a bare interpreter start; what a command line needs of
it fits here. A log must not break the program: a file that cannot be written is reported once and given up.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque

from .text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

# Names as the .NET tool takes them; the order is the severity.
LEVELS = ("Trace", "Debug", "Information", "Warning", "Error", "Critical", "None")
TRACE, DEBUG, INFORMATION, WARNING, ERROR, CRITICAL, NONE = range(len(LEVELS))
_PREFIXES: tuple[str, ...] = ("trce: ", "dbug: ", "", "warn: ", "fail: ", "crit: ")
RECENT_LINES = 200  # a start of the proxy has some 20; whoever comes later to look at the log sees how it went
RECENT_CHARACTERS = 4000  # of each: some quote whole outputs


class Log:
    """Where lines go; one per process, see `log`."""

    def __init__(self) -> None:
        self.level = INFORMATION
        self.prefixes = _PREFIXES  # by level; on a terminal they may have colours
        self.stamped = False  # a process that runs for days says when; a command just says what
        self.recent: deque[tuple[float, int, str]] = deque(maxlen=RECENT_LINES)  # the last ones: when, level, text
        # Whoever else wants all lines, at once and in the thread that writes them; it must not wait, nor fail.
        self.tap: Callable[[float, int, str], None] | None = None
        self.tap_level = NONE  # the tap hears lines from this level on, also where the log itself leaves them out
        self._file: IO[bytes] | None = None

    def write(self, level: int, message: str) -> None:
        is_logged = level >= self.level and self.level != NONE
        if not is_logged and level < self.tap_level:
            return
        message = visible(message)
        line = time.time(), level, message[:RECENT_CHARACTERS]
        if is_logged:
            self.recent.append(line)
            self._write(level, message)
        if self.tap is not None:
            self.tap(*line)

    def _write(self, level: int, message: str) -> None:
        try:
            if sys.stderr is not None:  # None: the parent started us without one
                sys.stderr.write(self._stamp() + self.prefixes[level] + message + "\n")
        except (OSError, ValueError):  # closed meanwhile: the file may still take it
            pass
        if self._file is not None:
            self._write_file(level, message)

    def debug(self, message: str) -> None:
        self.write(DEBUG, message)

    def info(self, message: str) -> None:
        self.write(INFORMATION, message)

    def warn(self, message: str) -> None:
        self.write(WARNING, message)

    def open_file(self, path: str) -> None:
        """Also log into `path`, in which `{Date}` stands for today (yyyyMMdd); failing that, warn and go on."""
        path = os.path.abspath(path.replace("{Date}", time.strftime("%Y%m%d")))
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Unbuffered: a line is whole in the file, or reported and gone; it lives as long as the process.
            self._file = open(path, "ab", buffering=0, opener=_for_this_user)  # noqa: SIM115
        except OSError as error:
            self.warn(f"cannot log into {path}: {error.strerror}. Going on without the file; check --file-log.")

    def _stamp(self) -> str:
        if not self.stamped:
            return ""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime())

    def _write_file(self, level: int, message: str) -> None:
        assert self._file is not None
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        try:
            # File names need not be valid text.
            self._file.write(f"{stamp} [{LEVELS[level]}] {message}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._file = None
            self.warn(f"the log file cannot be written any more: {error.strerror}")


def _for_this_user(path: str, flags: int) -> int:
    """A log names folders of the user, and the address of the inspector, with which tools can be called."""
    return os.open(path, flags, 0o600)


def level_named(name: str) -> int | None:
    """The level of that name, ignoring case; None when there is no such level."""
    for number, known in enumerate(LEVELS):
        if known.lower() == name.lower():
            return number
    return None


log = Log()
