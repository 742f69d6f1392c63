"""Parse TOML whose author may be anybody.

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
_PART = r"""(?:"(?:[^"\\\n]|\\[^\n])*+"?+|'[^'\n]*+'?+|[\w+-]++)"""
_NEXT_PART = rf"(?:[ \t]*+\.[ \t]*+{_PART})"
_TOKEN = re.compile(
    rf"{_LINES}|#[^\n]*+|{_PART}(?:{_NEXT_PART}{{{MAX_PARTS - 1}}}(?P<more>{_NEXT_PART})|{_NEXT_PART}*+)", re.DOTALL
)


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
    return tomllib.loads(text)
