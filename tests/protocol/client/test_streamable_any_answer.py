"""Whatever a server answers, a request has one outcome, and soon."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from support.mcp_peers import TestPeer
from support.raw_servers import Asked, Visitor
from uno_devserver.protocol.client.connection import ConnectionLost
from uno_devserver.protocol.jsonrpc import RpcError

from .http_servers import HandshakeServer, ModernServer, connected

RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"gr\xc3\xbc\xc3\x9fe"}]}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
ASK = b'{"jsonrpc":"2.0","id":"q","method":"ping"}'


def in_json(request_id: int) -> bytes:
    body = RESULT % request_id
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def in_events(request_id: int) -> bytes:
    events = b"".join(b"event: message\r\ndata: %b\r\n\r\n" % data for data in (NOTE, ASK, RESULT % request_id))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return b"%b%x\r\n%b\r\n0\r\n\r\n" % (head, len(events), events)


@given(
    modern=st.booleans(),
    events=st.booleans(),
    damage=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3), st.integers(0, 40)), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_a_damaged_answer_is_a_result_an_error_or_a_loss(
    modern: bool, events: bool, damage: list[tuple[float, bytes, int]]
) -> None:
    async def call(visitor: Visitor, asked: Asked) -> None:
        answer = (in_events if events else in_json)(asked.json["id"])
        for place, put, cut in damage:
            start = int(place * len(answer))
            answer = answer[:start] + put + answer[start + cut :]
        visitor.say(answer)
        visitor.close()

    async def outcome() -> bytes | RpcError | ConnectionLost:
        server = ModernServer(call=call) if modern else HandshakeServer(call=call)
        async with connected(server) as connection:
            try:
                return bytes(await connection.request("tools/call", {}, TestPeer()))
            except (RpcError, ConnectionLost) as error:
                return error

    said = asyncio.run(asyncio.wait_for(outcome(), 10))

    if isinstance(said, bytes):
        assert isinstance(json.loads(said), dict)
        assert b"\n" not in said
    else:
        assert str(said)
        assert isinstance(said, RpcError) or said.sent
