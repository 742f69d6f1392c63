"""Whether colours are wanted, and what each of them means. The only place that knows.

They are for people: a stream that is no terminal never gets any, so that a pipe has the text alone. FORCE_COLOR and its
kin do not change that: build machines and editors set them for everything that they start, and read our text.
"""

from __future__ import annotations

import os
import re
import sys
from enum import Enum

from ..system.text import visible
from .result import Bullets, Section, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import TextIO

    from .result import Report, Row

RESET = "\x1b[0m"


class Style(Enum):
    """What a text is; its value is how a terminal shows that. Only the basic colours, which every theme adapts."""

    HEADING = "1"
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    DIM = "2"
    NAME = "36"


def styled(text: str, style: Style | None, stream: TextIO | None = None) -> str:
    """The text as this stream (usually stdout) shows it; in lines, since some pagers forget colours at a line's end."""
    if style is None or not has_colours(stream or sys.stdout):
        return text
    return "\n".join(f"\x1b[{style.value}m{line}{RESET}" if line else "" for line in text.split("\n"))


def log_prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the levels of the log, as stderr shows them."""
    styles = (Style.DIM, Style.DIM, None, Style.WARN, Style.BAD, Style.BAD)
    return tuple(
        prefix and styled(prefix.rstrip(), style, sys.stderr) + " "
        for prefix, style in zip(prefixes, styles, strict=True)
    )


def has_colours(stream: TextIO | None) -> bool:
    return stream is not None and colours_wanted(os.environ, is_terminal=stream.isatty()) and _shows(stream)


def colours_wanted(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """As no-color.org has it: any value of NO_COLOR but an empty one."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _shows(stream: TextIO) -> bool:
    if os.name != "nt":
        return True

    return shows_escapes(stream.fileno())


WIDTH = 80  # of a pipe, and of a terminal that does not know its own
MAX_WIDTH = 100  # of a sentence: the eye does not find the way back from longer lines
MIN_WIDTH = 20  # of a terminal that somebody has made too small to be read
# A quote may also be inside a path, or behind a name: it opens behind a blank, and closes before none of a word.
_WORD = re.compile(r"(?:(?<![^\s(])'.+?'(?![\w/\\])|\S)+")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def folded(text: str, first: str = "", others: str = "", width: int | None = None) -> Iterator[str]:
    """Lines of at most `width` columns, begun by `first` and `others`; a longer word stays whole."""
    width = min(terminal_width() or WIDTH, MAX_WIDTH) if width is None else width
    line, is_empty = first, True
    for word in _WORD.findall(text):
        if not is_empty and columns(line) + 1 + columns(word) > width:
            yield line
            line, is_empty = others, True
        line, is_empty = (line + word if is_empty else f"{line} {word}"), False
    yield line


def bullets(title: str, items: Collection[str]) -> Iterator[str]:
    """A list with its title; nothing where there are no items."""
    if items:
        yield from ("", styled(f"{title}:", Style.HEADING))
    for item in items:
        yield from folded(one_line(item), "- ", "  ")


def terminal_width() -> int | None:
    """Of the terminal that stdout is; None where it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH, MIN_WIDTH)


def table_width() -> int:
    """For what is laid out in columns."""
    return terminal_width() or WIDTH


def columns(text: str) -> int:
    """How much of a line it takes: colours nothing, the characters of East Asia twice as much as others."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    from unicodedata import combining, east_asian_width

    shown = _ESCAPE.sub("", text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in shown)


def one_line(text: str) -> str:
    """What comes from files and their names, safe to show: a line end inside it is one of a name in some file."""
    return visible(text.replace("\n", "\\n"), keep_odd_bytes=True)


def with_short_paths(text: str) -> str:
    """On a terminal, paths as one types them there: from the current folder, or from the home folder."""
    if terminal_width() is None:
        return text
    text = _from(_current_folder(), ".", text, behind=r"[\w.~/\\-]")
    return _from(
        os.path.expanduser("~"), "~", text, behind=r"[\w.~/\\'\"=-]"
    )  # shells know it only where a word begins


def _from(folder: str | None, name: str, text: str, *, behind: str) -> str:
    """`behind`: what stands before a path that only looks as if it began there."""
    if folder is None or os.path.dirname(folder) == folder or folder not in text:
        return text
    return re.sub(rf"(?<!{behind}){re.escape(folder)}(?=[/\\])", name, text)


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


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
            lines += [line for item in section.items for line in _bullet(with_short_paths(visible(item)))]
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
    return (styled(line, style) for line in folded(with_short_paths(visible(text)), "", "  "))


def _fact(row: Row, column: int) -> Iterator[str]:
    """Key and value in two columns; a value that does not fit goes below its key."""
    key, value = visible(row.key), with_short_paths(visible(shown(row.value, row.missing)))
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


ENABLE_VIRTUAL_TERMINAL_PROCESSING = 0x0004


def mode_with_escapes(mode: int) -> int | None:
    """What is to be set, given the console's mode; None: nothing."""
    if mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING:
        return None
    return mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING


def shows_escapes(descriptor: int) -> bool:
    """Whether Windows shows them there, from now on. Where that fails, text without colours is text, too."""
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
