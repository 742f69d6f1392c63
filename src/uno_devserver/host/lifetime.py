"""When a Host ends: at a signal, when its parent is gone, or when its IDE stays away.

Whoever decides sets a reason, once; the Host waits for it, closes everything within a bound, and is gone after it
whatever happens.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable

from ..system.log import log
from ..system.process_exit import process_exit
from ..system.values import Value

CTRL_C = b"\x03"  # an IDE on Windows, where signals do not exist, writes it to our standard input


class LifetimeLimits(Value):
    parent_poll_seconds: float = 1.0  # where the system cannot tell us; looking costs microseconds
    ide_grace_seconds: float = 30.0  # an IDE that reloads its window is back by then
    shutdown_seconds: float = 5.0  # for everything that has to be closed; then the process ends anyway


class EndReason(Value):
    """Why the Host ends, and the exit code if it has to be forced."""

    text: str
    forced_exit: int = 1


SIGNALLED = EndReason("a signal asked for it")
PARENT_GONE = EndReason("its parent process is gone", 4)
IDE_GONE = EndReason("its IDE did not come back", 5)


class Lifetime:
    """Collects the reasons to end; the first one counts."""

    def __init__(self, policy: LifetimeLimits | None = None) -> None:
        self.policy = policy or LifetimeLimits()
        self._reason: asyncio.Future[EndReason] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self, reason: EndReason) -> None:
        if not self._reason.done():
            self._reason.set_result(reason)

    async def ended(self) -> EndReason:
        reason = await self._reason
        for task in self._tasks:
            task.cancel()
        return reason

    def heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is None or signal.getsignal(number) is signal.SIG_IGN:  # nohup and background jobs rely on it
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
        self._watch(self._parent_gone(pid))

    def follow_ide(self, stayed_away: Callable[[float], Awaitable[None]]) -> None:
        """End when an IDE had been there and stays away; `stayed_away` returns when that happened."""
        self._watch(self._ide_gone(stayed_away))

    def _watch(self, waiting: Awaitable[None]) -> None:
        task = asyncio.ensure_future(waiting)
        self._tasks.add(task)  # the loop itself would not keep it from being collected

    async def _parent_gone(self, pid: int) -> None:
        await process_exit(pid, self.policy.parent_poll_seconds)
        log.warn(f"Parent process {pid} not found, initiating graceful shutdown...")
        self.end(PARENT_GONE)

    async def _ide_gone(self, stayed_away: Callable[[float], Awaitable[None]]) -> None:
        await stayed_away(self.policy.ide_grace_seconds)
        log.warn("The IDE has disconnected and did not come back; shutting down.")
        self.end(IDE_GONE)


def force_exit_after(seconds: float, code: int) -> None:
    """End the process for certain: a thread of an add-in, or a stuck disk, must not keep it."""
    import threading

    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()


def _stdin_is_connected() -> bool:
    """Whether some program may write to us; Node gives its children sockets."""
    try:
        mode = os.fstat(0).st_mode if sys.stdin is not None else 0  # None: descriptor 0 is something else's
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    except OSError:  # closed
        return False


def _await_ctrl_c(loop: asyncio.AbstractEventLoop, end: Callable[[EndReason], None]) -> None:
    """The end of the input means nothing: launchers close it at once."""
    try:
        while data := os.read(0, 256):
            if CTRL_C in data:
                loop.call_soon_threadsafe(end, SIGNALLED)
                return
    except (OSError, RuntimeError):  # RuntimeError: the loop is closed, so the Host has ended anyway
        pass
