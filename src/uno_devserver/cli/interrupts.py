"""Signals that ask us to end: kept until it can be done in order, or all of them taken as one.

Python would raise KeyboardInterrupt anywhere, also between the birth of a child process and the line that remembers it.
"""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

# Ctrl+C, a polite kill, a closed terminal; Ctrl+Break on Windows.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


def end_as_by_ctrl_c() -> None:
    """Let the other signals do what Ctrl+C does, to the end of the process; once, so that no second one disturbs that.

    What is ignored stays ignored here, too.
    """
    received = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            return
        received = True
        # While asyncio runs that is its own: it cancels what runs, where our default would break into it.
        by_ctrl_c = signal.getsignal(signal.SIGINT)
        (by_ctrl_c if callable(by_ctrl_c) else signal.default_int_handler)(number, frame)

    for number in ENDING:
        if number != signal.SIGINT and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


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
