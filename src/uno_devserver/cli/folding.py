"""Sentences in lines that fit a usual terminal, for the texts that are the same on a pipe.

What stands in quotes is a path, a name or a command: it is never broken, so that it can be copied.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

WIDTH = 80
# A quote may also be inside a path, or behind a name: it opens behind a blank, and closes before none of a word.
_WORD = re.compile(r"(?:(?<![^\s(])'.+?'(?![\w/\\])|\S)+")


def folded(text: str, first: str = "", others: str = "") -> Iterator[str]:
    """Lines of at most WIDTH columns, begun by `first` and `others`; a longer word stays whole."""
    line, is_empty = first, True
    for word in _WORD.findall(text):
        if not is_empty and len(line) + 1 + len(word) > WIDTH:
            yield line
            line, is_empty = others, True
        line, is_empty = (line + word if is_empty else f"{line} {word}"), False
    yield line


def bullets(title: str, items: Collection[str]) -> Iterator[str]:
    """A list with its title; nothing where there are no items."""
    if items:
        yield from ("", f"{title}:")
    for item in items:
        yield from folded(item, "- ", "  ")
