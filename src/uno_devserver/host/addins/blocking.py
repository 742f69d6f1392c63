"""Watches the functions of add-ins, and says in the log which ones hang, and where.

One that keeps the event loop is the worst: as long as it does, the Host answers nobody, and could not say why.
"""

from __future__ import annotations

import asyncio
import sys
import threading

from ...system.log import log
from .frames import in_thread
from .running import running

BEAT_SECONDS = 2.0  # seldom enough to cost nothing
BLOCKED_SECONDS = 5.0  # no step of the Host's own takes a tenth of that


def watch(loop: asyncio.AbstractEventLoop, stopped: threading.Event) -> None:
    """Watch the event loop that runs in this thread, until `stopped`."""
    arguments = (loop, threading.get_ident(), stopped)
    threading.Thread(target=_watch, args=arguments, name="watch the event loop", daemon=True).start()


def _watch(loop: asyncio.AbstractEventLoop, thread: int, stopped: threading.Event) -> None:
    while not stopped.wait(BEAT_SECONDS):
        for call in running():
            call.tell_if_slow()
        beat = threading.Event()
        try:
            loop.call_soon_threadsafe(beat.set)
        except RuntimeError:  # the loop is closed
            return
        if not beat.wait(BLOCKED_SECONDS):
            log.warn(
                f"The Host has answered nobody for {BLOCKED_SECONDS:g} s: {_line(thread)} keeps the event loop. "
                "An async function of an add-in must not block; make it a plain one, which gets a thread."
            )
            beat.wait()  # told once


def _line(thread: int) -> str:
    """Where a thread is: the innermost line of an add-in, or else of anything."""
    frame = in_thread(thread) or sys._current_frames().get(thread)
    return "something" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
