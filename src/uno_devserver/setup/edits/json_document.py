"""JSON and JSONC documents: edits of one entry that keep all other bytes, with comments, order and indentation.

Strict JSON stays strict; a text with comments and trailing commas is read as its client reads it. Every new text is
parsed again and compared with the old one, including duplicate names and the digits of numbers.
"""

from __future__ import annotations

import json
import re

from ...system.jsonc import JsonProblem, members, parse_strict, without_comments, without_trailing_commas
from ...system.values import Value
from .document import (
    NO_ROOT_OBJECT,
    UNSAFE,
    EditProblem,
    Remark,
    ServerEntry,
    WrongKind,
    line_start,
    newline_of,
    same_value,
    spliced,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .document import Splice

    Pairs = tuple[tuple[str, object], ...]

_BLANK_CHARACTERS = " \t\r\n"
_SPACES_AND_TABS = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"[ \t\r\n]*")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_LINE_END = re.compile(r"[ \t]*[\r\n]")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)  # for use between tokens, where no string can be
_USUAL_COLONS = (": ", ":", " : ", " :")  # a colon with other blanks aligns values
_KINDS = {"[": "an array", '"': "a string", "n": "null", "t": "a boolean", "f": "a boolean"}


class JsonDocument:
    """The servers are the members of the object at the path `root`; of duplicate names on the path the last is used."""

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

    def spans(self, at: int) -> tuple[tuple[int, int], ...]:
        member = self._object().members[at]
        return ((self._start + member.key, self._start + member.end),)

    def put(self, at: int | None, name: str, settings: Mapping[str, object], drop: Collection[str] = ()) -> str:
        wanted = dict(settings)

        def as_wanted(new: JsonDocument, was: Pairs, now: Pairs) -> bool:
            index = len(was) if at is None else at
            key, value = was[index] if at is not None else (name, ())
            put = new.entries[index].settings or {}
            return (
                _without(now, [index]) == _without(was, [index])
                and now[index][0] == key
                and all(key in put and same_value(put[key], wanted[key]) for key in wanted)
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
        self.entries: tuple[ServerEntry, ...] = ()
        self._start = len(self._plain) - len(self._plain.lstrip(_BLANK_CHARACTERS))
        self._end = len(self._plain.rstrip(_BLANK_CHARACTERS))
        if self._start >= self._end:
            return
        if self._plain[self._start] != "{":
            raise EditProblem(NO_ROOT_OBJECT)
        self._style = _style_of(self._text, self._start, self._end)
        while self._missing:
            found = [member for member in members(self._plain, self._start) if member.name == self._missing[0]]
            if not found:
                return
            self._start, self._end = found[-1].value, found[-1].end
            if self._plain[self._start] != "{":
                raise self._no_object(found[-1].name)
            self._missing = self._missing[1:]
        servers = self._object()
        values = [servers.value(at) for at in range(len(servers.members))]
        self.entries = tuple(
            ServerEntry(member.name, value if isinstance(value, dict) else None)
            for member, value in zip(servers.members, values, strict=True)
        )

    def _no_object(self, name: str) -> EditProblem:
        kind = _KINDS.get(self._plain[self._start], "a number")
        line = self._plain.count("\n", 0, self._start) + 1
        column = self._start - self._plain.rfind("\n", 0, self._start)
        return WrongKind(f"{json.dumps(name, ensure_ascii=False)} is {kind}, not an object", line, column)

    def _object(self) -> JsonObject:
        """The servers, or the innermost existing object on the path to them."""
        begin = line_start(self._text, self._start)
        indent = self._text[begin : _behind(_SPACES_AND_TABS, self._text, begin)]
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

        # The file has only comments, or nothing: the object comes after them.
        style = JsonStyle(newline=newline_of(self._text))
        new = value_text({first: value}, style, "")
        at = len(self._text.rstrip(_BLANK_CHARACTERS))
        if at:
            at += len(self._text[at:]) - len(self._text[at:].lstrip(" \t"))
            new = style.newline + new
        return spliced(self._text, [(at, at, new if self._text[at:] else new + style.newline)])

    def _checked(self, text: str, as_wanted: Callable[[JsonDocument, Pairs, Pairs], bool]) -> str:
        """Return the new text; raises EditProblem unless the servers are as wanted, and all else means the same."""
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
    """The text with comments and trailing commas replaced by spaces; raises JsonProblem."""
    try:
        parse_strict(text)
    except JsonProblem:
        plain = without_trailing_commas(without_comments(text))
        if plain.strip(_BLANK_CHARACTERS):
            if plain == text:
                raise
            parse_strict(plain)
        return plain
    return text


def _first_difference(one: str, other: str) -> int:
    """The number of the first line that differs; 0 if there is none."""
    lines = zip(one.split("\n"), other.split("\n"), strict=True)
    return next((number for number, (this, that) in enumerate(lines, 1) if this != that), 0)


def _meaning(plain: str) -> Pairs:
    """The whole value: objects as pairs, to keep duplicates, and numbers as their digits in bytes, not strings."""
    if not plain.strip(_BLANK_CHARACTERS):
        return ()
    digits = str.encode
    meaning: Pairs = json.loads(
        plain, object_pairs_hook=tuple, parse_int=digits, parse_float=digits, parse_constant=digits
    )
    return meaning


def _servers(meaning: Pairs, root: tuple[str, ...]) -> Pairs:
    for name in root:
        meaning = dict(meaning).get(name, ())  # type: ignore[assignment]  # they are objects
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
    """The members of an object except those with these names."""
    return tuple(pair for pair in value if pair[0] not in names) if isinstance(value, tuple) else ()


class JsonObject:
    """An object in the text of a document; each change returns a new one."""

    def __init__(self, text: str, style: JsonStyle, indent: str, *, strict: bool) -> None:
        """`text` is from brace to brace, `indent` that of its first line; `strict`: no comments or trailing commas."""
        self.text = text
        self._style = style
        self._indent = indent
        self._strict = strict
        self._bare = text if strict else without_comments(text)
        self._plain = text if strict else without_trailing_commas(self._bare)
        self.members = members(self._plain, 0)

    def edited(self, settings: Mapping[str, object], drop: Collection[str]) -> JsonObject:
        """Set these values; a member that already has the value stays as written. Of duplicates the last is changed."""
        result = self
        for name, value in settings.items():
            at = result._last(name)
            result = result.with_new(name, value) if at is None else result.with_value(at, value)
        for name in drop:
            while name not in settings and (at := result._last(name)) is not None:
                result = result.without(at)
        return result

    def value(self, at: int) -> object:
        return json.loads(self._plain[self.members[at].value : self.members[at].end])

    def inner(self, at: int) -> JsonObject:
        """The value of that member, which is an object."""
        member = self.members[at]
        return JsonObject(
            self.text[member.value : member.end], self._style, self._indent_at(member.value), strict=self._strict
        )

    def with_value(self, at: int, value: object) -> JsonObject:
        old = self.value(at)
        if same_value(old, value):
            return self
        if isinstance(old, dict) and isinstance(value, dict):
            return self.with_text(at, self.inner(at).edited(value, [name for name in old if name not in value]).text)
        member = self.members[at]
        style, indent = self._local_style(), self._indent_at(member.key)
        in_its_lines = _has_newline(self.text[member.value : member.end])
        if isinstance(old, list) and isinstance(value, list) and value and in_its_lines:
            items = [value_text(item, style, None) for item in value]
            return self.with_text(at, "[" + _in_lines(items, style, indent) + "]")
        return self.with_text(at, value_text(value, style, indent if self._begins_line(at) else None))

    def with_text(self, at: int, text: str) -> JsonObject:
        """Replace the text of that member's value."""
        return self._changed([(self.members[at].value, self.members[at].end, text)])

    def with_new(self, name: str, value: object, *, like_last: bool = False) -> JsonObject:
        """Add a member at the end; `like_last`: on one line if the last member is."""
        if not self.members:
            return self._with_first(name, value)
        number = len(self.members) - 1
        last, comma = self.members[number], self._comma(number)
        at, in_line_comment = self._behind_comments(last.end if comma is None else comma + 1, len(self.text) - 1)
        style, begins_line = self._local_style(), self._begins_line(number)
        lead, indent = style.gap, None
        if begins_line or in_line_comment:
            lines = self._indent_at(last.key) + ("" if begins_line else style.unit)
            lead = style.newline + lines
            indent = None if like_last and self._on_one_line(number) else lines
        new = lead + _quoted(name) + style.colon + value_text(value, style, indent)
        if comma is not None:
            return self._changed([(at, at, new + ",")])
        if at == last.end:
            return self._changed([(at, at, "," + new)])
        return self._changed([(last.end, last.end, ","), (at, at, new)])

    def without(self, at: int) -> JsonObject:
        member, comma, is_last = self.members[at], self._comma(at), at == len(self.members) - 1
        lead = self._lead(at)
        comments = list(_COMMENT.finditer(self.text, lead, member.key))
        start = comments[-1].end() if comments else lead
        end = member.end if comma is None else comma + 1
        close = len(self.text) - 1
        if len(self.members) == 1 and start == 1 and not self.text[end:close].strip():
            return self._changed([(start, close, "")])

        begins_line = _has_newline(self.text[start : member.key])
        tail, _ = self._behind_comments(end, close if is_last else self.members[at + 1].key)
        ends_line = _LINE_END.match(self.text, tail) is not None
        if begins_line and ends_line:
            end = tail
        elif not is_last and not ends_line:
            start, end = member.key, _behind(_SPACES_AND_TABS, self.text, end)
        elif comments and comments[-1][0].startswith("//"):  # the following text must not become part of the comment
            start = _behind(_NEWLINE, self.text, start)
        if not is_last or comma is not None or at == 0:
            return self._changed([(start, end, "")])

        before = self.members[at - 1].end
        if start == lead and not self.text[before : lead - 1].strip():
            return self._changed([(before, end, "")])
        return self._changed([(lead - 1, lead, ""), (start, end, "")])

    def _with_first(self, name: str, value: object) -> JsonObject:
        style, close = self._style, len(self.text) - 1
        inside = self.text[1:close]
        comments = list(_COMMENT.finditer(self.text, 1, close))
        lines = None if style.one_line or (comments and not _has_newline(inside)) else self._indent + style.unit
        new = _quoted(name) + style.colon + value_text(value, style, lines)
        if lines is not None:
            new = style.newline + lines + new
        if comments:
            at = comments[-1].end()
            return self._changed([(at, at, new if lines is not None else " " + new)])
        if lines is None:
            return self._changed([(1, close, style.pad + new + style.pad)])
        if _has_newline(inside):
            return self._changed([(1, 1, new)])
        return self._changed([(1, close, new + style.newline + self._indent)])

    def _changed(self, splices: list[Splice]) -> JsonObject:
        return JsonObject(spliced(self.text, splices), self._style, self._indent, strict=self._strict)

    def _last(self, name: str) -> int | None:
        return next((at for at in reversed(range(len(self.members))) if self.members[at].name == name), None)

    def _lead(self, at: int) -> int:
        """The position after the comma or brace before the member."""
        comma = self._comma(at - 1) if at else None
        return 1 if comma is None else comma + 1

    def _comma(self, at: int) -> int | None:
        place = _behind(_BLANKS, self._bare, self.members[at].end)
        return place if self._bare[place] == "," else None

    def _begins_line(self, at: int) -> bool:
        return _has_newline(self.text[self._lead(at) : self.members[at].key])

    def _behind_comments(self, at: int, limit: int) -> tuple[int, bool]:
        """The position after the comments on the same line, and whether a comment ends that line."""
        to_the_end = False
        for comment in _COMMENT.finditer(self.text, at, limit):
            if _has_newline(self.text[at : comment.start()]):
                break
            at, to_the_end = comment.end(), comment[0].startswith("//")
        return at, to_the_end

    def _indent_at(self, at: int) -> str:
        """The indentation of the line with that position."""
        begin = line_start(self.text, at)
        return self.text[begin : _behind(_SPACES_AND_TABS, self.text, begin)] if begin else self._indent

    def _on_one_line(self, at: int) -> bool:
        """Whether the value is an object with all of its members on one line."""
        value, member = self.value(at), self.members[at]
        return isinstance(value, dict) and value != {} and not _has_newline(self.text[member.value : member.end])

    def _local_style(self) -> JsonStyle:
        """The style of the last member, next to which new text is written."""
        number = len(self.members) - 1
        last = self.members[number]
        colon = self.text[last.key_end : last.value]
        if colon not in _USUAL_COLONS:
            colon = self._style.colon
        gap = self.text[self._lead(number) : last.key]
        if number == 0 or gap not in ("", " "):
            gap = _gap_after(colon)
        padded = self.text.startswith('{ "', last.value) or self.text.startswith('{ "')
        return self._style.replace(colon=colon, gap=gap, pad=" " if padded else "")


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


class JsonStyle(Value):
    newline: str = "\n"
    unit: str = "  "  # one step of indentation
    colon: str = ": "
    gap: str = " "  # after a comma on the same line
    pad: str = ""  # inside the braces of an object on one line
    one_line: bool = False  # whether the whole text is on one line


def _style_of(text: str, start: int, end: int) -> JsonStyle:
    """The style of a text whose object is between these positions."""
    unit = re.search(r'[\r\n]([ \t]+)"', text)
    key = re.compile(r'\{\s*"[^"\\]*"( ?: ?)').match(text, start)
    colon = key[1] if key else ": "
    return JsonStyle(
        newline=newline_of(text),
        unit=unit[1] if unit else "  ",
        colon=colon,
        gap=_gap_after(colon),
        one_line=text[start + 1 : end - 1].strip() != "" and not _has_newline(text[start:end]),
    )


def _gap_after(colon: str) -> str:
    """The text after commas: a blank if there is one after colons."""
    return " " if colon.endswith(" ") else ""


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text


def value_text(value: object, style: JsonStyle, indent: str | None) -> str:
    """Write a value in lines at this indentation, with arrays on one line; without `indent`, all on one line."""
    if isinstance(value, dict) and value:
        inner = None if indent is None else indent + style.unit
        members = [_quoted(name) + style.colon + value_text(item, style, inner) for name, item in value.items()]
        if indent is None:
            return "{" + style.pad + ("," + style.gap).join(members) + style.pad + "}"
        return "{" + _in_lines(members, style, indent) + "}"
    if isinstance(value, list):
        return "[" + ("," + style.gap).join(value_text(item, style, None) for item in value) + "]"
    return _quoted(value)


def _in_lines(items: list[str], style: JsonStyle, indent: str) -> str:
    """Write items between brackets, one per line."""
    line = style.newline + indent + style.unit
    return line + ("," + line).join(items) + style.newline + indent


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # A lone surrogate, e.g. from a path that is not UTF-8, can only be written as an escape.
    return json.dumps(value) if re.search("[\ud800-\udfff]", text) else text
