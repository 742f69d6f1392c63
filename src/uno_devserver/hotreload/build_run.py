"""Runs one build, limited in time and output. Its processes end with this one, even if this one is killed.

The output is written to a log file while the build runs, and is returned if the build fails.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from ..system.event_loop import run_in_thread, run_in_thread_to_end
from ..system.log import log
from ..system.run import run
from ..system.state_files import name_for, open_own
from ..system.text import VisibleOutput, decode_output
from .die_with_parent import NEEDED, guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .build_command import BuildCommand

KEPT_BYTES = 4 * 1024 * 1024  # of an output: half from its start, half from its end; errors have a few KB
LOGGED_BYTES = 16 * 1024 * 1024  # of an output in the log file
LONGEST_LINE = 2000  # in characters, for our own log
# Errors of the .NET SDK about files of a restore, for example packages that were removed since.
_LACKS_PACKAGES = re.compile(r"error (?:NETSDK10(?:04|05|47|60|63|64)|NU\d{4})\b")
# Colours and cursor movements: some settings make compilers print them into pipes, too.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def log_path(state: str, root: str) -> str:
    """The log file of the builds of a package, with the output of the last one."""
    return os.path.join(state, "logs", f"build-{name_for(root)}.log")


async def run_build(build: BuildCommand, environ: Mapping[str, str], log_file: str, seconds: float) -> str | None:
    """Run a build that has no `problem`; return None if it succeeds, otherwise its output and the reason.

    If the caller is cancelled, the build is ended first.
    """
    log.info(f"{build.named} begins in {build.folder}.")
    begun = time.monotonic()
    printed = BuildOutput(log_file)
    try:
        outcome = await run_in_thread_to_end(
            lambda wanted: run(
                _ending_with_us(build.line),
                cwd=build.folder,
                environ=environ,
                seconds=seconds,
                keep_bytes=0,
                hear=printed.add,
                go_on=wanted,
                input_stays=NEEDED,
                spares_helpers=build.leaves_helpers,
            )
        )
    except asyncio.CancelledError:
        log.info(f"{build.named} was cancelled after {time.monotonic() - begun:.1f} s.")
        raise
    finally:
        printed.close()
    took = f"after {time.monotonic() - begun:.1f} s"
    if outcome.succeeded:
        log.debug(f"{build.named} is done {took}.")
        if build.restore is not None:
            await run_in_thread(build.restore.note)
        return None
    if build.with_restore is not None and _LACKS_PACKAGES.search(printed.text()):
        log.info(f"{build.named} is repeated with a restore, because packages are missing.")
        return await run_build(build.with_restore, environ, log_file, seconds)
    why = f"ended with exit code {outcome.exit_code}" if outcome.exit_code is not None else outcome.problem
    log.warn(f"{build.named} {why} {took}; its output is in {log_file}.")
    parts = (printed.text(), f"{build.named} {why}.", build.hint)
    return "\n".join(part for part in parts if part)


def _ending_with_us(line: Sequence[str]) -> Sequence[str]:
    """The command line of a build that ends with this process.

    That of a program that cannot be run is unchanged, so that the error names that program.
    """
    return guarded(line) if NEEDED and os.access(line[0], os.X_OK) else line


class BuildOutput:
    """Writes the output of a program to a file and to our log, and keeps its beginning and end."""

    def __init__(self, log_file: str) -> None:
        self._log_file = log_file
        self._file = _opened(log_file)
        self._visible = VisibleOutput()
        self._room = LOGGED_BYTES
        self._head = bytearray()
        self._tail = bytearray()
        self._line = bytearray()
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()  # the reading thread goes on if processes of the build survive it and print

    def add(self, chunk: bytes) -> None:
        with self._lock:
            if not self._closed:
                self._keep(chunk)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._line:
                self._log(b"\n")
            if self._file is not None:
                self._file.close()

    def text(self) -> str:
        """The whole output, or its start and its end if it is long; call this after `close`."""
        tail = self._tail[-KEPT_BYTES // 2 :]
        left_out = self._count - len(self._head) - len(tail)
        between = b""
        if left_out > 0:
            between = f"\n[… {left_out:,} bytes left out; see {self._log_file} …]\n".encode()
        return _ESCAPES.sub("", decode_output(bytes(self._head + between + tail))).strip()

    def _keep(self, chunk: bytes) -> None:
        logged = chunk[: self._room]
        text = self._visible.decode(logged).encode()[: self._room]
        self._room -= len(text)
        self._write(text)
        self._log(logged)
        self._count += len(chunk)
        room = KEPT_BYTES // 2 - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > KEPT_BYTES:  # twice the kept size: cutting at each chunk would copy everything
            del self._tail[: -KEPT_BYTES // 2]

    def _write(self, chunk: bytes) -> None:
        if self._file is not None:
            try:
                self._file.write(chunk)
            except OSError as error:
                log.debug(f"{self._log_file} cannot be written any more: {error}")
                self._file = None

    def _log(self, chunk: bytes) -> None:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            log.debug(f"build: {decode_output(bytes(self._line + line))[:LONGEST_LINE].rstrip()}")
            self._line.clear()
        self._line += rest[: max(0, LONGEST_LINE - len(self._line))]


def _opened(path: str) -> BinaryIO | None:
    try:
        handle = open_own(path)
        os.ftruncate(handle, 0)
        return os.fdopen(handle, "wb", buffering=0)
    except OSError as error:  # a build works with a read-only home folder too
        log.debug(f"a build is not logged into {path}: {error}")
        return None
