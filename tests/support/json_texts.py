"""JSON texts as people and programs write them, made from random values: for tests that change them.

Each comes with the places of its servers, known from the writing, not from any reader.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Pairs = list[tuple[str, Any]]  # an object, in which names may come twice


class Members(list[tuple[str, Any]]):
    """An object to be written, beside lists, which are arrays."""


# Names and strings that a careless reader takes for a comment, the end of a string, or another token.
TRAPS = ["", "//", "/*", "*/", "/* x */", "http://localhost/", '"', '\\"', "\\", ",}", "{", "é", "\u2028", "\U0001f600"]
COMMENTS = ["", " why", " , ] }", ' "', " /* ", " //", " {", ' "UnoApp": {},', " é", "\t", " * ", "/"]

NAMES = st.sampled_from([*TRAPS, "command", "args", "env", "url", "type", "disabled"]) | st.text(max_size=4)
STRINGS = st.sampled_from(TRAPS) | st.text(max_size=6)
PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, 1e300, -0.0]) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
SETTINGS = st.dictionaries(NAMES, PLAIN_VALUES, max_size=4)


@dataclass(frozen=True)
class Layout:
    newline: str
    unit: str
    lines: str  # "one", "many", or "any": blanks and line breaks wherever they may stand
    colon: str
    comments: bool
    trailing_commas: bool


@dataclass(frozen=True)
class Place:
    """Where a server stands in the text."""

    name: str
    value: Any  # with a dictionary for an object: of twins the last counts
    key: int
    begin: int  # of the value
    end: int


@dataclass(frozen=True)
class JsonText:
    text: str
    layout: Layout
    servers: tuple[Place, ...] | None  # None: there is no object for them
    only_blanks: bool  # that object has neither servers nor comments, but blanks between its braces

    @property
    def strict(self) -> bool:
        try:
            json.loads(self.text)
        except ValueError:
            return False
        return True


LAYOUTS = st.builds(
    Layout,
    newline=st.sampled_from(["\n", "\r\n"]),
    unit=st.sampled_from(["  ", "    ", "\t", " "]),
    lines=st.sampled_from(["one", "many", "many", "any"]),
    colon=st.sampled_from([": ", ":", " : "]),
    comments=st.booleans(),
    trailing_commas=st.booleans(),
)


@st.composite
def json_texts(
    draw: st.DrawFn, root: tuple[str, ...] = ("mcpServers",), *, with_servers: bool | None = None
) -> JsonText:
    """Documents with an object at the top; `with_servers`: whether `root` leads to one in them (None: either)."""
    layout = draw(LAYOUTS)
    chance = random.Random(draw(st.integers(0, 2**32)))  # hypothesis' own takes most of the time
    there = draw(st.booleans()) if with_servers is None else with_servers
    entries = st.tuples(NAMES, PLAIN_VALUES | SETTINGS)
    document: Any = Members(draw(st.lists(entries, max_size=3))) if there else None
    others = st.lists(entries.filter(lambda pair: pair[0] not in root), max_size=2)
    for name in reversed(root):
        twin = [(name, draw(PLAIN_VALUES))] if there and draw(st.integers(0, 4)) == 0 else []
        here = [(name, document)] if document is not None else []
        document = Members(twin + draw(others) + here + draw(others))
    return _Writer(layout, chance, root if there else None).document(document)


@dataclass
class _Writer:
    layout: Layout
    chance: random.Random
    root: tuple[str, ...] | None
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    servers: list[Place] = field(default_factory=list)
    only_blanks: bool = False

    def document(self, value: Members) -> JsonText:
        if self.layout.comments and self.chance.random() < 0.5:
            self._add(self._comment() + self.layout.newline)
        self._value(value, "", self.root)
        self._add(self.chance.choice(["", self.layout.newline, self.layout.newline * 2, " "]))
        if self.layout.comments and self.chance.random() < 0.3:
            self._add(self._comment())  # the very end, without a line break
        servers = None if self.root is None else tuple(self.servers)
        return JsonText("".join(self.pieces), self.layout, servers, self.only_blanks)

    def _value(self, value: Any, indent: str, root: tuple[str, ...] | None) -> None:
        """`root` is what leads from this value to the servers; None: they are somewhere else."""
        if isinstance(value, Members | dict):
            self._members(list(value.items() if isinstance(value, dict) else value), indent, root)
        elif isinstance(value, list):
            self._add("[")
            for number, item in enumerate(value):
                self._add("," if number else "")
                self._gap(indent + self.layout.unit if self.layout.lines == "many" and len(value) > 2 else None)
                self._value(item, indent + self.layout.unit, None)
            self._end(len(value), indent if len(value) > 2 else None)
            self._add("]")
        else:
            self._add(self._scalar(value))

    def _members(self, pairs: Pairs, indent: str, root: tuple[str, ...] | None) -> None:
        # A short object often stands on one line in a text that has many.
        lines = self.layout.lines == "many" and (root is not None or self.chance.random() < 0.7)
        inner = indent + self.layout.unit if lines else None
        begin = self.length
        self._add("{")
        last = {name: number for number, (name, _) in enumerate(pairs)}
        for number, (name, value) in enumerate(pairs):
            self._add("," if number else "")
            self._gap(inner)
            key = self.length
            self._add(self._scalar(name))
            self._add(self.layout.colon if self.layout.lines != "any" else self._noise() + ":" + self._noise())
            place = self.length
            on_the_way = root and name == root[0] and number == last[name]
            self._value(value, indent + self.layout.unit, root[1:] if root and on_the_way else None)
            if root == ():
                self.servers.append(Place(name, value, key, place, self.length))
        self._end(len(pairs), indent if lines else None)
        self._add("}")
        if root == ():
            self.only_blanks = "".join(self.pieces)[begin + 1 : -1].isspace()

    def _gap(self, indent: str | None) -> None:
        """What stands before an item: in lines, perhaps a comment behind the last item and one before this."""
        if self.layout.lines == "any":
            self._add(self._noise())
        elif indent is None:
            self._add(" " if self.layout.colon == ": " else "")
            if self.layout.comments and self.chance.random() < 0.1:
                self._add(self._block_comment() + " ")
        else:
            if self.layout.comments and self.chance.random() < 0.3:
                self._add(" " + self._comment())
            self._add(self.chance.choice([self.layout.newline] * 5 + [self.layout.newline * 2]))
            if self.layout.comments and self.chance.random() < 0.3:
                self._add(indent + self._comment() + self.layout.newline)
            self._add(indent)

    def _end(self, count: int, indent: str | None) -> None:
        """What stands behind the last item, or alone."""
        if self.layout.lines == "any":
            self._add(self._noise())
        if count and self.layout.trailing_commas and self.chance.random() < 0.7:
            self._add(",")
        if self.layout.lines == "any":
            self._add(self._noise())
        elif count or self.chance.random() < 0.3:
            self._gap(indent)

    def _noise(self) -> str:
        choices = ["", " ", "\t", self.layout.newline, self.layout.newline + self.layout.unit, "  "]
        if self.layout.comments:
            choices += [self._block_comment(), " " + self._comment() + self.layout.newline, self._block_comment()]
        return self.chance.choice(choices)

    def _comment(self) -> str:
        """One to which nothing can be added on its line."""
        return "//" + self.chance.choice(COMMENTS) if self.chance.random() < 0.7 else self._block_comment()

    def _block_comment(self) -> str:
        return "/*" + self.chance.choice([*COMMENTS, "* /* " + self.layout.newline + " *"]) + "*/"

    def _scalar(self, value: Any) -> str:
        text = json.dumps(value, ensure_ascii=self.chance.random() < 0.5)
        return text.replace("/", "\\/") if self.chance.random() < 0.2 else text

    def _add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.length += len(piece)
