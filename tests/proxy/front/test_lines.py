from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.proxy.front.input import KEPT_BYTES, MAX_LINE_BYTES, Lines, TooLong, readable_members


def all_lines(*pieces: bytes, limit: int = MAX_LINE_BYTES) -> list[bytes | TooLong]:
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)]
    return found + lines.finish()


def test_lines_come_out_whole_whatever_ends_them() -> None:
    assert all_lines(b'{"a":1}\n{"b":2}\r\n\n  \r\n{"c":3}') == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


@given(st.text(), st.lists(st.integers(0, 60)))
def test_lines_do_not_depend_on_the_pieces_that_they_come_in(text: str, cuts: list[int]) -> None:
    data = text.encode("utf-8", "surrogatepass")
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]

    assert all_lines(*pieces) == [line for part in data.split(b"\n") if (line := part.strip())]


def test_a_line_may_have_16_mebibytes() -> None:
    line = b"x" * MAX_LINE_BYTES
    pieces = [line[at : at + 65_536] for at in range(0, len(line), 65_536)]

    assert all_lines(*pieces, b"\n", b"next\n") == [line, b"next"]


ID_FIRST = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":99,"text":"%s"}}'
ID_LAST = b'{"method":"tools/call","params":{"id":99,"text":"%s"},"jsonrpc":"2.0","id":"seven"}'
ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"text":"%s"}}'
ANSWER_LAST = b'{"result":{"method":"x","text":"%s"},"jsonrpc":"2.0","id":7}'
UNKNOWN = b'{"params":{"id":99,"text":"%s","more":{"id":98}}}'


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (ID_FIRST, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": None}),
        (ID_LAST, {"method": "tools/call", "params": None, "jsonrpc": "2.0", "id": "seven"}),
        (ANSWER, {"jsonrpc": "2.0", "id": 7, "result": None}),
        (ANSWER_LAST, {"result": None, "jsonrpc": "2.0", "id": 7}),
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

    assert all_lines(*pieces, limit=10_000) == [TooLong(known), b"next"]


def test_an_id_of_which_only_a_part_was_kept_is_not_known() -> None:
    start = b'{"method":"m","id":'
    line = start + b"1" * (KEPT_BYTES - len(start)) + b"1" * 5000 + b"}"

    [skipped] = all_lines(line, limit=5000)

    assert isinstance(skipped, TooLong)
    assert skipped.members == {"method": "m", "id": None}


def test_a_line_without_an_end_that_is_too_long_is_told_at_the_end_of_the_input() -> None:
    lines = Lines(10)

    assert lines.feed(b"x" * 50) == []
    assert lines.feed(b"x" * 50) == []
    assert lines.finish() == [TooLong({})]
    assert lines.finish() == []


@pytest.mark.parametrize("line", [b'{"id":1,"method":"m","params":{"n":NaN', b'{"id":1,"method":"m" nonsense'])
def test_of_broken_json_the_members_before_the_break_are_read(line: bytes) -> None:
    members = readable_members(line)

    assert (members["id"], members["method"]) == (1, "m")


@given(st.binary(max_size=200))
def test_nothing_that_is_no_json_is_an_error(line: bytes) -> None:
    assert isinstance(readable_members(line), dict)


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none(), max_size=6))
def test_members_that_are_read_are_those_that_were_written(message: dict[str, object]) -> None:
    read = readable_members(json.dumps(message).encode() + b" ")

    assert all(message[name] == value for name, value in read.items() if name in message)
