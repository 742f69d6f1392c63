"""Splits bytes into lines, each a JSON message on a pipe. Pure, and cheap to import.

A line that is longer than the limit is skipped. It is reported with the members of its message that could be read, so
that a request can be refused by its id, and the request of a lost answer can fail.
"""

from __future__ import annotations

import json
import re

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How much of the beginning and the end of a long line is kept: the id is before or after the large part.
KEPT_BYTES = 4096

# Patterns as text: they are compiled when they are used, which is rare.
_MEMBER = r'\s*[{,]\s*"([^"\\]*)"\s*:\s*'
_LATER_MEMBER = r',\s*"'


class LineTooLong(Value):
    """A line that was skipped, with the members of its message; a value that cannot be read is None."""

    members: dict[str, Any]


class LineSplitter:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # the parts of the line that has not ended yet
        self._size = 0
        self._end = b""  # the last bytes of a line that is being skipped

    def feed(self, data: bytes) -> list[bytes | LineTooLong]:
        """Read data; return the lines that end in it, without line ends and without blank lines."""
        if b"\r" in data:
            data = data.replace(b"\r", b" ")  # only white space in JSON, but some readers take it for a line end
        *ended, rest = data.split(b"\n")
        lines: list[bytes | LineTooLong] = []
        if ended and (self._size or len(data) > self._limit):
            for part in ended:
                self._add(part)
                lines += self.finish()
        else:
            lines += [line for part in ended if (line := part.strip())]
        if rest:
            self._add(rest)
        return lines

    def finish(self) -> list[bytes | LineTooLong]:
        """Return the last line of the input, if it has no line end."""
        if self._size > self._limit:
            line: bytes | LineTooLong = LineTooLong(_members(self._parts[0], self._end))
        else:
            line = b"".join(self._parts).strip()
        self._parts, self._size, self._end = [], 0, b""
        return [line] if line else []

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        elif self._end:
            self._end = (self._end + part)[-KEPT_BYTES:]
        else:
            line = b"".join([*self._parts, part])
            self._parts, self._end = [line[:KEPT_BYTES]], line[-KEPT_BYTES:]


def readable_members(line: bytes) -> dict[str, Any]:
    """The members that can be read of a message that is not valid JSON."""
    return _members(line[:KEPT_BYTES], line[-KEPT_BYTES:])


def _members(start: bytes, end: bytes) -> dict[str, Any]:
    return {**_first_members(start.decode("utf-8", "replace")), **_last_members(end.decode("utf-8", "replace"))}


def _first_members(text: str) -> dict[str, Any]:
    """The members of the object, or first object of a batch, that `text` begins with, up to the one that is cut off."""
    decoder, member = json.JSONDecoder(), re.compile(_MEMBER)
    found: dict[str, Any] = {}
    at = len(text) - len(text.lstrip(" \t["))
    while match := member.match(text, at):
        found[match[1]] = None
        try:
            value, at = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            break
        if at == len(text):  # a number may continue after the cut
            break
        found[match[1]] = value
    return found


def _last_members(text: str) -> dict[str, Any]:
    """The members after the large part: the longest end of `text` that, after a bracket, is an object.

    An end that begins in a nested value has a bracket too many; quotes in a string have a backslash before them.
    """
    for found in re.finditer(_LATER_MEMBER, text):
        try:
            members: dict[str, Any] = json.loads("{" + text[found.start() + 1 :])
        except (ValueError, RecursionError):
            continue
        return members
    return {}
