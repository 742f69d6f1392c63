"""Edits of one YAML collection, as splices of its text.

A flow collection is in brackets, on one or more lines: `{key: value}`, `[item]`. A block collection consists of lines:
`key: value`, `- item`.
"""

from __future__ import annotations

import re

from .document import Splice, line_start
from .yaml_layout import (
    YamlStyle,
    column_of,
    dashes,
    end_with_comments,
    in_flow,
    in_lines,
    items_in_lines,
    line_end,
    newline_at,
    pair_in_flow,
    pairs_in_lines,
    scalar,
    start_with_comments,
    unsafe,
    whole_lines,
)
from .yaml_nodes import MAPPING, SCALAR, YamlNode, after_blanks, after_colon, content, lacks_line_break

_BEFORE_A_KEY = re.compile(r"[ \t]*(?:\?[ \t]+)?")
_REST_OF_LINE = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\r\n]*)?(?=[\r\n])")


def is_empty(text: str, node: YamlNode) -> bool:
    """Whether the node is a pair of brackets without content or comment, which says nothing about its style."""
    return node.flow and node.is_bare and not text[node.begin + 1 : node.end - 1].strip()


def added_pair(text: str, node: YamlNode, key: str, value: object, style: YamlStyle) -> list[Splice]:
    """Add a pair after the last one of a mapping, or before it if a further line would change its value."""
    if node.flow:
        return _flow_added(text, node, pair_in_flow(key, value, quote=_quote_of(node)), style)
    column = column_of(text, content(text, node))
    lines = pairs_in_lines({key: value}, column, style)
    if lacks_line_break(text, node):
        return _added_before(text, node.pairs[-1][0].begin, lines, style)
    return _block_added(text, node, column, lines, style)


def added_item(text: str, node: YamlNode, value: object, style: YamlStyle) -> list[Splice]:
    """Add an item after the last one of a list, or before it if a further line would change its value."""
    if node.flow:
        return _flow_added(text, node, in_flow(value, quote=_quote_of(node)), style)
    dash = dashes(text, node)[-1]
    column = column_of(text, dash)
    lines = items_in_lines([value], column, style)
    if lacks_line_break(text, node):
        return _added_before(text, dash, lines, style)
    return _block_added(text, node, column, lines, style)


def added_at_end(text: str, end: int, column: int, key: str, value: object, style: YamlStyle) -> list[Splice]:
    """Add a pair of a block mapping after all lines of the document, which ends at `end`."""
    lines = style.newline.join(pairs_in_lines({key: value}, column, style))
    if end and text[end - 1] not in "\r\n":
        return [(end, end, style.newline + lines)]
    return [(end, end, lines + style.newline)]


def replaced_value(text: str, node: YamlNode, at: int, value: object, style: YamlStyle) -> list[Splice]:
    """Give another value to a key of a mapping; a comment on the key's line stays."""
    key, old = node.pairs[at]
    colon = after_colon(text, key)
    if node.flow:
        written = in_flow(value, quote=_quote_of(node if old.is_nothing else old))
        if old.is_nothing:
            written = f" {written}" if colon else f": {written}"
        return [(old.begin, old.end, written)]
    if colon is None:
        raise unsafe(text, key.begin)
    if old.flow and old.items and isinstance(value, (list, dict)):  # it keeps its brackets
        return [(old.begin, old.end, in_flow(value, quote=_quote_of(old)))]
    lines = "".join(style.newline + line for line in in_lines(value, column_of(text, key.begin), style))
    inline = "" if lines else scalar(value, quote=old.style if old.style in ("'", '"') else "")
    first = line_end(text, colon)
    if old.begin > first:  # it is below its key
        return [(colon, colon, f" {inline}" if inline else ""), (first, line_end(text, old.end), lines)]
    if inline and not old.is_nothing:
        return [(old.begin, old.end, inline)]
    last = line_end(text, old.end)
    return [(colon, old.end, f" {inline}" if inline else ""), *([(last, last, lines)] if lines else [])]


def replaced_item(text: str, node: YamlNode, at: int, value: object, style: YamlStyle) -> list[Splice]:
    """Give another value to an item of a list."""
    old = node.items[at]
    if node.flow:
        return [(old.begin, old.end, in_flow(value, quote=_quote_of(node)))]
    dash = dashes(text, node)[at]
    if line_start(text, dash) != line_start(text, old.end):
        raise unsafe(text, dash)
    lines = items_in_lines([value], column_of(text, dash), style)
    return [(dash, old.end, style.newline.join(lines).lstrip(" "))]


def without(text: str, node: YamlNode, at: int) -> list[Splice]:
    """Remove a pair or an item. A block collection must have others; for the last one use `emptied`."""
    if node.flow:
        return _flow_without(text, node, at)
    return _block_without_pair(text, node, at) if node.kind == MAPPING else _block_without_item(text, node, at)


def emptied(text: str, node: YamlNode, behind: int) -> list[Splice]:
    """Remove the only entry of a block collection: it becomes brackets `behind` its key."""
    column = column_of(text, content(text, node))
    end = end_with_comments(text, node.end, column)
    brackets = " {}" if node.kind == MAPPING else " []"
    return [(behind, behind, brackets), (*whole_lines(text, content(text, node), end), "")]


def _flow_added(text: str, node: YamlNode, written: str, style: YamlStyle) -> list[Splice]:
    spans = _spans(node)
    if not spans:
        inside = content(text, node) + 1
        return [(inside, inside, written)]
    begin, end = spans[-1]
    comma = _after_comma(text, end)
    behind = comma or end
    indent = text[line_start(text, begin) : begin]
    if indent.strip():  # the entries are on the same line
        return [(behind, behind, f" {written}," if comma else f", {written}")]
    last = line_end(text, behind)
    line = (newline_at(text, last) or style.newline) + indent + written + ("," if comma else "")
    if not _REST_OF_LINE.match(text, behind):
        return [(behind, behind, line if comma else f",{line}")]
    if comma or last == behind:
        return [(last, last, line if comma else f",{line}")]
    return [(behind, behind, ","), (last, last, line)]


def _block_added(text: str, node: YamlNode, column: int, lines: list[str], style: YamlStyle) -> list[Splice]:
    end = end_with_comments(text, node.end, column)
    newline = newline_at(text, end) or style.newline  # a removal of these lines may take either line break with them
    return [(end, end, "".join(newline + line for line in lines))]


def _added_before(text: str, begin: int, lines: list[str], style: YamlStyle) -> list[Splice]:
    if text[line_start(text, begin) : begin].strip():
        raise unsafe(text, begin)
    at = start_with_comments(text, begin)
    return [(at, at, "".join(line + style.newline for line in lines))]


def _flow_without(text: str, node: YamlNode, at: int) -> list[Splice]:
    spans = _spans(node)
    begin, end = spans[at]
    comma = _after_comma(text, end)
    behind = comma or end
    former = spans[at - 1][1] if at else begin
    before = (_after_comma(text, former) or former) if at else begin  # after the comma before it
    needless: list[Splice] = [(before - 1, before, "")] if at and not comma else []
    start, rest = line_start(text, begin), _REST_OF_LINE.match(text, behind)
    if rest and not text[start:begin].strip():
        return [*needless, (*whole_lines(text, begin, rest.end()), "")]
    if at + 1 < len(spans) and not text[behind : spans[at + 1][0]].strip(" \t"):
        return [(begin, spans[at + 1][0], "")]
    if at and not text[former:begin].strip(", \t\r\n"):
        return [(before, behind, "")] if comma else [(former, end, "")]
    return [*needless, (begin, behind, "")]  # there is a comment before it


def _block_without_pair(text: str, node: YamlNode, at: int) -> list[Splice]:
    key, value = node.pairs[at]
    end = end_with_comments(text, value.end, column_of(text, key.begin))
    if _BEFORE_A_KEY.fullmatch(text[line_start(text, key.begin) : key.begin]):
        return [(*whole_lines(text, key.begin, end, node.items[2 * at - 1] if at else None), "")]
    if at + 1 == len(node.pairs):
        raise unsafe(text, key.begin)
    following = node.pairs[at + 1][0].begin  # the pair is on the line of a dash
    if line_start(text, following) <= end + 2 and after_blanks(text, end) == following:
        return [(key.begin, following, "")]
    return [(len(text[: key.begin].rstrip(" \t")), end, "")]  # comments are between them


def _block_without_item(text: str, node: YamlNode, at: int) -> list[Splice]:
    dash = dashes(text, node)[at]
    if text[line_start(text, dash) : dash].strip(" "):
        raise unsafe(text, dash)
    end = end_with_comments(text, max(node.items[at].end, dash + 1), column_of(text, dash))
    return [(*whole_lines(text, dash, end, node.items[at - 1] if at else None), "")]


def _quote_of(node: YamlNode) -> str:
    """The quote of the last key or item, so that JSON within YAML is continued as JSON."""
    if node.kind == SCALAR:
        return node.style
    return _quote_of(node.items[-2 if node.kind == MAPPING else -1]) if node.items else ""


def _spans(node: YamlNode) -> list[tuple[int, int]]:
    if node.kind == MAPPING:
        return [(key.begin, max(key.end, value.end)) for key, value in node.pairs]
    return [(item.begin, item.end) for item in node.items]


def _after_comma(text: str, end: int) -> int | None:
    at = after_blanks(text, end)
    return at + 1 if text[at : at + 1] == "," else None
