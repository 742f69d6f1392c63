"""Sentences in lines that fit a usual terminal, for the texts that are the same on a pipe."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 80


def folded(text: str, first: str = "", others: str = "") -> Iterator[str]:
    """Lines of at most WIDTH columns, begun by `first` and `others`; a word that is longer stays whole."""
    line, is_empty = first, True
    for word in text.split():
        if not is_empty and len(line) + 1 + len(word) > WIDTH:
            yield line
            line, is_empty = others, True
        line, is_empty = (line + word if is_empty else f"{line} {word}"), False
    yield line
