"""Changes of flow collections, which stand in brackets, on one line or on several: `{key: value}`, `[item]`."""

from __future__ import annotations

import re

from .document import Splice
from .yaml_layout import in_flow, line_end, line_start, newline_at, pair_in_flow, whole_lines
from .yaml_nodes import MAPPING, SCALAR, YamlNode, after_blanks, after_colon, content

_REST_OF_LINE = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\r\n]*)?(?=[\r\n])")


def fits_on_brackets(old: YamlNode, value: object) -> bool:
    """A collection in brackets, with something in them, that becomes another one: it keeps its form."""
    return old.flow and bool(old.items) and isinstance(value, (list, dict))


def is_empty(text: str, node: YamlNode) -> bool:
    """Brackets with nothing in them, not even a comment, say nothing about form."""
    return node.flow and node.is_bare and not text[node.begin + 1 : node.end - 1].strip()


def added_pair(text: str, node: YamlNode, key: str, value: object, newline: str) -> list[Splice]:
    return _added(text, node, pair_in_flow(key, value, quote=quote_of(node)), newline)


def added_item(text: str, node: YamlNode, value: object, newline: str) -> list[Splice]:
    return _added(text, node, in_flow(value, quote=quote_of(node)), newline)


def replaced_value(text: str, node: YamlNode, at: int, value: object) -> list[Splice]:
    key, old = node.pairs[at]
    written = in_flow(value, quote=quote_of(node if old.is_nothing else old))
    if old.is_nothing:
        written = f" {written}" if after_colon(text, key) else f": {written}"
    return [(old.begin, old.end, written)]


def replaced_item(node: YamlNode, at: int, value: object) -> list[Splice]:
    old = node.items[at]
    return [(old.begin, old.end, in_flow(value, quote=quote_of(node)))]


def without(text: str, node: YamlNode, at: int) -> list[Splice]:
    """A collection in brackets without one of its pairs or items, and with as many commas as it needs."""
    spans = _spans(node)
    begin, end = spans[at]
    comma = _after_comma(text, end)
    behind = comma or end
    former = spans[at - 1][1] if at else begin
    before = (_after_comma(text, former) or former) if at else begin  # behind the comma before it
    needless: list[Splice] = [(before - 1, before, "")] if at and not comma else []
    start, rest = line_start(text, begin), _REST_OF_LINE.match(text, behind)
    if rest and not text[start:begin].strip():
        return [*needless, (*whole_lines(text, begin, rest.end()), "")]
    if at + 1 < len(spans) and not text[behind : spans[at + 1][0]].strip(" \t"):
        return [(begin, spans[at + 1][0], "")]
    if at and not text[former:begin].strip(", \t\r\n"):
        return [(before, behind, "")] if comma else [(former, end, "")]
    return [*needless, (begin, behind, "")]  # a comment stands before it


def quote_of(node: YamlNode) -> str:
    """The quote of the last key, or item: who writes JSON into YAML goes on to do so."""
    if node.kind == SCALAR:
        return node.style
    return quote_of(node.items[-2 if node.kind == MAPPING else -1]) if node.items else ""


def _added(text: str, node: YamlNode, written: str, newline: str) -> list[Splice]:
    spans = _spans(node)
    if not spans:
        inside = content(text, node) + 1
        return [(inside, inside, written)]
    begin, end = spans[-1]
    comma = _after_comma(text, end)
    behind = comma or end
    indent = text[line_start(text, begin) : begin]
    if indent.strip():  # entries stand beside one another
        return [(behind, behind, f" {written}," if comma else f", {written}")]
    last = line_end(text, behind)
    line = (newline_at(text, last) or newline) + indent + written + ("," if comma else "")
    if not _REST_OF_LINE.match(text, behind):
        return [(behind, behind, line if comma else f",{line}")]
    if comma or last == behind:
        return [(last, last, line if comma else f",{line}")]
    return [(behind, behind, ","), (last, last, line)]


def _spans(node: YamlNode) -> list[tuple[int, int]]:
    if node.kind == MAPPING:
        return [(key.begin, max(key.end, value.end)) for key, value in node.pairs]
    return [(item.begin, item.end) for item in node.items]


def _after_comma(text: str, end: int) -> int | None:
    at = after_blanks(text, end)
    return at + 1 if text[at : at + 1] == "," else None
