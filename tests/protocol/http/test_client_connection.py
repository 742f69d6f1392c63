"""What happens on a connection of a client in the same turn of the event loop, which no socket can be told to do."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from typing import Any

import pytest

from uno_devserver.protocol.http.client_connection import UNREAD_BYTES, ClientConnection, HttpFailure

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False
        self.reading = True
        self._socket = socket.socket()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket if name == "socket" else default

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    abort = close

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Connected:
    def __init__(self) -> None:
        self.freed = 0
        self.connection = ClientConnection(self._free, lambda _: None)
        self.transport = Transport()
        self.connection.connection_made(self.transport)

    def hears(self, data: bytes) -> None:
        """As the event loop tells it: a buffer full at a time."""
        while data:
            buffer = self.connection.get_buffer(-1)
            piece, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))

    def _free(self, connection: ClientConnection) -> None:
        self.freed += 1

    async def ask(self) -> asyncio.Task[Any]:
        asking = asyncio.create_task(self.connection.exchange(b"?"))
        await asyncio.sleep(0)
        assert self.transport.written
        return asking


async def test_an_answer_that_comes_when_nobody_waits_any_more_leaves_the_connection_to_the_next() -> None:
    connected = Connected()
    given_up = await connected.ask()

    given_up.cancel()
    connected.hears(WHOLE)
    assert connected.freed == 1
    next_one = asyncio.create_task(connected.connection.exchange(b"?"))
    await asyncio.wait([given_up])
    await asyncio.sleep(0)
    connected.hears(WHOLE)

    assert given_up.cancelled()
    assert await (await next_one).read() == b"hi"
    assert not connected.transport.closed
    connected.transport.close()


async def test_the_beginning_of_an_answer_for_which_nobody_waits_any_more_ends_the_connection() -> None:
    connected = Connected()
    given_up = await connected.ask()

    given_up.cancel()
    connected.hears(HEAD)

    assert connected.transport.closed
    await asyncio.wait([given_up])
    assert given_up.cancelled()


async def test_an_answer_that_has_begun_when_its_request_is_cancelled_ends_the_connection() -> None:
    connected = Connected()
    given_up = await connected.ask()

    connected.hears(HEAD)
    given_up.cancel()
    await asyncio.wait([given_up])

    assert given_up.cancelled()
    assert connected.transport.closed


async def test_a_connection_that_is_lost_when_its_request_is_cancelled_ends_quietly() -> None:
    connected = Connected()
    given_up = await connected.ask()

    connected.connection.connection_lost(ConnectionResetError())
    given_up.cancel()
    await asyncio.wait([given_up])

    assert given_up.cancelled()


async def test_a_connection_that_closes_before_it_is_used_has_sent_nothing() -> None:
    connected = Connected()
    connected.transport.close()

    with pytest.raises(HttpFailure) as failure:
        await connected.connection.exchange(b"?")

    assert not failure.value.sent
    assert connected.transport.written == []


async def test_a_connection_is_read_again_when_an_answer_has_ended_that_was_too_long_to_keep() -> None:
    connected = Connected()
    asking = await connected.ask()
    size = UNREAD_BYTES + 1

    connected.hears(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    reply = await asking
    connected.hears(b"x" * size)

    assert (connected.freed, connected.transport.reading) == (1, True)
    assert len(await reply.read()) == size
    connected.transport.close()


async def test_an_answer_in_tiny_chunks_costs_about_its_size() -> None:
    connected = Connected()
    asking = await connected.ask()
    size = 400_000
    connected.hears(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    reply = await asking

    tracemalloc.start()
    try:
        for _ in range(size // 2000):
            connected.hears(b"2\r\nxy\r\n" * 1000)
        connected.hears(b"0\r\n\r\n")
        body = await reply.read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert body == b"xy" * (size // 2)
    assert peak < 4 * size
    connected.transport.close()


async def test_a_reset_is_told_with_its_reason() -> None:
    connected = Connected()
    asking = await connected.ask()

    connected.connection.connection_lost(ConnectionResetError("reset by peer"))

    with pytest.raises(HttpFailure, match="broke off: reset by peer"):
        await asking
    connected.transport.close()
