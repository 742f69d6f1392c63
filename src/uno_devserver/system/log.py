"""The log: one entry per event on stderr, and in a file on request; never on stdout.

The further lines of an entry are indented: a line end in a name that comes from outside must not begin a new entry.

The standard `logging` package is not used, because importing it takes 8 ms, most of a bare interpreter start. A log
file that cannot be written is reported once and no longer used; the program goes on.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

# The names of the .NET tool, by severity.
LEVELS = ("Trace", "Debug", "Information", "Warning", "Error", "Critical", "None")
TRACE, DEBUG, INFORMATION, WARNING, ERROR, CRITICAL, NONE = range(len(LEVELS))
_PREFIXES: tuple[str, ...] = ("trce: ", "dbug: ", "", "warn: ", "fail: ", "crit: ")
RECENT_LINES = 200  # kept for an inspector page that is opened later; the start of a proxy writes about 20
INDENT = " " * 6  # as on .NET's console
RECENT_CHARACTERS = 4000  # the part of each line that is kept: some quote the whole output of a program


def utc_now() -> str:
    """The current second, as every file and log of ours states it."""
    # gmtime() alone reads a clock that is some milliseconds behind: events would seem to precede their cause.
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))


class Log:
    """The log of this process; `log` is the only instance."""

    def __init__(self) -> None:
        self.level = INFORMATION
        self.prefixes = _PREFIXES  # by level; with colours on a terminal
        self.stamped = False  # whether lines begin with the time, for processes that run for days
        self.recent: deque[tuple[float, int, str]] = deque(maxlen=RECENT_LINES)  # time, level and text
        # A function that is called with every line, in the thread that writes it; it must neither block nor fail.
        self.tap: Callable[[float, int, str], None] | None = None
        self.tap_level = NONE  # the lowest level that is passed to the tap; it may be below that of the log
        # The beginning of a line: a process that keeps several servers says to which one it belongs.
        self.origin: Callable[[], str] = str
        self._file: IO[bytes] | None = None

    def write(self, level: int, message: str) -> None:
        is_logged = level >= self.level and self.level != NONE
        if not is_logged and level < self.tap_level:
            return
        from .text import visible  # imported here because most commands log nothing

        message = visible(self.origin() + message)
        line = time.time(), level, message[:RECENT_CHARACTERS]
        if is_logged:
            self.recent.append(line)
            self._write(level, message.replace("\n", "\n" + INDENT))
        if self.tap is not None:
            self.tap(*line)

    def _write(self, level: int, message: str) -> None:
        try:
            if sys.stderr is not None:  # None if this process was started without stderr
                sys.stderr.write(self._stamp() + self.prefixes[level] + message + "\n")
        except (OSError, ValueError):  # stderr is closed; the file may still be writable
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
        """Log to the file `path` as well, in which `{Date}` means today (yyyyMMdd); logs a warning if that fails."""
        path = os.path.abspath(path.replace("{Date}", time.strftime("%Y%m%d")))
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Unbuffered, so that a line that cannot be written is reported at once. Open until the process ends.
            self._file = open(path, "ab", buffering=0, opener=_for_this_user)  # noqa: SIM115
        except OSError as error:
            self.warn(f"cannot log into {path}: {error.strerror}. Going on without the file; check --file-log.")

    def _stamp(self) -> str:
        if not self.stamped:
            return ""
        return utc_now() + " "

    def _write_file(self, level: int, message: str) -> None:
        assert self._file is not None
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        try:
            # A message may contain file names that are not valid text.
            self._file.write(f"{stamp} [{LEVELS[level]}] {message}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._file = None
            self.warn(f"the log file cannot be written any more: {error.strerror}")


def _for_this_user(path: str, flags: int) -> int:
    """Open the file, a new one for this user alone: it may contain arguments and answers.

    Several processes may log to one file, as a proxy for each client does: each line is appended.
    """
    if sys.platform == "win32":
        from .file_sharing import open_to_append

        return open_to_append(path)
    return os.open(path, flags, 0o600)


def level_named(name: str) -> int | None:
    """The level of that name, ignoring case; None if there is no such level."""
    return next((number for number, known in enumerate(LEVELS) if known.lower() == name.lower()), None)


log = Log()
