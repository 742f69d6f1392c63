"""Whatever is sent: the server answers or closes, keeps no connection, and serves the next client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.waiting import wait_for
from uno_devserver.protocol.http.messages import Answer, Request, Response, Sink, Streaming, Upgrade, WebSocket

from .serving import Client, Running, running
from .test_websocket import frame, upgrade_request

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def everything(request: Request) -> Answer:
    """A handler with all kinds of answers; its size says which."""

    async def stream(sink: Sink) -> None:
        for _ in range(3):
            await sink.write(b"bit")

    async def talk(websocket: WebSocket) -> None:
        while (message := await websocket.receive()) is not None:
            await websocket.send(message)

    kind = len(request.path) % 3
    if request.path == "/ws" or kind == 2:
        return Upgrade(talk)
    return Streaming(200, (), stream) if kind else Response(200, request.body)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(everything, max_body=1000, max_headers=2000, idle_timeout=5, header_timeout=5) as one:
        yield one


HTTP_BITS = [
    *(b"GET / HTTP/1.1\r\n", b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HTTP/1.1\r\n", b" HTTP/1.0\r\n"),
    *(b"HEAD /ab HTTP/1.1\r\n", b"CONNECT a:1 HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n", b"OPTIONS * HTTP/1.1\r\n"),
    *(b"Host: localhost\r\n", b"Host: evil\r\n", b"Origin: null\r\n", b"Origin: http://localhost\r\n"),
    *(
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
    ),
    *(b"Expect: 100-continue\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Upgrade: h2c\r\n"),
    *(b"5\r\nhello\r\n", b"0\r\n\r\n", b"hello", b"\r\n", b"\r", b"\n", b": ", b"\0", b"\xff", b"A: " + b"b" * 3000),
]
FRAMES = [
    frame(1, b"text"),
    frame(8),
    frame(9, b"ping"),
    frame(2, b"x", final=False),
    frame(0, b"y"),
    frame(1, b"\xff"),
]

anything = st.one_of(
    st.binary(max_size=300),
    st.lists(
        st.one_of(st.sampled_from([*HTTP_BITS, upgrade_request(), *FRAMES]), st.binary(max_size=5)), max_size=12
    ).map(b"".join),
    st.lists(st.one_of(st.sampled_from(FRAMES), st.binary(max_size=60)), max_size=5).map(
        lambda frames: upgrade_request() + b"".join(frames)
    ),
)


@MANY
@given(data=anything, cuts=st.lists(st.integers(0, 1000), max_size=4))
@example(data=upgrade_request() + frame(8) + b"after the end", cuts=[])
@example(data=b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5, cuts=[1])
def test_a_client_that_ends_its_side_is_always_left_in_peace(server: Running, data: bytes, cuts: list[int]) -> None:
    client = Client(server.port)
    try:
        places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
        for start, stop in pairwise(places):
            client.send(data[start:stop])
        client.end()
        client.rest()  # comes to an end, or times out
    except TimeoutError:
        raise
    except OSError:
        pass  # the server closed first, which is its right
    finally:
        client.close()

    assert server.trouble == []


@MANY
@given(data=anything)
def test_a_client_that_vanishes_is_forgotten(server: Running, data: bytes) -> None:
    client = Client(server.port)
    try:
        client.send(data)
    except ConnectionError:
        pass
    client.close()

    assert server.trouble == []


def test_after_all_that_the_server_is_as_good_as_new(server: Running) -> None:
    wait_for(lambda: not server.server._connections)
    wait_for(lambda: server.tasks() == set())

    client = Client(server.port)
    assert client.ask("POST", "/ab", b"body").body == b"body"
    client.close()
