"""The log that the inspector page shows: this process's own lines from its start, and the server's output.

Lines come from any thread, and no writer waits. Each has a number and is told once. The server's output is read from
the file that it prints to, while a page is open: at first its end, then what is new. A file that was truncated or
replaced is read from its beginning.
"""

from __future__ import annotations

import asyncio
import calendar
import os
import re
import stat
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from ...instances.child import last_lines
from ...system.files import decode
from ...system.log import CRITICAL, DEBUG, ERROR, INFORMATION, LEVELS, NONE, TRACE, WARNING, log
from ...system.text import visible
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Line = dict[str, Any]  # as the page gets it

REMEMBERED = 1000  # lines
TELL_SECONDS = 0.1  # a build prints hundreds of lines in that time; pages get them at once
MOST_BYTES = 64 * 1024  # of the server's output in one read; older output is skipped
MOST_LINES = 1000  # of the server's output in one read
LONGEST_LINE = 4000  # characters
LAST_LINES = 100  # of a file that was read: more than the last lines of an ended server
LATE_SECONDS = 3.0  # the output of a server is read within two

# As .NET's console and our own Host print: an optional time, then the level. Indented lines belong to the one before.
_HEAD = re.compile(r"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z )?(?:(trce|dbug|info|warn|fail|crit): )?")
_LEVELS = {"trce": TRACE, "dbug": DEBUG, "info": INFORMATION, "warn": WARNING, "fail": ERROR, "crit": CRITICAL}
# So do the lines of a logged Python exception; its last line is the first that is not indented.
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class LogFeed:
    """Calls `tell` with new lines while `live`, and keeps the last lines at any time."""

    def __init__(self, tell: Callable[[list[Line]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._incoming: deque[tuple[float, int, str]] = deque(maxlen=REMEMBERED)  # has no number yet
        self._lines: deque[Line] = deque(maxlen=REMEMBERED)
        self._last_number = 0
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._incoming.extend(log.recent.copy())
        log.tap = self._hear

    @property
    def live(self) -> bool:
        """Whether a page is open: then lines are told as they come, also those below the level of the log."""
        return self._live

    @live.setter
    def live(self, wanted: bool) -> None:
        self._live = wanted
        log.tap_level = DEBUG if wanted else NONE
        if wanted:
            self._take()
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._woken = False

    def lines(self) -> list[Line]:
        """The lines that have been told, newest last; later ones will be told."""
        return list(self._lines)

    def printed(self, lines: Iterable[Printed]) -> None:
        """The server has printed these lines."""
        new = [self._put(line.at, line.level, line.text, "server") for line in lines]
        if new:
            self._tell(new)

    def close(self) -> None:
        self.live = False
        log.tap = None

    def _hear(self, at: float, level: int, text: str) -> None:
        """Called by the log, from any thread."""
        self._incoming.append((at, level, text))
        if self._live and not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop is closed, and with it the page

    def _wake(self) -> None:
        if self._live and self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_new)

    def _tell_new(self) -> None:
        self._timer = None
        self._woken = False  # before the lines are taken: those that come meanwhile wake again
        if new := self._take():
            self._tell(new)

    def _take(self) -> list[Line]:
        new = []
        while self._incoming:
            new.append(self._put(*self._incoming.popleft()))
        return new

    def _put(self, at: float, level: int, text: str, source: str = "proxy") -> Line:
        self._last_number += 1
        line = {"n": self._last_number, "at": at, "level": LEVELS[level], "source": source, "text": text}
        self._lines.append(line)
        return line


class Printed(Value):
    """A line of the server's output."""

    at: float
    level: int
    text: str


class OutputTail:
    """Reads the output of one server after the other; in one thread at a time. Waits for the disk."""

    def __init__(self) -> None:
        self._file: tuple[str, int, int] | None = None  # path, device and inode: another file may get the same path
        self._position = 0
        self._rest = b""  # the beginning of a line that is not complete
        self._level = INFORMATION  # of the last line
        self._in_traceback = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)  # that were read

    def read(self, path: str, last_words: Sequence[str] = ()) -> list[Printed]:
        """What was printed since the last read.

        `last_words`: the last lines of a server that has ended, whose file may have been overwritten before all of it
        was read.
        """
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
                return []
            with open(path, "rb") as stream:
                found = os.fstat(stream.fileno())
                unread = self._begin_file(path, found, last_words)
                skipped = found.st_size - self._position > MOST_BYTES
                if skipped:
                    self._position, self._rest = found.st_size - MOST_BYTES, b""
                stream.seek(self._position)
                data = stream.read(MOST_BYTES)
        except OSError:  # it does not exist yet, or not any more
            return []
        self._position += len(data)
        if skipped:
            data = data.partition(b"\n")[2]  # it begins within a line
        return [*unread, *self._lines(data, time.time())]

    def _begin_file(self, path: str, found: os.stat_result, last_words: Sequence[str]) -> list[Printed]:
        """If this is another file than before, or was truncated: the unread lines of the one before."""
        file = path, found.st_dev, found.st_ino
        if file == self._file and found.st_size >= self._position:
            return []
        unread = self._unread(last_words, time.time()) if self._file is not None else []
        self._file, self._position, self._rest, self._level = file, 0, b"", INFORMATION
        self._in_traceback = False
        self._last.clear()
        return unread

    def _unread(self, last_words: Sequence[str], at: float) -> list[Printed]:
        """The last words without those at their beginning that are the last lines read."""
        before, self._rest = last_lines("".join(f"{text}\n" for text in self._last).encode()), b""
        lines = self._lines("".join(f"{line}\n" for line in last_words).encode("utf-8", "replace"), at)
        texts = tuple(line.text for line in lines)
        known = max(count for count in range(len(texts) + 1) if before[len(before) - count :] == texts[:count])
        return lines[known:]

    def _lines(self, data: bytes, at: float) -> list[Printed]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        texts = [text for line in lines[-MOST_LINES:] if (text := _COLOURS.sub("", decode(line)).rstrip())]
        moment = next((own for text in texts if (own := _own_time(text, at))), at)
        printed = []
        for text in texts:
            moment = _own_time(text, at) or moment  # a line without a time has that of the line before
            printed.append(self._line(text, moment))
        return printed

    def _line(self, text: str, at: float) -> Printed:
        stamp, level, text = _parts(text)
        continues = self._continues(text) and not (stamp or level)
        if level is not None:
            self._level = _LEVELS[level]
        elif not continues:
            self._level = INFORMATION
        printed = Printed(at, self._level, visible(text)[:LONGEST_LINE])
        self._last.append(printed.text)
        return printed

    def _continues(self, text: str) -> bool:
        """Whether a line belongs to the one before."""
        if text[:1].isspace():
            return True
        begins = text.startswith(_TRACEBACK)
        continues = begins or self._in_traceback or text.startswith(_CHAINED)
        self._in_traceback = begins
        return continues and self._level >= WARNING  # with the level of a detail, a page would hide it


def _own_time(text: str, at: float) -> float | None:
    """The time that a line has printed itself. A new line gets `at`: its own time has only whole seconds."""
    stamp = _parts(text)[0]
    try:
        own = float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S"))) if stamp else None
    except ValueError:  # a 31st of February
        return None
    return at if own is not None and at - own < LATE_SECONDS else own


def _parts(line: str) -> tuple[str | None, str | None, str]:
    """Time, level and text."""
    head = _HEAD.match(line)
    assert head is not None  # all of it is optional
    return head[1], head[2], line[head.end() :]
