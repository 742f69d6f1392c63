"""Messages on a byte stream, each after a header with its length: `Content-Length: 5\\r\\n\\r\\n12345`.

No I/O. Input that cannot be a frame raises `FramingProblem` as soon as that is certain; the size of unfinished frames
is limited.
"""

from __future__ import annotations

import re

MAX_HEADER_BYTES = 8 * 1024  # clients write two short lines
MAX_MESSAGE_BYTES = 64 * 1024 * 1024  # the largest messages contain a file

_END = b"\r\n\r\n"
# Matches every start of a header block, so that other input is noticed before the end of the block.
_POSSIBLE = re.compile(rb"(?:[A-Za-z0-9-]+:[^\r\n]*\r\n)*(?:[A-Za-z0-9-]+(?::[^\r\n]*\r?)?|\r)?")
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]*)", re.IGNORECASE)
_UTF_8 = ("utf-8", "utf8")  # the second is what older clients of this protocol write


class FramingProblem(Exception):
    """The bytes are not a frame, so the rest of the stream cannot be read either."""


def encode_message(message: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(message), message)


class FrameDecoder:
    """Splits a stream, given in pieces of any size, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None  # the length of the message whose header has been read

    @property
    def unfinished(self) -> bool:
        """Whether an incomplete frame has been read."""
        return bool(self._buffer) or self._length is not None

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that this data completes."""
        self._buffer += data
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> bytes | None:
        if self._length is None:
            self._length = self._read_header()
        if self._length is None or len(self._buffer) < self._length:
            return None
        message = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return message

    def _read_header(self) -> int | None:
        end = self._buffer.find(_END, 0, MAX_HEADER_BYTES)
        head = bytes(self._buffer[: end + 2 if end >= 0 else MAX_HEADER_BYTES])
        if not _POSSIBLE.fullmatch(head):
            raise FramingProblem(f"{head[:40]!r} where a header was expected")
        if end < 0:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise FramingProblem(f"a header of more than {MAX_HEADER_BYTES:,} bytes")
            return None
        del self._buffer[: end + len(_END)]
        return _length_in(head.decode("latin-1"))


def _length_in(head: str) -> int:
    lengths = set()
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        # .NET compares case, but these headers come from HTTP, which ignores it.
        if name.lower() == "content-length":
            lengths.add(value.strip())
        elif name.lower() == "content-type":
            _check_charset(value)
    if len(lengths) != 1:
        raise FramingProblem("a header without a Content-Length, or with two that differ")
    length = lengths.pop()
    if not (length.isascii() and length.isdigit()):
        raise FramingProblem(f"a Content-Length of {length[:20]!r}, which is not a number")
    if len(length) > 20 or not 0 < int(length) <= MAX_MESSAGE_BYTES:
        raise FramingProblem(f"a Content-Length of {length[:20]}; from 1 to {MAX_MESSAGE_BYTES:,} is allowed")
    return int(length)


def _check_charset(content_type: str) -> None:
    charset = _CHARSET.search(content_type)
    if charset and charset[1].lower() not in _UTF_8:
        raise FramingProblem(f"messages in {charset[1][:20]!r}; only UTF-8 is understood")
