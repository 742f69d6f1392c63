"""JSON as people write it: comments, trailing commas, a byte order mark, UTF-16.

Strict JSON takes the C parser straight away. Only where that fails are comments and trailing commas blanked out
(by spaces, so that positions in error messages stay true) and the text parsed again.
"""

from __future__ import annotations

import json
import re

from .files import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# No part of these can fail after it has begun to match, so nothing is ever tried in a second way: a line of slashes
# costs no more than its length. An unclosed string or comment is one piece as well, left for the parser to report.
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
_COMMENT = rf"{_STRING}|(//[^\r\n]*|/\*.*?\*/)|/\*.*"
_TRAILING_COMMA = rf"{_STRING}|(,)(?=\s*[\]}}])"


class JsonProblem(Exception):
    """The text is not JSON; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


def parse(data: bytes | str) -> object:
    """The value of a JSON text, with comments and trailing commas allowed; raises JsonProblem."""
    text = decode(data) if isinstance(data, bytes) else data
    try:
        return _parse_strict(text)
    except JsonProblem:
        relaxed = _relaxed(text)
        if relaxed == text:
            raise
    return _parse_strict(relaxed)


def position(data: bytes | str, trail: Sequence[str], *, at_key: bool = False) -> tuple[int, int]:
    """Line and column, from 1, of the value that these names lead to in a text that parses, or of the last name.

    Where they lead nowhere, of the last value on the way.
    """
    text = _relaxed(decode(data) if isinstance(data, bytes) else data)
    found = at = _after_blanks(text, 0)
    for depth, name in enumerate(trail):
        places = _members(text, at).get(name)
        if places is None:
            break
        key, at = places
        found = key if at_key and depth == len(trail) - 1 else at
    return text.count("\n", 0, found) + 1, found - text.rfind("\n", 0, found)


def _relaxed(text: str) -> str:
    for noise in (_COMMENT, _TRAILING_COMMA):  # compiled only where they are needed: most files are strict
        text = re.sub(noise, _blank, text, flags=re.DOTALL)
    return text


def _members(text: str, at: int) -> dict[str, tuple[int, int]]:
    """Of the object that begins there: where each key stands, and where its value begins. Of twins the last counts."""
    places: dict[str, tuple[int, int]] = {}
    if text[at] != "{":
        return places
    value, at = json.JSONDecoder(), _after_blanks(text, at + 1)
    while text[at] != "}":
        name, end = value.raw_decode(text, at)
        begin = _after_blanks(text, _after_blanks(text, end) + 1)
        places[name] = at, begin
        at = _after_blanks(text, value.raw_decode(text, begin)[1])
        if text[at] == ",":
            at = _after_blanks(text, at + 1)
    return places


def _after_blanks(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at


def _parse_strict(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonProblem(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsonProblem("nested too deeply", 1, 1) from error
    except ValueError as error:  # Python's limit, thousands of digits
        raise JsonProblem("a number has too many digits", 1, 1) from error


def _blank(match: re.Match[str]) -> str:
    """Spaces for a comment or comma, which is the group of the match; strings stay."""
    return re.sub(r"[^\r\n]", " ", match.group()) if match.group(1) else match.group()
