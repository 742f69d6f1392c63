"""Writes whole lines to the client, in order and from any thread, without waiting for a client that does not read.

Usually a line fits into the pipe and is written at once. What does not fit, and all that follows, is kept up to a limit
and written by a thread. The descriptor stays blocking, because other processes share it. Cheap to import.
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

FULL_BYTES = 64 * 1024 * 1024  # with this much unread by the client, we stop reading from it: four long messages
GIVE_UP_BYTES = 4 * FULL_BYTES  # the upstream's messages still come; a client that leaves this much unread is given up
CROWDED_BYTES = 8 * 1024 * 1024  # with this much unread, log messages are dropped: they must cost no answer
LOG_MESSAGE = b'{"jsonrpc":"2.0","method":"notifications/message"'  # how `notification_message` begins one
POLLS = hasattr(select, "poll")  # False on Windows, where the thread writes everything
PIECE_BYTES = getattr(select, "PIPE_BUF", 4096)  # a writable pipe takes this much without blocking
JOINED_BYTES = 64 * 1024  # lines that wait for the thread are joined up to this size
RETRY_MS = 1000  # for a full descriptor that another process made non-blocking; `poll` returns earlier as a rule


def own_streams() -> tuple[int, int]:
    """Move standard input and output to other numbers, which no child inherits, so that only MCP uses them.

    From now on, descriptor 0 is empty, and what is written to 1, by a print, a child or C code, goes to stderr.
    """
    if sys.stdin is None or sys.stdout is None:  # then the descriptors 0 and 1 may belong to something else
        message = "Standard input or output is closed, and MCP needs both."
        raise UserError("NoClient", message, "Start 'mcp start' from an AI client, or with both connected.")
    nothing = os.open(os.devnull, os.O_RDWR)  # without a stderr, this gets the number 2 and keeps it
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if nothing != 2:
        os.close(nothing)
    sys.stdout = sys.stderr
    return source, sink


def give_back(sink: int) -> None:
    """Restore standard output, when MCP does not use it any more."""
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
        """`lost` is called once, from any thread, when the client has closed its end or was given up."""
        self._handle = handle
        self._full_bytes = full_bytes
        self._give_up_bytes = give_up_bytes
        self._lost = lost
        self._lock = _thread.allocate_lock()
        self._idle = _thread.allocate_lock()  # held while the thread has something to write
        self.queued: list[bytes] = []  # lines for the next `flush`
        self._waiting: deque[bytearray] = deque()  # data that the thread will write
        self._held = 0  # the number of bytes that the thread will write
        self._dropped = 0  # the number of log messages that were dropped and not told yet
        self._room = None
        if POLLS:
            self._room = select.poll()
            self._room.register(handle, select.POLLOUT)
        self.gone = False  # whether the client has closed its end, or was given up
        self.full = False  # whether the client has left too much unread

    def queue(self, line: bytes) -> None:
        """Queue one message for the next `flush`; line breaks in it are replaced.

        A log message is dropped while the client leaves much unread: a server may log faster than the client reads.
        """
        if self._held > CROWDED_BYTES and line.startswith(LOG_MESSAGE):
            with self._lock:
                self._dropped += 1
            return
        if b"\n" in line:
            line = line.strip().replace(b"\n", b" ")
        self.queued.append(line)

    def write(self, line: bytes) -> None:
        """Write one message now."""
        self.queue(line)
        self.flush()

    def flush(self) -> None:
        """Write the queued lines together, because waking the client for each line would cost more than writing it."""
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
        """Wait until everything is written; return False if that takes longer than `seconds`."""
        self.flush()
        if self._idle.acquire(timeout=seconds):
            self._idle.release()
            return True
        return False

    def _write_what_fits(self, rest: memoryview, room: select.poll) -> memoryview:
        try:
            while rest and room.poll(0):  # any event except "writable" is an error, which the write then raises
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
            log.warn(f"The client has left {self._held:,} bytes unread, so its connection is given up.")
            self._give_up()
            return
        last = self._waiting[-1] if len(self._waiting) > 1 else None  # the first one is being written
        if last is not None and len(last) + len(rest) <= JOINED_BYTES:
            last += rest  # one object per line would take more memory than short lines
        else:
            self._waiting.append(bytearray(rest))
        if len(self._waiting) == 1:
            self._idle.acquire()
            _thread.start_new_thread(self._write_all, ())

    def _write_all(self) -> None:
        """Write the waiting data in a thread, until none is left."""
        while True:
            with self._lock:
                if not self._waiting:
                    dropped, self._dropped = self._dropped, 0
                    self._idle.release()
                    break
                line = self._waiting[0]
            written = self._write_waiting(memoryview(line))
            with self._lock:
                if not written:
                    self._give_up()
                elif self._waiting:  # the client was not given up meanwhile
                    self._held -= len(self._waiting.popleft())
                    self.full = self._held >= self._full_bytes
        if dropped:
            log.warn(f"The client read slowly, so {dropped:,} log messages for it were dropped.")

    def _write_waiting(self, rest: memoryview) -> bool:
        while rest:
            try:
                rest = rest[os.write(self._handle, rest) :]
            except BlockingIOError:
                assert self._room is not None  # this does not happen on Windows
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
