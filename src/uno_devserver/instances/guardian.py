"""Staying with a Host until it ends: its launcher is the parent that it watches, and it ends when that is gone.

A signal that asks the guardian to end is passed on to the Host, which gets a bounded time for it.
"""

from __future__ import annotations

import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .child import Child

POLL_SECONDS = 0.2  # only where the system cannot wake us
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def guard(child: Child, interrupted: Callable[[], bool]) -> int:
    """The Host's exit code, when it has ended; `interrupted`: a signal came before we could look."""
    # What was ignored stays ignored: nohup and background jobs rely on it.
    ending = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    if hasattr(signal, "pthread_sigmask"):
        # The system drops this signal where nobody handles it, and then nobody would wake us.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*ending, signal.SIGCHLD))
    while child.exit_code() is None:
        if interrupted() or _ending_asked_for(ending):
            child.stop()
    return child.wait()


def _ending_asked_for(ending: Sequence[int]) -> bool:
    """Sleep until something happens; whether it is a signal that asks us to end."""
    if hasattr(signal, "pthread_sigmask"):
        return signal.sigwait((*ending, signal.SIGCHLD)) != signal.SIGCHLD
    try:
        time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return True
    return False
