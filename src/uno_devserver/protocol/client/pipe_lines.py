"""Whole lines over a pair of pipes, in the event loop, without waiting for the other side.

Lines that the server does not read are kept, up to a limit. `sent` of a line says whether the server may have seen a
part of it: only then is the outcome of its request unknown. Lines that are queued in one turn of the loop are written
together.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, TYPE_CHECKING, Protocol

from ..jsonrpc import BUSY, RpcError
from ..lines import LineSplitter, LineTooLong
from .connection import MAX_ANSWER_MIB, ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
MAX_LINE_BYTES = MAX_ANSWER_MIB * MIB
MAX_WAITING_BYTES = 64 * MIB  # for a server that reads slowly; if more waits, it does not read at all
PIPE_BYTES = 64 * 1024  # the capacity of a pipe
DOES_NOT_READ = "The server does not read what it is sent, and too much of it waits already; try again later."


class OutgoingLine:
    """A message to a server, with its line end. `sent`: whether the server may have seen a part of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sent = False


class Sendable(Protocol):
    """A line that can be queued: an OutgoingLine, or a PendingCall, which contains its own line."""

    data: bytes
    sent: bool


class LineListener(Protocol):
    def received(self, lines: list[bytes | LineTooLong]) -> None:
        """Called with the lines that came together."""

    def output_lost(self) -> None:
        """The server has closed its input: lines that wait will not be sent. It may still answer those it got."""

    def ended(self) -> None:
        """The server has closed its output."""


class PipeLines:
    def __init__(self, broken: Callable[[], None]) -> None:
        """`broken` is called for each direction that has ended."""
        self._listener: LineListener
        self._broken = broken
        self._splitter = LineSplitter(MAX_LINE_BYTES)
        self._queued: list[Sendable] = []  # lines for the next `flush`
        self._waiting: dict[Sendable, None] = {}  # lines that wait for room in the pipe, in order
        self._waiting_bytes = 0
        self._rest: bytes | memoryview = b""  # the rest of a line that the pipe has taken in part
        self._ends: _RawPipes | _Transports
        self._ended = False
        self.over = asyncio.Event()  # set when nothing more will be received

    async def open(self, source: IO[bytes], sink: IO[bytes], listener: LineListener) -> None:
        """Begin to read from `source`; sending is possible afterwards. This object owns both files from now on."""
        self._listener = listener
        self._ends = _RawPipes(self, source, sink) if os.name == "posix" else _Transports(self)
        await self._ends.open(source, sink)

    # --- sending

    def queue(self, line: Sendable) -> None:
        """Send a line with the next `flush`. Raises ConnectionLost or RpcError(BUSY) if it cannot be sent."""
        if self._ends.closed or self._ended:
            raise ConnectionLost("The server takes no more messages.", sent=False)
        if self._waiting_bytes and self._waiting_bytes + len(line.data) > MAX_WAITING_BYTES:
            raise RpcError(BUSY, DOES_NOT_READ)
        self._queued.append(line)

    def flush(self) -> None:
        """Write the queued lines, as far as there is room. A server that is gone is reported by `output_lost`."""
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
        """Send a message, given without its line end. Like `queue` and `flush`, but raises if the server is gone."""
        line = OutgoingLine(data + b"\n")
        self.queue(line)
        self.flush()
        if not line.sent and self._ends.closed:
            raise ConnectionLost("The server takes no more messages.", sent=False)
        return line

    def withdraw(self, line: Sendable) -> bool:
        """Remove a line that waits for room; return False if it does not wait."""
        if line not in self._waiting:
            return False
        del self._waiting[line]
        self._waiting_bytes -= len(line.data)
        return True

    def close_output(self) -> None:
        """Close the server's input; lines that wait are dropped."""
        self._ends.close_output()

    def close(self) -> None:
        self._ends.close_output()
        self._ends.close_input()
        self.input_ended()

    def _keep_rest(self, lines: list[Sendable], written: int) -> None:
        """Record that the pipe has taken `written` bytes of these lines; the others are put before all that wait."""
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

    # --- called by the pipes

    def received(self, data: bytes) -> None:
        self._listener.received(self._splitter.feed(data))

    def input_ended(self) -> None:
        if not self.over.is_set():
            self._listener.received(self._splitter.finish())
            self._ended = True
            self.over.set()
            self._listener.ended()
            self._broken()

    def has_room(self) -> None:
        """Write more: first the rest of a line, then as many of the waiting lines as a pipe takes at once."""
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
        self._listener.output_lost()
        self._broken()


class _RawPipes:
    """Pipes as file descriptors: a write returns how many bytes the pipe has taken."""

    def __init__(self, lines: PipeLines, source: IO[bytes], sink: IO[bytes]) -> None:
        self._lines = lines
        self._source, self._sink = source, sink
        self._in, self._out = source.fileno(), sink.fileno()
        self._loop = asyncio.get_running_loop()
        self._reads = False
        self.closed = False  # whether the output is closed

    async def open(self, source: IO[bytes], sink: IO[bytes]) -> None:  # noqa: ARG002
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        # The output becomes readable when the server closes its end.
        self._loop.add_reader(self._out, self.close_output)
        self._loop.add_reader(self._in, self._read)
        self._reads = True

    def write(self, data: bytes | memoryview) -> int:
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
            self._lines.received(data)
        else:
            self.close_input()
            self._lines.input_ended()

    def _has_room(self) -> None:
        self._lines.has_room()
        if not self.closed and not self._lines.wants_room:
            self._loop.remove_writer(self._out)


class _Transports:
    """asyncio's pipes, for Windows. A transport keeps what the pipe does not take, so lines are given one by one."""

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
            # The transport was empty, so it has just tried to write this: if that failed, nothing was sent.
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
        self._lines.received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lines.input_ended()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, pipes: _Transports) -> None:
        self._pipes = pipes

    def pause_writing(self) -> None:
        self._pipes.has_room(False)

    def resume_writing(self) -> None:
        self._pipes.has_room(True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._pipes.lost()
