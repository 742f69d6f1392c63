"""Lines over a pair of pipes, in the event loop: whole ones in, whole ones out, and nobody waits for the other side.

What a server does not take is kept within a bound. Of every line it is known whether the server may have seen a part
of it. What comes is bounded, too: a line that is too long is skipped, and the next one counts again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import IO, TYPE_CHECKING, Protocol

from ...system.log import log
from ..jsonrpc import BUSY, RpcError
from .connection import Lost

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
MAX_LINE_BYTES = 64 * MIB  # a screenshot has some MB, a large file 16; what is longer is no message
MAX_WAITING_BYTES = 64 * MIB  # for a server that reads slowly; one that has left so much does not read at all
DOES_NOT_READ = "The server does not read what it is sent, and too much of it waits already; try again later."


class Line:
    """One that was given to a server. `sent`: it may have seen at least a part of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sent = False


class Outgoing(Protocol):
    """The way to a server."""

    def write(self, data: bytes) -> Line:
        """Send a message, without its line end, now or when there is room. Lost or RpcError(BUSY): nothing went out."""

    def withdraw(self, line: Line) -> bool:
        """Do not send it, if that is still possible."""


class Hearer(Protocol):
    """Who listens to a server."""

    def heard(self, line: bytes) -> None: ...

    def deaf(self) -> None:
        """The server takes nothing any more; what was not sent yet never will be. It may still answer."""

    def ended(self) -> None:
        """The server says nothing any more."""


class PipeLines:
    def __init__(self, hearer: Hearer, broken: Callable[[], None]) -> None:
        """`broken` is called when one of the two directions has come to its end, or both."""
        self._hearer = hearer
        self._broken = broken
        self._splitter = Splitter()
        self._room = True
        self._waiting: deque[Line] = deque()
        self._waiting_bytes = 0
        self.over = asyncio.Event()  # nothing more will be heard

    async def open(self, source: IO[bytes], sink: IO[bytes]) -> None:
        """Begin to listen to `source` and to write to `sink`, before anything else; both belong to us from now on."""
        loop = asyncio.get_running_loop()
        self._writing: asyncio.WriteTransport
        self._reading: asyncio.ReadTransport
        self._writing, _ = await loop.connect_write_pipe(lambda: _Writing(self), sink)
        # So the transport holds one line at most, and what still waits here has certainly not been sent.
        self._writing.set_write_buffer_limits(high=0)
        self._reading, _ = await loop.connect_read_pipe(lambda: _Reading(self), source)

    def write(self, data: bytes) -> Line:
        if self._writing.is_closing() or self.over.is_set():
            raise Lost("The server takes no more messages.", sent=False)
        line = Line(data + b"\n")
        if not self._room:
            if self._waiting and self._waiting_bytes + len(line.data) > MAX_WAITING_BYTES:
                raise RpcError(BUSY, DOES_NOT_READ)
            self._waiting.append(line)
            self._waiting_bytes += len(line.data)
        elif not self._send(line):
            raise Lost("The server takes no more messages.", sent=False)
        return line

    def withdraw(self, line: Line) -> bool:
        if line not in self._waiting:
            return False
        self._waiting.remove(line)
        self._waiting_bytes -= len(line.data)
        return True

    def close_output(self) -> None:
        """Let the server see the end of its input; what it has not taken until now is dropped."""
        if not self._writing.is_closing():
            self._writing.abort()

    def close(self) -> None:
        self.close_output()
        self._reading.close()
        self.took_end()

    def _send(self, line: Line) -> bool:
        self._writing.write(line.data)
        # The transport was empty, so that its first attempt was made just now: if it failed, nothing went out.
        line.sent = not self._writing.is_closing()
        return line.sent

    # what the pipes report

    def took(self, data: bytes) -> None:
        for line in self._splitter.feed(data):
            self._hearer.heard(line)

    def took_end(self) -> None:
        if not self.over.is_set():
            rest = self._splitter.rest()
            if rest:
                self._hearer.heard(rest)
            self.over.set()
            self._hearer.ended()
            self._broken()

    def has_room(self, room: bool) -> None:
        self._room = room
        while self._room and self._waiting:  # the transport says at once when it has had enough
            line = self._waiting.popleft()
            self._waiting_bytes -= len(line.data)
            if not self._send(line):
                return

    def lost_output(self) -> None:
        self._waiting.clear()
        self._hearer.deaf()
        self._broken()


class _Reading(asyncio.Protocol):
    def __init__(self, lines: PipeLines) -> None:
        self._lines = lines

    def data_received(self, data: bytes) -> None:
        self._lines.took(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lines.took_end()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, lines: PipeLines) -> None:
        self._lines = lines

    def pause_writing(self) -> None:
        self._lines.has_room(False)

    def resume_writing(self) -> None:
        self._lines.has_room(True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lines.lost_output()


class Splitter:
    """Bytes as they come, lines as they were meant."""

    def __init__(self, most: int = MAX_LINE_BYTES) -> None:
        self._most = most
        self._parts: list[bytes] = []  # of a line that has not ended
        self._size = 0
        self._skips = False  # it is too long

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that have ended, without those that are blank."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            line = self.rest()
            if line.strip():
                lines.append(line)
        self._add(rest)
        return lines

    def rest(self) -> bytes:
        """What there is of a line that has not ended; the next one begins behind it."""
        line = b"".join(self._parts)
        self._parts.clear()
        self._size, self._skips = 0, False
        return line

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most and not self._skips:
            log.debug(f"the server writes a line of more than {self._most} bytes; it is skipped")
            self._skips = True
            self._parts.clear()
        if part and not self._skips:
            self._parts.append(part)
