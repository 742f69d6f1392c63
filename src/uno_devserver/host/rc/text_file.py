"""A text file as its author left it: encoding, byte order mark and line ends survive every change of the text.

Reading and writing back without a change gives the same bytes, also where the bytes are not valid in the encoding.
"""

from __future__ import annotations

import re

from ...system.values import Value

# Longest first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Python's ways to carry what is not valid through a text and back: single bytes in UTF-8, half pairs in the others.
_LOSSLESS = {"utf-8": "surrogateescape"}


class TextFile(Value):
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def line_end(self) -> str | None:
        """The line end used throughout; None where they are mixed, or where there is only one line."""
        windows = self.text.count("\r\n")
        if windows == self.text.count("\n"):
            return "\r\n" if windows else None
        return "\n" if windows == 0 else None

    def fitted(self, text: str) -> str:
        """The text with the line ends of this file."""
        return text if self.line_end is None else re.sub(r"\r?\n", self.line_end, text)


def decode(data: bytes) -> TextFile:
    """UnicodeDecodeError only for a file that its mark calls UTF-16 or UTF-32 and that has a byte too many or so."""
    mark, encoding = _mark_of(data)
    return TextFile(data[len(mark) :].decode(encoding, _LOSSLESS.get(encoding, "surrogatepass")), encoding, mark)


def encode(file: TextFile) -> bytes:
    """ValueError for a text that has no form in the file's encoding, or that would be read in another one next time."""
    data = file.mark + file.text.encode(file.encoding, _LOSSLESS.get(file.encoding, "surrogatepass"))
    _, encoding = _mark_of(data)
    if encoding != file.encoding:
        raise ValueError(f"its first bytes would be the mark of {encoding}, and it is in {file.encoding}")
    return data


def _mark_of(data: bytes) -> tuple[bytes, str]:
    """What a file begins with, and the encoding that this stands for."""
    return next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8"))
