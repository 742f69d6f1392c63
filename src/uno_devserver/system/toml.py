"""Parse TOML 1.0 and 1.1 whose author may be anybody.

`tomllib` reads 1.0; what 1.1 adds is rewritten for it in a text that it refuses.

For a dotted key, `tomllib` stores each of its beginnings (`a`, `a.a`, `a.a.a` …), so that 30 KB of it take 900 MB. A
text with such a key is refused before it is parsed.
"""

from __future__ import annotations

import re
import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PARTS = 64  # of a key or header; real ones have less than ten

# These patterns never backtrack, so the time is linear in the length. An unclosed string matches up to the end of the
# line or text, and `tomllib` gets no further than that, either.
_LINES = r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+(?:"{3,5})?+' + r"|'''(?:[^']|'{1,2}(?!'))*+(?:'{3,5})?+"
_QUOTED = r"""(?:"(?:[^"\\\n]|\\[^\n])*+"?+|'[^'\n]*+'?+)"""
_PART = rf"(?:{_QUOTED}|[\w+-]++)"
_NEXT_PART = rf"(?:[ \t]*+\.[ \t]*+{_PART})"
_TOKEN = re.compile(
    rf"{_LINES}|#[^\n]*+|{_PART}(?:{_NEXT_PART}{{{MAX_PARTS - 1}}}(?P<more>{_NEXT_PART})|{_NEXT_PART}*+)", re.DOTALL
)

_TOKEN_OF_1_1 = re.compile(
    rf"(?P<string>{_LINES}|{_QUOTED})|(?P<comment>#[^\n]*+)|(?P<break>\r?\n)|(?P<bracket>[{{}}\[\],])"
    r"""|(?P<time>(?<![-+:\d])\d\d:\d\d(?![:\d]))|[^\s\d"'#{}\[\],]++|\S""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:e|x([0-9a-fA-F]{2})|.)", re.DOTALL)


class TomlProblem(ValueError):
    """The text has a key that is too long; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


def parse(text: str) -> dict[str, Any]:
    """The content of a TOML text; raises ValueError (TomlProblem, or that of tomllib) and RecursionError."""
    too_long = next((found for found in _TOKEN.finditer(text) if found["more"] is not None), None)
    if too_long is not None:
        at = too_long.start()
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise TomlProblem(f"a key has more than {MAX_PARTS} parts", line, column)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        as_1_0 = _as_1_0(text)
        if as_1_0 == text:
            raise
    return tomllib.loads(as_1_0)


def _as_1_0(text: str) -> str:
    """The text without line breaks, comments and trailing commas in inline tables, and without new escapes and times.

    Line breaks are moved behind the value, so that errors after it have their line.
    """
    pieces: list[str] = []
    done = breaks = 0
    opened: list[str] = []  # the brackets around the position
    comma: int | None = None  # the index of the last piece, if that is a comma after a member of an inline table
    before = ""
    for found in _TOKEN_OF_1_1.finditer(text):
        kind, piece = found.lastgroup, found[0]
        pieces.append(text[done : found.start()])
        done = found.end()
        in_table = opened[-1:] == ["{"]
        if kind in ("comment", "break"):
            breaks += kind == "break" and in_table
            pieces.append(" " if in_table else piece)
            if kind == "break" and not opened:
                pieces.append("\n" * breaks)
                breaks = 0
            continue
        if piece == "}" and comma is not None:
            pieces[comma] = ""
        comma = len(pieces) if piece == "," and in_table and before not in "{," else None
        if kind == "bracket" and piece in "{[":
            opened.append(piece)
        elif kind == "bracket" and piece != ",":
            del opened[-1:]
        elif kind == "string" and piece.startswith('"'):
            piece = _ESCAPE.sub(_escape_of_1_0, piece)
        elif kind == "time":
            piece += ":00"
        pieces.append(piece)
        before = piece
    return "".join((*pieces, text[done:]))


def _escape_of_1_0(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return f"\\u00{escape[1]}"
    return "\\u001b" if escape[0] == "\\e" else escape[0]
