"""Frames, against the bytes that StreamJsonRpc wrote and what it made of unusual headers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.golden import GOLDEN
from uno_devserver.host.ide.framing import MAX_HEADER_BYTES, FrameDecoder, FramingProblem, encode_message

RECORDS = json.loads((GOLDEN / "bytes/streamjsonrpc.json").read_text("utf-8"))["records"]
WRITTEN = [record for record in RECORDS if record.get("text", "").startswith("Content-Length")]
HEADERS = [record for record in RECORDS if record["what"].startswith("server: header:")]

# Where we read headers differently, and why.
DIFFERENCES = {
    "server: header: lower case": "accepted: header names come from HTTP, where case means nothing",
    "server: header: no header at all": "refused at once: .NET waits for ever for the end of a header",
}


@pytest.mark.parametrize("record", WRITTEN, ids=lambda record: str(record["what"]))
def test_what_net_wrote_is_read_and_written_again_byte_for_byte(record: dict[str, Any]) -> None:
    data = bytes.fromhex(record["hex"])

    messages = FrameDecoder().feed(data)

    assert messages
    assert b"".join(map(encode_message, messages)) == data


@pytest.mark.parametrize("record", HEADERS, ids=lambda record: str(record["what"]))
def test_a_header_is_accepted_or_refused_as_by_net(record: dict[str, Any]) -> None:
    sent = record["sent_text"].encode()
    accepted_by_net = record["text"].startswith("Content-Length")

    try:
        accepted = FrameDecoder().feed(sent) == [sent[-54:]]
    except FramingProblem:
        accepted = False

    if record["what"] in DIFFERENCES:
        assert accepted is DIFFERENCES[record["what"]].startswith("accepted")
        assert accepted is not accepted_by_net or record["text"] == ""
    else:
        assert accepted is accepted_by_net


@pytest.mark.parametrize("cut", range(1, 25))
def test_a_truncated_frame_is_unfinished(cut: int) -> None:
    frame = encode_message(b"12345")
    decoder = FrameDecoder()

    assert decoder.feed(frame[:cut]) == []
    assert decoder.unfinished


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: 67108865",  # a byte more than the limit
        "Content-Length: 99999999999999999999999999",
        "Content-Length: " + "9" * 5000,
        "Content-Length: -1",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 5.0",
        "Content-Length: ²",
        "Content-Length:",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Type: text/plain",
        "Content-Length: 5\r\nContent-Type: application/json; charset=utf-16",
        "GET / HTTP/1.1",
        ": 5",
    ],
)
def test_a_wrong_header_is_refused_before_any_content_comes(header: str) -> None:
    with pytest.raises(FramingProblem):
        FrameDecoder().feed(f"{header}\r\n\r\n".encode("latin-1"))


@pytest.mark.parametrize("start", [b"{", b"\xff", b"Content-Length: 5\n", b"\r\nContent", b"A B", b"A\r"])
def test_what_cannot_become_a_header_is_refused_without_waiting_for_its_end(start: bytes) -> None:
    with pytest.raises(FramingProblem):
        FrameDecoder().feed(start)


def test_a_header_that_does_not_end_is_refused() -> None:
    decoder = FrameDecoder()
    decoder.feed(b"X-Filler: " + b"x" * (MAX_HEADER_BYTES - 11))

    with pytest.raises(FramingProblem):
        decoder.feed(b"x")


@pytest.mark.parametrize(
    "content_type", ["application/vscode-jsonrpc; charset=utf8", 'text/x; CHARSET="UTF-8"; a=b', "x"]
)
def test_utf_8_has_several_spellings(content_type: str) -> None:
    frame = f"Content-Type: {content_type}\r\nContent-Length: 2\r\n\r\n{{}}".encode()

    assert FrameDecoder().feed(frame) == [b"{}"]


def test_the_same_length_twice_is_no_contradiction() -> None:
    assert FrameDecoder().feed(b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}") == [b"{}"]
