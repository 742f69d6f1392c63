"""Standard output and error that nobody has to read.

A launcher may stop reading its end of a pipe, and Ctrl+S holds a terminal: whoever writes there waits, and a server
would let all its clients wait. So what goes to a pipe or a terminal is written by a thread, in order; what nobody takes
is kept within a bound, and dropped beyond it. Files are written directly, they always take what comes.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HELD_BYTES = 256 * 1024  # some thousand lines, for a reader that is busy for a moment
LAST_SECONDS = 1.0  # for a reader to take what is left at the end, also on a busy machine
RETRY_SECONDS = 0.05  # where somebody has made the pipe non-blocking, and it is full
DROPPED = b"(some lines were dropped here, because nobody read them)\n"


@contextmanager
def nonblocking_output() -> Iterator[None]:
    """Within this block nothing that is printed or logged waits for its reader."""
    replaced = [
        (name, stream, _Outlet(stream)) for name in ("stdout", "stderr") if _may_wait(stream := getattr(sys, name))
    ]
    for name, stream, outlet in replaced:
        setattr(sys, name, outlet.as_text(stream))
    try:
        yield
    finally:
        for name, stream, outlet in replaced:
            outlet.finish()
            setattr(sys, name, stream)


def _may_wait(stream: TextIO | None) -> bool:
    try:
        if stream is None:  # we were started without
            return False
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # closed, or no file at all
        return False
    # The console of Windows takes text, not bytes, so it is left alone.
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stream.isatty() and sys.platform != "win32")


class _Outlet(io.RawIOBase):
    """Takes bytes at once, and writes them when it can."""

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._handle = stream.fileno()
        self._waiting = bytearray()
        self._writing = False
        self._dropped = False
        self._gone = False  # its reader
        self._changed = threading.Condition()
        threading.Thread(target=self._write_all, name="output", daemon=True).start()

    def as_text(self, stream: TextIO) -> TextIO:
        return io.TextIOWrapper(self, stream.encoding, "backslashreplace", write_through=True)  # type: ignore[type-var]

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._handle

    def isatty(self) -> bool:
        return os.isatty(self._handle)

    def write(self, data: ReadableBuffer) -> int:
        taken = bytes(data)
        with self._changed:
            if len(self._waiting) + len(taken) > HELD_BYTES:
                self._dropped = True
            else:
                self._waiting += taken
                self._changed.notify_all()
        return len(taken)

    def finish(self) -> None:
        """Wait until everything is written, if anybody reads it."""
        with self._changed:
            self._changed.wait_for(lambda: self._gone or not (self._waiting or self._writing), LAST_SECONDS)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._dropped)
                data = bytes(self._waiting) + (DROPPED if self._dropped else b"")
                self._waiting.clear()
                self._writing, self._dropped = True, False
            try:
                # Not through the stream: its lock, held by a thread that waits, would break the end of the process.
                self._write(data)
            except OSError:
                with self._changed:
                    self._gone = True
                    self._changed.notify_all()
                return

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._handle, data) :]
            except BlockingIOError:
                time.sleep(RETRY_SECONDS)
