"""The only place that prints: a result as text or JSON on stdout, an error with its next step.

A terminal gets columns that fit its width; a pipe gets one `key: value` per line, so that it can be searched.
"""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from ..system.text import visible
from .results import Bullets, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .results import Result


OUTPUT_FAILED = "OutputFailed"  # the one error that cannot go to stdout


def render(result: Result, *, as_json: bool) -> None:
    if sys.stdout is None:
        return  # started without one: only the exit code is wanted
    if as_json:
        _print_json(result.data)
    elif result.text is None:
        return
    elif isinstance(result.text, str):
        _print(result.text)
    elif sys.stdout.isatty():
        from .layout import laid_out

        _print(laid_out(result.text))
    else:
        _print(plain(result.text))


def render_error(error: UserError, *, as_json: bool) -> None:
    """With --json the error is the result; otherwise it belongs to stderr. Where nobody listens the exit code tells."""
    if as_json:
        if sys.stdout is None:
            return
        try:
            _print_json({"error": {"code": error.code, "message": error.message, "nextStep": error.next_step}})
            return
        except UserError:
            pass  # it cannot be written there; stderr may take it
    try:
        if sys.stderr is not None:
            sys.stderr.write(_explained(visible(error.explanation)) + "\n")
    except OSError:
        pass


def _print_json(data: object) -> None:
    import json

    _print(json.dumps(data, indent=2))


def _print(text: str) -> None:
    """Write text that may hold file names of any bytes; a reader that went away is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        data = text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode(encoding, "backslashreplace")
    try:
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            message = f"The result could not be written: {error.strerror}."
            raise UserError(OUTPUT_FAILED, message, "Check where the output goes, then run it again.") from error


def _explained(explanation: str) -> str:
    if not sys.stderr.isatty():
        return explanation  # others search it, line by line
    from .layout import explained

    return explained(explanation)


def plain(report: Report) -> str:
    lines = [report.title]
    for section in report.sections:
        if isinstance(section, Bullets):
            if section.items:
                lines += ["", f"{section.title}:", *(f"- {item}" for item in section.items)]
        else:
            lines += ["", section.title] if section.title else [""]
            lines += [f"  {row.key}: {shown(row.value, row.missing)}" for row in section.rows]
    return "\n".join(visible(line, keep_odd_bytes=True) for line in lines)


def shown(value: str | None, missing: str) -> str:
    if value is not None:
        return value
    return f"<null> (missing {missing})" if missing else "<null>"
