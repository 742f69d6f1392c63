"""The result of a command (data for `--json`, a report for people, an exit code), and how it is printed."""

from __future__ import annotations

import os
import sys

from ..issues import UserError
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .terminal import Style


class Row(Value):
    """One fact. `missing` names what is missing if there is no value."""

    key: str
    value: str | None
    missing: str = ""
    style: Style | None = None  # for values that are good or bad news


class Section(Value):
    """Facts under a title; a title without rows is a remark."""

    title: str
    rows: tuple[Row, ...]


class Bullets(Value):
    """A list of sentences under a title; not printed if there are none."""

    title: str
    items: tuple[str, ...]
    style: Style | None = None  # of the title, if it is bad news


class Report(Value):
    title: str
    sections: tuple[Section | Bullets, ...]


class Result(Value):
    data: object
    text: Report | str | None  # None: nothing is printed on stdout
    exit_code: int = 0
    afterwards: Callable[[], int] | None = None  # run after the result is printed; returns the exit code


OUTPUT_FAILED = "OutputFailed"  # the one error that cannot be printed on stdout


def render(result: Result, *, as_json: bool) -> None:
    if sys.stdout is None:
        return  # started without a stdout: the caller wants only the exit code
    if as_json:
        _print_json(result.data)
    elif isinstance(result.text, str):
        _print(result.text)
    elif result.text is not None and sys.stdout.isatty():
        from .terminal import laid_out  # inside functions only: terminal imports this module

        _print(laid_out(result.text))
    elif result.text is not None:
        _print(_plain(result.text))


def render_error(error: UserError, *, as_json: bool) -> None:
    """Print the error as the JSON document on stdout, or as text on stderr; does nothing if neither can be written."""
    from ..system.text import visible

    if as_json:
        if sys.stdout is None:
            return
        try:
            _print_json({"error": {"code": error.code, "message": error.message, "nextStep": error.next_step}})
            return
        except UserError:
            pass  # stdout cannot be written; stderr may work
    try:
        if sys.stderr is not None:
            sys.stderr.write(_explained(visible(error.explanation)) + "\n")
    except OSError:
        pass


def _explained(explanation: str) -> str:
    if not sys.stderr.isatty():
        return explanation  # unfolded: programs search it by line
    from .terminal import explained

    return explained(explanation)


def _print_json(data: object) -> None:
    import json

    _print(json.dumps(data, indent=2))


def _print(text: str) -> None:
    """Print text that may contain file names of any bytes; a reader that has closed the pipe is not an error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        data = text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode(encoding, "backslashreplace")
    error = write_out(data + b"\n")
    if error is not None and not _is_closed(error):
        message = f"The result could not be written: {error.strerror}."
        raise UserError(OUTPUT_FAILED, message, "Check where the output goes, then run it again.") from error


def _is_closed(error: OSError) -> bool:
    """Whether the reader has closed the pipe, which the C runtime of Windows takes for an invalid argument."""
    if sys.platform == "win32":
        import errno

        return error.errno in (errno.EPIPE, errno.EINVAL)
    return isinstance(error, BrokenPipeError)


def write_out(data: bytes) -> OSError | None:
    """Write to stdout; after a failure, which is returned, stdout discards everything."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def _plain(report: Report) -> str:
    from ..system.text import one_line, visible

    lines = [one_line(report.title)]
    for section in report.sections:
        if isinstance(section, Bullets):
            if section.items:
                items = (visible(item, keep_odd_bytes=True).replace("\n", "\n  ") for item in section.items)
                lines += ["", f"{one_line(section.title)}:", *(f"- {item}" for item in items)]
        else:
            lines += ["", one_line(section.title)] if section.title else [""]
            lines += [one_line(f"  {row.key}: {shown(row)}") for row in section.rows]
    return "\n".join(lines)


def shown(row: Row) -> str:
    if row.value is not None:
        return row.value
    return f"<null> (missing {row.missing})" if row.missing else "<null>"
