"""The only place that prints: a result as text or JSON on stdout, an error with its next step.

A terminal gets columns that fit its width; a pipe gets one `key: value` per line, so that it can be searched.
"""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from ..system.text import visible
from .results import Bullets, Report, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .results import Result


USUAL_WIDTH = 80  # of a terminal that does not know its own
MAX_KEY = 36  # longer keys get a line of their own instead of pushing all values to the right
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
        _print(_for_terminal(result.text))
    else:
        _print(_plain(result.text))


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
            sys.stderr.write(_for_its_width(visible(error.explanation)) + "\n")
    except OSError:
        pass


def _for_its_width(text: str) -> str:
    """A terminal would break it anywhere; others search it, line by line."""
    if not sys.stderr.isatty():
        return text
    width = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_WIDTH
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


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


def _plain(report: Report) -> str:
    lines = [report.title]
    for section in report.sections:
        if isinstance(section, Bullets):
            if section.items:
                lines += ["", f"{section.title}:", *(f"- {item}" for item in section.items)]
        else:
            lines += ["", section.title] if section.title else [""]
            lines += [f"  {row.key}: {_shown(row.value, row.missing)}" for row in section.rows]
    return "\n".join(visible(line, keep_odd_bytes=True) for line in lines)


def _shown(value: str | None, missing: str) -> str:
    if value is not None:
        return value
    return f"<null> (missing {missing})" if missing else "<null>"


def _for_terminal(report: Report) -> str:
    """Facts in two columns. A value that does not fit goes below its key, whole, so that a path can be copied."""
    width = os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_WIDTH
    bold, key_colour, faint, plain = ("\x1b[1m", "\x1b[36m", "\x1b[33m", "\x1b[0m") if _colours() else ("", "", "", "")
    rows = [row for section in report.sections if isinstance(section, Section) for row in section.rows]
    column = max((len(row.key) for row in rows if len(row.key) <= MAX_KEY), default=0) + 4
    lines = [f"{bold}{report.title}{plain}"]
    for section in report.sections:
        if isinstance(section, Bullets):
            items = [line for item in section.items for line in _folded(f"- {visible(item)}", width)]
            lines += ["", f"{bold}{visible(section.title)}:{plain}", *items] if items else []
            continue
        lines += ["", f"{bold}{visible(section.title)}{plain}"] if section.title else [""]
        for row in section.rows:
            key, value = visible(row.key), visible(_shown(row.value, row.missing))
            colour = faint if row.value is None else ""
            if len(key) + 2 < column and column + len(value) <= width:
                lines.append(f"  {key_colour}{key:<{column - 2}}{plain}{colour}{value}{plain if colour else ''}")
            else:
                lines += [f"  {key_colour}{key}{plain}", f"    {colour}{value}{plain if colour else ''}"]
    return "\n".join(lines)


def _folded(text: str, width: int) -> list[str]:
    """A sentence in lines of the terminal's width, broken at blanks and indented below its bullet."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.strip().split(" "):
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = ""
            line = f"{line} {word}" if line else (f"  {word}" if lines else word)
        lines.append(line)
    return lines


def _colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
