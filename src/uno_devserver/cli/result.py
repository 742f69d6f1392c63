"""What a command returns: data for `--json`, a report for people, an exit code. Rendered elsewhere."""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from ..system.text import visible
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .terminal import Style


class Row(Value):
    """One fact. A missing value says what it is missing, if the command knows."""

    key: str
    value: str | None
    missing: str = ""
    style: Style | None = None  # where the value is good or bad news


class Section(Value):
    title: str
    rows: tuple[Row, ...]


class Bullets(Value):
    """A list of sentences under a heading; left out of the output when there are none."""

    title: str
    items: tuple[str, ...]
    style: Style | None = None  # of the heading, where that is bad news


class Report(Value):
    title: str
    sections: tuple[Section | Bullets, ...]


class Result(Value):
    data: object
    text: Report | str | None  # None: nothing to say on stdout
    exit_code: int = 0
    afterwards: Callable[[], int] | None = None  # what is left to do once this is shown; gives the exit code


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
        from .terminal import laid_out

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
    from .terminal import explained

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
