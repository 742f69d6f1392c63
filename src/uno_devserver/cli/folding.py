"""Sentences in lines that fit: the terminal that shows them, or a usual one where the text is the same on a pipe.

What stands in quotes is a path, a name or a command: it is never broken, so that it can be copied.
"""

from __future__ import annotations

import os
import re
import sys

from ..system.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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
        from .colours import Style, styled

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


def nearer(text: str) -> str:
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
