"""Standard output and error that never block the writer.

A launcher may stop reading its end of a pipe, and Ctrl+S stops a terminal. A server that writes there would block, and
its clients would wait. Therefore a thread writes the output to a pipe or a terminal, in order. Output that is not read
is kept up to a limit, and dropped beyond it. Files are written directly.
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

HELD_BYTES = 256 * 1024  # a few thousand lines, for a reader that is busy for a moment
LAST_SECONDS = 1.0  # the time that a reader has at the end for the rest, even on a busy machine
RETRY_SECONDS = 0.05  # the pause if the pipe is full, and another program has made it non-blocking
DROPPED = b"(some lines were dropped here, because nobody read them)\n"


@contextmanager
def nonblocking_output() -> Iterator[None]:
    """Within this block, printing and logging never wait for the reader of the output."""
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
        if stream is None:  # this process was started without that stream
            return False
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # closed, or not a file
        return False
    # The console of Windows takes text instead of bytes, so it is not replaced.
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stream.isatty() and sys.platform != "win32")


class _Outlet(io.RawIOBase):
    """Accepts bytes at once, and writes them to the stream's handle from a thread."""

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._handle = stream.fileno()
        self._waiting = bytearray()
        self._writing = False
        self._dropped = False
        self._gone = False  # the reader has closed its end
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
        """Wait until everything is written, for a limited time."""
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
                # Not through the stream, because a blocked thread would hold the stream's lock when the process ends.
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
