"""The layout of a YAML text: lines, columns, its style, and values written in that style."""

from __future__ import annotations

import json
import re

from ...system.values import Value
from .document import UNSAFE, EditProblem, line_start, newline_of
from .yaml_nodes import (
    BLOCK_SCALARS,
    MAPPING,
    SEQUENCE,
    YamlNode,
    after_blanks,
    content,
    keeps_blank_lines,
    last_leaf,
    problem_at,
    walk,
)

_BREAK = re.compile(r"\r\n|\r|\n")
_BREAKS = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))+")
_COMMENT_LINE = re.compile(r"([ \t]*)#")
_DEFAULT_STEP = 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def unsafe(text: str, at: int) -> EditProblem:
    return problem_at(text, at, UNSAFE)


def line_end(text: str, at: int) -> int:
    """The position before the line break."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)


def newline_at(text: str, at: int) -> str:
    """The line break at that position, or ""."""
    found = _BREAK.match(text, at)
    return found.group() if found else ""


def column_of(text: str, at: int) -> int:
    return at - line_start(text, at)


def end_with_comments(text: str, end: int, column: int) -> int:
    """The end of the last line of a node that begins in that column and ends at `end`.

    Comments on the lines directly below belong to it if they are indented more.
    """
    at = line_end(text, end)
    while found := _BREAK.match(text, at):
        comment = _COMMENT_LINE.match(text, found.end())
        if comment is None or len(comment[1]) <= column:
            break
        at = line_end(text, comment.end())
    return at


def start_with_comments(text: str, begin: int) -> int:
    """The start of the line of a key or dash, and of comments with the same indentation directly above it."""
    start = line_start(text, begin)
    while start:
        above = line_start(text, start - (2 if text[start - 2 : start] == "\r\n" else 1))
        comment = _COMMENT_LINE.match(text, above)
        if comment is None or len(comment[1]) != begin - line_start(text, begin):
            break
        start = above
    return start


def whole_lines(text: str, begin: int, end: int, before: YamlNode | None = None) -> tuple[int, int]:
    """The span from the line of `begin` to the line end `end`, with the line break after it, or else the one before it.

    A block scalar at the end of the node `before` keeps its line break, and does not gain blank lines.
    """
    start = line_start(text, begin)
    leaf = last_leaf(before) if before is not None else None
    if leaf is not None and text[leaf.end : start].strip():
        leaf = None  # there is a comment between them
    breaks = _BREAKS if leaf is not None and keeps_blank_lines(text, leaf) else _BREAK
    if found := breaks.match(text, end):
        return start, found.end()
    if leaf is not None and leaf.style in BLOCK_SCALARS:
        return start, end
    broken = re.search(r"(?:\r\n|\r|\n)\Z", text[:start])
    return (broken.start() if broken else start), end


def dashes(text: str, node: YamlNode) -> list[int]:
    """The positions of the dashes of a block list."""
    found: list[int] = []
    at = content(text, node)
    for item in node.items:
        at = after_blanks(text, at)
        if text[at : at + 1] != "-":
            raise unsafe(text, at)
        found.append(at)
        at = max(item.end, at + 1)
    return found


def style_of(text: str, *nodes: YamlNode) -> YamlStyle:
    """The style of the first of these nodes that shows it."""
    step = next((offset for offset in _offsets(text, nodes, MAPPING) if offset > 0), _DEFAULT_STEP)
    dash = next((offset for offset in _offsets(text, nodes, SEQUENCE) if offset >= 0), step)
    return YamlStyle(newline_of(text), step, dash, next(_gaps(text, nodes), _DEFAULT_STEP))


def _offsets(text: str, nodes: tuple[YamlNode, ...], kind: str) -> Iterator[int]:
    """Columns from keys to the collections below them."""
    for key, value in _block_pairs(nodes):
        if value.kind == kind and not value.flow:
            yield column_of(text, content(text, value)) - column_of(text, key.begin)


def _block_pairs(nodes: tuple[YamlNode, ...]) -> Iterator[tuple[YamlNode, YamlNode]]:
    for node in (inner for outer in nodes for inner in walk(outer)):
        if node.kind == MAPPING and not node.flow:
            yield from node.pairs


def _gaps(text: str, nodes: tuple[YamlNode, ...]) -> Iterator[int]:
    """Columns from dashes to the keys on the same line."""
    for node in (inner for outer in nodes for inner in walk(outer)):
        if node.kind == SEQUENCE and not node.flow:
            for dash, item in zip(dashes(text, node), node.items, strict=True):
                if item.kind == MAPPING and dash < item.begin <= line_end(text, dash):
                    yield item.begin - dash


class YamlStyle(Value):
    """The indentation of a file, in columns."""

    newline: str
    step: int  # from a key to the keys below it
    dash: int  # from a key to the dashes of the list below it
    gap: int  # from a dash to the key on the same line


# In lower case: parsers differ in which spellings they accept.
_WORDS = frozenset(("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<", ".inf", ".nan"))
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9][-+0-9a-fA-FoOxXtTzZ_.,: ]*|[-+]\.inf", re.IGNORECASE)  # or a date, or time
_SPECIAL_BEGIN = re.compile(r"[][,{}#&*!|>'\"%@`?:]|-(?:\s|$|--)|\.\.\.|\s")
_SPECIAL_INSIDE = re.compile(r":(?:\s|$)|\s#|\s$")
_SPECIAL_IN_FLOW = re.compile(r"[][,{}:?]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def scalar(value: object, *, flow: bool = False, quote: str = "") -> str:
    """Write a value on one line; `quote` is used for text even if it needs none."""
    if isinstance(value, str):
        return _text(value, flow, quote)
    if isinstance(value, list) and not value:
        return "[]"
    if isinstance(value, dict) and not value:
        return "{}"
    return json.dumps(value)  # null, true, 300, 1.5: the same in JSON and YAML


def in_flow(value: object, *, quote: str = "") -> str:
    """Write a value within brackets, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(in_flow(item, quote=quote) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(pair_in_flow(key, item, quote=quote) for key, item in value.items())}}}"
    return scalar(value, flow=True, quote=quote)


def pair_in_flow(key: str, value: object, *, quote: str = "") -> str:
    return f"{scalar(key, flow=True, quote=quote)}: {in_flow(value, quote=quote)}"


def pairs_in_lines(settings: Mapping[str, object], column: int, style: YamlStyle) -> list[str]:
    """Write a block mapping whose keys begin in that column."""
    lines: list[str] = []
    for key, value in settings.items():
        head = f"{' ' * column}{scalar(key)}:"
        below = in_lines(value, column, style)
        lines += [head, *below] if below else [f"{head} {scalar(value)}"]
    return lines


def in_lines(value: object, column: int, style: YamlStyle) -> list[str]:
    """Write a collection below a key in that column; no lines for a scalar, which is written after the key."""
    if isinstance(value, dict):
        return pairs_in_lines(value, column + style.step, style)
    if isinstance(value, list):
        return items_in_lines(value, column + style.dash, style)
    return []


def items_in_lines(values: Sequence[object], column: int, style: YamlStyle) -> list[str]:
    """Write the items of a block list whose dashes are in that column."""
    lines: list[str] = []
    dash = f"{' ' * column}-"
    for value in values:
        if isinstance(value, dict) and value:
            first, *others = pairs_in_lines(value, column + style.gap, style)
            lines += [dash + first[column + 1 :], *others]
        else:
            lines.append(f"{dash} {in_flow(value) if isinstance(value, list) else scalar(value)}")
    return lines


def _text(value: str, flow: bool, quote: str) -> str:
    printable = value.isprintable()
    if quote == "'" and printable:
        return "'" + value.replace("'", "''") + "'"
    special = (
        quote
        or not printable
        or value.lower() in _WORDS
        or _LIKE_A_NUMBER.fullmatch(value)
        or _SPECIAL_BEGIN.match(value)
        or _SPECIAL_INSIDE.search(value)
        or (flow and _SPECIAL_IN_FLOW.search(value))
    )
    if not special:
        return value
    return _UNPRINTABLE.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
