"""JSON as people write it: comments, trailing commas, a byte order mark, UTF-16.

Strict JSON takes the C parser straight away. Only where that fails are comments and trailing commas blanked out
(by spaces, so that positions in error messages stay true) and the text parsed again.
"""

from __future__ import annotations

import json
import re

from .files import decode

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_NOISE = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>//[^\r\n]*|/\*.*?\*/)|(?P<comma>,)(?=(?:\s|//[^\r\n]*|/\*.*?\*/)*[\]}}])",
    re.DOTALL,
)


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
        relaxed = _NOISE.sub(_blank, text)
        if relaxed == text:
            raise
    return _parse_strict(relaxed)


def _parse_strict(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonProblem(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsonProblem("nested too deeply", 1, 1) from error
    except ValueError as error:  # a number of thousands of digits
        raise JsonProblem(str(error), 1, 1) from error


def _blank(match: re.Match[str]) -> str:
    if match.lastgroup == "string":
        return match.group()
    if match.lastgroup == "comma":
        return " "
    return re.sub(r"[^\r\n]", " ", match.group())
