"""Where things stand in a TOML text: its headers, its `key = value` lines, and the members of inline tables.

The text is known to be valid (`tomllib` has read it), so this finds ends and paths, and judges nothing. Every key path
that `tomllib` sees outside of arrays is found here, with the positions of its bytes.
"""

from __future__ import annotations

import re

from ...system.values import Value
from .document import UNSAFE, EditProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    Path = tuple[str, ...]

# Possessive throughout: a long string costs its length, and nothing is ever tried in a second way.
_BASIC, _LITERAL = r'"(?:[^"\\\n]++|\\.)*+"', r"'[^'\n]*+'"
_LONG_BASIC, _LONG_LITERAL = r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}', r"'''(?:[^']++|'(?!''))*+'{3,5}"
_QUOTED = rf"{_BASIC}|{_LITERAL}"
_STRING = rf"{_LONG_BASIC}|{_LONG_LITERAL}|{_QUOTED}"
_SPACES = re.compile(r"[ \t]*+")
_BETWEEN_STATEMENTS = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_BETWEEN_MEMBERS = re.compile(r"(?:[ \t\r\n,]++|#[^\n]*+)*+")  # lines and comments there are TOML 1.1
_KEY_PART = re.compile(rf"[A-Za-z0-9_-]++|{_QUOTED}", re.DOTALL)
_SCALAR = re.compile(rf"(?:{_STRING})|[^,\]}}#\r\n]*[^,\]}}#\r\n \t]", re.DOTALL)  # a date may have a space inside
_BRACKET = re.compile(rf"(?:(?:{_STRING})|#[^\n]*+|[^\"'#\[\]{{}}]++)*+([\[\]{{}}])", re.DOTALL)
_REST_OF_LINE = re.compile(r"[^\n]*+\n?")


class Statement(Value):
    """A header, or a key with its value, with the whole of the lines it stands on."""

    path: Path  # from the top of the file
    table: Path  # of the header it stands under; a header's own path
    start: int  # of its first line
    at: int  # where it begins in that line
    end: int  # behind its last line
    value: tuple[int, int] | None = None  # None: a header
    array: bool = False  # the header of an element: [[path]]


class Member(Value):
    """A key with its value in an inline table."""

    path: Path
    start: int
    value: tuple[int, int]


class InlineTable(Value):
    path: Path
    start: int  # of its opening brace
    members: tuple[Member, ...]


class Outline(Value):
    statements: tuple[Statement, ...]
    tables: tuple[InlineTable, ...]  # the outer ones first; none of those in arrays


def scan(text: str) -> Outline:
    statements: list[Statement] = []
    tables: list[InlineTable] = []
    table: Path = ()
    end = 0
    while (at := _after(_BETWEEN_STATEMENTS, text, end)) < len(text):
        start = text.rfind("\n", 0, at) + 1
        if text[at] == "[":
            array = text.startswith("[[", at)
            table, behind = _key(text, at + 1 + array)
            end = _after(_REST_OF_LINE, text, behind)
            statements.append(Statement(table, table, start, at, end, None, array))
        else:
            keys, value = _pair(text, at)
            end = _after(_REST_OF_LINE, text, value[1])
            statements.append(Statement(table + keys, table, start, at, end, value))
            _note_inline_tables(text, table + keys, value[0], tables)
    return Outline(tuple(statements), tuple(tables))


def is_under(path: Path, top: Path) -> bool:
    """Whether it is that path, or one inside it."""
    return path[: len(top)] == top


def _note_inline_tables(text: str, path: Path, at: int, tables: list[InlineTable]) -> None:
    if text[at] != "{":
        return
    members = []
    end = _after(_BETWEEN_MEMBERS, text, at + 1)
    while not text.startswith("}", end):
        keys, value = _pair(text, end)
        members.append(Member(path + keys, end, value))
        end = _after(_BETWEEN_MEMBERS, text, value[1])
    tables.append(InlineTable(path, at, tuple(members)))
    for member in members:
        _note_inline_tables(text, member.path, member.value[0], tables)


def _pair(text: str, at: int) -> tuple[Path, tuple[int, int]]:
    keys, end = _key(text, at)
    begin = _after(_SPACES, text, _after(_SPACES, text, end) + 1)
    return keys, (begin, _end_of_value(text, begin))


def _key(text: str, at: int) -> tuple[Path, int]:
    parts = []
    while True:
        at = _after(_SPACES, text, at)
        end = _after(_KEY_PART, text, at)
        parts.append(_name(text[at:end]))
        at = _after(_SPACES, text, end)
        if not text.startswith(".", at):
            return tuple(parts), end
        at += 1


def _name(part: str) -> str:
    if part[0] not in "\"'":
        return part
    import tomllib  # costs 9 ms

    return next(iter(tomllib.loads(f"{part} = 0")))


def _end_of_value(text: str, at: int) -> int:
    if text[at : at + 1] not in ("[", "{"):
        return _after(_SCALAR, text, at)
    depth, end = 1, at + 1
    while depth:
        end = _after(_BRACKET, text, end)
        depth += 1 if text[end - 1] in "[{" else -1
    return end


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    if found is None:  # a TOML newer than what is known here
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise EditProblem(f"this line {UNSAFE}", line, column)
    return found.end()
