"""What takes over a second shows that it lives: one line on stderr, if that is a terminal, with what is done now.

`shown_while` draws it from a thread, and takes it away before anything else is written there and at the end, however
that comes. `say` tells what is being done; it costs nothing where nobody sees it.
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

AFTER_SECONDS = 1.0  # what is over by then needs no words
DRAW_SECONDS = 0.1
WIDTH = 80  # of a terminal that does not know its own
END_SECONDS = 1.0  # for the thread to end; it waits for nothing but the terminal
CLEAR = "\r\x1b[K"
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"


class _Activity:
    """What is done now, and since when; one for the process, as there is one terminal."""

    what = ""
    since = 0.0


def say(what: str) -> None:
    _Activity.what, _Activity.since = what, time.monotonic()


def can_be_shown() -> bool:
    """Whether there is a terminal whose last line can be taken away again."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def shown_while(what: str, work: Callable[[], T]) -> T:
    say(what)
    line = _StatusLine(sys.stderr)
    sys.stderr = line
    ticking = _Ticking(line.draw)
    try:
        return work()
    finally:
        ticking.stop()
        sys.stderr = line.stream
        line.clear()


class _StatusLine:
    """The terminal, for everybody who writes to stderr: the line is gone before they do."""

    def __init__(self, stream: TextIO) -> None:
        import _thread

        self.stream = stream
        self._lock = _thread.allocate_lock()
        self._is_drawn = False
        self._is_begun = False  # somebody has written a part of a line
        self._frame = 0

    def draw(self) -> None:
        with self._lock:
            if not _is_ours(self.stream):
                self._is_drawn = False  # what stands in the last line now is somebody else's
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
            pass  # it was closed; that is no reason to stop the work


class _Ticking:
    """Calls `draw` from a thread of its own, a second from now and again and again."""

    def __init__(self, draw: Callable[[], None]) -> None:
        import _thread

        self._draw = draw
        # Both are held until then.
        self._stopping, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._stopping.acquire()
        self._ended.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # there is no thread left for it, and it can be done without
            self._ended.release()

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


def _is_ours(stream: TextIO) -> bool:
    """Not while it runs in the background, and another program has the terminal."""
    if not hasattr(os, "tcgetpgrp"):
        return True
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return True  # it is no terminal of a session


def _text(stream: TextIO, frame: int) -> str:
    """Within one line: what goes into the next could not be taken away."""
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
