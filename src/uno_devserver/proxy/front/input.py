"""Reads standard input in the main thread, for the life of the process.

Before the engine's event loop runs, the main thread waits here; afterwards the loop waits, in the same thread. An input
that an event loop cannot wait for (pipes on Windows, files, devices) is read by another thread. Cheap to import.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
import time
from collections import deque

from ...protocol.lines import LineSplitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from ...protocol.lines import LineTooLong
else:
    import _signal as signal  # see main.py

MAX_LINE_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024  # the capacity of a pipe
MOST_CHUNKS = 64  # how many chunks the thread reads ahead
FULL_SECONDS = 0.01
SIGNAL_SECONDS = 0.1  # Windows handles Ctrl+C only between two waits for a lock


def tells_closed(platform: str = sys.platform) -> bool:
    """Whether `poll` reports a closed pipe if it is asked for no event.

    Windows has no `poll`. That of macOS reports nothing then, against POSIX (Apple's bug 37537852); there the end is
    noticed by reading and writing.
    """
    return platform not in ("win32", "darwin")


def client_input(handle: int, limit: int = MAX_LINE_BYTES) -> ClientInput:
    return PolledInput(handle, limit) if _can_be_watched(handle) else ThreadedInput(handle, limit)


class ClientInput:
    """Reads lines from a descriptor; `ended` becomes True with the last lines."""

    def __init__(self, handle: int, limit: int) -> None:
        self._handle = handle
        self._splitter = LineSplitter(limit)
        self.ended = False
        self.reads = 0  # the number of reads

    def wait(self, milliseconds: int) -> bool:
        """Wait for input or `wake`; return False if the time is over first."""
        raise NotImplementedError

    def wake(self) -> None:
        """End a `wait`. Safe from any thread."""
        raise NotImplementedError

    def heed_signals(self) -> None:
        """Let signals end a `wait`; otherwise a signal just before it would only be handled when input comes."""

    def read(self) -> list[bytes | LineTooLong]:
        """Return the lines that have come, possibly none. Does not wait."""
        raise NotImplementedError

    def is_closed(self) -> bool:
        """Whether the client has closed the input; there may still be something to read."""
        return False

    def wait_closed(self) -> bool:
        """Block until the client has closed the input; return False at once where only reading would tell."""
        return False

    def attach(self, loop: AbstractEventLoop, readable: Callable[[], None]) -> None:
        """Have the loop, which runs in this thread, call `readable` whenever there is something to read."""
        raise NotImplementedError

    def detach(self, loop: AbstractEventLoop) -> None:
        """Stop calling `readable`."""
        raise NotImplementedError

    def _end(self) -> list[bytes | LineTooLong]:
        self.ended = True
        return self._splitter.finish()


class PolledInput(ClientInput):
    """Reads a pipe or a socket, for which an event loop can wait."""

    def __init__(self, handle: int, limit: int) -> None:
        super().__init__(handle, limit)
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._waking, False)
        self._poll = select.poll()
        self._poll.register(handle, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self._readable = False

    def heed_signals(self) -> None:
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)

    def wait(self, milliseconds: int) -> bool:
        events = dict(self._poll.poll(milliseconds))
        if self._woken in events:
            self._drain()
        self._readable = self._handle in events
        return bool(events)

    def wake(self) -> None:
        try:
            os.write(self._waking, b"\0")
        except BlockingIOError:
            pass  # the pipe is full, so the waiting thread will wake up

    def read(self) -> list[bytes | LineTooLong]:
        if not self._readable:
            return []
        try:
            data = os.read(self._handle, READ_BYTES)
        except BlockingIOError:  # another process has made it non-blocking
            return []
        except OSError:  # a socket whose other end was closed with something unread
            data = b""
        self.reads += 1
        return self._splitter.feed(data) if data else self._end()

    def is_closed(self) -> bool:
        if not tells_closed():
            return False
        closed = select.poll()
        closed.register(self._handle, 0)
        return bool(closed.poll(0))

    def attach(self, loop: AbstractEventLoop, readable: Callable[[], None]) -> None:
        self._readable = True
        loop.add_reader(self._handle, readable)
        loop.add_reader(self._woken, self._drain)

    def detach(self, loop: AbstractEventLoop) -> None:
        loop.remove_reader(self._handle)

    def _drain(self) -> None:
        os.read(self._woken, READ_BYTES)


class ThreadedInput(ClientInput):
    """Reads any other descriptor, in a thread."""

    def __init__(self, handle: int, limit: int) -> None:
        super().__init__(handle, limit)
        self._chunks: deque[bytes] = deque()
        self._quiet = _thread.allocate_lock()  # held until there is input, or `wake` is called
        self._quiet.acquire()
        self._call: tuple[AbstractEventLoop, Callable[[], None]] | None = None
        self._open = _thread.allocate_lock()  # held until the client has closed the input
        self._open.acquire()
        _thread.start_new_thread(self._run, ())

    def wait(self, milliseconds: int) -> bool:
        deadline = time.monotonic() + milliseconds / 1000
        while not self._chunks and (left := deadline - time.monotonic()) > 0:
            if self._quiet.acquire(timeout=min(left, SIGNAL_SECONDS)):
                return True
        return bool(self._chunks)

    def wake(self) -> None:
        try:
            self._quiet.release()
        except RuntimeError:
            pass  # it is awake already

    def read(self) -> list[bytes | LineTooLong]:
        if not self._chunks:
            return []
        data = self._chunks.popleft()
        self.reads += 1
        return self._splitter.feed(data) if data else self._end()

    def wait_closed(self) -> bool:
        with self._open:
            return True

    def attach(self, loop: AbstractEventLoop, readable: Callable[[], None]) -> None:
        self._call = loop, readable
        for _ in range(len(self._chunks)):
            loop.call_soon(readable)

    def detach(self, loop: AbstractEventLoop) -> None:  # noqa: ARG002
        self._call = None

    def _run(self) -> None:
        data = b"\0"
        while data:
            try:
                data = os.read(self._handle, READ_BYTES)
            except OSError:  # a terminal that is gone
                data = b""
            while len(self._chunks) > MOST_CHUNKS:
                time.sleep(FULL_SECONDS)
            self._chunks.append(data)
            call = self._call
            if call is None:
                self.wake()
            else:
                try:
                    call[0].call_soon_threadsafe(call[1])
                except RuntimeError:
                    self.wake()  # the loop has ended, and the main thread is in `wait` again
        self._open.release()


def _can_be_watched(handle: int) -> bool:
    """Whether an event loop can wait for it: pipes, and sockets, which Node gives to its children; not files."""
    if not hasattr(select, "poll"):  # Windows
        return False
    kind = os.fstat(handle).st_mode & 0o170000
    return kind in (0o010000, 0o140000)
