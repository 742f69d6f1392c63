"""Plain values written as YAML that every reader takes the same way, whether it follows version 1.1 or 1.2.

Text is quoted only where one of them would take it for something else.
"""

from __future__ import annotations

import json
import re

from ...system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Style(Value):
    """How a file is laid out, in columns."""

    newline: str
    step: int  # from a key to the keys below it
    dash: int  # from a key to the dashes of the list below it
    gap: int  # from a dash to the keys beside it


# Case does not matter: readers differ in which spellings they know.
_WORDS = frozenset(("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<", ".inf", ".nan"))
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9][-+0-9a-fA-FoOxXtTzZ_.,: ]*|[-+]\.inf", re.IGNORECASE)  # or a date, or time
_SPECIAL_BEGIN = re.compile(r"[][,{}#&*!|>'\"%@`?:]|-(?:\s|$|--)|\.\.\.|\s")
_SPECIAL_INSIDE = re.compile(r":(?:\s|$)|\s#|\s$")
_SPECIAL_IN_FLOW = re.compile(r"[][,{}:?]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def scalar(value: object, *, flow: bool = False, quote: str = "") -> str:
    """A value on one line; `quote`: what text is put in where it could do without."""
    if isinstance(value, str):
        return _text(value, flow, quote)
    if isinstance(value, list) and not value:
        return "[]"
    if isinstance(value, dict) and not value:
        return "{}"
    return json.dumps(value)  # null, true, 300, 1.5: the same in both


def in_flow(value: object, *, quote: str = "") -> str:
    """A value within brackets, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(in_flow(item, quote=quote) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(pair_in_flow(key, item, quote=quote) for key, item in value.items())}}}"
    return scalar(value, flow=True, quote=quote)


def pair_in_flow(key: str, value: object, *, quote: str = "") -> str:
    return f"{scalar(key, flow=True, quote=quote)}: {in_flow(value, quote=quote)}"


def pairs_in_lines(settings: Mapping[str, object], column: int, style: Style) -> list[str]:
    """Keys and values of a block mapping whose keys stand in that column."""
    lines: list[str] = []
    for key, value in settings.items():
        head = f"{' ' * column}{scalar(key)}:"
        below = in_lines(value, column, style)
        lines += [head, *below] if below else [f"{head} {scalar(value)}"]
    return lines


def in_lines(value: object, column: int, style: Style) -> list[str]:
    """A collection below a key in that column; no lines for what stands behind the key."""
    if isinstance(value, dict):
        return pairs_in_lines(value, column + style.step, style)
    if isinstance(value, list):
        return items_in_lines(value, column + style.dash, style)
    return []


def items_in_lines(values: Sequence[object], column: int, style: Style) -> list[str]:
    """The items of a block list whose dashes stand in that column."""
    lines: list[str] = []
    dash = f"{' ' * column}-"
    for value in values:
        if isinstance(value, dict) and value:
            first, *others = pairs_in_lines(value, column + style.gap, style)
            lines += [dash + first[column + 1 :], *others]
        else:
            lines.append(f"{dash} {in_flow(value) if isinstance(value, list) else scalar(value)}")
    return lines


def _text(value: str, flow: bool, quote: str) -> str:
    printable = value.isprintable()
    if quote == "'" and printable:
        return "'" + value.replace("'", "''") + "'"
    special = (
        quote
        or not printable
        or value.lower() in _WORDS
        or _LIKE_A_NUMBER.fullmatch(value)
        or _SPECIAL_BEGIN.match(value)
        or _SPECIAL_INSIDE.search(value)
        or (flow and _SPECIAL_IN_FLOW.search(value))
    )
    if not special:
        return value
    return _UNPRINTABLE.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
