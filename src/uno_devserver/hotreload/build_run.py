"""One run of a build: bounded in time and output, heard while it runs, and gone with all that it started.

What it prints goes into a log file as it comes, and is kept for whoever has to mend the code. Only cancelling it is an
exception; it has ended then.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from ..system.files import decode, make_folders
from ..system.log import log
from ..system.run import run
from ..system.state_files import name_for
from ..system.threads import run_in_thread_to_end
from .die_with_parent import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .build_command import BuildCommand

KEPT_BYTES = 4 * 1024 * 1024  # of an output, half from its beginning and half from its end; errors have some KB
LOGGED_BYTES = 16 * 1024 * 1024  # of an output in the log file
LONGEST_LINE = 2000  # characters, in our own log
# Colours and cursor movements: compilers print them into pipes too, where a setting says so.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


def log_path(state: str, root: str) -> str:
    """Where the builds of a package print to; the last one is in it."""
    return os.path.join(state, "logs", f"build-{name_for(root)}.log")


async def run_build(build: BuildCommand, environ: Mapping[str, str], log_file: str, seconds: float) -> str | None:
    """Of one that can run. None: it went well. Else what it printed, with what else there is to say."""
    wanted = True

    def give_up() -> None:
        nonlocal wanted
        wanted = False

    log.info(f"{build.named} begins in {build.folder}.")
    begun = time.monotonic()
    printed = BuildOutput(log_file)
    try:
        outcome = await run_in_thread_to_end(
            lambda: run(
                _ending_with_us(build.line),
                cwd=build.folder,
                environ=environ,
                seconds=seconds,
                keep_bytes=0,
                hear=printed.add,
                go_on=lambda: wanted,
                input_stays=True,
            ),
            give_up,
        )
    finally:
        printed.close()
        if not wanted:
            log.info(f"{build.named} was given up after {time.monotonic() - begun:.1f} s.")
    took = f"after {time.monotonic() - begun:.1f} s"
    if outcome.succeeded:
        log.debug(f"{build.named} is done {took}.")
        return None
    why = f"ended with exit code {outcome.exit_code}" if outcome.exit_code is not None else outcome.problem
    log.warn(f"{build.named} {why} {took}; what it printed is in {log_file}.")
    parts = (printed.text(), f"{build.named} {why}.", build.hint)
    return "\n".join(part for part in parts if part)


def _ending_with_us(line: Sequence[str]) -> Sequence[str]:
    """Also by kill -9. Windows ends no group; and a program that is not there is left to say so."""
    return guarded(line) if sys.platform != "win32" and os.access(line[0], os.X_OK) else line


class BuildOutput:
    """What a program prints: into a file, line by line into our log, and kept; all of it bounded."""

    def __init__(self, log_file: str) -> None:
        self._log_file = log_file
        self._file = _opened(log_file)
        self._head = bytearray()
        self._tail = bytearray()
        self._line = bytearray()
        self._count = 0
        self._closed = False
        self._lock = threading.Lock()  # what a build has left running may print for ever, on its thread

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
        """All of it, or its beginning and its end; to be asked for when it is closed."""
        tail = self._tail[-KEPT_BYTES // 2 :]
        left_out = self._count - len(self._head) - len(tail)
        between = b""
        if left_out > 0:
            between = f"\n[… {left_out:,} bytes left out; see {self._log_file} …]\n".encode()
        return _ESCAPES.sub("", decode(bytes(self._head + between + tail))).strip()

    def _keep(self, chunk: bytes) -> None:
        logged = chunk[: max(0, LOGGED_BYTES - self._count)]
        self._write(logged)
        self._log(logged)
        self._count += len(chunk)
        room = KEPT_BYTES // 2 - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > KEPT_BYTES:  # it is cut at twice its size, so that a flood is not moved for each chunk
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
            log.debug(f"build: {decode(bytes(self._line + line))[:LONGEST_LINE].rstrip()}")
            self._line.clear()
        self._line += rest[: max(0, LONGEST_LINE - len(self._line))]


def _opened(path: str) -> BinaryIO | None:
    try:
        make_folders(os.path.dirname(path))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        return os.fdopen(handle, "wb", buffering=0)
    except OSError as error:  # a read-only home is no reason not to build
        log.debug(f"a build is not logged into {path}: {error}")
        return None
