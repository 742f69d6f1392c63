"""Lines and columns of a YAML text: which lines belong to an entry, and how the file is indented."""

from __future__ import annotations

import re
from collections import deque

from .document import UNSAFE, EditProblem
from .splices import newline_of
from .yaml_nodes import (
    BLOCK_SCALARS,
    MAPPING,
    SEQUENCE,
    Node,
    after_blanks,
    content,
    keeps_blank_lines,
    problem_at,
    walk,
)
from .yaml_writing import Style

_BREAK = re.compile(r"\r\n|\r|\n")
_BREAKS = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))+")
_COMMENT_LINE = re.compile(r"([ \t]*)#")
_DEFAULT_STEP = 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def unsafe(text: str, at: int) -> EditProblem:
    return problem_at(text, at, UNSAFE)


def line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def line_end(text: str, at: int) -> int:
    """Before the line break."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)


def newline_at(text: str, at: int) -> str:
    """The line break that stands there, or nothing."""
    found = _BREAK.match(text, at)
    return found.group() if found else ""


def column_of(text: str, at: int) -> int:
    return at - line_start(text, at)


def end_with_comments(text: str, end: int, column: int) -> int:
    """The end of the last line of what begins in that column and ends there.

    Comments on the lines right below, further to the right, are its own.
    """
    at = line_end(text, end)
    while found := _BREAK.match(text, at):
        comment = _COMMENT_LINE.match(text, found.end())
        if comment is None or len(comment[1]) <= column:
            break
        at = line_end(text, comment.end())
    return at


def whole_lines(text: str, begin: int, end: int, before: Node | None = None) -> tuple[int, int]:
    """From the line of `begin` to the line end `end`, with one line break: at the end of the text the one before.

    Where the node `before` ends with a block scalar, that has its line break, and must not get blank lines.
    """
    start = line_start(text, begin)
    leaf = deque(walk(before), maxlen=1).pop() if before is not None else None
    if leaf is not None and text[leaf.end : start].strip():
        leaf = None  # a comment stands between them
    breaks = _BREAKS if leaf is not None and keeps_blank_lines(text, leaf) else _BREAK
    if found := breaks.match(text, end):
        return start, found.end()
    if leaf is not None and leaf.style in BLOCK_SCALARS:
        return start, end
    broken = re.search(r"(?:\r\n|\r|\n)\Z", text[:start])
    return (broken.start() if broken else start), end


def dashes(text: str, node: Node) -> list[int]:
    """Where the dashes of a block list stand."""
    found: list[int] = []
    at = content(text, node)
    for item in node.items:
        at = after_blanks(text, at)
        if text[at : at + 1] != "-":
            raise unsafe(text, at)
        found.append(at)
        at = max(item.end, at + 1)
    return found


def style_of(text: str, *nodes: Node) -> Style:
    """As the first of these nodes is laid out, or the next, where that does not show it."""
    step = next((offset for offset in _offsets(text, nodes, MAPPING) if offset > 0), _DEFAULT_STEP)
    dash = next((offset for offset in _offsets(text, nodes, SEQUENCE) if offset >= 0), step)
    return Style(newline_of(text), step, dash, next(_gaps(text, nodes), _DEFAULT_STEP))


def _offsets(text: str, nodes: tuple[Node, ...], kind: str) -> Iterator[int]:
    """From keys to what begins below them."""
    for key, value in _block_pairs(nodes):
        if value.kind == kind and not value.flow:
            yield column_of(text, content(text, value)) - column_of(text, key.begin)


def _block_pairs(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, Node]]:
    for node in (inner for outer in nodes for inner in walk(outer)):
        if node.kind == MAPPING and not node.flow:
            yield from node.pairs


def _gaps(text: str, nodes: tuple[Node, ...]) -> Iterator[int]:
    """From dashes to the keys beside them."""
    for node in (inner for outer in nodes for inner in walk(outer)):
        if node.kind == SEQUENCE and not node.flow:
            for dash, item in zip(dashes(text, node), node.items, strict=True):
                if item.kind == MAPPING and dash < item.begin <= line_end(text, dash):
                    yield item.begin - dash
