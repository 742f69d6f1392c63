"""A frame of `/rc` and its bytes: a version, then scope, name and content as .NET's BinaryWriter writes strings.

What .NET's reader accepts is read to the same values, what it refuses is a `FrameProblem`; no input costs more than
its own length.
"""

from __future__ import annotations

import struct

from ...system.values import Value

VERSION = 1
MAX_LENGTH_BYTES = 5  # 32 bits in groups of seven
MAX_LAST_LENGTH_BYTE = 0x0F  # only four of the 32 bits are left for the fifth byte


class FrameProblem(Exception):
    """The bytes are no frame; says why."""


class Frame(Value):
    scope: str
    name: str
    content: str
    version: int = VERSION


def encode(frame: Frame) -> bytes:
    strings = (frame.scope, frame.name, frame.content)
    return struct.pack("<h", frame.version) + b"".join(_encode_string(text) for text in strings)


def decode(data: bytes) -> Frame:
    """The frame at the start of a message; what follows it is ignored, as in .NET."""
    if len(data) < 2:
        raise FrameProblem("it ends before the version does")
    (version,) = struct.unpack_from("<h", data)
    scope, at = _decode_string(data, 2)
    name, at = _decode_string(data, at)
    content, _ = _decode_string(data, at)
    return Frame(scope, name, content, version)


def _encode_string(text: str) -> bytes:
    # By way of UTF-16, as a .NET string is: two halves of a pair become one character, a lone half U+FFFD.
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
