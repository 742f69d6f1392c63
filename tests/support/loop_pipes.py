"""Pipes of which an event loop has one end, and a test the other: those of Windows differ from what `os.pipe` makes."""

from __future__ import annotations

import os
import sys
from typing import IO, cast

READ_BYTES = 1 << 20


def pipe_from_loop() -> tuple[int, IO[bytes]]:
    """A descriptor that the test reads, and the end that a loop writes to."""
    if sys.platform == "win32":
        import msvcrt
        from asyncio.windows_utils import PipeHandle, pipe

        # Both ways, as asyncio makes it for the input of a process: a loop learns by reading that the other end went.
        reading, writing = pipe(overlapped=(False, True), duplex=True)
        return msvcrt.open_osfhandle(reading, os.O_BINARY), cast("IO[bytes]", PipeHandle(writing))
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    return reading, os.fdopen(writing, "wb", 0)


def pipe_to_loop() -> tuple[IO[bytes], int]:
    """The end that a loop reads, and a descriptor to which the test writes."""
    if sys.platform == "win32":
        import msvcrt
        from asyncio.windows_utils import PipeHandle, pipe

        reading, writing = pipe(overlapped=(True, False))
        return cast("IO[bytes]", PipeHandle(reading)), msvcrt.open_osfhandle(writing, os.O_BINARY)
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), writing


def read_at_once(reading: int) -> bytes:
    """What has come through a pipe; BlockingIOError means that nothing has, and b"" that nothing will."""
    if sys.platform == "win32":
        import _winapi
        import msvcrt

        try:
            waiting = _winapi.PeekNamedPipe(msvcrt.get_osfhandle(reading), 0)[0]
        except BrokenPipeError:
            return b""
        if not waiting:
            raise BlockingIOError
    return os.read(reading, READ_BYTES)
