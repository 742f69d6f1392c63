"""Lines over a pair of pipes, in the event loop: whole ones in, whole ones out, and nobody waits for the other side.

What the server does not take is kept within a bound. Of every line it is known whether the server may have seen a part
of it: only then the outcome of its request is unknown. Lines that are queued in one turn of the loop are written
together.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, TYPE_CHECKING, Protocol

from ..jsonrpc import BUSY, RpcError
from ..lines import LineSplitter, LineTooLong
from .connection import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
MAX_LINE_BYTES = 64 * MIB  # a screenshot has some MB, a large file 16; what is longer is no message
MAX_WAITING_BYTES = 64 * MIB  # for a server that reads slowly; one that has left so much does not read at all
PIPE_BYTES = 64 * 1024  # what a pipe holds
DOES_NOT_READ = "The server does not read what it is sent, and too much of it waits already; try again later."


class OutgoingLine:
    """A message on its way to a server, with its line end. `sent`: the server may have seen at least a part of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sent = False


class Sendable(Protocol):
    """What can be queued: a Line, or a call that is its own line."""

    data: bytes
    sent: bool


class LineListener(Protocol):
    """Who listens to a server."""

    def heard(self, lines: list[bytes | LineTooLong]) -> None:
        """The lines that came at once."""

    def deaf(self) -> None:
        """The server takes nothing any more; what was not sent yet never will be. It may still answer."""

    def ended(self) -> None:
        """The server says nothing any more."""


class PipeLines:
    def __init__(self, hearer: LineListener, broken: Callable[[], None]) -> None:
        """`broken` is called when one of the two directions has come to its end, or both."""
        self._hearer = hearer
        self._broken = broken
        self._splitter = LineSplitter(MAX_LINE_BYTES)
        self._queued: list[Sendable] = []  # in this turn of the loop
        self._waiting: dict[Sendable, None] = {}  # for room in the pipe, in their order
        self._waiting_bytes = 0
        self._rest: bytes | memoryview = b""  # of a line that the pipe has taken a part of
        self._ends: _RawPipes | _Transports
        self._ended = False
        self.over = asyncio.Event()  # nothing more will be heard

    async def open(self, source: IO[bytes], sink: IO[bytes]) -> None:
        """Begin to listen to `source` and to write to `sink`, before anything else; both belong to us from now on."""
        self._ends = _RawPipes(self, source, sink) if os.name == "posix" else _Transports(self)
        await self._ends.open(source, sink)

    # What is said to the server.

    def queue(self, line: Sendable) -> None:
        """Send it with the next `flush`, now or when there is room. Lost or RpcError(BUSY): nothing goes out."""
        if self._ends.closed or self._ended:
            raise ConnectionLost("The server takes no more messages.", sent=False)
        if self._waiting_bytes and self._waiting_bytes + len(line.data) > MAX_WAITING_BYTES:
            raise RpcError(BUSY, DOES_NOT_READ)
        self._queued.append(line)

    def flush(self) -> None:
        """Write what was queued. A server that is gone by now is reported by `deaf`."""
        queued = self._queued
        if not queued:
            return
        self._queued = []
        if self._waiting or self._rest:
            self._wait_for_room(queued)
            return
        data = queued[0].data if len(queued) == 1 else b"".join([line.data for line in queued])
        written = self._ends.write(data)
        if written == len(data):
            for line in queued:
                line.sent, line.data = True, b""
        else:
            self._keep_rest(queued, written)

    def write(self, data: bytes) -> OutgoingLine:
        """Send a message, without its line end; like `queue` and `flush`, but it says at once if the server is gone."""
        line = OutgoingLine(data + b"\n")
        self.queue(line)
        self.flush()
        if not line.sent and self._ends.closed:
            raise ConnectionLost("The server takes no more messages.", sent=False)
        return line

    def withdraw(self, line: Sendable) -> bool:
        """Do not send it, if that is still possible."""
        if line not in self._waiting:
            return False
        del self._waiting[line]
        self._waiting_bytes -= len(line.data)
        return True

    def close_output(self) -> None:
        """Let the server see the end of its input; what it has not taken until now is dropped."""
        self._ends.close_output()

    def close(self) -> None:
        self._ends.close_output()
        self._ends.close_input()
        self.took_end()

    def _keep_rest(self, lines: list[Sendable], written: int) -> None:
        """The pipe has taken so many bytes of these lines; what it has not taken comes before all that waits."""
        for number, line in enumerate(lines):
            if written <= 0:
                self._waiting = {**dict.fromkeys(lines[number:]), **self._waiting}
                self._waiting_bytes += sum(len(line.data) for line in lines[number:])
                return
            data, line.data, line.sent = line.data, b"", True
            if written < len(data):
                self._rest = memoryview(data)[written:]
            written -= len(data)

    def _wait_for_room(self, lines: list[Sendable]) -> None:
        self._waiting.update(dict.fromkeys(lines))
        self._waiting_bytes += sum(len(line.data) for line in lines)

    # What the pipes report.

    def took(self, data: bytes) -> None:
        self._hearer.heard(self._splitter.feed(data))

    def took_end(self) -> None:
        if not self.over.is_set():
            self._hearer.heard(self._splitter.finish())
            self._ended = True
            self.over.set()
            self._hearer.ended()
            self._broken()

    def has_room(self) -> None:
        """The pipe takes more: first the rest of a line, then lines that wait, as many as a pipe takes at once."""
        if self._rest:
            self._rest = self._rest[self._ends.write(self._rest) :]
        if self._rest or not self._waiting:
            return
        lines: list[Sendable] = []
        size = 0
        for line in self._waiting:
            if size >= PIPE_BYTES:
                break
            lines.append(line)
            size += len(line.data)
        for line in lines:
            del self._waiting[line]
        self._waiting_bytes -= size
        self._keep_rest(lines, self._ends.write(b"".join([line.data for line in lines])))

    @property
    def wants_room(self) -> bool:
        return bool(self._rest or self._waiting)

    def lost_output(self) -> None:
        self._waiting.clear()
        self._waiting_bytes, self._rest = 0, b""
        self._hearer.deaf()
        self._broken()


class _RawPipes:
    """The descriptors themselves: so it is known how much of a write the pipe has taken."""

    def __init__(self, lines: PipeLines, source: IO[bytes], sink: IO[bytes]) -> None:
        self._lines = lines
        self._source, self._sink = source, sink
        self._in, self._out = source.fileno(), sink.fileno()
        self._loop = asyncio.get_running_loop()
        self._reads = False
        self.closed = False  # the way to the server

    async def open(self, source: IO[bytes], sink: IO[bytes]) -> None:  # noqa: ARG002
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        # The end that is written to becomes readable when the server closes its own.
        self._loop.add_reader(self._out, self.close_output)
        self._loop.add_reader(self._in, self._read)
        self._reads = True

    def write(self, data: bytes | memoryview) -> int:
        """How many bytes the pipe took."""
        try:
            written = 0 if self.closed else os.write(self._out, data)
        except BlockingIOError:
            written = 0
        except OSError:
            self.close_output()
            return 0
        if written < len(data) and not self.closed:
            self._loop.add_writer(self._out, self._has_room)
        return written

    def close_output(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._out)
            self._loop.remove_writer(self._out)
            self._sink.close()
            self._loop.call_soon(self._lines.lost_output)

    def close_input(self) -> None:
        if self._reads:
            self._reads = False
            self._loop.remove_reader(self._in)
            self._source.close()

    def _read(self) -> None:
        try:
            data = os.read(self._in, PIPE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._lines.took(data)
        else:
            self.close_input()
            self._lines.took_end()

    def _has_room(self) -> None:
        self._lines.has_room()
        if not self.closed and not self._lines.wants_room:
            self._loop.remove_writer(self._out)


class _Transports:
    """asyncio's pipes, for Windows. A transport keeps what the pipe does not take, so it is given line by line."""

    def __init__(self, lines: PipeLines) -> None:
        self._lines = lines
        self._writing: asyncio.WriteTransport
        self._reading: asyncio.ReadTransport
        self._room = True

    @property
    def closed(self) -> bool:
        return self._writing.is_closing()

    async def open(self, source: IO[bytes], sink: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self._writing, _ = await loop.connect_write_pipe(lambda: _Writing(self), sink)
        self._writing.set_write_buffer_limits(high=0)
        self._reading, _ = await loop.connect_read_pipe(lambda: _Reading(self._lines), source)

    def write(self, data: bytes | memoryview) -> int:
        assert isinstance(data, bytes)  # there is never a rest of a line
        taken = 0
        while taken < len(data) and self._room and not self.closed:
            end = data.find(b"\n", taken) + 1
            self._writing.write(data[taken:end])
            # The transport was empty, so that its first attempt was made just now: if it failed, nothing went out.
            taken = taken if self.closed else end
        return taken

    def close_output(self) -> None:
        if not self.closed:
            self._writing.abort()

    def close_input(self) -> None:
        self._reading.close()

    def has_room(self, room: bool) -> None:
        self._room = room
        while self._room and self._lines.wants_room and not self.closed:
            self._lines.has_room()

    def lost(self) -> None:
        self._lines.lost_output()


class _Reading(asyncio.Protocol):
    def __init__(self, lines: PipeLines) -> None:
        self._lines = lines

    def data_received(self, data: bytes) -> None:
        self._lines.took(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lines.took_end()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, pipes: _Transports) -> None:
        self._pipes = pipes

    def pause_writing(self) -> None:
        self._pipes.has_room(False)

    def resume_writing(self) -> None:
        self._pipes.has_room(True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._pipes.lost()
