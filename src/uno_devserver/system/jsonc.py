"""JSON as people write it: comments, trailing commas, a byte order mark, UTF-16.

Strict JSON takes the C parser straight away. Only where that fails are comments and trailing commas blanked out
(by spaces, so that positions in error messages stay true) and the text parsed again.
"""

from __future__ import annotations

import json
import re

from .files import decode
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# No part of these can fail after it has begun to match, so nothing is ever tried in a second way: a line of slashes
# costs no more than its length. An unclosed string or comment is one piece as well, left for the parser to report.
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
_COMMENT = rf"{_STRING}|(//[^\r\n]*|/\*.*?\*/)|/\*.*"
_NO_NUMBER = rf"{_STRING}|(NaN|-?Infinity)"  # Python's, and nobody else's
_TRAILING_COMMA = rf"{_STRING}|[\[{{]\s*,|(,)(?=\s*[\]}}])"  # behind nothing it is none, and a fault


class JsonProblem(Exception):
    """The text is not JSON; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


class JsonMember(Value):
    """One member of an object, and where it stands in the text."""

    name: str
    key: int  # the quote that opens it
    key_end: int
    value: int
    end: int  # behind the value


def parse(data: bytes | str) -> object:
    """The value of a JSON text, with comments and trailing commas allowed; raises JsonProblem."""
    text = decode(data) if isinstance(data, bytes) else data
    try:
        return parse_strict(text)
    except JsonProblem:
        relaxed = without_trailing_commas(without_comments(text))
        if relaxed == text:
            raise
    return parse_strict(relaxed)


def parse_strict(text: str) -> object:
    def refuse(word: str) -> None:
        at = next(found.start() for found in re.finditer(_NO_NUMBER, text, re.DOTALL) if found.group(1))
        raise JsonProblem(f"{word} is no JSON", *_line_and_column(text, at))

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise JsonProblem(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsonProblem("nested too deeply", 1, 1) from error
    except ValueError as error:  # Python's limit, thousands of digits
        raise JsonProblem("a number has too many digits", 1, 1) from error


class JsonPositions:
    """Where things stand in a text that parses; each object is looked at once, however often one asks."""

    def __init__(self, data: bytes | str) -> None:
        self._text = without_trailing_commas(without_comments(decode(data) if isinstance(data, bytes) else data))
        self._objects: dict[int, dict[str, JsonMember]] = {}

    def position(self, trail: Sequence[str], *, at_key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value that these names lead to, or of the last name.

        Where they lead nowhere, of the last value on the way.
        """
        found = at = _after_blanks(self._text, 0)
        for depth, name in enumerate(trail):
            member = self._members(at).get(name)
            if member is None:
                break
            at = member.value
            found = member.key if at_key and depth == len(trail) - 1 else at
        return _line_and_column(self._text, found)

    def _members(self, at: int) -> dict[str, JsonMember]:
        """By name, of which the last counts; none of what is no object."""
        if at not in self._objects:
            found = members(self._text, at) if self._text[at] == "{" else []
            self._objects[at] = {member.name: member for member in found}
        return self._objects[at]


def without_comments(text: str) -> str:
    """The text with a space for each character of its comments, but for line breaks."""
    return _blanked(_COMMENT, text)


def without_trailing_commas(text: str) -> str:
    """The text, in which there are no comments, with a space for each trailing comma."""
    return _blanked(_TRAILING_COMMA, text)


def members(text: str, at: int) -> list[JsonMember]:
    """Of the object that begins there, in a text of strict JSON; also those that have the same name."""
    found: list[JsonMember] = []
    value, at = json.JSONDecoder(), _after_blanks(text, at + 1)
    while text[at] != "}":
        name, key_end = value.raw_decode(text, at)
        begin = _after_blanks(text, _after_blanks(text, key_end) + 1)
        end = value.raw_decode(text, begin)[1]
        found.append(JsonMember(name, at, key_end, begin, end))
        at = _after_blanks(text, end)
        if text[at] == ",":
            at = _after_blanks(text, at + 1)
    return found


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _after_blanks(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at


def _blanked(noise: str, text: str) -> str:
    return re.sub(noise, _blank, text, flags=re.DOTALL)  # compiled only where it is needed: most files are strict


def _blank(match: re.Match[str]) -> str:
    """Spaces for a comment or comma, which is the group of the match; strings stay."""
    return re.sub(r"[^\r\n]", " ", match.group()) if match.group(1) else match.group()
