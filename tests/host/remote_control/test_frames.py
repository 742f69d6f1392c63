"""The bytes of frames, compared with those that .NET wrote and with what .NET's reader makes of broken ones."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.golden import GOLDEN
from uno_devserver.host.remote_control.frames import Frame, FrameProblem, decode_frame, encode_frame

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


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT, TEXT)
def test_every_frame_survives_the_way_there_and_back(scope: str, name: str, content: str) -> None:
    frame = Frame(scope, name, content)

    assert decode_frame(encode_frame(frame)) == frame


@given(st.binary(max_size=60))
def test_any_bytes_are_a_frame_or_a_problem(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except FrameProblem:
        return
    assert isinstance(frame.content, str)
