"""Text for terminals: colours, folding to the width, short paths, and the layout of reports and errors.

Only terminals get colours and folded reports; a pipe gets the text alone. FORCE_COLOR and similar variables do not
change that: build machines and editors set them for every program that they start, and read our text.

Hand-written: rich takes three bare interpreter starts to import, and `textwrap` breaks paths.
"""

from __future__ import annotations

import os
import re
import sys
from enum import Enum

from ..system.text import one_line, visible
from .result import Bullets, Section, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import TextIO

    from .result import Report, Row

WIDTH = 80  # for a pipe, and for a terminal that does not report its width
MAX_WIDTH = 100  # for sentences: longer lines are hard to read
MIN_WIDTH = 20  # for a terminal, however small its window
MAX_KEY = 36  # longer keys get a line of their own instead of moving all values to the right
RESET = "\x1b[0m"
ENABLE_VIRTUAL_TERMINAL_PROCESSING = 0x0004
# A quotation is one word. It begins only after a blank or a bracket, because a path may contain quotes, too.
_WORD = re.compile(r"(?:(?<![^\s(])'.+?'(?![\w/\\])|\S)+")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Style(Enum):
    """The meaning of a text, with its escape code. Only basic colours are used, which every theme adapts."""

    HEADING = "1"
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    DIM = "2"
    NAME = "36"


_PREFIXES = {"error": Style.BAD, "next": Style.NAME}


# Colours.


def styled(text: str, style: Style | None, stream: TextIO | None = None) -> str:
    """The text, coloured if the stream (default: stdout) shows colours. Some pagers need the codes on each line."""
    if style is None or not _has_colours(stream or sys.stdout):
        return text
    return "\n".join(f"\x1b[{style.value}m{line}{RESET}" if line else "" for line in text.split("\n"))


def log_prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes of the log levels, coloured for stderr."""
    styles = (Style.DIM, Style.DIM, None, Style.WARN, Style.BAD, Style.BAD)
    return tuple(
        prefix and styled(prefix.rstrip(), style, sys.stderr) + " "
        for prefix, style in zip(prefixes, styles, strict=True)
    )


def _has_colours(stream: TextIO | None) -> bool:
    if stream is None or not colours_wanted(os.environ, is_terminal=stream.isatty()):
        return False
    return os.name != "nt" or _enable_escapes(stream.fileno())


def colours_wanted(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether the user wants colours: by no-color.org, any value of NO_COLOR except an empty one turns them off."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _enable_escapes(descriptor: int) -> bool:
    """Let a Windows console interpret escape codes; returns whether it does."""
    import ctypes
    import msvcrt

    try:
        kernel, handle = ctypes.windll.kernel32, msvcrt.get_osfhandle(descriptor)  # type: ignore[attr-defined]
        mode = ctypes.c_uint32()
        if not kernel.GetConsoleMode(ctypes.c_void_p(handle), ctypes.byref(mode)):
            return False
        wanted = mode_with_escapes(mode.value)
        return wanted is None or bool(kernel.SetConsoleMode(ctypes.c_void_p(handle), wanted))
    except OSError:
        return False


def mode_with_escapes(mode: int) -> int | None:
    """The console mode to set; None if escape codes are enabled already."""
    return None if mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING else mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING


# Widths and lines.


def terminal_width() -> int | None:
    """The width of the terminal that stdout is connected to; None if it is not a terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return _width_of(sys.stdout)


def _width_of(terminal: TextIO) -> int:
    try:
        columns = os.get_terminal_size(terminal.fileno()).columns
    except (OSError, ValueError):  # of NUL, which Windows counts among the terminals
        columns = 0
    return max(columns or WIDTH, MIN_WIDTH)


def table_width() -> int:
    """The width for tables."""
    return terminal_width() or WIDTH


def columns(text: str) -> int:
    """The width of a line in columns: escape codes have none, East Asian wide characters have two."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in _ESCAPE.sub("", text))


def folded(text: str, first: str = "", others: str = "", width: int | None = None) -> Iterator[str]:
    """Lines of at most `width` columns, the first after `first`, the others after `others`; no word is broken."""
    width = min(terminal_width() or WIDTH, MAX_WIDTH) if width is None else width
    line, is_empty = first, True
    for word in _WORD.findall(text):
        if not is_empty and columns(line) + 1 + columns(word) > width:
            yield line
            line, is_empty = others, True
        line, is_empty = (line + word if is_empty else f"{line} {word}"), False
    yield line


def bullets(title: str, items: Collection[str]) -> Iterator[str]:
    """A list with its title; no lines if there are no items."""
    if items:
        yield from ("", styled(f"{title}:", Style.HEADING))
    for item in items:
        yield from folded(one_line(item), "- ", "  ")


def with_short_paths(text: str) -> str:
    """The text; on a terminal with paths shortened to what can be typed there: `./`, and `~/` but for Windows."""
    if terminal_width() is None:
        return text
    try:
        text = _shortened(os.getcwd(), ".", text, not_after=r"[\w.~/\\-]")
    except OSError:
        pass  # the current folder was removed
    if sys.platform == "win32":
        return text  # cmd.exe has no ~, and PowerShell does not expand it for programs
    # Shells expand ~ only at the beginning of a word.
    return _shortened(os.path.expanduser("~"), "~", text, not_after=r"[\w.~/\\'\"=-]")


def _shortened(folder: str, name: str, text: str, *, not_after: str) -> str:
    """Replace the folder by `name`, except after the characters `not_after`: there it is part of a longer path."""
    if os.path.dirname(folder) == folder or folder not in text:
        return text
    return re.sub(rf"(?<!{not_after}){re.escape(folder)}(?=[/\\])", name, text)


# Reports and errors.


def laid_out(report: Report) -> str:
    """The report with facts in two columns, folded sentences, and unbroken paths."""
    sections = [section for section in report.sections if isinstance(section, Section)]
    keys = [columns(_line(row.key)) for section in sections for row in section.rows]
    column = max((key for key in keys if key <= MAX_KEY), default=0) + 4
    lines = [*_heading(report.title)]
    for section in report.sections:
        if isinstance(section, Bullets):
            lines += ["", *_heading(f"{section.title}:", section.style or Style.HEADING)] if section.items else []
            lines += [line for item in section.items for line in _bullet(with_short_paths(visible(item)))]
        elif section.rows:
            lines += ["", *(_heading(section.title) if section.title else ())]
            lines += [line for row in section.rows for line in _fact(row, column)]
        else:
            lines += ["", *folded(_line(section.title))]
    return "\n".join(lines)


def _heading(text: str, style: Style = Style.HEADING) -> Iterator[str]:
    return (styled(line, style) for line in folded(with_short_paths(_line(text)), "", "  "))


def _fact(row: Row, column: int) -> Iterator[str]:
    """The key and the value in two columns; a value that does not fit is below its key."""
    key, value = _line(row.key), with_short_paths(_line(shown(row)))
    style = row.style if row.value is not None else Style.WARN
    name = styled(key, Style.NAME)
    if columns(key) + 2 < column and column + columns(value) <= table_width():
        yield f"  {name}{' ' * (column - 2 - columns(key))}{styled(value, style)}"
        return
    yield f"  {name}"
    below = [f"    {value}"] if _is_path(value) else folded(value, "    ", "    ")
    yield from (styled(line, style) for line in below)


def _bullet(item: str) -> Iterator[str]:
    """The lines of an item: a sentence or a path, and its next step, if any, on a line below."""
    for number, paragraph in enumerate(item.split("\n")):
        indent, text = ("  " if number else "- "), paragraph.strip()
        begin, colon, step = text.partition(": ")
        if _is_path(text) and " " not in text[2:].partition(":")[2]:  # a drive's colon is one of the first two
            yield indent + text
        elif colon and begin in _PREFIXES:
            yield from folded(step, f"{indent}{styled(f'{begin}:', _PREFIXES[begin])} ", "  ")
        else:
            yield from folded(text, indent, "  ")


def _line(text: str) -> str:
    """The text on one line; a terminal cannot show bytes that are not text, so they become numbers."""
    return visible(one_line(text))


def _is_path(text: str) -> bool:
    """Whether the text begins with a path, which may contain blanks."""
    return text.startswith(("/", "./", "~/", ".\\", "\\\\")) or text[1:3] in (":\\", ":/")


def explained(explanation: str) -> str:
    """An error and its next step, folded and coloured for a terminal at stderr."""
    width = min(_width_of(sys.stderr), MAX_WIDTH)
    lines: list[str] = []
    for line in explanation.split("\n"):
        begin, colon, rest = line.partition(": ")
        if colon and begin in _PREFIXES:
            lines += folded(rest, styled(f"{begin}:", _PREFIXES[begin], sys.stderr) + " ", "  ", width)
        else:  # usually a line of a program's output, which keeps its indentation
            indent = " " * (len(line) - len(line.lstrip()))
            lines += folded(line, indent, indent + "  ", width)
    return "\n".join(lines)
