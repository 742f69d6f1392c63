"""Server-sent events: written, and read from the bytes of a stream."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uno_devserver.protocol.http import sse
from uno_devserver.protocol.http.sse import EventReader, SseEvent


def test_an_event_has_its_id_first_and_ends_with_an_empty_line() -> None:
    assert sse.event(b'{"a":1}', "3-7") == b'id: 3-7\nevent: message\ndata: {"a":1}\n\n'
    assert sse.event(b"{}") == b"event: message\ndata: {}\n\n"


def test_priming_is_an_event_with_an_id_and_empty_data() -> None:
    assert sse.priming("3-0", 500) == b"id: 3-0\nretry: 500\ndata: \n\n"


def test_a_retry_alone_is_no_event() -> None:
    assert sse.retry(500) == b"retry: 500\n\n"


@given(st.sampled_from(["s", "1", "12345"]), st.integers(0, 10**12))
def test_an_event_id_leads_back_to_its_place(stream: str, number: int) -> None:
    assert sse.position(sse.event_id(stream, number)) == (stream, number)


@pytest.mark.parametrize("name", ["", "x", "1", "1-", "1-x", "1-1.0", "1- 1", "1-١", "1-" + "9" * 5000])
def test_other_ids_lead_nowhere(name: str) -> None:
    assert sse.position(name) is None


def events(*chunks: bytes) -> list[SseEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def message(data: str) -> SseEvent:
    return SseEvent("message", data.encode())


def test_what_our_own_writer_writes_is_read() -> None:
    reader = EventReader()

    heard = reader.feed(sse.priming("s-0", 250) + sse.KEEP_ALIVE + sse.event(b'{"a":"\xc3\xa9"}', "s-1"))

    assert heard == [message(""), message('{"a":"é"}')]
    assert reader.last_id == b"s-1"
    assert reader.retry_ms == 250


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_they_like(end: bytes) -> None:
    lines = [b"event: note", b"data: 1", b"", b": a comment", b"data:2", b"data: 3", b"", b""]

    assert events(end.join(lines)) == [SseEvent("note", b"1"), message("2\n3")]


def test_an_event_counts_when_it_is_complete() -> None:
    reader = EventReader()

    assert reader.feed(b"id: 7\ndata: 1\n") == []
    assert reader.last_id is None
    assert reader.feed(b"\n") == [message("1")]
    assert reader.last_id == b"7"


def test_an_id_stays_until_there_is_another_one() -> None:
    reader = EventReader()

    reader.feed(b"id: 7\ndata: 1\n\ndata: 2\n\n")
    assert reader.last_id == b"7"

    reader.feed(b"id\n\n")
    assert reader.last_id is None


@pytest.mark.parametrize("name", [b"a\x00b", b"a\x01b", b"\x7f"])
def test_an_id_that_no_header_can_carry_is_none(name: bytes) -> None:
    reader = EventReader()

    reader.feed(b"id: %s\ndata: 1\n\n" % name)

    assert reader.last_id is None


@pytest.mark.parametrize("value", [b"", b"soon", b"-1", b"1.5", b"9" * 30, "٣".encode()])
def test_a_retry_that_is_no_time_is_passed_over(value: bytes) -> None:
    reader = EventReader()

    assert reader.feed(b"retry: %s\ndata: 1\n\n" % value) == [message("1")]
    assert reader.retry_ms is None


def test_unknown_fields_are_passed_over() -> None:
    assert events(b"colour: red\nDATA: x\ndata: 1\n\n") == [message("1")]


def test_an_event_without_an_end_is_none() -> None:
    assert events(b"data: 1\n\ndata: 2\n") == [message("1")]


@pytest.mark.parametrize("drip", [b"x", b"data: x\n", b"data\n"])
def test_an_event_that_does_not_end_is_refused(drip: bytes) -> None:
    reader = EventReader(limit=1000)

    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        all(reader.feed(drip) == [] for _ in range(2000))


def test_a_stream_is_resumed_after_an_event_that_was_too_long() -> None:
    reader = EventReader(limit=1000)
    reader.feed(b"id: 1\ndata: x\n\n")

    with pytest.raises(ValueError, match="longer"):
        reader.feed(b"id: 2\ndata: %s\n" % (b"x" * 1001))

    assert reader.last_id == b"2"


def test_comments_and_events_may_go_on_for_ever() -> None:
    reader = EventReader(limit=1000)

    for _ in range(2000):
        reader.feed(b": keep-")
        reader.feed(b"alive\n")
        assert reader.feed(b"data: 1\n\n") == [message("1")]


@pytest.mark.parametrize("piece", [b"data:xy\n" * 1000, b"xy"], ids=["lines", "one line"])
def test_an_event_in_tiny_pieces_costs_about_its_size(piece: bytes) -> None:
    reader = EventReader()
    reader.feed(b"data: ")

    tracemalloc.start()
    try:
        for _ in range(400_000 // len(piece)):
            reader.feed(piece)
        (event,) = reader.feed(b"\n\n")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(event.data) > 100_000
    assert peak < 2_000_000
