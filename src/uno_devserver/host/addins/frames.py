"""Which lines are an add-in's own: where a thread, a coroutine or a failure is, in the words of its author."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

MODULE_PREFIX = "uno_devserver_addin_"  # of the modules of all add-ins


def in_thread(thread: int) -> FrameType | None:
    """The innermost line of an add-in in which a thread is, if there is one."""
    frame = sys._current_frames().get(thread)
    while frame is not None and not _is_addins(frame):
        frame = frame.f_back
    return frame


def in_coroutine(coroutine: Any) -> FrameType | None:
    """The same for a coroutine that waits."""
    found = None
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        found = frame if _is_addins(frame) else found
        coroutine = coroutine.cr_await
    return found


def in_traceback(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins with the first line of an add-in."""
    while trace is not None and not _is_addins(trace.tb_frame):
        trace = trace.tb_next
    return trace


def _is_addins(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(MODULE_PREFIX)
