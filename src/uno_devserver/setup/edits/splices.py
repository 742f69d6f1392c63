"""What all formats need to change a text in place."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Splice = tuple[int, int, str]  # what stands from here to there becomes this


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with these changes, whose places are those in the text as it is, in any order, and do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(splices):
        pieces += text[done:start], new
        done = end
    return "".join(pieces) + text[done:]


def newline_of(text: str) -> str:
    """How lines end there: as the first one does."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
