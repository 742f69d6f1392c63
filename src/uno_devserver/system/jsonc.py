"""Parse JSON with comments, trailing commas, a byte order mark, or UTF-16; and find positions in it.

Strict JSON is parsed directly by the C parser. Only if that fails, comments and trailing commas are replaced by spaces,
so that positions in error messages stay correct, and the text is parsed again.

Hand-written: libraries for JSON with comments parse in Python, many times slower, and report no positions.
"""

from __future__ import annotations

import json
import re

from .files import decode
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# These patterns never backtrack, so the time is linear in the length. An unclosed string or comment matches up to the
# end of the text, and the parser reports it.
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
_COMMENT = rf"{_STRING}|(//[^\r\n]*|/\*.*?\*/)|/\*.*"
_NO_NUMBER = rf"{_STRING}|(NaN|-?Infinity)"  # values that Python accepts although JSON does not have them
_TRAILING_COMMA = rf"{_STRING}|[\[{{]\s*,|(,)(?=\s*[\]}}])"  # a comma without an element before it is an error


class JsonProblem(Exception):
    """The text is not JSON; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


class JsonMember(Value):
    """One member of an object, with its offsets in the text."""

    name: str
    key: int  # the opening quote of the name
    key_end: int
    value: int
    end: int  # after the value


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
    except ValueError as error:  # a number has more digits than Python's limit of thousands
        raise JsonProblem("a number has too many digits", 1, 1) from error


class JsonPositions:
    """Finds positions in a valid text; each object is scanned once."""

    def __init__(self, data: bytes | str) -> None:
        self._text = without_trailing_commas(without_comments(decode(data) if isinstance(data, bytes) else data))
        self._objects: dict[int, dict[str, JsonMember]] = {}

    def position(self, trail: Sequence[str], *, at_key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at the path `trail`, or (`at_key`) of its last name.

        If there is no such member, the result is the position of the last value that exists on the path.
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
        """The members by name, the last one of each name; none if the value is not an object."""
        if at not in self._objects:
            found = members(self._text, at) if self._text[at] == "{" else []
            self._objects[at] = {member.name: member for member in found}
        return self._objects[at]


def without_comments(text: str) -> str:
    """The text with each character of its comments, except line breaks, replaced by a space."""
    return _blanked(_COMMENT, text)


def without_trailing_commas(text: str) -> str:
    """The text, which has no comments, with each trailing comma replaced by a space."""
    return _blanked(_TRAILING_COMMA, text)


def members(text: str, at: int) -> list[JsonMember]:
    """All members of the object at this offset of a strict JSON text, including those with equal names."""
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
    return re.sub(noise, _blank, text, flags=re.DOTALL)  # compiled only when needed: most files are strict JSON


def _blank(match: re.Match[str]) -> str:
    """Spaces for a match of the group (a comment or comma), else the unchanged string."""
    return re.sub(r"[^\r\n]", " ", match.group()) if match.group(1) else match.group()
