"""How a JSON text is laid out, as far as it shows, and values written the same way."""

from __future__ import annotations

import json
import re

from ...system.values import Value
from .splices import newline_of


class Style(Value):
    newline: str = "\n"
    unit: str = "  "  # one step of indentation
    colon: str = ": "
    gap: str = " "  # behind a comma on the same line
    pad: str = ""  # inside the braces of an object on one line
    one_line: bool = False  # all of the text


def style_of(text: str, start: int, end: int) -> Style:
    """From the object that is all of this text but for comments around it."""
    unit = re.search(r'[\r\n]([ \t]+)"', text)
    key = re.compile(r'\{\s*"[^"\\]*"( ?: ?)').match(text, start)
    colon = key[1] if key else ": "
    return Style(
        newline=newline_of(text),
        unit=unit[1] if unit else "  ",
        colon=colon,
        gap=gap_after(colon),
        one_line=text[start + 1 : end - 1].strip() != "" and not has_newline(text[start:end]),
    )


def gap_after(colon: str) -> str:
    """Who leaves a blank behind a colon leaves one behind a comma."""
    return " " if colon.endswith(" ") else ""


def has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text


def written(value: object, style: Style, indent: str | None) -> str:
    """The value in lines that continue at this indentation, with arrays on one line; None: all on one line."""
    if isinstance(value, dict) and value:
        inner = None if indent is None else indent + style.unit
        members = [quoted(name) + style.colon + written(item, style, inner) for name, item in value.items()]
        if indent is None:
            return "{" + style.pad + ("," + style.gap).join(members) + style.pad + "}"
        return "{" + in_lines(members, style, indent) + "}"
    if isinstance(value, list):
        return "[" + ("," + style.gap).join(written(item, style, None) for item in value) + "]"
    return quoted(value)


def in_lines(items: list[str], style: Style, indent: str) -> str:
    """What stands between the brackets, one item per line."""
    line = style.newline + indent + style.unit
    return line + ("," + line).join(items) + style.newline + indent


def quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a pair, e.g. from the bytes of a path that is no UTF-8, cannot be encoded but by its number.
    return json.dumps(value) if re.search("[\ud800-\udfff]", text) else text
