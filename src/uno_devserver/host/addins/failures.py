"""How the failure of an add-in is told: a sentence for whoever asked, the traceback for the log."""

from __future__ import annotations

from ...system.log import DEBUG, WARNING, log


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


def log_failure(addin: str, what: str, error: BaseException, *, known: bool = False) -> None:
    """Log the traceback; only for debugging when the failure is `known` from the add-in's status."""
    import traceback

    trace = "".join(traceback.format_exception(error)).rstrip()
    log.write(DEBUG if known else WARNING, f"[{addin}] {what} failed:\n{trace}")
