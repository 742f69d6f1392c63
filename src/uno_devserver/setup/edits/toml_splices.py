"""Edits of a TOML text; separate from `toml_document`, because reading does not need these patterns, which take 3 ms.

A table can be written in four ways: under a header, as dotted keys, inline, or only through the headers of its
subtables. Additions follow the way that the text uses. `without` removes exactly the bytes that `add` has added.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from ...system.values import Value
from .document import UNSAFE, EditProblem, newline_of, same_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Settings = Mapping[str, object]
    Path = tuple[str, ...]

_BLANKS = " \t\r\n"  # str.strip() would also remove characters that TOML does not treat as blank
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")


def add(text: str, path: Path, settings: Settings) -> str:
    """Add a table after its last sibling, written in the same way as that, or at the end of the file."""
    outline = scan(text)
    root = path[:-1]
    inline = _inline_table_around(outline, root)
    if inline is not None:
        return _with_members(text, inline, path[len(inline.path) : -1], {path[-1]: settings})
    last = next((one for one in reversed(outline.statements) if is_under(one.path, root)), None)
    if last is None:
        return _with_table(text, _end_of_content(text), path, settings)
    if last.value is None or len(last.table) > len(root):
        return _with_table(text, _behind_comments(text, last.end), path, settings)
    if len(last.path) == len(path) or not settings:
        return _with_lines(text, last, root, {path[-1]: settings})
    return _with_lines(text, last, path, settings)


def update(text: str, path: Path, old: Settings, settings: Settings, drop: Collection[str]) -> str:
    """Put these `settings` into the table at a path, whose value is `old`, and remove those of `drop`."""
    missing = {}
    for key, value in settings.items():
        before, outline, place = old.get(key), scan(text), (*path, key)
        span = _value_at(outline, place)
        if key in old and same_value(before, value):
            continue
        if span is not None:
            text = text[: span[0]] + value_text(value) + text[span[1] :]
        elif isinstance(value, dict) and isinstance(before, dict) and _has_header(outline, place):
            text = update(text, place, before, value, before.keys() - value.keys())
        else:
            text = without(text, place)  # the key is missing, or its table cannot be updated in place
            missing[key] = value
    if missing:
        text = _with_keys(text, path, missing)
    for key in drop:
        text = without(text, (*path, key))
    return text


def replace(text: str, path: Path, settings: Settings) -> str:
    """Replace a value that is not a table by a table."""
    span = _value_at(scan(text), path)
    if span is None:
        return add(without(text, path), path, settings)
    return text[: span[0]] + value_text(settings) + text[span[1] :]


def without(text: str, path: Path) -> str:
    """Remove the table or key at a path: all its parts, with the blank line before each of them."""
    while (shorter := _without_member(text, path)) is not None:
        text = shorter
    spans: list[tuple[int, int]] = []
    for one in scan(text).statements:
        if not is_under(one.path, path):
            continue
        start = one.start
        in_section = one.value is not None and is_under(
            one.table, path
        )  # comments between its keys are removed with it
        if spans and (in_section or not text[spans[-1][1] : start].strip(_BLANKS)):
            start = spans.pop()[0]
        spans.append((start, one.end))
    for start, end in reversed(spans):
        text = _without_lines(text, start, end)
    return text


def spans(text: str, path: Path) -> tuple[tuple[int, int], ...]:
    """The statements and inline members that are the table or key at a path."""
    outline = scan(text)
    members = [one for table in outline.tables if not is_under(table.path, path) for one in table.members]
    return (
        *((one.at, one.end) for one in outline.statements if is_under(one.path, path)),
        *((one.start, one.value[1]) for one in members if is_under(one.path, path)),
    )


def foreign(text: str, path: Path) -> list[str]:
    """The statements and inline members outside that path, as they are written."""
    outline = scan(text)
    around = {table.start for table in outline.tables if is_under(path, table.path)}
    pieces = []
    for one in outline.statements:
        if not is_under(one.path, path):
            start, end = one.value if one.value and one.value[0] in around else (one.end, one.end)
            pieces.append((text[one.at : start] + text[end : one.end]).rstrip(_BLANKS))
    for table in outline.tables:
        if table.start in around and table.path != path:
            beside = [member for member in table.members if not is_under(member.path, path)]
            pieces += [text[one.start : one.value[1]] for one in beside if one.value[0] not in around]
    return pieces


def _with_keys(text: str, path: Path, settings: Settings) -> str:
    """Add keys after the last key that belongs directly to the table."""
    outline = scan(text)
    inline = _inline_table_around(outline, path)
    if inline is not None:
        return _with_members(text, inline, path[len(inline.path) :], settings)
    parts = [one for one in outline.statements if is_under(one.path, path)]
    own = [one for one in parts if len(one.table) <= len(path)]  # without those of its subtables
    if own:
        return _with_lines(text, own[-1], path, settings)
    if parts:
        newline, at = newline_of(text), parts[0].start
        return text[:at] + _table(path, settings, newline) + newline + newline + text[at:]
    return add(text, path, settings)  # all its keys were removed to be written again


def _with_table(text: str, at: int, path: Path, settings: Settings) -> str:
    newline = newline_of(text)
    table = _table(path, settings, newline)
    if at == 0:
        return table + newline + (newline if text else "") + text
    if text[at - 1] != "\n":  # a file without a final line end gets none
        return text + newline + newline + table
    return text[:at] + newline + table + newline + text[at:]


def _table(path: Path, settings: Settings, newline: str) -> str:
    return newline.join([f"[{key_text(path)}]", *(pair_text((key,), value) for key, value in settings.items())])


def _with_lines(text: str, last: Statement, path: Path, settings: Settings) -> str:
    """Add settings of the table at `path` after the lines of `last`; keys are relative to the header above them."""
    newline = newline_of(text)
    indent = text[last.start : last.at]
    keys = path[len(last.table) :]
    added = newline.join(indent + pair_text((*keys, key), value) for key, value in settings.items())
    if text[last.end - 1] != "\n":
        return text + newline + added
    return text[: last.end] + added + newline + text[last.end :]


def _with_members(text: str, table: InlineTable, keys: Path, settings: Settings) -> str:
    pairs = [pair_text((*keys, key), value) for key, value in settings.items()]
    if not table.members:
        at = table.start + 1
        space = " " if text[at] == " " else ""  # no space in {}, so that removing the members leaves {} again
        return text[:at] + space + ", ".join(pairs) + text[at:]
    last = table.members[-1]
    end, indent = last.value[1], _indent(text, last)
    if indent is None:
        return f"{text[:end]}, {', '.join(pairs)}{text[end:]}"
    comma = _after_comma(text, last)
    rest = _REST_OF_MEMBERS_LINE.match(text, comma or end)
    behind = rest.end() if rest else comma or end
    lines = ",".join(newline_of(text) + indent + pair for pair in pairs) + ("," if comma else "")
    return text[:end] + ("" if comma else ",") + text[end:behind] + lines + text[behind:]


def _without_member(text: str, path: Path) -> str | None:
    """Remove the first inline member at that path; None if there is none."""
    for table in scan(text).tables:
        for index, member in enumerate(table.members):
            if is_under(table.path, path) or not is_under(member.path, path):
                continue
            former = table.members[index - 1] if index else None
            start, end, comma = member.start, member.value[1], _after_comma(text, member)
            rest = _REST_OF_MEMBERS_LINE.match(text, comma or end)
            if rest and _indent(text, member) is not None:
                start = len(text[: text.rfind("\n", 0, start)].removesuffix("\r"))
                before = _after_comma(text, former) if former is not None and comma is None else None
                if before is not None:  # its comma was the separator
                    return text[: before - 1] + text[before:start] + text[rest.end() :]
                return text[:start] + text[rest.end() :]
            if index + 1 < len(table.members):
                end = table.members[index + 1].start
            elif former is not None:
                start = former.value[1]
            else:
                start, end = table.start + 1, comma or end
            return text[:start] + text[end:]
    return None


def _indent(text: str, member: InlineMember) -> str | None:
    """The indentation of a member on a line of its own; None if other text is before it."""
    before = text[text.rfind("\n", 0, member.start) + 1 : member.start]
    return None if before.strip(_BLANKS) else before


def _after_comma(text: str, member: InlineMember) -> int | None:
    """The position after the comma that follows a member; None if there is none."""
    at = _after(_BETWEEN_STATEMENTS, text, member.value[1])
    return at + 1 if text.startswith(",", at) else None


def _without_lines(text: str, start: int, end: int) -> str:
    before = text.rfind("\n", 0, max(start - 1, 0)) + 1
    if start and not text[before:start].strip(_BLANKS):
        start = before
    elif start == 0 and (blank := _BLANK_LINE.match(text, end)):
        end = blank.end()
    if end == len(text) and not text.endswith("\n"):  # a file without a final line end gets none
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    return text[:start] + text[end:]


def _inline_table_around(outline: Outline, path: Path) -> InlineTable | None:
    """The innermost inline table at that path or around it."""
    around = [table for table in outline.tables if is_under(path, table.path)]
    return max(around, key=lambda table: len(table.path), default=None)


def _value_at(outline: Outline, path: Path) -> tuple[int, int] | None:
    pairs: list[Statement | InlineMember] = [*outline.statements]
    pairs += [member for table in outline.tables for member in table.members]
    return next((one.value for one in pairs if one.path == path and one.value), None)


def _has_header(outline: Outline, path: Path) -> bool:
    return any(one.value is None and one.path == path and not one.array for one in outline.statements)


def _end_of_content(text: str) -> int:
    content = len(text.rstrip(_BLANKS))
    return _end_of_line(text, content) if content else 0


def _behind_comments(text: str, at: int) -> int:
    """The position after directly following comments, unless they belong to a statement that directly follows them."""
    end = at
    while text[end : _end_of_line(text, end)].lstrip(_BLANKS).startswith("#"):
        end = _end_of_line(text, end)
    return at if text[end : _end_of_line(text, end)].strip(_BLANKS) else end


def _end_of_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


# The patterns of strings are possessive: their time is linear in the length, because nothing is backtracked.
_BASIC, _LITERAL = r'"(?:[^"\\\n]++|\\.)*+"', r"'[^'\n]*+'"
_LONG_BASIC, _LONG_LITERAL = r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}', r"'''(?:[^']++|'(?!''))*+'{3,5}"
_QUOTED = rf"{_BASIC}|{_LITERAL}"
_STRING = rf"{_LONG_BASIC}|{_LONG_LITERAL}|{_QUOTED}"
_SPACES = re.compile(r"[ \t]*+")
_BETWEEN_STATEMENTS = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_BETWEEN_MEMBERS = re.compile(r"(?:[ \t\r\n,]++|#[^\n]*+)*+")  # line breaks and comments there are TOML 1.1
_REST_OF_MEMBERS_LINE = re.compile(r"[ \t]*+(?:#[^\r\n]*+)?(?=\r?\n)")
_KEY_PART = re.compile(rf"[A-Za-z0-9_-]++|{_QUOTED}", re.DOTALL)
_SCALAR = re.compile(rf"(?:{_STRING})|[^,\]}}#\r\n]*[^,\]}}#\r\n \t]", re.DOTALL)  # a date may contain a space
_BRACKET = re.compile(rf"(?:(?:{_STRING})|#[^\n]*+|[^\"'#\[\]{{}}]++)*+([\[\]{{}}])", re.DOTALL)
_REST_OF_LINE = re.compile(r"[^\n]*+\n?")


class Statement(Value):
    """A header, or a key with its value, with all of its lines."""

    path: Path  # from the top of the file
    table: Path  # the path of the header above it; for a header, its own path
    start: int  # the beginning of its first line
    at: int  # the beginning of the statement, after the indentation
    end: int  # after its last line
    value: tuple[int, int] | None = None  # the span of the value; None for a header
    array: bool = False  # whether it is the header of an array element: [[path]]


class InlineMember(Value):
    """A key with its value in an inline table."""

    path: Path
    start: int
    value: tuple[int, int]


class InlineTable(Value):
    path: Path
    start: int  # the position of its opening brace
    members: tuple[InlineMember, ...]


class Outline(Value):
    statements: tuple[Statement, ...]
    tables: tuple[InlineTable, ...]  # the outer ones first; none of those in arrays


@lru_cache(maxsize=2)  # an edit looks at the old and the new text several times
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
    """Whether the path is `top`, or below it."""
    return path[: len(top)] == top


def _note_inline_tables(text: str, path: Path, at: int, tables: list[InlineTable]) -> None:
    if text[at] != "{":
        return
    members = []
    end = _after(_BETWEEN_MEMBERS, text, at + 1)
    while not text.startswith("}", end):
        keys, value = _pair(text, end)
        members.append(InlineMember(path + keys, end, value))
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
    import tomllib  # imported late, because it takes 9 ms

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
    if found is None:  # newer TOML syntax
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise EditProblem(f"this line {UNSAFE}", line, column)
    return found.end()


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def pair_text(keys: Sequence[str], value: object) -> str:
    return f"{key_text(keys)} = {value_text(value)}"


def key_text(parts: Sequence[str]) -> str:
    return ".".join(part if _BARE_KEY.fullmatch(part) else value_text(part) for part in parts)


def value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(
            "\x7f", "\\u007F"
        )  # JSON's escapes, and one that TOML needs besides
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(pair_text((key,), one) for key, one in value.items())} }}" if value else "{}"
    raise EditProblem(f"TOML has no way to write {value!r}")
