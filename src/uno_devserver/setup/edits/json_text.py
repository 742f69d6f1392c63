"""A JSON file in which an entry is changed, and not one byte beside it: comments, order, indentation, line ends stay.

A strict text stays strict; one with comments and trailing commas is read as its client reads it. Every new text is
read again and compared with the old one, twins and digits included, before anybody gets it.
"""

from __future__ import annotations

import json

from ...system.jsonc import JsonProblem, members, parse_strict, without_comments, without_trailing_commas
from .document import NO_ROOT_OBJECT, UNSAFE, EditProblem, Entry, Remark, WrongKind
from .json_object import JsonObject, same
from .json_style import Style, style_of, written
from .splices import newline_of, spliced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Pairs = tuple[tuple[str, object], ...]

_BLANK = " \t\r\n"  # JSON knows no other
_KINDS = {"[": "an array", '"': "a string", "n": "null", "t": "a boolean", "f": "a boolean"}


class JsonDocument:
    """The servers are the members of the object that `root` leads to; of twins on the way the last counts."""

    def __init__(self, text: str, root: tuple[str, ...]) -> None:
        self._text = text
        self._root = root
        try:
            self._read()
        except JsonProblem as problem:
            raise EditProblem(problem.reason, problem.line, problem.column) from problem
        except RecursionError as error:
            raise EditProblem("nested too deeply") from error

    @property
    def remarks(self) -> tuple[Remark, ...]:
        if self._strict:
            return ()
        bare = without_comments(self._text)
        comment, comma = _first_difference(self._text, bare), _first_difference(bare, self._plain)
        found = (Remark("a comment", comment), Remark("a trailing comma", comma))
        return tuple(remark for remark in found if remark.line)

    def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
        wanted = dict(settings)

        def as_wanted(new: JsonDocument, was: Pairs, now: Pairs) -> bool:
            index = len(was) if at is None else at
            key, value = was[index] if at is not None else (name, ())
            put = new.entries[index].settings or {}
            return (
                _without(now, [index]) == _without(was, [index])
                and now[index][0] == key
                and all(key in put and same(put[key], wanted[key]) for key in wanted)
                and _others(now[index][1], {*wanted, *drop}) == _others(value, {*wanted, *drop})
            )

        if at is None:
            return self._checked(self._with_new(name, wanted), as_wanted)
        servers = self._object()
        if self.entries[at].settings is None:
            servers = servers.with_value(at, wanted)
        else:
            servers = servers.with_text(at, servers.inner(at).edited(wanted, drop).text)
        return self._checked(self._with_object(servers), as_wanted)

    def remove(self, indexes: Collection[int]) -> str:
        if not indexes:
            return self._text
        servers = self._object()
        for at in sorted(set(indexes), reverse=True):
            servers = servers.without(at)
        return self._checked(self._with_object(servers), lambda _, was, now: now == _without(was, indexes))

    def _read(self) -> None:
        self._plain = _plain(self._text)
        self._strict = self._plain == self._text
        self._missing = self._root
        self.entries: tuple[Entry, ...] = ()
        self._start = len(self._plain) - len(self._plain.lstrip(_BLANK))
        self._end = len(self._plain.rstrip(_BLANK))
        if self._start >= self._end:
            return
        if self._plain[self._start] != "{":
            raise EditProblem(NO_ROOT_OBJECT)
        self._style = style_of(self._text, self._start, self._end)
        while self._missing:
            twins = [member for member in members(self._plain, self._start) if member.name == self._missing[0]]
            if not twins:
                return
            self._start, self._end = twins[-1].value, twins[-1].end
            if self._plain[self._start] != "{":
                raise self._no_object(twins[-1].name)
            self._missing = self._missing[1:]
        servers = self._object()
        values = [servers.value(at) for at in range(len(servers.members))]
        self.entries = tuple(
            Entry(member.name, value if isinstance(value, dict) else None)
            for member, value in zip(servers.members, values, strict=True)
        )

    def _no_object(self, name: str) -> EditProblem:
        kind = _KINDS.get(self._plain[self._start], "a number")
        line = self._plain.count("\n", 0, self._start) + 1
        column = self._start - self._plain.rfind("\n", 0, self._start)
        return WrongKind(f"{json.dumps(name, ensure_ascii=False)} is {kind}, not an object", line, column)

    def _object(self) -> JsonObject:
        """The servers, or the last object on the way to them that is there."""
        begin = max(self._text.rfind("\n", 0, self._start), self._text.rfind("\r", 0, self._start)) + 1
        line = self._text[begin : self._start]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        return JsonObject(self._text[self._start : self._end], self._style, indent, strict=self._strict)

    def _with_object(self, changed: JsonObject) -> str:
        return spliced(self._text, [(self._start, self._end, changed.text)])

    def _with_new(self, name: str, settings: dict[str, object]) -> str:
        first, *path = *self._missing, name
        value = settings
        for key in reversed(path):
            value = {key: value}
        if self._start < self._end:
            return self._with_object(self._object().with_new(first, value, like_last=not self._missing))

        # Nothing but comments: the object comes behind them.
        style = Style(newline=newline_of(self._text))
        new = written({first: value}, style, "")
        at = len(self._text.rstrip(_BLANK))
        if at:
            at += len(self._text[at:]) - len(self._text[at:].lstrip(" \t"))
            new = style.newline + new
        return spliced(self._text, [(at, at, new if self._text[at:] else new + style.newline)])

    def _checked(self, text: str, as_wanted: Callable[[JsonDocument, Pairs, Pairs], bool]) -> str:
        """The new text, if it means what the old one did but for the servers, and these are as wanted."""
        if text == self._text:
            return text
        try:
            new = JsonDocument(text, self._root)
            before, after = _meaning(self._plain), _meaning(new._plain)
            was, now = _servers(before, self._root), _servers(after, self._root)
            right = (
                (new._strict or not self._strict)
                and _with_servers(before, self._root, now) == after
                and as_wanted(new, was, now)
            )
        except (EditProblem, RecursionError) as error:
            raise EditProblem(UNSAFE) from error
        if not right:
            raise EditProblem(UNSAFE)
        return text


def _plain(text: str) -> str:
    """The text with spaces for what strict JSON does not know, or blank; raises JsonProblem."""
    try:
        parse_strict(text)
    except JsonProblem:
        plain = without_trailing_commas(without_comments(text))
        if plain.strip(_BLANK):
            if plain == text:
                raise
            parse_strict(plain)
        return plain
    return text


def _first_difference(one: str, other: str) -> int:
    """The number of the first line that differs, or 0."""
    lines = zip(one.split("\n"), other.split("\n"), strict=True)
    return next((number for number, (this, that) in enumerate(lines, 1) if this != that), 0)


def _meaning(plain: str) -> Pairs:
    """All of it: objects as pairs, so that twins count, and numbers as their digits in bytes, which equal no string."""
    if not plain.strip(_BLANK):
        return ()
    digits = str.encode
    meaning: Pairs = json.loads(
        plain, object_pairs_hook=tuple, parse_int=digits, parse_float=digits, parse_constant=digits
    )
    return meaning


def _servers(meaning: Pairs, root: tuple[str, ...]) -> Pairs:
    for name in root:
        meaning = dict(meaning).get(name, ())  # type: ignore[assignment]  # objects, as the document found
    return meaning


def _with_servers(meaning: Pairs, root: tuple[str, ...], servers: Pairs) -> Pairs:
    if not root:
        return servers
    names = [name for name, _ in meaning]
    if root[0] not in names:
        return (*meaning, (root[0], _with_servers((), root[1:], servers)))
    last = len(names) - 1 - names[::-1].index(root[0])
    inner: Pairs = meaning[last][1]  # type: ignore[assignment]
    return (*meaning[:last], (root[0], _with_servers(inner, root[1:], servers)), *meaning[last + 1 :])


def _without(pairs: Pairs, indexes: Collection[int]) -> Pairs:
    return tuple(pair for index, pair in enumerate(pairs) if index not in indexes)


def _others(value: object, names: Collection[str]) -> Pairs:
    """The members of an object that have none of these names."""
    return tuple(pair for pair in value if pair[0] not in names) if isinstance(value, tuple) else ()
