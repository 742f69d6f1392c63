"""When a Host ends: at a signal, when its parent process ends, or when its IDE does not come back.

The first reason counts. `force_exit_after` guarantees that the process ends, whatever hangs while it closes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable

from ..system.event_loop import Tasks, process_exit
from ..system.log import log
from ..system.values import Value

CTRL_C = b"\x03"  # an IDE on Windows, which has no signals, writes it to the Host's standard input


class LifetimeLimits(Value):
    parent_poll_seconds: float = 1.0  # only where the system does not report the end of a process
    ide_grace_seconds: float = 30.0  # an IDE that reloads its window is back by then
    shutdown_seconds: float = 5.0  # for closing everything; then the process is ended by force


class EndReason(Value):
    """Why the Host ends, and the exit code if it has to be ended by force."""

    text: str
    forced_exit: int = 1


SIGNALLED = EndReason("a signal asked for it")
PARENT_GONE = EndReason("its parent process is gone", 4)
IDE_GONE = EndReason("its IDE did not come back", 5)


class Lifetime:
    def __init__(self, limits: LifetimeLimits | None = None) -> None:
        self.limits = limits or LifetimeLimits()
        self._reason: asyncio.Future[EndReason] = asyncio.get_running_loop().create_future()
        self._watches = Tasks()

    def end(self, reason: EndReason) -> None:
        if not self._reason.done():
            self._reason.set_result(reason)

    async def ended(self) -> EndReason:
        """Wait until there is a reason to end, and return it."""
        reason = await self._reason
        self._watches.cancel()
        return reason

    def handle_signals(self) -> None:
        """End at a signal, or at Ctrl+C on standard input."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) is signal.SIG_IGN:  # as nohup and shell jobs set it
                continue
            try:
                loop.add_signal_handler(number, self.end, SIGNALLED)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self.end, SIGNALLED))
        if _stdin_is_connected():
            import threading

            threading.Thread(target=_await_ctrl_c, args=(loop, self.end), daemon=True).start()

    def follow_parent(self, pid: int) -> None:
        """End when that process does."""
        log.debug(f"Ending when the parent process {pid} does.")
        self._watches.start(self._parent_gone(pid))

    def follow_ide(self, stayed_away: Callable[[float], Awaitable[None]]) -> None:
        """End when `stayed_away(seconds)` returns: an IDE was connected and has been away for that long."""
        self._watches.start(self._ide_gone(stayed_away))

    async def _parent_gone(self, pid: int) -> None:
        await process_exit(pid, self.limits.parent_poll_seconds)
        log.warn(f"Parent process {pid} not found, initiating graceful shutdown...")
        self.end(PARENT_GONE)

    async def _ide_gone(self, stayed_away: Callable[[float], Awaitable[None]]) -> None:
        await stayed_away(self.limits.ide_grace_seconds)
        log.warn("The IDE has disconnected and did not come back; shutting down.")
        self.end(IDE_GONE)


def force_exit_after(seconds: float, code: int) -> None:
    """End the process after that time, even if a disk or an add-in's thread hangs."""
    import threading

    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()


def _stdin_is_connected() -> bool:
    """Whether another program may write to standard input: a pipe, or a socket, as Node gives to its children."""
    try:
        mode = os.fstat(0).st_mode if sys.stdin is not None else 0  # None: descriptor 0 is not standard input
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    except OSError:  # closed
        return False


def _await_ctrl_c(loop: asyncio.AbstractEventLoop, end: Callable[[EndReason], None]) -> None:
    """End at Ctrl+C; not at the end of the input, which launchers close at once."""
    try:
        while data := os.read(0, 256):
            if CTRL_C in data:
                loop.call_soon_threadsafe(end, SIGNALLED)
                return
    except (OSError, RuntimeError):  # RuntimeError: the loop is closed, so the Host has ended anyway
        pass
