"""What a server has printed since the last look, out of the file that it prints to. Waits for the disk.

At first only the end of the file counts; also later, where more has been printed than anybody would read. A file that
was cut, or that another took the place of, is read from its beginning.

The log as pages show it: this process's own lines from its beginning, and what its server prints while it is shown.

Lines come from any thread, and nobody who writes one waits. They have numbers, and each is told once.
"""

from __future__ import annotations

import asyncio
import calendar
import os
import re
import stat
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...instances.child import last_lines
from ...system.files import decode
from ...system.log import CRITICAL, DEBUG, ERROR, INFORMATION, LEVELS, NONE, TRACE, WARNING, log
from ...system.text import visible
from ...system.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MOST_BYTES = 64 * 1024  # at once
MOST_LINES = 1000  # at once
LONGEST_LINE = 4000  # characters
LAST_LINES = 100  # more than anybody hands over as last words

LATE_SECONDS = 3.0  # a line of a server that is followed is read within two

# As .NET's console and our own Host print: perhaps a time, then the level. What is indented goes on with the last.
_HEAD = re.compile(r"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z )?(?:(trce|dbug|info|warn|fail|crit): )?")
_LEVELS = {"trce": TRACE, "dbug": DEBUG, "info": INFORMATION, "warn": WARNING, "fail": ERROR, "crit": CRITICAL}
# So does what Python prints of an exception that was logged; its last line is the first that is not indented.
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")
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
        self._in_traceback = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)  # that were read

    def read(self, path: str, last_words: Sequence[str] = ()) -> list[Printed]:
        """`last_words`: of a server that has ended; the next one may have begun the file anew before all was read."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for somebody to write
                return []
            with open(path, "rb") as stream:
                found = os.fstat(stream.fileno())
                unread = self._begin_anew(path, found, last_words)
                skipped = self._skip(found.st_size)
                stream.seek(self._position)
                data = stream.read(MOST_BYTES)
        except OSError:  # it is not there yet, or not any more
            return []
        self._position += len(data)
        if skipped:
            data = data.partition(b"\n")[2]  # it begins within a line
        return [*unread, *self._lines(data, time.time())]

    def _begin_anew(self, path: str, found: os.stat_result, last_words: Sequence[str]) -> list[Printed]:
        """If it is another file, or was emptied: what was not read of the one before."""
        file = path, found.st_dev, found.st_ino
        if file == self._file and found.st_size >= self._position:
            return []
        unread = self._unread(last_words, time.time()) if self._file is not None else []
        self._file, self._position, self._rest, self._level = file, 0, b"", INFORMATION
        self._in_traceback = False
        self._last.clear()
        return unread

    def _unread(self, last_words: Sequence[str], at: float) -> list[Printed]:
        before, self._rest = last_lines("".join(f"{text}\n" for text in self._last).encode()), b""
        said = self._lines("".join(f"{line}\n" for line in last_words).encode("utf-8", "replace"), at)
        texts = tuple(line.text for line in said)
        known = max(count for count in range(len(texts) + 1) if before[len(before) - count :] == texts[:count])
        return said[known:]

    def _skip(self, size: int) -> bool:
        """What is too much to be read; whether there was any."""
        if size - self._position <= MOST_BYTES:
            return False
        self._position, self._rest = size - MOST_BYTES, b""
        return True

    def _lines(self, data: bytes, at: float) -> list[Printed]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        texts = [text for line in lines[-MOST_LINES:] if (text := _COLOURS.sub("", decode(line)).rstrip())]
        moment = next((own for text in texts if (own := _own_time(text, at))), at)
        printed = []
        for text in texts:
            moment = _own_time(text, at) or moment  # one without goes with the line before
            printed.append(self._line(text, moment))
        return printed

    def _line(self, text: str, at: float) -> Printed:
        stamp, level, text = _parts(text)
        goes_on = self._goes_on(text) and not (stamp or level)
        if level is not None:
            self._level = _LEVELS[level]
        elif not goes_on:
            self._level = INFORMATION
        printed = Printed(at, self._level, visible(text)[:LONGEST_LINE])
        self._last.append(printed.text)
        return printed

    def _goes_on(self, text: str) -> bool:
        """Whether a line belongs to the one before."""
        if text[:1].isspace():
            return True
        begins = text.startswith(_TRACEBACK)
        goes_on = begins or self._in_traceback or text.startswith(_CHAINED)
        self._in_traceback = begins
        return goes_on and self._level >= WARNING  # what was logged in passing does not hide why a program failed


def _own_time(text: str, at: float) -> float | None:
    """Of a line that was read now. That of a new one has only whole seconds, and would run behind other lines'."""
    own = _moment(_parts(text)[0])
    return at if own is not None and at - own < LATE_SECONDS else own


def _parts(line: str) -> tuple[str | None, str | None, str]:
    """Time, level, text."""
    head = _HEAD.match(line)
    assert head is not None  # all of it is optional
    return head[1], head[2], line[head.end() :]


def _moment(stamp: str | None) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S"))) if stamp else None
    except ValueError:  # a 31st of February
        return None


REMEMBERED = 1000  # lines
TELL_SECONDS = 0.1  # a build prints hundreds of lines in that time; pages get them at once

Line = dict[str, Any]


class LogFeed:
    def __init__(self, tell: Callable[[list[Line]], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._live = False
        self._heard: deque[tuple[float, int, str]] = deque(maxlen=REMEMBERED)  # not in the journal yet
        self._lines: deque[Line] = deque(maxlen=REMEMBERED)
        self._last = 0
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard.extend(log.recent.copy())
        log.tap = self._hear

    @property
    def live(self) -> bool:
        """Whether somebody looks: then lines are told as they come, also those that are too detailed for the log."""
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
        """Those that were told, newest last. What comes after them will be."""
        return list(self._lines)

    def printed(self, lines: Iterable[Printed]) -> None:
        """By the server."""
        told = [self._put(line.at, line.level, line.text, "server") for line in lines]
        if told:
            self._tell(told)

    def close(self) -> None:
        self.live = False
        log.tap = None

    def _hear(self, at: float, level: int, text: str) -> None:
        """From any thread."""
        self._heard.append((at, level, text))
        if self._live and not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                pass  # the loop is closed, and nobody looks any more

    def _wake(self) -> None:
        if self._live and self._timer is None:
            self._timer = self._loop.call_later(TELL_SECONDS, self._tell_news)

    def _tell_news(self) -> None:
        self._timer = None
        self._woken = False  # before they are taken: what comes meanwhile wakes us again
        news = self._take()
        if news:
            self._tell(news)

    def _take(self) -> list[Line]:
        news = []
        while self._heard:
            news.append(self._put(*self._heard.popleft()))
        return news

    def _put(self, at: float, level: int, text: str, source: str = "proxy") -> Line:
        self._last += 1
        line = {"n": self._last, "at": at, "level": LEVELS[level], "source": source, "text": text}
        self._lines.append(line)
        return line
