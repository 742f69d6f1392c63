"""The output file of a child that ends with this process: bounded in size, and safe to show on a terminal.

The child prints into a pipe. A thread reads it to its end, so that the child never waits for long, and writes what is
within the limits to the file. A Host cannot print into such a pipe, because it outlives this process.
"""

from __future__ import annotations

import _thread
import os
import time
from collections import deque

from ..system.log import log
from ..system.text import VisibleOutput
from .child_process import Output

FILE_BYTES = 16 * 1024 * 1024  # some servers print a line for each request, for months; the first half is kept
SECOND_BYTES = 2 * 1024 * 1024  # kept of a second, as read plus as written; the rest must cost neither time nor disk
LAST_BYTES = 64 * 1024  # of what is left out, kept: how a server ended is in its last lines
READ_BYTES = 64 * 1024  # the size of a pipe
MOST_ARRIVALS = 1000  # times that are remembered: of output that comes all day, those of the last hours
ARRIVAL_SECONDS = 0.1  # between two of them
PAUSE_SECONDS = 0.001  # between two reads of output that is left out; a child can still print 50 MB per second


class BoundedOutput(Output):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._lock = _thread.allocate_lock()
        self._closed = False
        self._visible = VisibleOutput()
        self._recent = b""  # the last bytes that were written
        self._arrivals: deque[tuple[int, float]] = deque(maxlen=MOST_ARRIVALS)
        self._second_ends = 0.0
        self._room = 0  # how many bytes can be written in this second
        self._left_out = 0  # how many bytes were left out since the last write
        self._last = b""  # the last of these
        self._drained = _thread.allocate_lock()  # held while the pipe of the last child is open

    def sink(self) -> int:
        source, sink = os.pipe()
        self._drained = drained = _thread.allocate_lock()
        drained.acquire()
        _thread.start_new_thread(self._drain, (source, drained))
        return sink

    def close(self) -> None:
        with self._lock:
            self._closed = True
            super().close()

    def read(self, start: int, count: int) -> bytes:
        with self._lock:  # a write in between would move the position
            return super().read(start, count)

    def arrivals(self) -> list[tuple[int, float]]:
        """Positions in the file, and when what follows each of them was written."""
        with self._lock:
            return list(self._arrivals)

    def wait(self, seconds: float) -> None:
        """Wait until all that the last child printed is written, but not for processes that keep its pipe open."""
        drained = self._drained  # another child may be started meanwhile
        if drained.acquire(timeout=seconds):
            drained.release()

    def add(self, printed: bytes) -> bool:
        """Write this at the end of the file; returns False if it was left out."""
        with self._lock:
            if time.monotonic() >= self._second_ends:
                self._begin_second()
            if self._room > 0:
                self._room -= len(printed)  # besides what is written of it: colours are not
                self._write(self._visible.decode(printed).encode())
                return True
            self._left_out += len(printed)
            self._last = (self._last + printed)[-LAST_BYTES:]
            return False

    def flush(self, *, ended: bool = False) -> None:
        """Write the last of what was left out, if the second is over or the child has ended."""
        if self._lock.acquire(blocking=ended):  # while another thread writes, there is nothing to do
            try:
                if self._left_out and (ended or time.monotonic() >= self._second_ends):
                    self._begin_second()
            finally:
                self._lock.release()

    def _drain(self, source: int, drained: _thread.LockType) -> None:
        try:
            while printed := os.read(source, READ_BYTES):
                if not self.add(printed):
                    time.sleep(PAUSE_SECONDS)
        finally:
            os.close(source)
            self.flush(ended=True)
            drained.release()

    def _begin_second(self) -> None:
        self._second_ends, self._room = time.monotonic() + 1, SECOND_BYTES
        last, lost = self._last, self._left_out - len(self._last)
        self._last, self._left_out = b"", 0
        if last:
            self._write((_mark(lost) if lost else b"") + self._visible.decode(last).encode())

    def _write(self, text: bytes) -> None:
        self._room -= len(text)
        if self._closed:
            return
        try:
            size, kept = self.size(), FILE_BYTES // 2
            if size + len(text) > FILE_BYTES:
                text = _mark(size - kept - len(self._recent)) + self._recent + text
                os.ftruncate(self.handle, kept)
                size = kept
                self._arrivals.clear()
            now = time.time()
            if not self._arrivals or now - self._arrivals[-1][1] >= ARRIVAL_SECONDS:
                self._arrivals.append((size, now))
            os.write(self.handle, text)
        except OSError as error:
            log.debug(f"{self.path} cannot be written: {error}")
        self._recent = (self._recent + text)[-LAST_BYTES:]


def _mark(count: int) -> bytes:
    return f"\n[… {count:,} bytes left out …]\n".encode()
