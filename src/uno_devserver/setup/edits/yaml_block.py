"""Changes of block collections, which are lines: `key: value`, `- item`."""

from __future__ import annotations

import re

from .document import Splice
from .yaml_flow import fits_on_brackets, quote_of
from .yaml_layout import (
    YamlStyle,
    column_of,
    dashes,
    end_with_comments,
    in_flow,
    in_lines,
    items_in_lines,
    line_end,
    line_start,
    newline_at,
    pairs_in_lines,
    scalar,
    unsafe,
    whole_lines,
)
from .yaml_nodes import MAPPING, YamlNode, after_blanks, after_colon, content

_BEFORE_A_KEY = re.compile(r"[ \t]*(?:\?[ \t]+)?")


def added_pair(text: str, node: YamlNode, key: str, value: object, style: YamlStyle) -> list[Splice]:
    """Behind the last pair of a block mapping."""
    column = column_of(text, content(text, node))
    return _lines_behind(text, node, column, pairs_in_lines({key: value}, column, style), style)


def added_item(text: str, node: YamlNode, value: object, style: YamlStyle) -> list[Splice]:
    """Behind the last item of a block list."""
    column = column_of(text, dashes(text, node)[-1])
    return _lines_behind(text, node, column, items_in_lines([value], column, style), style)


def at_the_end(text: str, end: int, column: int, key: str, value: object, style: YamlStyle) -> list[Splice]:
    """Behind all lines of the document."""
    lines = style.newline.join(pairs_in_lines({key: value}, column, style))
    if end and text[end - 1] not in "\r\n":
        return [(end, end, style.newline + lines)]
    return [(end, end, lines + style.newline)]


def replaced_value(text: str, node: YamlNode, at: int, value: object, style: YamlStyle) -> list[Splice]:
    """Another value for a key of a block mapping; a comment on the key's line stays."""
    key, old = node.pairs[at]
    colon = after_colon(text, key)
    if colon is None:
        raise unsafe(text, key.begin)
    if fits_on_brackets(old, value):
        return [(old.begin, old.end, in_flow(value, quote=quote_of(old)))]
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
    """Another value for an item of a block list."""
    dash, old = dashes(text, node)[at], node.items[at]
    if line_start(text, dash) != line_start(text, old.end):
        raise unsafe(text, dash)
    lines = items_in_lines([value], column_of(text, dash), style)
    return [(dash, old.end, style.newline.join(lines).lstrip(" "))]


def without_pair(text: str, node: YamlNode, at: int) -> list[Splice]:
    """A block mapping without the lines of one of its pairs; it has others."""
    key, value = node.pairs[at]
    end = end_with_comments(text, value.end, column_of(text, key.begin))
    if _BEFORE_A_KEY.fullmatch(text[line_start(text, key.begin) : key.begin]):
        return [(*whole_lines(text, key.begin, end, node.items[2 * at - 1] if at else None), "")]
    if at + 1 == len(node.pairs):
        raise unsafe(text, key.begin)
    following = node.pairs[at + 1][0].begin  # the pair stands behind the dash of a list
    if line_start(text, following) <= end + 2 and after_blanks(text, end) == following:
        return [(key.begin, following, "")]
    return [(len(text[: key.begin].rstrip(" \t")), end, "")]  # comments are between them


def without_item(text: str, node: YamlNode, at: int) -> list[Splice]:
    """A block list without the lines of one of its items; it has others."""
    dash = dashes(text, node)[at]
    if text[line_start(text, dash) : dash].strip(" "):
        raise unsafe(text, dash)
    end = end_with_comments(text, max(node.items[at].end, dash + 1), column_of(text, dash))
    return [(*whole_lines(text, dash, end, node.items[at - 1] if at else None), "")]


def emptied(text: str, node: YamlNode, behind: int) -> list[Splice]:
    """A block collection without its only entry, as brackets, which go `behind` its key."""
    column = column_of(text, content(text, node))
    end = end_with_comments(text, node.end, column)
    brackets = " {}" if node.kind == MAPPING else " []"
    return [(behind, behind, brackets), (*whole_lines(text, content(text, node), end), "")]


def _lines_behind(text: str, node: YamlNode, column: int, lines: list[str], style: YamlStyle) -> list[Splice]:
    end = end_with_comments(text, node.end, column)
    newline = newline_at(text, end) or style.newline  # either break may go with these lines again
    return [(end, end, "".join(newline + line for line in lines))]
