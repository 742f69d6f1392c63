"""Reports failures of add-ins: a sentence for the caller, and the traceback for the log."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from ...system.log import log

MODULE_PREFIX = "uno_devserver_addin_"  # the prefix of the names of all add-ins' modules


class AddInExit(Exception):
    """An add-in's function raised SystemExit or KeyboardInterrupt, or cancelled itself. The text is a sentence."""


def as_addin_exit(error: BaseException) -> AddInExit:
    """Wrap the error in an `Exception`; the original would end the Host or leave a call without an answer."""
    contained = AddInExit(f"{type(error).__name__}: {error}".rstrip(": "))
    contained.__cause__ = error
    return contained


def sentence(error: BaseException) -> str:
    """The type and message of an exception; the type alone if the message is empty."""
    if isinstance(error, AddInExit):
        return str(error)
    try:
        message = str(error)
    except Exception:  # the exception's own __str__ fails
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def log_failure(addin: str, what: str, error: BaseException) -> None:
    """Log the traceback from the add-in's first line on; the lines before are the Host's."""
    import traceback

    error = _original(error)
    trace = error.__traceback__
    while trace is not None and not _is_addins(trace.tb_frame):
        trace = trace.tb_next
    # No line of a file that cannot be compiled has run; the SyntaxError itself shows the place.
    if trace is None and not isinstance(error, SyntaxError):
        trace = error.__traceback__
    shown = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    log.warn(f"[{addin}] {what} failed:\n{shown}")


def place_of_error(error: BaseException) -> str:
    """` (file:line)` of the innermost line of an add-in in the traceback; empty if there is none."""
    trace: TracebackType | None = _original(error).__traceback__
    found = ""
    while trace is not None:
        if _is_addins(trace.tb_frame):
            found = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found


def place_in_thread(thread: int) -> str:
    """The same for the line that a thread is running."""
    return _place(frame_in_thread(thread))


def place_in_coroutine(coroutine: Any) -> str:
    """The same for the line at which a coroutine waits."""
    found = None
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        found = frame if _is_addins(frame) else found
        coroutine = coroutine.cr_await
    return _place(found)


def frame_in_thread(thread: int) -> FrameType | None:
    """The innermost frame of an add-in in a thread."""
    frame = sys._current_frames().get(thread)
    while frame is not None and not _is_addins(frame):
        frame = frame.f_back
    return frame


def _original(error: BaseException) -> BaseException:
    return error.__cause__ if isinstance(error, AddInExit) and error.__cause__ is not None else error


def _place(frame: FrameType | None) -> str:
    return "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno})"


def _is_addins(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(MODULE_PREFIX)
