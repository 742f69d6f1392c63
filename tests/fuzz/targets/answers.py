"""What servers answer over HTTP: heads, bodies, events, whatever they are cut into."""

from __future__ import annotations

import asyncio
from typing import Any

from uno_devserver.protocol.client.http_endpoint import hear_events, media_type
from uno_devserver.protocol.client.raw_messages import RawMessage
from uno_devserver.protocol.http import client_connection
from uno_devserver.protocol.http.client_connection import ClientConnection, HttpFailure, Reply
from uno_devserver.protocol.http.sse import EventReader
from uno_devserver.protocol.jsonrpc import RpcError

from ..pieces import UNCUT, cut_and_data
from ..target import Target, told
from .wire import message_seeds

LOOP = asyncio.new_event_loop()
LIMIT = 2000  # bytes of a body


class _Socket:
    """Takes settings, and nothing else is asked of it."""

    def setsockopt(self, *_what: object) -> None:
        pass


class _Wire(asyncio.Transport):
    """To a server that has said everything already."""

    def __init__(self) -> None:
        super().__init__({"socket": _Socket()})
        self.closed = False

    def write(self, data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def check_answer(data: bytes) -> None:
    """An answer that is the same however it is cut, or a failure that says why; and the exchange is over."""
    body, parts = cut_and_data(data)
    whole = LOOP.run_until_complete(_exchange([body]))
    pieces = LOOP.run_until_complete(_exchange(parts))
    if isinstance(whole, tuple) and isinstance(pieces, tuple):
        assert whole == pieces


async def _exchange(parts: list[bytes]) -> tuple[int, dict[str, str], bytes] | HttpFailure:
    """The status, headers and body; the failure where there is none."""
    connection, asked = await _asked()
    for part in parts:
        _say(connection, part)
        await asyncio.sleep(0)
    connection.eof_received()
    try:
        reply = await asyncio.wait_for(asked, 1)
        return reply.status, dict(reply.headers), await asyncio.wait_for(reply.read(LIMIT), 1)
    except HttpFailure as failure:
        told(failure)
        return failure


def check_stream(data: bytes) -> None:
    """The messages of an event stream, until it ends or breaks off; never anything else."""
    LOOP.run_until_complete(_hear(*cut_and_data(data)))


async def _hear(_body: bytes, parts: list[bytes]) -> None:
    connection, asked = await _asked()
    _say(connection, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; x\r\nConnection: close\r\n\r\n")
    reply = await asyncio.wait_for(asked, 1)
    assert media_type(reply) == "text/event-stream"
    for part in parts:
        _say(connection, part)
    connection.eof_received()
    heard: list[RawMessage] = []

    def take(message: RawMessage) -> bool:
        heard.append(message)
        return message.answers(1)

    try:
        await asyncio.wait_for(hear_events(reply, EventReader(limit=500), take), 1)
    except (HttpFailure, RpcError) as failure:
        told(failure)
    assert not any(message.answers(1) for message in heard[:-1])


async def _asked() -> tuple[ClientConnection, asyncio.Task[Reply]]:
    connection = ClientConnection(lambda _free: None, lambda _gone: None)
    connection.connection_made(_Wire())
    asked = asyncio.get_running_loop().create_task(connection.exchange(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    return connection, asked


def _say(connection: ClientConnection, data: bytes) -> None:
    """As the event loop does it."""
    if data and connection.usable:
        client_connection._BUFFER[: len(data)] = data
        connection.buffer_updated(len(data))


HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\n\r\nno such page",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
)

TARGETS = (
    Target(
        "http-answers",
        "the same answer however it is cut, or a failure that says why",
        check_answer,
        lambda: [UNCUT + head for head in HEADS],
        tuple(line + b"\r\n" for head in HEADS for line in head.split(b"\r\n") if 0 < len(line) < 60),
        1000,
    ),
    Target(
        "mcp-streams",
        "messages until the stream ends or breaks off",
        check_stream,
        lambda: (
            [UNCUT + b"".join(b"data: %s\r\n\r\n" % line for line in message_seeds()[:3])]
            + [UNCUT + b"id: 1\nevent: message\ndata: %s\n\n" % seed for seed in message_seeds()]
        ),
        ("data: ", "event: message", "\n\n", "\r\n", '"id":1', '"result":{}', '"error":', '"method":'),
        1000,
    ),
)
