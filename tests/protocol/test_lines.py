"""Lines out of bytes, however the bytes are cut, and what can be read of lines that are too long or no JSON."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.lines import KEPT_BYTES, LineSplitter, LineTooLong, readable_members

MIB = 1024 * 1024


def all_lines(*pieces: bytes, limit: int = MIB) -> list[bytes | LineTooLong]:
    splitter = LineSplitter(limit)
    found = [line for piece in pieces for line in splitter.feed(piece)]
    return found + splitter.finish()


def expected_lines(data: bytes, limit: int) -> list[bytes | None]:
    """By the rule, without the splitter: stripped lines that are not blank; None for one that is too long."""
    parts = data.replace(b"\r", b" ").split(b"\n")
    return [None if len(part) > limit else part.strip() for part in parts if len(part) > limit or part.strip()]


def without_members(lines: list[bytes | LineTooLong]) -> list[bytes | None]:
    return [None if isinstance(line, LineTooLong) else line for line in lines]


def test_lines_come_out_whole_whatever_ends_them() -> None:
    assert all_lines(b'{"a":1}\n{"b":2}\r\n\n  \r\n{"c":3}') == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_no_line_holds_what_other_readers_take_for_its_end() -> None:
    assert all_lines(b'{"a":\r', b"[\r\r]}\n") == [b'{"a": [  ]}']


def test_a_line_is_handed_over_by_the_piece_that_ends_it() -> None:
    splitter = LineSplitter(MIB)

    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o") == []
    assert splitter.feed(b"\nthree\nfour") == [b"two", b"three"]
    assert splitter.finish() == [b"four"]
    assert splitter.finish() == []


@given(st.text(), st.lists(st.integers(0, 60)))
def test_characters_may_be_cut_anywhere(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass")
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]

    assert without_members(all_lines(*pieces)) == expected_lines(data, MIB)


@pytest.mark.parametrize("piece", [64 * 1024, 4 * MIB])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(piece: int) -> None:
    data = b"x" * MIB + b"\n" + b"y" * (MIB + 1) + b"\nnext\n"
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

    assert all_lines(*pieces) == [b"x" * MIB, LineTooLong({}), b"next"]


def test_many_short_lines_may_be_longer_together_than_one_may_be() -> None:
    assert all_lines(b"1234\n" * 100, limit=4) == [b"1234"] * 100


def test_a_line_that_is_too_long_is_not_kept_in_memory() -> None:
    splitter = LineSplitter(10_000)
    tracemalloc.start()

    for _ in range(1000):
        splitter.feed(b"x" * 10_000)

    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 10 * KEPT_BYTES
    assert splitter.feed(b"\nnext\n") == [LineTooLong({}), b"next"]


ID_FIRST = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":99,"text":"%s"}}'
ID_LAST = b'{"method":"tools/call","params":{"id":99,"text":"%s"},"jsonrpc":"2.0","id":"seven"}'
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"text":"%s"}}'
ANSWER_LAST = b'{"result":{"method":"x","text":"%s"},"jsonrpc":"2.0","id":7}'
MEMBERS_AFTER = b'{"result":{"text":"%s","id":99},"id":7,"_meta":{"id":98,"more":[{"id":97}]},"x":null}'
QUOTED_AFTER = b'{"result":{"text":"%s,\\"id\\":99,","id":98},"id":"seven","x":",\\"id\\":97}"}'
UNKNOWN = b'{"params":{"id":99,"text":"%s","more":{"id":98}}}'


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (ID_FIRST, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": None}),
        (ID_LAST, {"method": "tools/call", "params": None, "jsonrpc": "2.0", "id": "seven"}),
        (ANSWER, {"jsonrpc": "2.0", "id": 7, "result": None}),
        (ANSWER_LAST, {"result": None, "jsonrpc": "2.0", "id": 7}),
        (MEMBERS_AFTER, {"result": None, "id": 7, "_meta": {"id": 98, "more": [{"id": 97}]}, "x": None}),
        (QUOTED_AFTER, {"result": None, "id": "seven", "x": ',"id":97}'}),
        (UNKNOWN, {"params": None}),
        (b"%s", {}),
    ],
)
@pytest.mark.parametrize("piece", [100, 100_000])
def test_a_line_that_is_too_long_is_skipped_and_told_with_what_it_was(
    line: bytes, known: dict[str, Any], piece: int
) -> None:
    data = line % (b"x" * 20_000) + b"\nnext\n"
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

    assert all_lines(*pieces, limit=10_000) == [LineTooLong(known), b"next"]


def test_an_id_of_which_only_a_part_was_kept_is_not_known() -> None:
    start = b'{"method":"m","id":'
    line = start + b"1" * (KEPT_BYTES - len(start)) + b"1" * 5000 + b"}"

    [skipped] = all_lines(line, limit=5000)

    assert isinstance(skipped, LineTooLong)
    assert skipped.members == {"method": "m", "id": None}


def test_a_line_without_an_end_that_is_too_long_is_told_at_the_end_of_the_input() -> None:
    splitter = LineSplitter(10)

    assert splitter.feed(b"x" * 50) == []
    assert splitter.feed(b"x" * 50) == []
    assert splitter.finish() == [LineTooLong({})]
    assert splitter.finish() == []


@pytest.mark.parametrize("line", [b'{"id":1,"method":"m","params":{"n":NaN', b'{"id":1,"method":"m" nonsense'])
def test_of_broken_json_the_members_before_the_break_are_read(line: bytes) -> None:
    members = readable_members(line)

    assert (members["id"], members["method"]) == (1, "m")


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none(), max_size=6))
def test_members_that_are_read_are_those_that_were_written(message: dict[str, object]) -> None:
    read = readable_members(json.dumps(message).encode() + b" ")

    assert all(message[name] == value for name, value in read.items() if name in message)
