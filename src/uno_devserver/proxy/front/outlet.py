"""The way to the client: whole lines, in order, from any thread; nobody waits for a client that does not read.

Usually a line fits into the pipe and is written at once. What does not fit is left to a thread, and so is everything
behind it, within a bound. The descriptor stays blocking: it is shared with whoever launched us, and with wrappers.
Lines of one turn of the engine's loop are written together: to wake the client for each costs more than to write it.
Cheap to import.
"""

from __future__ import annotations

import _thread
import os
import select
from collections import deque

from ...system.log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# What a client may leave unread before we read nothing more of it: four of the longest messages.
FULL_BYTES = 64 * 1024 * 1024
# What the upstream says meanwhile comes on top. A client that leaves that much will not read again.
GIVE_UP_BYTES = 4 * FULL_BYTES
POLLS = hasattr(select, "poll")  # Windows does not, so there everything is left to the thread
# A pipe that says it is writable takes this much without waiting.
PIECE_BYTES = getattr(select, "PIPE_BUF", 4096)
RETRY_MS = 1000  # where somebody has made the descriptor non-blocking, and it is full: asking again is only for safety


class Outlet:
    def __init__(self, handle: int, full_bytes: int = FULL_BYTES, give_up_bytes: int = GIVE_UP_BYTES) -> None:
        self._handle = handle
        self._full_bytes = full_bytes
        self._give_up_bytes = give_up_bytes
        self._lock = _thread.allocate_lock()
        self._idle = _thread.allocate_lock()  # held while the thread has something to write
        self._waiting: deque[memoryview] = deque()
        self._held = 0
        self._loop: AbstractEventLoop | None = None
        self._thread: int | None = None  # of the loop
        self._gathered: list[bytes] = []  # in its present turn
        self._room = None
        if POLLS:
            self._room = select.poll()
            self._room.register(handle, select.POLLOUT)
        self.gone = False  # the client, or its end of the pipe

    @property
    def full(self) -> bool:
        return self._held >= self._full_bytes

    def write(self, line: bytes) -> None:
        """One message; line breaks between its words are taken out, the one at its end is added."""
        if b"\n" in line:
            line = line.strip().replace(b"\n", b" ")
        with self._lock:
            self._gathered += (line, b"\n")
            if self._loop is None or self._thread != _thread.get_ident() or len(line) > PIECE_BYTES:
                self._write_gathered()
            elif len(self._gathered) == 2:
                try:
                    self._loop.call_soon(self.flush)
                except RuntimeError:  # it has ended, and its thread has a last word
                    self._write_gathered()

    def gather(self, loop: AbstractEventLoop | None) -> None:
        """From now on together what is written in one turn of this loop, whose thread it is; None: no longer."""
        self._loop, self._thread = loop, _thread.get_ident()
        self.flush()

    def flush(self) -> None:
        """From any thread: nothing waits for the end of a turn."""
        with self._lock:
            self._write_gathered()

    def wait(self, seconds: float) -> bool:
        """Whether everything is written, now or within that time."""
        self.flush()
        if self._idle.acquire(timeout=seconds):
            self._idle.release()
            return True
        return False

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        rest = memoryview(b"".join(self._gathered))
        self._gathered.clear()
        if not self.gone and not self._waiting:
            rest = self._write_what_fits(rest)
        if rest and not self.gone:
            self._leave(rest)

    def _write_what_fits(self, rest: memoryview) -> memoryview:
        try:
            while rest and self._takes_more():
                rest = rest[os.write(self._handle, rest[:PIECE_BYTES]) :]
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
        return rest

    def _takes_more(self) -> bool:
        # Another answer than "writable" is an error, which writing tells.
        return self._room is not None and bool(self._room.poll(0))

    def _leave(self, rest: memoryview) -> None:
        self._held += len(rest)
        if self._held > self._give_up_bytes:
            log.warn(f"The client has left {self._held:,} bytes unread. It is taken for gone.")
            self._give_up()
            return
        self._waiting.append(rest)
        if len(self._waiting) == 1:
            self._idle.acquire()
            _thread.start_new_thread(self._write_all, ())

    def _write_all(self) -> None:
        """In a thread of its own, as long as there is something to write."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._idle.release()
                    return
                line = self._waiting[0]
            written = self._write_waiting(line)
            with self._lock:
                if not written:
                    self._give_up()
                elif self._waiting:  # nobody has given up meanwhile
                    self._held -= len(self._waiting.popleft())

    def _write_waiting(self, rest: memoryview) -> bool:
        while rest:
            try:
                rest = rest[os.write(self._handle, rest) :]
            except BlockingIOError:
                assert self._room is not None  # Windows has no such descriptors
                self._room.poll(RETRY_MS)
            except OSError:
                return False
        return True

    def _give_up(self) -> None:
        self.gone = True
        self._waiting.clear()
        self._held = 0
