"""The log that the inspector page shows: this process's own lines from its start, and the server's output.

Lines come from any thread, and writers do not wait. Each has a number and is sent once. While a page is open, the
server's output is read from its file: first its end, then new lines. A truncated or replaced file is read from its
beginning.
"""

from __future__ import annotations

import asyncio
import calendar
import os
import re
import stat
import time
from bisect import bisect_right
from collections import deque
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...instances.child_process import last_lines
from ...system.log import CRITICAL, DEBUG, ERROR, INFORMATION, LEVELS, NONE, TRACE, WARNING, log
from ...system.text import COLOURS, decode_output, visible
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Line = dict[str, Any]  # as the page gets it

REMEMBERED = 1000  # the number of lines that are kept
TELL_SECONDS = 0.1  # lines within that time are sent together: a build prints hundreds
MOST_BYTES = 64 * 1024  # of the server's output in one read; older output is skipped
MOST_LINES = 1000  # of the server's output in one read
LONGEST_LINE = 4000  # characters
LAST_LINES = 100  # kept of a file that was read; more than an `Ending` quotes
LATE_SECONDS = 3.0  # a time in a line that is older is shown; the output of a server is read within 2 s

# The format of .NET's console and our own Host: a time, a level, the text. Indented lines belong to the one before.
_LINE = re.compile(r"\A(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z )?(?:(trce|dbug|info|warn|fail|crit): )?(.*)", re.DOTALL)
_LEVELS = {"trce": TRACE, "dbug": DEBUG, "info": INFORMATION, "warn": WARNING, "fail": ERROR, "crit": CRITICAL}
# The lines of a Python traceback belong to the one before as well; its last line is the first that is not indented.
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
_COLOURS = re.compile(COLOURS)


class LogFeed:
    """Calls `tell` with new lines while a page is open; always keeps the last lines."""

    def __init__(self, tell: Callable[[list[Line]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._incoming = deque(log.recent.copy(), REMEMBERED)  # time, level and text of lines without a number yet
        self._lines: deque[Line] = deque(maxlen=REMEMBERED)
        self._last_number = 0
        self._woken = False  # whether the loop is going to send incoming lines
        log.tap = self._hear

    def set_live(self, live: bool) -> None:
        """Set whether lines are sent as they come, including those below the level of the log."""
        self._live = live
        log.tap_level = DEBUG if live else NONE
        if live:
            self._take()

    def lines(self) -> list[Line]:
        """The last lines, newest last; later ones are sent as they come."""
        return list(self._lines)

    def printed(self, lines: Iterable[OutputLine], name: str | None = None) -> None:
        """Add lines of a server's output; `name`: which of several it is."""
        begin = f"{name}: " if name else ""
        new = [self._put(line.at, line.level, begin + line.text, "server") for line in lines]
        if new:
            self._tell(new)

    def close(self) -> None:
        self.set_live(False)
        log.tap = None

    def _hear(self, at: float, level: int, text: str) -> None:
        """Called by the log, from any thread."""
        self._incoming.append((at, level, text))
        if self._live and not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._loop.call_later, TELL_SECONDS, self._tell_new)
            except RuntimeError:
                pass  # the loop is closed, because the proxy ends

    def _tell_new(self) -> None:
        self._woken = False  # before the lines are taken: later ones wake the loop again
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


class OutputLine(Value):
    """A line of the server's output."""

    at: float
    level: int
    text: str


class OutputTail:
    """Reads the output files of successive servers. Blocks; used in one thread at a time."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, file: tuple[str, int, int] | None) -> None:
        self._file = file  # path, device and inode: another file may get the same path
        self._position = 0
        self._rest = b""  # an incomplete line
        self._level = INFORMATION  # of the last line
        self._in_traceback = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)  # lines that were read

    def read(
        self, path: str, last_words: Sequence[str] = (), arrivals: Callable[[], list[tuple[int, float]]] = list
    ) -> list[OutputLine]:
        """The lines since the last read. `last_words`: the last lines of an ended server, if its file may be lost.
        `arrivals`: positions in the file, and when what follows each of them was written.
        """
        unread: list[OutputLine] = []
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
                return []
            with open(path, "rb") as stream:
                found = os.fstat(stream.fileno())
                file = path, found.st_dev, found.st_ino
                if file != self._file or found.st_size < self._position:
                    unread = self._unread(last_words) if self._file is not None else []
                    self._begin(file)
                skipped = found.st_size - self._position > MOST_BYTES
                if skipped:
                    self._position, self._rest = found.st_size - MOST_BYTES, b""
                stream.seek(self._position)
                data = stream.read(MOST_BYTES)
        except OSError:  # it does not exist
            return []
        self._position += len(data)
        if skipped:
            data = data.partition(b"\n")[2]  # it begins within a line
        begin = self._position - len(data) - len(self._rest)
        return [*unread, *self._lines(data, begin, arrivals())]

    def _unread(self, last_words: Sequence[str]) -> list[OutputLine]:
        """The last words that were not read before."""
        before, self._rest = last_lines("".join(f"{text}\n" for text in self._last).encode()), b""
        lines = self._lines("".join(f"{line}\n" for line in last_words).encode("utf-8", "replace"))
        texts = tuple(line.text for line in lines)
        known = max(count for count in range(len(texts) + 1) if before[len(before) - count :] == texts[:count])
        return lines[known:]

    def _lines(self, data: bytes, begin: int = 0, arrivals: Sequence[tuple[int, float]] = ()) -> list[OutputLine]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        begins = accumulate((len(line) + 1 for line in lines), initial=begin)
        placed = list(zip(begins, lines, strict=False))[-MOST_LINES:]
        texts = [(place, text) for place, line in placed if (text := _COLOURS.sub("", decode_output(line)).rstrip())]
        parts = [_LINE.findall(text)[0] for _, text in texts]
        now = time.time()
        times = [_own_time(stamp, now) for stamp, _, _ in parts]
        at = next((own for own in times if own), now)
        printed = []
        for (stamp, level, text), own, (place, _) in zip(parts, times, texts, strict=True):
            if arrivals:
                at = arrivals[max(0, bisect_right(arrivals, place, key=itemgetter(0)) - 1)][1]
            else:
                at = own or at  # a line without a time has that of the line before
            printed.append(OutputLine(at, self._level_of(stamp, level, text), visible(text)[:LONGEST_LINE]))
        self._last.extend(line.text for line in printed)
        return printed

    def _level_of(self, stamp: str, level: str, text: str) -> int:
        """The level of a line: its own, or that of the line before if it belongs to that one."""
        continues = text[:1].isspace()
        if not continues:
            begins = text.startswith(_TRACEBACK)
            explains = begins or self._in_traceback or text.startswith(_CHAINED)
            continues = explains and self._level >= WARNING  # pages hide lower levels, but not a traceback
            self._in_traceback = begins
        if level or stamp or not continues:
            self._level = _LEVELS.get(level, INFORMATION)
        return self._level


def _own_time(stamp: str, now: float) -> float | None:
    """The time in a line; None without one. For a new line, `now`, because the time in it has only whole seconds."""
    try:
        own = float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:  # no time, or a wrong one such as a 31st of February
        return None
    return now if now - own < LATE_SECONDS else own
