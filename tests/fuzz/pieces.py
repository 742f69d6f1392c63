"""Choices made out of an input's bytes, so that a mutated byte is another choice and not another syntax error.

Like atheris' FuzzedDataProvider, but plain Python: the same inputs are tried in `make test`, where atheris is missing.
Bytes that are not there are zeros, so every input means something.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


class Pieces:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def number(self, below: int) -> int:
        """From 0; one byte for small ranges, two for others."""
        size = 1 if below <= 256 else 2
        return int.from_bytes(self.take(size).ljust(size, b"\0"), "little") % below

    def flag(self) -> bool:
        return self.number(2) == 1

    def choice(self, among: Sequence[T]) -> T:
        return among[self.number(len(among))]

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def rest(self) -> bytes:
        return self.take(self.left)

    def joined(self, words: Sequence[str], most: int = 200) -> str:
        """A text of such words, one for each byte that is left."""
        return "".join(self.choice(words) for _ in range(min(self.left, most)))


def chunks(data: bytes, pieces: Pieces) -> list[bytes]:
    """The data, cut at places that the pieces choose."""
    cuts = sorted({pieces.number(len(data) + 1) for _ in range(pieces.number(6))} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(cuts)]


def cut_and_data(data: bytes) -> tuple[bytes, list[bytes]]:
    """What an input holds behind its first bytes, whole and in chunks; those bytes say where it is cut."""
    head, body = data[:8], data[8:]
    return body, chunks(body, Pieces(head))


# Where the cuts of `cut_and_data` stand in a seed: nowhere.
UNCUT = b"\0" * 8
