"""Signals that ask us to end, kept until it can be done in order.

Python would raise KeyboardInterrupt anywhere, also between the birth of a child process and the line that remembers it.
"""

from __future__ import annotations

import signal

# Ctrl+C, a polite kill, a closed terminal; Ctrl+Break on Windows.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class Interrupts:
    def __init__(self) -> None:
        self.received: int | None = None  # the first one

    def hold(self) -> None:
        """Only remember signals from now on, to the end of the process, which comes soon or asks for them.

        What is ignored stays ignored: nohup and background jobs rely on it.
        """
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._remember)

    def _remember(self, number: int, _frame: object) -> None:
        if self.received is None:
            self.received = number
