"""How the failure of an add-in is told: a sentence for whoever asked, the traceback for the log."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from ...system.log import log


class AddInExit(Exception):
    """A function tried to leave by the back door: SystemExit, KeyboardInterrupt, a cancellation of its own.

    Its text is the sentence.
    """


def as_addin_exit(error: BaseException) -> AddInExit:
    """What left by the back door, as an `Exception`; the real one would end the Host, or leave a call unanswered."""
    contained = AddInExit(f"{type(error).__name__}: {error}".rstrip(": "))
    contained.__cause__ = error
    return contained


def sentence(error: BaseException) -> str:
    """An exception's type and message."""
    if isinstance(error, AddInExit):
        return str(error)
    try:
        message = str(error)
    except Exception:  # its own __str__ fails
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def log_failure(addin: str, what: str, error: BaseException) -> None:
    """Log the traceback, from the add-in's own lines on: those before are the Host's, and would only puzzle."""
    import traceback

    if isinstance(error, AddInExit) and error.__cause__ is not None:
        error = error.__cause__
    own = addin_traceback(error.__traceback__)
    # A file that cannot be compiled has no line that ran; its error shows the place.
    trace = own if own is not None or isinstance(error, SyntaxError) else error.__traceback__
    shown = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    log.warn(f"[{addin}] {what} failed:\n{shown}")


MODULE_PREFIX = "uno_devserver_addin_"  # of the modules of all add-ins


def frame_in_thread(thread: int) -> FrameType | None:
    """The innermost line of an add-in in which a thread is, if there is one."""
    frame = sys._current_frames().get(thread)
    while frame is not None and not _is_addins(frame):
        frame = frame.f_back
    return frame


def frame_in_coroutine(coroutine: Any) -> FrameType | None:
    """The same for a coroutine that waits."""
    found = None
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        found = frame if _is_addins(frame) else found
        coroutine = coroutine.cr_await
    return found


def addin_traceback(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins with the first line of an add-in."""
    while trace is not None and not _is_addins(trace.tb_frame):
        trace = trace.tb_next
    return trace


def _is_addins(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(MODULE_PREFIX)
