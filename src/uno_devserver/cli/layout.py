"""How a terminal shows a report or an error: in its width, and in colours where they are wanted.

A sentence is folded between its words. A path is not: it has a line of its own where it is too long, to be copied.
"""

from __future__ import annotations

import os
import sys

from ..system.text import visible
from .colours import Style, styled
from .folding import MAX_WIDTH, WIDTH, columns, folded, nearer, table_width
from .render import shown
from .results import Bullets, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .results import Report, Row

MAX_KEY = 36  # longer keys get a line of their own instead of pushing all values to the right
_PREFIXES = {"error": Style.BAD, "next": Style.NAME}


def laid_out(report: Report) -> str:
    sections = [section for section in report.sections if isinstance(section, Section)]
    keys = [columns(visible(row.key)) for section in sections for row in section.rows]
    column = max((key for key in keys if key <= MAX_KEY), default=0) + 4
    lines = [*_heading(report.title)]
    for section in report.sections:
        if isinstance(section, Bullets):
            lines += ["", *_heading(f"{section.title}:", section.style or Style.HEADING)] if section.items else []
            lines += [line for item in section.items for line in _bullet(nearer(visible(item)))]
        elif section.rows:
            lines += ["", *(_heading(section.title) if section.title else ())]
            lines += [line for row in section.rows for line in _fact(row, column)]
        else:  # a remark
            lines += ["", *folded(visible(section.title))]
    return "\n".join(lines)


def explained(explanation: str) -> str:
    """An error and its next step, on stderr."""
    width = min(os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH, MAX_WIDTH)
    lines: list[str] = []
    for line in explanation.split("\n"):
        begin, colon, rest = line.partition(": ")
        if colon and begin in _PREFIXES:
            lines += folded(rest, styled(f"{begin}:", _PREFIXES[begin], sys.stderr) + " ", "  ", width)
        else:  # what a program printed, as a rule
            indent = " " * (len(line) - len(line.lstrip()))
            lines += folded(line, indent, indent + "  ", width)
    return "\n".join(lines)


def _heading(text: str, style: Style = Style.HEADING) -> Iterator[str]:
    return (styled(line, style) for line in folded(nearer(visible(text)), "", "  "))


def _fact(row: Row, column: int) -> Iterator[str]:
    """Key and value in two columns; a value that does not fit goes below its key."""
    key, value = visible(row.key), nearer(visible(shown(row.value, row.missing)))
    style = row.style if row.value is not None else Style.WARN
    name = styled(key, Style.NAME)
    if columns(key) + 2 < column and column + columns(value) <= table_width():
        yield f"  {name}{' ' * (column - 2 - columns(key))}{styled(value, style)}"
        return
    yield f"  {name}"
    below = [f"    {value}"] if _is_path(value) else folded(value, "    ", "    ")
    yield from (styled(line, style) for line in below)


def _bullet(item: str) -> Iterator[str]:
    """A sentence, or a path; below it what to do about it."""
    for number, paragraph in enumerate(item.split("\n")):
        indent, text = ("  " if number else "- "), paragraph.strip()
        begin, colon, step = text.partition(": ")
        if _is_path(text) and " " not in text.partition(":")[2]:
            yield indent + text
        elif colon and begin in _PREFIXES:
            yield from folded(step, f"{indent}{styled(f'{begin}:', _PREFIXES[begin])} ", "  ")
        else:
            yield from folded(text, indent, "  ")


def _is_path(text: str) -> bool:
    """Whether it begins with one: there may be blanks in it."""
    return text.startswith(("/", "./", "~/", "\\\\")) or text[1:3] in (":\\", ":/")
