"""The progress line: on a terminal, a command that takes more than a second shows on stderr what it is doing.

`shown_while` draws the line from a thread, and clears it before anything else is written to stderr and when the command
ends. `say` sets the text; it costs almost nothing if no line is drawn.
"""

from __future__ import annotations

import os
import sys
import time

from ..system.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO, TypeVar

    T = TypeVar("T")

AFTER_SECONDS = 1.0  # shorter commands show nothing
DRAW_SECONDS = 0.1
WIDTH = 80  # for a terminal that does not report its width
END_SECONDS = 1.0  # how long to wait for the end of the thread, which may be waiting for the terminal
CLEAR = "\r\x1b[K"
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"


class _Activity:
    """What the process is doing, and since when."""

    what = ""
    since = 0.0


def say(what: str) -> None:
    _Activity.what, _Activity.since = what, time.monotonic()


def can_be_shown() -> bool:
    """Whether stderr is a terminal that can clear a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown_while(what: str, work: Callable[[], T]) -> T:
    say(what)
    line = _StatusLine(sys.stderr)
    sys.stderr = line
    ticker = _Ticker(line.draw)
    try:
        return work()
    finally:
        ticker.stop()
        sys.stderr = line.stream
        line.clear()


class _StatusLine:
    """Replaces sys.stderr: clears the progress line before anything is written."""

    def __init__(self, stream: TextIO) -> None:
        import _thread

        self.stream = stream
        self._lock = _thread.allocate_lock()
        self._is_drawn = False
        self._is_begun = False  # the last write did not end its line
        self._frame = 0

    def draw(self) -> None:
        with self._lock:
            if not _is_ours(self.stream):
                self._is_drawn = False  # another program may have written to the last line
                return
            if self._is_begun:
                return
            self._frame += 1
            self._is_drawn = True
            self._write(CLEAR + _text(self.stream, self._frame))

    def write(self, text: str) -> int:
        with self._lock:
            self._clear()
            self._is_begun = not text.endswith("\n") if text else self._is_begun
            return self.stream.write(text)

    def clear(self) -> None:
        with self._lock:
            self._clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _clear(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write(CLEAR)

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            pass  # the terminal was closed; the command goes on


class _Ticker:
    """Calls `draw` repeatedly from a thread, beginning after a second."""

    def __init__(self, draw: Callable[[], None]) -> None:
        import _thread

        self._draw = draw
        # Locks that are released when the event happens, because importing threading for its Event takes 4 ms.
        self._stopping, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._stopping.acquire()
        self._ended.acquire()
        unblock = _block_signals()  # for the thread, which inherits that
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # no thread can be started: the command runs without a progress line
            self._ended.release()
        finally:
            unblock()

    def stop(self) -> None:
        self._stopping.release()
        self._ended.acquire(timeout=END_SECONDS)

    def _run(self) -> None:
        try:
            pause = AFTER_SECONDS
            while not self._stopping.acquire(timeout=pause):
                self._draw()
                pause = DRAW_SECONDS
        finally:
            self._ended.release()


def _block_signals() -> Callable[[], object]:
    """Block the signals that end a command in this thread; the result undoes it.

    One that another thread gets does not interrupt what the main thread waits for, such as the answer to a question.
    """
    if sys.platform == "win32":
        return lambda: None
    import signal

    from .interrupts import ENDING

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    return lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_ours(stream: TextIO) -> bool:
    """Whether this process is in the terminal's foreground."""
    if not hasattr(os, "tcgetpgrp"):
        return True
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return True  # this is not the controlling terminal


def _text(stream: TextIO, frame: int) -> str:
    """The text, cut to one line, because only one line can be cleared."""
    from .terminal import columns

    is_unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    frames, dots = (_FRAMES, "…") if is_unicode else (_PLAIN_FRAMES, "...")
    begin, end = f"{frames[frame % len(frames)]} ", f" {dots} {int(time.monotonic() - _Activity.since)} s"
    room = max(_width(stream) - 1 - len(begin) - len(end), 0)
    what = visible(_Activity.what.replace("\n", " "))[:room]
    while columns(what) > room:
        what = what[:-1]
    return begin + what + end


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except OSError:
        return WIDTH
