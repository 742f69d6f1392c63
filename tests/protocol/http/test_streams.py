"""Answers that are written bit by bit: chunks, slow readers, readers that leave, writers that fail."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.waiting import wait_for
from uno_devserver.protocol.http.messages import Answer, Request, Sink, Streaming

from .serving import Serve, Signal, streaming

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def three_bits(sink: Sink) -> None:
    for bit in (b"one", b"", b"two", b"three"):
        await sink.write(bit)


def test_a_stream_comes_in_chunks_and_the_connection_is_kept(serve: Serve) -> None:
    client = serve(streaming(three_bits)).client()

    client.send(GET)
    status, headers = client.head()

    assert (status, headers["transfer-encoding"], headers["content-type"]) == (200, "chunked", "text/event-stream")
    assert "content-length" not in headers
    assert list(client.chunks()) == [b"one", b"two", b"three"]
    assert client.ask("GET", "/plain").body == b"plain"


def test_the_head_comes_before_the_first_bit_is_there(serve: Serve) -> None:
    go_on = Signal()

    async def run(sink: Sink) -> None:
        await go_on.passed()
        await sink.write(b"late")

    client = serve(streaming(run)).client()
    client.send(GET)

    assert client.head()[0] == 200
    go_on.set()
    assert list(client.chunks()) == [b"late"]


def test_an_http_1_0_client_gets_the_bits_bare_and_then_the_end(serve: Serve) -> None:
    client = serve(streaming(three_bits)).client()

    client.send(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
    reply = client.reply()

    assert (reply.headers["connection"], reply.body) == ("close", b"onetwothree")


def test_head_is_answered_without_running_the_stream(serve: Serve) -> None:
    ran = Signal()

    async def run(_: Sink) -> None:
        ran.set()

    client = serve(streaming(run)).client()

    assert client.ask("HEAD").headers["transfer-encoding"] == "chunked"
    assert client.ask("GET", "/plain").body == b"plain"
    assert not ran.is_set


def test_a_request_behind_a_stream_waits_for_its_end(serve: Serve) -> None:
    client = serve(streaming(three_bits)).client()

    client.send(GET + GET + b"GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert [client.reply().body for _ in range(3)] == [b"onetwothree", b"onetwothree", b"plain"]


def test_a_reader_that_leaves_cancels_its_stream_and_nothing_else(serve: Serve) -> None:
    cancelled = Signal()
    go_on = Signal()

    async def run(sink: Sink) -> None:
        await sink.write(b"hello")
        try:
            await go_on.passed()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    server = serve(streaming(run))
    leaving, staying = server.client(), server.client()
    for client in (leaving, staying):
        client.send(GET)
        client.head()
        assert client.chunk() == b"hello"

    leaving.close()

    cancelled.wait()
    go_on.set()
    assert list(staying.chunks()) == []


def test_a_reader_that_left_before_the_stream_began_cancels_it_too(serve: Serve) -> None:
    asked, go_on, cleaned = Signal(), Signal(), Signal()

    async def run(_: Sink) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    async def handler(_: Request) -> Answer:
        asked.set()
        await go_on.passed()
        return Streaming(200, (), run)

    server = serve(handler)
    client = server.client()
    client.send(GET)
    asked.wait()

    client.close()
    wait_for(lambda: server.do(_half_closed(server.server)))
    go_on.set()

    cleaned.wait()


async def _half_closed(server: object) -> bool:
    connections = server._connections  # type: ignore[attr-defined]  # nothing outside tells that the end has come
    return all(each._half_closed for each in connections)


def test_writing_to_a_reader_that_left_is_a_connection_error(serve: Serve) -> None:
    failed: list[BaseException] = []
    done = Signal()

    async def run(sink: Sink) -> None:
        while True:
            try:
                await sink.write(b"x" * 100_000)
            except asyncio.CancelledError:
                continue  # stubborn: writes on
            except OSError as error:
                failed.append(error)
                done.set()
                raise

    client = serve(streaming(run)).client()
    client.send(GET)
    client.head()

    client.close()

    done.wait()
    assert isinstance(failed[0], ConnectionError)


def test_a_slow_reader_slows_the_writer_down(serve: Serve) -> None:
    written = 0
    size, count = 100_000, 400

    async def run(sink: Sink) -> None:
        nonlocal written
        for _ in range(count):
            await sink.write(bytes(size))
            written += size

    server = serve(streaming(run))
    client = server.client(receive_buffer=65536)
    client.send(GET)
    client.head()

    # The kernel takes some megabytes; then nothing more, for as long as nothing is read.
    before = -1
    while written != before:
        before = written
        server.do(asyncio.sleep(0.2))
    held = sum(each._wire.backlog for each in server.server._connections)

    assert before < size * count / 2
    assert held < 65536 + 2 * size
    assert sum(len(chunk) for chunk in client.chunks()) == size * count


def test_several_writers_may_share_a_stream(serve: Serve) -> None:
    async def run(sink: Sink) -> None:
        async def write(letter: bytes) -> None:
            for _ in range(50):
                await sink.write(letter * 10_000)

        await asyncio.gather(*(write(letter) for letter in (b"a", b"b", b"c")))

    client = serve(streaming(run)).client()
    client.send(GET)
    client.head()

    chunks = list(client.chunks())

    assert len(chunks) == 150
    assert all(len(set(chunk)) == 1 for chunk in chunks)


def test_a_stream_that_fails_ends_without_the_last_chunk(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    async def run(sink: Sink) -> None:
        await sink.write(b"half")
        raise LookupError("lost the other half")

    client = serve(streaming(run)).client()
    client.send(GET)
    client.head()

    assert client.rest() == b"4\r\nhalf\r\n"
    assert "the stream of / failed: LookupError: lost the other half" in capsys.readouterr().err


def test_who_keeps_a_sink_cannot_write_into_the_next_answer(serve: Serve) -> None:
    kept: list[Sink] = []

    async def run(sink: Sink) -> None:
        kept.append(sink)

    async def write_late() -> None:
        await kept[0].write(b"intruder")

    server = serve(streaming(run))
    client = server.client()
    assert client.ask().body == b""

    with pytest.raises(ConnectionError):
        server.do(write_late())

    assert client.ask("GET", "/plain").body == b"plain"


def test_a_stream_with_a_header_that_cannot_be_sent_is_a_500(serve: Serve) -> None:
    async def handler(_: Request) -> Answer:
        return Streaming(200, (("X", "a\nb"),), three_bits)

    reply = serve(handler).client().ask()

    assert (reply.status, list(json.loads(reply.body))) == (500, ["error"])


def test_a_stream_may_be_silent_for_longer_than_every_timeout(serve: Serve) -> None:
    async def run(sink: Sink) -> None:
        await asyncio.sleep(0.5)
        await sink.write(b"late")

    client = serve(streaming(run), header_timeout=0.1, idle_timeout=0.1).client()

    assert client.ask().body == b"late"
