"""The way to the client: whole lines, in order, from any thread, without waiting for a client that does not read.

Usually a line fits into the pipe and is written at once. What does not fit is left to a thread, and so is everything
behind it, within a bound. The descriptor stays blocking: it is shared with the launcher and with wrappers.
Cheap to import.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
from collections import deque

from ...issues import UserError
from ...system.log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# What a client may leave unread before nothing more of it is read: four of the longest messages.
FULL_BYTES = 64 * 1024 * 1024
# What the upstream says meanwhile comes on top. A client that leaves that much will not read again.
GIVE_UP_BYTES = 4 * FULL_BYTES
POLLS = hasattr(select, "poll")  # Windows does not, so there everything is left to the thread
# A pipe that says it is writable takes this much without waiting.
PIECE_BYTES = getattr(select, "PIPE_BUF", 4096)
JOINED_BYTES = 64 * 1024  # of lines that wait for the thread
RETRY_MS = (
    1000  # where another process has made the descriptor non-blocking, and it is full: asking again is only for safety
)


def own_streams() -> tuple[int, int]:
    """Standard input and output under other numbers, which no child inherits: they belong to the protocol alone.

    From now on reading 0 gives nothing, and writing to 1 is writing to stderr, be it by a print, a child or C code.
    """
    if sys.stdin is None or sys.stdout is None:  # the numbers 0 and 1 belong to something else then
        message = "Standard input or output is closed, and MCP is spoken over them."
        raise UserError("NoClient", message, "Start 'mcp start' from an AI client, or with both connected.")
    nothing = os.open(os.devnull, os.O_RDWR)  # where there is no stderr, it gets the number 2 and keeps it
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if nothing != 2:
        os.close(nothing)
    sys.stdout = sys.stderr
    return source, sink


def give_back(sink: int) -> None:
    """Standard output is what it was: MCP is not spoken there any more."""
    os.dup2(sink, 1)
    sys.stdout = sys.__stdout__


class ClientOutput:
    def __init__(
        self,
        handle: int,
        full_bytes: int = FULL_BYTES,
        give_up_bytes: int = GIVE_UP_BYTES,
        *,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """`lost` is called once, from any thread, when the client is gone or was given up."""
        self._handle = handle
        self._full_bytes = full_bytes
        self._give_up_bytes = give_up_bytes
        self._lost = lost
        self._lock = _thread.allocate_lock()
        self._idle = _thread.allocate_lock()  # held while the thread has something to write
        self.queued: list[bytes] = []  # lines for the next `flush`
        self._waiting: deque[bytearray] = deque()  # for the thread
        self._held = 0
        self._room = None
        if POLLS:
            self._room = select.poll()
            self._room.register(handle, select.POLLOUT)
        self.gone = False  # the client, or its end of the pipe
        self.full = False  # it has left too much unread

    def queue(self, line: bytes) -> None:
        """One message, which goes out with the next `flush`; line breaks between its words are taken out."""
        if b"\n" in line:
            line = line.strip().replace(b"\n", b" ")
        self.queued.append(line)

    def write(self, line: bytes) -> None:
        """One message, now."""
        self.queue(line)
        self.flush()

    def flush(self) -> None:
        """Write what was queued. Waking the client for each line would cost more than writing it."""
        if not self.queued:
            return
        with self._lock:
            queued, self.queued = self.queued, []
            queued.append(b"")
            rest = memoryview(b"\n".join(queued))
            if not self.gone and not self._waiting and self._room is not None:
                rest = self._write_what_fits(rest, self._room)
            if rest and not self.gone:
                self._leave(rest)

    def wait(self, seconds: float) -> bool:
        """Whether everything is written, now or within that time."""
        self.flush()
        if self._idle.acquire(timeout=seconds):
            self._idle.release()
            return True
        return False

    def _write_what_fits(self, rest: memoryview, room: select.poll) -> memoryview:
        try:
            while rest and room.poll(0):  # another answer than "writable" is an error, which writing tells
                rest = rest[os.write(self._handle, rest[:PIECE_BYTES]) :]
        except BlockingIOError:
            pass
        except OSError:
            self._lose()
        return rest

    def _leave(self, rest: memoryview) -> None:
        self._held += len(rest)
        self.full = self._held >= self._full_bytes
        if self._held > self._give_up_bytes:
            log.warn(f"The client has left {self._held:,} bytes unread. It is taken for gone.")
            self._give_up()
            return
        last = self._waiting[-1] if len(self._waiting) > 1 else None  # the first one is being written
        if last is not None and len(last) + len(rest) <= JOINED_BYTES:
            last += rest  # an object for each small line would take more memory than the lines
        else:
            self._waiting.append(bytearray(rest))
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
            written = self._write_waiting(memoryview(line))
            with self._lock:
                if not written:
                    self._give_up()
                elif self._waiting:  # it was not given up meanwhile
                    self._held -= len(self._waiting.popleft())
                    self.full = self._held >= self._full_bytes

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
        self._waiting.clear()
        self._held = 0
        self.full = False
        self._lose()

    def _lose(self) -> None:
        if not self.gone:
            self.gone = True
            self._lost()
