"""A terminal in which the program runs: the bytes that it is sent, and the lines that a user sees."""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from support.machine import RUN_SECONDS, Machine

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def open_terminal() -> tuple[int, int]:
    """Our end of a new terminal, and that of the program."""
    if sys.platform == "win32":
        pytest.skip("it needs a terminal of POSIX")
    return pty.openpty()


class Terminal:
    """One run of the program; both its outputs, or one of them, are the terminal."""

    def __init__(
        self,
        machine: Machine,
        *argv: str,
        columns: int = 80,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        program: Sequence[str] = (sys.executable, "-m", "uno_devserver"),
    ) -> None:
        self._ours, theirs = open_terminal()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.sent = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
        self.process = subprocess.Popen(
            [*program, *argv],
            cwd=cwd or machine.workspace,
            env={**machine.variables(), "TERM": "xterm-256color", **(env or {})},
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs if stderr is None else stderr,
            start_new_session=True,
            preexec_fn=lambda: _take(0),
        )
        os.close(theirs)

    def until(self, text: str) -> str:
        """Wait until the text was sent, and return all output so far."""
        deadline = time.monotonic() + RUN_SECONDS
        while text not in self.sent:
            assert self.read(deadline), f"{text!r} never came: {self.sent[-2000:]!r}"
        return self.sent

    def end(self) -> str:
        """Wait for the end of the program, and return all output."""
        deadline = time.monotonic() + RUN_SECONDS
        try:
            while self.read(deadline):
                pass
        finally:
            os.close(self._ours)
            if self.process.poll() is None and time.monotonic() > deadline:
                self.process.kill()
            self.process.wait(RUN_SECONDS)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()
        return self.sent

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))
        assert ready, f"nothing more came in time: {self.sent[-2000:]!r}"
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.sent += self._decoder.decode(chunk)
        return bool(chunk)


def shown(sent: str) -> list[str]:
    """The lines that stay on the screen, without colours: what was cleared has gone."""
    cleared = re.sub(r"[^\n]*\r\x1b\[K", "", sent.replace("\r\n", "\n"))
    return [line.rstrip() for line in ESCAPES.sub("", cleared).splitlines()]


def columns_of(line: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in line)


def _take(descriptor: int) -> None:
    """Make the terminal that of this session, so that Ctrl+C means something in it, also to jobs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
