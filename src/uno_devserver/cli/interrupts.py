"""Handles the signals that ask the program to end, for commands that start processes.

By default, Python raises KeyboardInterrupt anywhere, even between the start of a child process and the assignment of
its Popen object, so that the child would be left running.
"""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

# Ctrl+C, kill, a closed terminal; Ctrl+Break on Windows.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


def end_as_by_ctrl_c() -> None:
    """Treat SIGTERM, SIGHUP and SIGBREAK like Ctrl+C for the rest of the process.

    Only the first of these signals has an effect, so that a second does not disturb the cleanup. Ignored signals stay
    ignored.
    """
    received = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            return
        received = True
        # asyncio installs its own handler, which cancels the tasks; the default would interrupt the loop itself.
        by_ctrl_c = signal.getsignal(signal.SIGINT)
        (by_ctrl_c if callable(by_ctrl_c) else signal.default_int_handler)(number, frame)

    for number in ENDING:
        if number != signal.SIGINT and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


class Interrupts:
    """Stores the first signal that asks the program to end after `hold` was called."""

    def __init__(self) -> None:
        self.received: int | None = None

    def hold(self) -> None:
        """From now on, signals only set `received`, which the command polls.

        Ignored signals stay ignored: nohup and background jobs rely on that.
        """
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._remember)

    def _remember(self, number: int, _frame: object) -> None:
        if self.received is None:
            self.received = number
