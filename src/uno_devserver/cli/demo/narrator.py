"""What people read while the demo runs: each line at the moment at which it is true, in 80 columns.

Text is the same on a terminal and on a pipe, but for colours, and where a terminal is narrower. A reader
that went away is no reason to fail.
"""

from __future__ import annotations

import os
import sys

from ..colours import Style, styled
from ..folding import WIDTH, folded, table_width

INDENT = "   "
_TIME = len("12345 ms")
_OF_DIFFERENCE = {"+": Style.GOOD, "-": Style.BAD}


class Narrator:
    def __init__(self, *, silent: bool) -> None:
        self._silent = silent or sys.stdout is None
        self.proofs: list[str] = []  # of this step

    def introduction(self, title: str, text: str) -> None:
        self._line(title, Style.HEADING)
        for line in folded(text, width=_width()):
            self._line(line)

    def step(self, number: int, title: str) -> None:
        self.proofs = []
        self._line("")
        for line in folded(title, f"{number}. ", INDENT, _width()):
            self._line(line, Style.HEADING)

    def measured(self, what: str, milliseconds: float) -> None:
        """Something that was done, with its time at the right edge."""
        left = INDENT + what
        self._line(f"{left:<{_width() - _TIME}}{milliseconds:{_TIME - 3}.0f} ms", Style.NAME)

    def done(self, what: str) -> None:
        """Something that was done, and takes no time worth telling."""
        self._line(INDENT + what, Style.NAME)

    def proof(self, sentence: str) -> None:
        """What was seen, and how it was proven."""
        self.proofs.append(sentence)
        for line in folded(sentence, INDENT, INDENT, _width()):
            self._line(line)

    def difference(self, lines: list[str]) -> None:
        """Of a file: what went, what came, and what stands around it."""
        for line in lines:
            self._line(INDENT + line, _OF_DIFFERENCE.get(line[:1], Style.DIM))

    def conclusion(self, verdict: str, *more: str) -> None:
        self._line("")
        self._line(verdict, Style.GOOD)
        for line in more:
            self._line(line)

    def interrupted(self, sentence: str) -> None:
        self._line("")
        self._line(sentence, Style.WARN)

    def _line(self, text: str, style: Style | None = None) -> None:
        if self._silent:
            return
        data = (styled(text, style) + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except OSError:
            self._silent = True
            # What is left in the buffer would fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _width() -> int:
    return min(table_width(), WIDTH)
