"""What people read while the demo runs: each line at the moment at which it is true, at most 80 columns wide.

Text is the same on a terminal and on a pipe, but for colours. A reader that went away is no reason to fail.
"""

from __future__ import annotations

import os
import sys

from ..folding import WIDTH, folded

INDENT = "   "
_TIME = len("12345 ms")


class Narrator:
    def __init__(self, *, silent: bool) -> None:
        self._silent = silent or sys.stdout is None
        self.milliseconds = 0.0  # what was measured since the last step began
        self.details: list[str] = []

    def introduction(self, text: str) -> None:
        for line in folded(text):
            self._line(line)

    def step(self, number: int, title: str) -> None:
        self.milliseconds, self.details = 0.0, []
        self._line("")
        self._line(f"{number}. {title}")

    def measured(self, what: str, milliseconds: float) -> None:
        """Something that was done, with its time at the right edge."""
        self.milliseconds += milliseconds
        left = INDENT + what
        self._line(f"{left:<{WIDTH - _TIME}}{milliseconds:{_TIME - 3}.0f} ms")

    def done(self, what: str) -> None:
        """Something that was done, and takes no time worth telling."""
        self._line(INDENT + what)

    def proof(self, sentence: str) -> None:
        """What was seen, and how it was proven."""
        self.details.append(sentence)
        for line in folded(sentence, INDENT, INDENT):
            self._line(line)

    def lines(self, lines: list[str]) -> None:
        """Of a file, as they are."""
        for line in lines:
            self._line(INDENT + line)

    def conclusion(self, *lines: str) -> None:
        self._line("")
        for line in lines:
            self._line(line)

    def _line(self, text: str) -> None:
        if self._silent:
            return
        data = (text + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except OSError:
            self._silent = True
            # What is left in the buffer would fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
