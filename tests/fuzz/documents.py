"""JSON texts to try readers with: any bytes, or a document whose names are right and whose values are not."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .pieces import Pieces

MAX_DEPTH = 5
MAX_MEMBERS = 6

# Values that readers have stumbled over: numbers beyond every range, texts that no file name or encoding can hold.
ODD = (
    *("null", "true", "false", "0", "1", "-1", "1.5", "2147483648", "1e999", "-1e999", "1" + "0" * 400, "1e-400"),
    *('""', '" "', '"x"', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"a/../b"', '"/"', '".."', '"1.2.3"', '"-"'),
    *('"%"', '"$(A)"', '"${a}"', '"*"', '"**/*"', '"["', '"{"', '"C:\\\\x"', "[]", "{}", "[[]]", '{"":null}', "[null]"),
    *('"a\\nb"', '"é"', '"true"', '"1"', "1" * 5000, "[" * 3000, '"' + "a" * 3000 + '"', '"2026-01-01T00:00:00Z"'),
)
WORDS = ("{", "}", "[", "]", ":", ",", '"', "//", "/*", "*/", "null", "true", "1e999", "\\u", "\\ud800", "\ufeff")

RAW = b"\0"  # what a seed begins with that is the document itself
BUILT = b"\1"  # what a seed begins with that is choices


def document(data: bytes, names: Sequence[str], values: Sequence[str] = ()) -> bytes:
    """The text that an input stands for: its rest, or one with these names and (JSON texts of) values."""
    if not data[:1] or data[0] % 2 == 0:
        return data[1:]
    return value(Pieces(data[1:]), names, (*values, *ODD)).encode("utf-8", "surrogatepass")


def value(pieces: Pieces, names: Sequence[str], values: Sequence[str], depth: int = 0) -> str:
    kind = pieces.number(8)
    if depth == MAX_DEPTH or (depth and kind < 4):
        return pieces.choice(values)
    if kind < 7:
        members = (
            f"{json.dumps(pieces.choice(names))}: {value(pieces, names, values, depth + 1)}"
            for _ in range(pieces.number(MAX_MEMBERS + 1))
        )
        return "{" + ", ".join(members) + "}"
    return "[" + ", ".join(value(pieces, names, values, depth + 1) for _ in range(pieces.number(4))) + "]"


def raw(*seeds: bytes) -> list[bytes]:
    """Seeds for `document`: these, and some that are built."""
    return [RAW + seed for seed in seeds] + [BUILT + bytes(range(60)), BUILT + bytes(range(90, 160))]
