"""A YAML text as a tree of nodes with positions, and the values of the nodes.

Aliases stay references, so that the tree neither explodes nor becomes cyclic. It is built from the parser's events
without recursion, so that deep nesting is refused instead of overflowing the stack.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ...system.values import Value
from .document import EditProblem, spliced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SCALAR, SEQUENCE, MAPPING, ALIAS = "scalar", "list", "mapping", "alias"

BLOCK_SCALARS = ("|", ">")

MAX_DEPTH = 100  # configurations have five levels; functions that walk over nodes recurse
MAX_REFERRED = 10_000  # nodes read through aliases: the entries of a real configuration have dozens

_BLANKS = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_COLON = re.compile(r"[ \t]*:")
_PROPERTY = re.compile(r"&[^\s,\[\]{}]+|!<[^>\s]*>|![^\s,\[\]{}]*")
_BLANK_LINE_WITH_TAB = re.compile(r"^ *\t[ \t]*(?=\r?$)", re.MULTILINE)
_KEEPS_BLANK_LINES = re.compile(r"[|>][0-9]?\+")

# How plain texts are read as values.
_TAGS = "tag:yaml.org,2002:"
_NULLS = ("", "~", "null", "Null", "NULL")
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}|0o[0-7]+|0x[0-9a-fA-F]+")  # Python refuses longer decimal numbers
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class YamlNode(Value):
    kind: str
    begin: int  # of its anchor or tag, if it has one
    end: int  # behind its last character, without following comments and blank lines
    value: str = ""  # of a scalar; of an alias, the anchor's name
    style: str = ""  # of a scalar: its quote, `|` or `>`; "": plain
    flow: bool = False
    tag: str | None = None
    anchor: str | None = None
    items: tuple[YamlNode, ...] = ()  # of a mapping: key, value, key, value ...
    target: YamlNode | None = None  # of an alias; None: a node that contains the alias

    @property
    def pairs(self) -> tuple[tuple[YamlNode, YamlNode], ...]:
        return tuple(zip(self.items[::2], self.items[1::2], strict=True))

    @property
    def is_bare(self) -> bool:
        """Whether it has neither tag nor anchor."""
        return self.tag is None and self.anchor is None

    @property
    def is_nothing(self) -> bool:
        """Whether no character stands for it, as for the value in `key:`."""
        return self.kind == SCALAR and self.is_bare and self.begin == self.end


class YamlStream(Value):
    top: YamlNode | None  # None: blank, comments only, or `---` with nothing behind it
    end: int  # where the document ends: the end of the text, or the `...`


@lru_cache(maxsize=2)  # each edit of a file reads the result of the one before it
def read(text: str) -> YamlStream:
    """Parse a text with at most one document; raises EditProblem."""
    import yaml

    loader: Any = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader
    try:
        try:
            return _stream(text, yaml.parse(text, Loader=loader))
        except yaml.MarkedYAMLError:
            # YAML 1.2 and its newer parsers allow tabs in blank lines, but not before the text of a block scalar.
            without_tabs = _BLANK_LINE_WITH_TAB.sub(lambda line: " " * len(line[0]), text)
            if without_tabs == text:
                raise
            top = _stream(text, yaml.parse(without_tabs, Loader=loader)).top
            blocks = [node for node in walk(top) if node.style in BLOCK_SCALARS] if top is not None else []
            with_blocks = spliced(without_tabs, [(one.begin, one.end, text[one.begin : one.end]) for one in blocks])
            return _stream(text, yaml.parse(with_blocks, Loader=loader))
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.problem, error.context) if part) or "cannot be read"
        mark = error.problem_mark
        if mark is None:
            raise EditProblem(reason) from error
        raise EditProblem(reason, mark.line + 1, mark.column + 1) from error
    except yaml.YAMLError as error:  # a forbidden character; PyYAML and libyaml report its position in different units
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        raise problem_at(
            text, found.start() if found else 0, "contains a character that YAML does not allow"
        ) from error
    except UnicodeEncodeError as error:
        raise problem_at(text, error.start, "contains half of a surrogate pair") from error


def problem_at(text: str, at: int, reason: str, kind: type[EditProblem] = EditProblem) -> EditProblem:
    return kind(reason, *position_of(text, at))


def position_of(text: str, at: int) -> tuple[int, int]:
    """The line and column, which count from 1."""
    lines = re.split(r"\r\n|\r|\n", text[:at])
    return len(lines), len(lines[-1]) + 1


def walk(node: YamlNode) -> Iterator[YamlNode]:
    """Yield the node and all nodes below it, in the order of the text."""
    yield node
    for item in node.items:
        yield from walk(item)


def after_blanks(text: str, at: int) -> int:
    """The position after blanks, line breaks and comments."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def after_colon(text: str, key: YamlNode) -> int | None:
    """The position after the colon of a key; None if it is on another line (`? key`), or missing (`{key}`)."""
    found = _COLON.match(text, key.end)
    return found.end() if found else None


def after_properties(text: str, node: YamlNode) -> int:
    """The position after the anchor and the tag of a node."""
    end = at = node.begin
    while not node.is_bare and (found := _PROPERTY.match(text, at)):
        end = found.end()
        at = after_blanks(text, end)
    return end


def content(text: str, node: YamlNode) -> int:
    """The position where a node begins, behind its anchor and tag."""
    return node.begin if node.is_bare else after_blanks(text, after_properties(text, node))


def keeps_blank_lines(text: str, node: YamlNode) -> bool:
    """Whether the node is a block scalar that includes the blank lines below it: `|+`."""
    return node.style in BLOCK_SCALARS and _KEEPS_BLANK_LINES.match(text, content(text, node)) is not None


def last_leaf(node: YamlNode) -> YamlNode:
    """The last node below a node that has none below it, or the node itself."""
    while node.items:
        node = node.items[-1]
    return node


def lacks_line_break(text: str, node: YamlNode) -> bool:
    """Whether the node ends in a block scalar at the end of the text, which a further line would end or change."""
    leaf = last_leaf(node)
    return leaf.style in BLOCK_SCALARS and not re.search(r"[\r\n]", text[leaf.end :])


class _Open(Value):
    """A collection whose end event has not arrived yet."""

    event: Any
    kind: str
    items: list[YamlNode]


def _stream(text: str, events: Iterator[Any]) -> YamlStream:
    import yaml

    top: YamlNode | None = None
    end = len(text)
    documents = 0
    stack: list[_Open] = []
    anchors: dict[str, YamlNode | None] = {}
    for event in events:
        node: YamlNode | None = None
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise problem_at(text, _begin(event), "holds several documents; only one can be changed")
        elif isinstance(event, yaml.DocumentEndEvent):
            end = _begin(event) if event.explicit else end
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            stack.append(_Open(event, MAPPING if isinstance(event, yaml.MappingStartEvent) else SEQUENCE, []))
            if event.anchor is not None:
                anchors[event.anchor] = None
            if len(stack) > MAX_DEPTH:
                raise problem_at(text, _begin(event), "is nested too deeply")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            node = _collection(text, stack.pop(), event)
        elif isinstance(event, yaml.ScalarEvent):
            node = _scalar(text, event)
        elif isinstance(event, yaml.AliasEvent):
            begin = _begin(event)
            if event.anchor not in anchors:
                raise problem_at(text, begin, f"has no anchor for the alias *{event.anchor}")
            node = YamlNode(ALIAS, begin, _end(event), event.anchor, target=anchors[event.anchor])
        if node is None:
            continue
        if node.anchor is not None:
            anchors[node.anchor] = node
        if stack:
            stack[-1].items.append(node)
        else:
            top = node
    return YamlStream(None if top is not None and top.is_nothing else top, end)


def _collection(text: str, opened: _Open, closing: Any) -> YamlNode:
    event, items = opened.event, opened.items
    if opened.kind == MAPPING:
        for at in range(1, len(items), 2):
            if items[at].is_nothing:  # the parser puts it before the next token, lines further down
                place = after_colon(text, items[at - 1]) or items[at - 1].end
                items[at] = items[at].replace(begin=place, end=place)
    flow = bool(event.flow_style)
    end = _end(closing) if flow or not items else items[-1].end
    # Fields by position are three times as fast; a file may have many thousands of nodes.
    return YamlNode(opened.kind, _begin(event), end, "", "", flow, event.tag, event.anchor, tuple(items), None)


def _scalar(text: str, event: Any) -> YamlNode:
    begin, end, style = _begin(event), _end(event), event.style or ""
    node = YamlNode(SCALAR, begin, end, event.value, style, False, event.tag, event.anchor, (), None)
    if style not in BLOCK_SCALARS:
        return node
    raw = text[begin:end]  # includes the last line break, and blank lines below, which belong to it only with `+`
    if keeps_blank_lines(text, node):
        raw = raw.removesuffix("\n").removesuffix("\r")
    else:
        raw = raw.rstrip(" \t\r\n")
    return node.replace(end=begin + len(raw))


def _begin(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


# The values of nodes.


class ValueReader:
    """Converts the nodes of one text to values.

    Follows aliases up to MAX_REFERRED nodes in all, and to a depth of MAX_DEPTH, which each anchored node may have.
    """

    def __init__(self) -> None:
        self._referred = 0

    def of(self, node: YamlNode, depth: int = 0, *, referred: bool = False) -> object:
        if referred:
            self._referred += 1
            if self._referred > MAX_REFERRED:
                raise EditProblem("refers to too much through aliases")
        if depth > MAX_DEPTH:
            raise EditProblem("is nested too deeply through aliases")
        if node.kind == ALIAS:
            return self.of(referent(node), depth, referred=True)
        if node.kind == SCALAR:
            return _scalar_value(node)
        if node.tag not in (None, "!", f"{_TAGS}map", f"{_TAGS}seq"):
            return None  # sets, ordered maps and tags of applications
        if node.kind == SEQUENCE:
            return [self.of(item, depth + 1, referred=referred) for item in node.items]
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        for key, value in node.pairs:
            if is_merge(key):
                merged = {**self._merged(value, depth + 1, referred=referred), **merged}
            else:
                own[name_of(key)] = self.of(value, depth + 1, referred=referred)
        return {**merged, **own}

    def _merged(self, node: YamlNode, depth: int, *, referred: bool) -> dict[str, object]:
        """The settings that `<<` adds: those of a mapping, or of several, where the first one wins."""
        value = self.of(node, depth, referred=referred)
        several = value if isinstance(value, list) else [value]
        settings: dict[str, object] = {}
        for one in several:
            settings = {**(one if isinstance(one, dict) else {}), **settings}
        return settings


def name_of(node: YamlNode) -> str:
    """The text of a key or name, even if it is a number; "" for a collection."""
    found = referent(node)
    return found.value if found.kind == SCALAR else ""


def referent(node: YamlNode) -> YamlNode:
    while node.kind == ALIAS:
        if node.target is None:
            raise EditProblem(f"refers to itself through the alias *{node.value}")
        node = node.target
    return node


def is_merge(key: YamlNode) -> bool:
    return key.kind == SCALAR and key.is_bare and not key.style and key.value == "<<"


def is_null(node: YamlNode) -> bool:
    return node.kind == SCALAR and _scalar_value(node) is None


def kind_of(node: YamlNode) -> str:
    """The kind of a value, as a noun for messages."""
    if node.kind == SCALAR:
        value = _scalar_value(node)
        return "null" if value is None else "a text" if isinstance(value, str) else "a number or truth value"
    return {MAPPING: "a mapping", SEQUENCE: "a list"}[node.kind]


def _scalar_value(node: YamlNode) -> object:
    if node.tag in ("!", f"{_TAGS}str") or (node.tag is None and node.style):
        return node.value
    if node.tag is None or node.tag in [f"{_TAGS}{name}" for name in ("null", "bool", "int", "float")]:
        return _resolved(node.value)
    return None


def _resolved(text: str) -> object:
    if text in _NULLS:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
