"""How the failure of an add-in is told: a sentence for whoever asked, the traceback for the log."""

from __future__ import annotations

from ...system.log import log
from .frames import in_traceback


class Escaped(Exception):
    """A function tried to leave by the back door: SystemExit, KeyboardInterrupt, a cancellation of its own.

    Its text is the sentence.
    """


def escaped(error: BaseException) -> Escaped:
    """What left by the back door, as an `Exception`; the real one would end the Host, or leave a call unanswered."""
    contained = Escaped(f"{type(error).__name__}: {error}".rstrip(": "))
    contained.__cause__ = error
    return contained


def sentence(error: BaseException) -> str:
    """An exception's type and message."""
    if isinstance(error, Escaped):
        return str(error)
    try:
        message = str(error)
    except Exception:  # its own __str__ fails
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def log_failure(addin: str, what: str, error: BaseException) -> None:
    """Log the traceback, from the add-in's own lines on: those before are the Host's, and would only puzzle."""
    import traceback

    if isinstance(error, Escaped) and error.__cause__ is not None:
        error = error.__cause__
    own = in_traceback(error.__traceback__)
    # A file that cannot be compiled has no line that ran; its error shows the place.
    trace = own if own is not None or isinstance(error, SyntaxError) else error.__traceback__
    shown = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
    log.warn(f"[{addin}] {what} failed:\n{shown}")
