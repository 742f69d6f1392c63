"""What a server has printed since the last look, out of the file that it prints to. Waits for the disk.

At first only the end of the file counts; also later, where more has been printed than anybody would read. A file that
was cut, or that another took the place of, is read from its beginning.
"""

from __future__ import annotations

import calendar
import os
import re
import stat
import time

from ...system.files import decode
from ...system.log import CRITICAL, DEBUG, ERROR, INFORMATION, TRACE, WARNING
from ...system.text import visible
from ...system.values import Value

MOST_BYTES = 64 * 1024  # at once
LONGEST_LINE = 4000  # characters

# As .NET's console and our own Host print: perhaps a time, then the level. What is indented goes on with the last.
_HEAD = re.compile(r"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z )?(?:(trce|dbug|info|warn|fail|crit): )?")
_LEVELS = {"trce": TRACE, "dbug": DEBUG, "info": INFORMATION, "warn": WARNING, "fail": ERROR, "crit": CRITICAL}
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Printed(Value):
    at: float
    level: int
    text: str


class OutputTail:
    """Of one server after the other; in one thread at a time."""

    def __init__(self) -> None:
        self._file: tuple[str, int, int] | None = None  # which one it is, also where another has got its name
        self._position = 0
        self._rest = b""  # of a line whose end is still to come
        self._level = INFORMATION  # of the last line

    def read(self, path: str) -> list[Printed]:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for somebody to write
                return []
            with open(path, "rb") as stream:
                found = os.fstat(stream.fileno())
                skipped = self._move(path, found)
                stream.seek(self._position)
                data = stream.read(MOST_BYTES)
        except OSError:  # it is not there yet, or not any more
            return []
        self._position += len(data)
        if skipped:
            data = data.partition(b"\n")[2]  # it begins within a line
        return self._lines(data, found.st_mtime)

    def _move(self, path: str, found: os.stat_result) -> bool:
        """To where the next bytes are read; whether some were passed over."""
        file = path, found.st_dev, found.st_ino
        if file != self._file or found.st_size < self._position:
            self._file, self._position, self._rest, self._level = file, 0, b"", INFORMATION
        if found.st_size - self._position <= MOST_BYTES:
            return False
        self._position, self._rest = found.st_size - MOST_BYTES, b""
        return True

    def _lines(self, data: bytes, at: float) -> list[Printed]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        return [self._line(text, at) for line in lines if (text := _COLOURS.sub("", decode(line)).rstrip())]

    def _line(self, text: str, at: float) -> Printed:
        head = _HEAD.match(text)
        assert head is not None  # all of it is optional
        stamp, level = head.groups()
        if level is not None:
            self._level = _LEVELS[level]
        elif not text[0].isspace():
            self._level = INFORMATION
        return Printed(_moment(stamp) or at, self._level, visible(text[head.end() :])[:LONGEST_LINE])


def _moment(stamp: str | None) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S"))) if stamp else None
    except ValueError:  # a 31st of February
        return None
