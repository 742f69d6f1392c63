"""A YAML text as nodes that know where they stand; aliases stay references, so that nothing grows or goes in circles.

Built from the parser's events without recursion: a text of many brackets is refused, and ends no interpreter.
"""

from __future__ import annotations

import re

from ...system.values import Value
from .document import EditProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SCALAR, SEQUENCE, MAPPING, ALIAS = "scalar", "list", "mapping", "alias"

BLOCK_SCALARS = ("|", ">")

MAX_DEPTH = 100  # configurations have five levels; what walks over nodes recurses

_BLANKS = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_COLON = re.compile(r"[ \t]*:")
_PROPERTY = re.compile(r"&[^\s,\[\]{}]+|!<[^>\s]*>|![^\s,\[\]{}]*")
_KEEPS_BLANK_LINES = re.compile(r"[|>][0-9]?\+")


class Node(Value):
    kind: str
    begin: int  # of its anchor or tag, if it has one
    end: int  # behind its last character: comments and blank lines are outside
    value: str = ""  # of a scalar; of an alias, the anchor's name
    style: str = ""  # of a scalar: its quote, `|` or `>`; "": plain
    flow: bool = False
    tag: str | None = None
    anchor: str | None = None
    items: tuple[Node, ...] = ()  # of a mapping: key, value, key, value ...
    target: Node | None = None  # of an alias; None: something that the alias is in

    @property
    def pairs(self) -> tuple[tuple[Node, Node], ...]:
        return tuple(zip(self.items[::2], self.items[1::2], strict=True))

    @property
    def is_bare(self) -> bool:
        """It has neither tag nor anchor."""
        return self.tag is None and self.anchor is None

    @property
    def is_nothing(self) -> bool:
        """No character stands for it: `key:`."""
        return self.kind == SCALAR and self.is_bare and self.begin == self.end


class Stream(Value):
    top: Node | None  # None: blank, comments only, or `---` with nothing behind it
    end: int  # where the document ends: the end of the text, or the `...`


def read(text: str) -> Stream:
    """The one document of a text; raises EditProblem."""
    import yaml

    loader: Any = yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader
    try:
        return _stream(text, yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.problem, error.context) if part) or "cannot be read"
        mark = error.problem_mark
        if mark is None:
            raise EditProblem(reason) from error
        raise EditProblem(reason, mark.line + 1, mark.column + 1) from error
    except yaml.YAMLError as error:  # a character that YAML does not know; it is not told in the same unit everywhere
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        raise problem_at(text, found.start() if found else 0, "holds a control character") from error
    except UnicodeEncodeError as error:
        raise problem_at(text, error.start, "holds half of a character") from error


def problem_at(text: str, at: int, reason: str) -> EditProblem:
    lines = re.split(r"\r\n|\r|\n", text[:at])
    return EditProblem(reason, len(lines), len(lines[-1]) + 1)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    yield node
    for item in node.items:
        yield from walk(item)


def after_blanks(text: str, at: int) -> int:
    """Behind blanks, line breaks and comments."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def after_colon(text: str, key: Node) -> int | None:
    """Behind the colon of a key; None where that is not on the key's line (`? key`), or missing (`{key}`)."""
    found = _COLON.match(text, key.end)
    return found.end() if found else None


def after_properties(text: str, node: Node) -> int:
    """Behind the anchor and the tag of a node."""
    end = at = node.begin
    while not node.is_bare and (found := _PROPERTY.match(text, at)):
        end = found.end()
        at = after_blanks(text, end)
    return end


def content(text: str, node: Node) -> int:
    """Where a node begins that may have an anchor or a tag."""
    return node.begin if node.is_bare else after_blanks(text, after_properties(text, node))


def keeps_blank_lines(text: str, node: Node) -> bool:
    """A block scalar to which the blank lines below belong: `|+`."""
    return node.style in BLOCK_SCALARS and _KEEPS_BLANK_LINES.match(text, content(text, node)) is not None


class _Open(Value):
    """A collection whose end has not come yet."""

    event: Any
    kind: str
    items: list[Node]


def _stream(text: str, events: Iterator[Any]) -> Stream:
    import yaml

    top: Node | None = None
    end = len(text)
    documents = 0
    stack: list[_Open] = []
    anchors: dict[str, Node | None] = {}
    for event in events:
        node: Node | None = None
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
            node = Node(ALIAS, begin, _end(event), event.anchor, target=anchors[event.anchor])
        if node is None:
            continue
        if node.anchor is not None:
            anchors[node.anchor] = node
        if stack:
            stack[-1].items.append(node)
        else:
            top = node
    return Stream(None if top is not None and top.is_nothing else top, end)


def _collection(text: str, opened: _Open, closing: Any) -> Node:
    event, items = opened.event, opened.items
    if opened.kind == MAPPING:
        for at in range(1, len(items), 2):
            if items[at].is_nothing:  # the parser puts it before what comes next, lines further down
                place = after_colon(text, items[at - 1]) or items[at - 1].end
                items[at] = items[at].replace(begin=place, end=place)
    flow = bool(event.flow_style)
    end = _end(closing) if flow or not items else items[-1].end
    # All fields by position: that is three times as fast, and a file may hold many thousands of nodes.
    return Node(opened.kind, _begin(event), end, "", "", flow, event.tag, event.anchor, tuple(items), None)


def _scalar(text: str, event: Any) -> Node:
    begin, end, style = _begin(event), _end(event), event.style or ""
    node = Node(SCALAR, begin, end, event.value, style, False, event.tag, event.anchor, (), None)
    if style not in BLOCK_SCALARS:
        return node
    raw = text[begin:end]  # with its line break, and the blank lines below, which count only where they are kept
    if keeps_blank_lines(text, node):
        raw = raw.removesuffix("\n").removesuffix("\r")
    else:
        raw = raw.rstrip(" \t\r\n")
    return node.replace(end=begin + len(raw))


def _begin(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)
