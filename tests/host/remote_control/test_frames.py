"""The bytes of frames, compared with those that .NET wrote and with what .NET's reader makes of broken ones."""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.golden import GOLDEN
from uno_devserver.host.remote_control.frames import (
    ContentProblem,
    Frame,
    FrameProblem,
    Members,
    decode_frame,
    encode_frame,
    read_content,
    read_members,
    write_content,
)

FRAMES = GOLDEN / "bytes" / "frames"
RECORDED: list[dict[str, Any]] = json.loads((FRAMES / "frames.json").read_text("utf-8"))
READER: list[dict[str, Any]] = json.loads((FRAMES / "reader.json").read_text("utf-8"))

# How our reasons and .NET's exceptions correspond.
EXCEPTIONS = {
    "System.IO.EndOfStreamException": "ends|are there",
    "System.FormatException": "too many bytes",
    "System.IO.IOException": "negative",
}


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: str(record["file"]))
def test_a_frame_written_by_dotnet_is_read_and_written_again_byte_for_byte(record: dict[str, Any]) -> None:
    data = (FRAMES / record["file"]).read_bytes()

    frame = decode_frame(data)

    content = record["content"].encode("utf-16", "surrogatepass").decode("utf-16")
    assert frame == Frame(record["scope"], record["name"], content)
    assert encode_frame(frame) == data
    assert len(data) == record["frame_bytes"]


@pytest.mark.parametrize("record", [r for r in READER if r["hex"] is not None], ids=lambda record: str(record["what"]))
def test_the_first_string_is_read_as_by_dotnet(record: dict[str, Any]) -> None:
    # given: what the record holds is a version and one string; a frame has two more
    data = bytes.fromhex(record["hex"])
    expected: str = record["result"]

    if expected.startswith("version 1, string "):
        assert decode_frame(data + b"\0\0") == Frame(expected.split("'")[1], "", "")
    else:
        with pytest.raises(FrameProblem, match=EXCEPTIONS[expected.split(":")[0]]):
            decode_frame(data)


def test_half_a_surrogate_pair_is_written_as_by_dotnet() -> None:
    (record,) = [r for r in READER if r["hex"] is None]

    assert encode_frame(Frame("", "", "x\ud800y"))[4:] == bytes.fromhex(record["result"])


def test_seven_bit_lengths_are_those_of_dotnet() -> None:
    # given: the last two numbers of this record are -1 and 300 in seven-bit form
    recorded = (FRAMES / "primitives.bin").read_bytes()
    length = encode_frame(Frame("k" * 300, "", ""))[2:4]

    assert recorded.endswith(b"\xff\xff\xff\xff\x0f" + length)


def test_trailing_bytes_are_ignored_and_any_version_is_read() -> None:
    data = struct.pack("<h", -2) + encode_frame(Frame("S", "N", "{}"))[2:] + b"more"

    assert decode_frame(data) == Frame("S", "N", "{}")


def test_a_length_of_two_gigabytes_costs_nothing() -> None:
    with pytest.raises(FrameProblem, match="2,147,483,647 bytes is announced and 1 are there"):
        decode_frame(b"\1\0\xff\xff\xff\xff\x07A")


# The strings that were serialised for the record, by the record's label.
STRINGS = {
    "string ASCII letters": "abc XYZ 09",
    "string + < > & ' \" \\ / `": "+<>&'\"\\/`",
    "string control characters": "\b\t\n\f\r\x00\x01\x1f\x7f\x80\u2028\u2029",
    "string non-ASCII BMP": "Příliš ж 中 € \u00a0",
    "string emoji (surrogate pair)": "\U0001f680",
    "string lone surrogate": "x\ud800y",
    "string empty": "",
    "string with path C:\\a\\b": "C:\\a\\b",
    "string BOM U+FEFF and noncharacter U+FFFE": "\ufeff\ufffe",
}
SERIALIZERS = {
    record["value"]: record["stj"]
    for record in json.loads((GOLDEN / "bytes" / "json" / "serializers.json").read_text("utf-8"))
}


class State(IntEnum):
    DISABLED = -1


@pytest.mark.parametrize("label", STRINGS)
def test_strings_are_escaped_as_by_system_text_json(label: str) -> None:
    assert write_content(STRINGS[label]) == SERIALIZERS[label]


def test_members_keep_their_order_and_nulls_are_written() -> None:
    value = {"B": None, "A": [True, 1, 0.5, {"x": ()}], "State": State.DISABLED}

    assert write_content(value) == '{"B":null,"A":[true,1,0.5,{"x":[]}],"State":-1}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", object(), {"x": {1}}])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="no JSON form"):
        write_content(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(JSON)
def test_what_is_written_can_be_read(value: object) -> None:
    assert read_content(write_content(value)) == value


def test_names_of_members_ignore_case_and_the_last_one_counts() -> None:
    members = read_members('{"requestid":"a","REQUESTID":"b","isallowed":true,"step":1,"edits":[{"filepath":"f"}]}')

    assert members.text("RequestId") == "b"
    assert members.flag("IsAllowed") is True
    assert members.number("Step") == 1
    assert [edit.text("FilePath") for edit in members.objects("Edits")] == ["f"]


def test_absent_members_have_defaults() -> None:
    members = Members({})

    assert (members.text("A"), members.flag("A"), members.number("A"), members.objects("A")) == (None, False, None, ())


@pytest.mark.parametrize(
    "content", ["", "zzz", "{", "[1]", "null", "5", '{"a":1,}', "// c\n{}", "[" * 100_000, '{"\ud800":1}']
)
def test_what_is_no_json_object_is_a_problem(content: str) -> None:
    with pytest.raises(ContentProblem):
        read_members(content)


@pytest.mark.parametrize(
    ("ask", "content"),
    [
        (lambda m: m.text("A"), '{"A":5}'),
        (lambda m: m.flag("A"), '{"A":null}'),
        (lambda m: m.flag("A"), '{"A":"true"}'),
        (lambda m: m.number("A"), '{"A":"5"}'),
        (lambda m: m.number("A"), '{"A":5.0}'),
        (lambda m: m.number("A"), '{"A":true}'),
        (lambda m: m.number("A"), '{"A":null}'),
        (lambda m: m.objects("A"), '{"A":{}}'),
        (lambda m: m.objects("A"), '{"A":[1]}'),
    ],
)
def test_a_member_of_another_type_is_a_problem_that_names_it(ask: object, content: str) -> None:
    assert callable(ask)
    with pytest.raises(ContentProblem, match="A is n"):
        ask(read_members(content))
