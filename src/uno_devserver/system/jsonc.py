"""JSON as people write it: comments, trailing commas, a byte order mark, UTF-16.

Strict JSON takes the C parser straight away. Only where that fails are comments and trailing commas blanked out
(by spaces, so that positions in error messages stay true) and the text parsed again.
"""

from __future__ import annotations

import json
import re

from .files import decode

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
        relaxed = text
        for noise in (_COMMENT, _TRAILING_COMMA):  # compiled only now: most files are strict
            relaxed = re.sub(noise, _blank, relaxed, flags=re.DOTALL)
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
    except ValueError as error:  # Python's limit, thousands of digits
        raise JsonProblem("a number has too many digits", 1, 1) from error


def _blank(match: re.Match[str]) -> str:
    """Spaces for a comment or comma, which is the group of the match; strings stay."""
    return re.sub(r"[^\r\n]", " ", match.group()) if match.group(1) else match.group()
