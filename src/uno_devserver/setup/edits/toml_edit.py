"""Changes of a TOML text by cutting and inserting; nothing is written anew, so all other bytes stay as they are.

A table can be written in four ways: under a header, as dotted keys, inline, or only through the headers of its sub
tables. What is added follows the way that is there. What `add` puts into a text, `without` takes out to the byte.
"""

from __future__ import annotations

import re

from .splices import newline_of
from .toml_scan import InlineTable, Member, Outline, Statement, is_under, scan
from .toml_values import key_text, pair_text, same, value_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .toml_scan import Path

    Settings = Mapping[str, object]

_BLANKS = " \t\r\n"  # what TOML takes for blank, other than str.strip
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")


def add(text: str, path: Path, settings: Settings) -> str:
    """A new table: behind the last one beside it and in that one's way, else at the end of the file."""
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
    """The table at that path, which holds `old`, with these `settings` and without those of `drop`."""
    missing = {}
    for key, value in settings.items():
        before, outline, place = old.get(key), scan(text), (*path, key)
        span = _value_at(outline, place)
        if key in old and same(before, value):
            continue
        if span is not None:
            text = text[: span[0]] + value_text(value) + text[span[1] :]
        elif isinstance(value, dict) and isinstance(before, dict) and _has_header(outline, place):
            text = update(text, place, before, value, before.keys() - value.keys())
        else:
            text = without(text, place)  # dotted keys, or tables of an array
            missing[key] = value
    if missing:
        text = _with_keys(text, path, missing)
    for key in drop:
        text = without(text, (*path, key))
    return text


def replace(text: str, path: Path, settings: Settings) -> str:
    """A table where something else stands."""
    span = _value_at(scan(text), path)
    if span is None:
        return add(without(text, path), path, settings)
    return text[: span[0]] + value_text(settings) + text[span[1] :]


def without(text: str, path: Path) -> str:
    """The text without the table or key at that path: all its parts, and the blank line before each of them."""
    while (shorter := _without_member(text, path)) is not None:
        text = shorter
    spans: list[tuple[int, int]] = []
    for one in scan(text).statements:
        if not is_under(one.path, path):
            continue
        start = one.start
        in_section = one.value is not None and is_under(one.table, path)  # comments between its keys go with it
        if spans and (in_section or not text[spans[-1][1] : start].strip(_BLANKS)):
            start = spans.pop()[0]
        spans.append((start, one.end))
    for start, end in reversed(spans):
        text = _without_lines(text, start, end)
    return text


def foreign(text: str, path: Path) -> list[str]:
    """All that is stated beside that path, as it is written."""
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
    """The text with these keys behind the last one that is the table's own."""
    outline = scan(text)
    inline = _inline_table_around(outline, path)
    if inline is not None:
        return _with_members(text, inline, path[len(inline.path) :], settings)
    parts = [one for one in outline.statements if is_under(one.path, path)]
    own = [one for one in parts if len(one.table) <= len(path)]  # not those of its sub tables
    if own:
        return _with_lines(text, own[-1], path, settings)
    if parts:
        newline, at = newline_of(text), parts[0].start
        return text[:at] + _table(path, settings, newline) + newline + newline + text[at:]
    return add(text, path, settings)  # it was made of keys that had to be taken out


def _with_table(text: str, at: int, path: Path, settings: Settings) -> str:
    newline = newline_of(text)
    table = _table(path, settings, newline)
    if at == 0:
        return table + newline + (newline if text else "") + text
    if text[at - 1] != "\n":  # the file ends within a line, and goes on doing so
        return text + newline + newline + table
    return text[:at] + newline + table + newline + text[at:]


def _table(path: Path, settings: Settings, newline: str) -> str:
    return newline.join([f"[{key_text(path)}]", *(pair_text((key,), value) for key, value in settings.items())])


def _with_lines(text: str, last: Statement, path: Path, settings: Settings) -> str:
    """The text with settings of the table at `path` behind the lines of `last`, which is that table's or a header."""
    newline = newline_of(text)
    indent = text[last.start : last.at]
    keys = path[len(last.table) :]
    added = newline.join(indent + pair_text((*keys, key), value) for key, value in settings.items())
    if text[last.end - 1] != "\n":
        return text + newline + added
    return text[: last.end] + added + newline + text[last.end :]


def _with_members(text: str, table: InlineTable, keys: Path, settings: Settings) -> str:
    added = ", ".join(pair_text((*keys, key), value) for key, value in settings.items())
    if table.members:
        at = table.members[-1].value[1]
        return f"{text[:at]}, {added}{text[at:]}"
    at = table.start + 1
    space = " " if text[at] == " " else ""  # in {} none, so that {} is what remains when they are taken out
    return text[:at] + space + added + text[at:]


def _without_member(text: str, path: Path) -> str | None:
    """The text without the first member of an inline table that is at that path; None: there is none."""
    for table in scan(text).tables:
        for index, member in enumerate(table.members):
            if is_under(table.path, path) or not is_under(member.path, path):
                continue
            start, end = member.start, member.value[1]
            if index + 1 < len(table.members):
                end = table.members[index + 1].start
            else:
                start = table.members[index - 1].value[1] if index else table.start + 1
            return text[:start] + text[end:]
    return None


def _without_lines(text: str, start: int, end: int) -> str:
    before = text.rfind("\n", 0, max(start - 1, 0)) + 1
    if start and not text[before:start].strip(_BLANKS):
        start = before
    elif start == 0 and (blank := _BLANK_LINE.match(text, end)):
        end = blank.end()
    if end == len(text) and not text.endswith("\n"):  # the file ends within a line, and goes on doing so
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    return text[:start] + text[end:]


def _inline_table_around(outline: Outline, path: Path) -> InlineTable | None:
    """The innermost inline table that is at that path, or that holds it."""
    around = [table for table in outline.tables if is_under(path, table.path)]
    return max(around, key=lambda table: len(table.path), default=None)


def _value_at(outline: Outline, path: Path) -> tuple[int, int] | None:
    pairs: list[Statement | Member] = [*outline.statements]
    pairs += [member for table in outline.tables for member in table.members]
    return next((one.value for one in pairs if one.path == path and one.value), None)


def _has_header(outline: Outline, path: Path) -> bool:
    return any(one.value is None and one.path == path and not one.array for one in outline.statements)


def _end_of_content(text: str) -> int:
    content = len(text.rstrip(_BLANKS))
    return _end_of_line(text, content) if content else 0


def _behind_comments(text: str, at: int) -> int:
    """Behind the comments that follow without a gap, unless something follows them as closely: they are its own."""
    end = at
    while text[end : _end_of_line(text, end)].lstrip(_BLANKS).startswith("#"):
        end = _end_of_line(text, end)
    return at if text[end : _end_of_line(text, end)].strip(_BLANKS) else end


def _end_of_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)
