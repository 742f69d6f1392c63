"""Encodes and decodes the frames of `/rc`, and the JSON in them.

A frame is a version, then scope, name and content as .NET's BinaryWriter writes strings. What .NET's reader accepts has
the same value here; what it refuses raises `FrameProblem`. Time and memory are linear in the length of the input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import msgspec

from ...system.dotnet_formats import quoted
from ...system.values import Value

VERSION = b"\x01\x00"
MAX_LENGTH_BYTES = 5  # 32 bits in groups of seven
MAX_LAST_LENGTH_BYTE = 0x0F  # four of the 32 bits are left for the fifth byte


class FrameProblem(Exception):
    """The bytes are not a frame; the text says why."""


class Frame(Value):
    scope: str
    name: str
    content: str


def encode_frame(frame: Frame) -> bytes:
    strings = (frame.scope, frame.name, frame.content)
    return VERSION + b"".join(_encode_string(text) for text in strings)


def decode_frame(data: bytes) -> Frame:
    """The frame at the start of a message; its version, and bytes after the frame, are ignored, as in .NET."""
    if len(data) < len(VERSION):
        raise FrameProblem("it ends before the version does")
    scope, at = _decode_string(data, len(VERSION))
    name, at = _decode_string(data, at)
    content, _ = _decode_string(data, at)
    return Frame(scope, name, content)


def _encode_string(text: str) -> bytes:
    # Through UTF-16, as in .NET: two surrogates become one character, a lone one U+FFFD.
    data = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    return _encode_length(len(data)) + data


def _encode_length(length: int) -> bytes:
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


def _decode_string(data: bytes, at: int) -> tuple[str, int]:
    length, at = _decode_length(data, at)
    end = at + length
    if end > len(data):
        raise FrameProblem(f"a string of {length:,} bytes is announced and {len(data) - at:,} are there")
    return data[at:end].decode("utf-8", "replace"), end


def _decode_length(data: bytes, at: int) -> tuple[int, int]:
    length = 0
    for number in range(MAX_LENGTH_BYTES):
        if at + number >= len(data):
            raise FrameProblem("it ends where the length of a string should be")
        byte = data[at + number]
        if number == MAX_LENGTH_BYTES - 1 and byte > MAX_LAST_LENGTH_BYTE:
            break
        length |= (byte & 0x7F) << (7 * number)
        if byte <= 0x7F:
            if length > 0x7FFF_FFFF:  # a negative number in .NET
                raise FrameProblem("the length of a string is negative")
            return length, at + number + 1
    raise FrameProblem("the length of a string has too many bytes")


class ContentProblem(Exception):
    """The content of a frame does not fit its name; the text says why."""


class Members:
    """A JSON object whose members are read by name, ignoring case, and by type; absent ones have a default."""

    def __init__(self, members: Mapping[str, object]) -> None:
        self._members = {name.lower(): value for name, value in members.items()}

    def text(self, name: str) -> str | None:
        value = self._members.get(name.lower())
        if value is None or isinstance(value, str):
            return value
        raise ContentProblem(f"{name} is not a text")

    def flag(self, name: str) -> bool:
        value = self._members.get(name.lower(), False)
        if isinstance(value, bool):
            return value
        raise ContentProblem(f"{name} is neither true nor false")

    def number(self, name: str) -> int | None:
        """A whole number; None if the member is absent. ContentProblem for null and other types."""
        if name.lower() not in self._members:
            return None
        value = self._members[name.lower()]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ContentProblem(f"{name} is not a whole number")

    def objects(self, name: str) -> tuple[Members, ...]:
        value = self._members.get(name.lower(), [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return tuple(Members(item) for item in value)
        raise ContentProblem(f"{name} is not a list of objects")


def read_content(content: str) -> object:
    """The value of a frame's content; ContentProblem if it is not JSON."""
    try:
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError:
            if "\\ud" not in content.lower():
                raise
            return json.loads(content)  # half a surrogate pair, which msgspec refuses and .NET accepts
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise ContentProblem(f"it is not JSON: {error}") from error
    except (RecursionError, UnicodeEncodeError) as error:
        raise ContentProblem("it is nested too deeply, or not text") from error


def read_members(content: str) -> Members:
    value = read_content(content)
    if isinstance(value, dict):
        return Members(value)
    raise ContentProblem("it is not a JSON object")


def write_content(value: object) -> str:
    """The JSON of a value, escaped as by .NET; TypeError or ValueError if it has no JSON form."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return int.__repr__(value)  # for an enum too
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no JSON form")
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quoted(str(name))}:{write_content(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return "[" + ",".join(map(write_content, value)) + "]"
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
