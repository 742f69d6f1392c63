"""The only place that prints: a result as text or JSON on stdout, an error with its next step.

A terminal gets a table that fits its width; a pipe gets one `key: value` per line, uncut, so that it can be searched.
"""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from .results import Bullets, Report, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.text import Text

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
        _print_table(result.text)
    else:
        _print(_plain(result.text))


def render_error(error: UserError, *, as_json: bool) -> None:
    """With --json the error is the result; otherwise it belongs to stderr."""
    if (sys.stdout if as_json else sys.stderr) is None:
        return
    if as_json:
        _print_json({"error": {"code": error.code, "message": error.message, "nextStep": error.next_step}})
    else:
        sys.stderr.write(f"error: {error.message}\nnext: {error.next_step}\n")


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
    return "\n".join(lines)


def _shown(value: str | None, missing: str) -> str:
    if value is not None:
        return value
    return f"<null> (missing {missing})" if missing else "<null>"


def _print_table(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=report.title, box=None, title_justify="left", title_style="bold", show_header=False)
    table.add_column("key", style="cyan", no_wrap=True)
    table.add_column("value", overflow="fold")
    for section in report.sections:
        if isinstance(section, Section):
            table.add_row("")
            if section.title:
                table.add_row(_literal(section.title, "bold"))
            for row in section.rows:
                style = "" if row.value is not None else "yellow"
                table.add_row(_literal(f"  {row.key}"), _literal(_shown(row.value, row.missing), style))
    console.print(table)
    for section in report.sections:
        if isinstance(section, Bullets) and section.items:
            console.print(_literal(f"\n{section.title}:", "bold"))
            for item in section.items:
                console.print(_literal(f"- {item}"))


def _literal(text: str, style: str = "") -> Text:
    """Text in which nothing is markup and nothing is beyond the terminal's encoding."""
    from rich.text import Text

    encoding = sys.stdout.encoding or "utf-8"
    return Text(text.encode(encoding, "backslashreplace").decode(encoding), style=style)
