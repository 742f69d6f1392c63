from __future__ import annotations

import json

import pytest

from uno_devserver.protocol.jsonrpc import PARSE_ERROR, RpcError
from uno_devserver.proxy.front.json_lines import MAX_DEPTH, answer_line, decoded, error_line


def test_numbers_keep_their_value_and_kind() -> None:
    value = decoded(b'{"big":123456789012345678901234567890,"one":1.0,"small":1e-7,"negative":-0.5}')

    assert value == {"big": 123456789012345678901234567890, "one": 1.0, "small": 1e-7, "negative": -0.5}
    assert isinstance(value["one"], float)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"{",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":%s}' % (b"9" * 5000),
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"[" * 100_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
        b'{"a":1} {"b":2}',
    ],
    ids=lambda line: repr(line[:20]),
)
def test_what_is_no_json_or_could_not_be_written_again_is_refused(line: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        decoded(line)

    assert caught.value.code == PARSE_ERROR


def test_what_is_broad_is_not_deep() -> None:
    broad = [[{"a": [1]}] for _ in range(MAX_DEPTH)]

    assert decoded(json.dumps(broad).encode()) == broad


def test_a_byte_order_mark_is_no_part_of_the_first_message() -> None:
    assert decoded(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_the_last_of_two_members_of_one_name_counts() -> None:
    assert decoded(b'{"id":1,"id":2}') == {"id": 2}


@pytest.mark.parametrize("request_id", [0, -1, 2**80, 10**400, "", "1", "grün", "\ud800", '"\n'])
def test_ids_come_back_as_they_came(request_id: int | str) -> None:
    for line in (answer_line(request_id, {}), error_line(request_id, RpcError(-32000, "no"))):
        assert json.loads(line)["id"] == request_id
        assert b"\n" not in line


def test_a_member_that_is_json_already_is_spliced_in() -> None:
    alone = answer_line(1, {}, b'"tools":[{"name" : "odd"}]')
    beside = answer_line(1, {"ttlMs": 0}, b'"tools":[]')

    assert b'{"name" : "odd"}' in alone
    assert json.loads(alone)["result"] == {"tools": [{"name": "odd"}]}
    assert json.loads(beside)["result"] == {"ttlMs": 0, "tools": []}


def test_text_that_is_no_text_does_not_spoil_the_rest() -> None:
    result = json.loads(answer_line(1, {"path": "/tmp/\udcff/x", "ok": "grün"}))["result"]

    assert result == {"path": "/tmp/?/x", "ok": "grün"}
