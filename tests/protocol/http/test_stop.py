"""Stopping: everything ends, in the kindest way there is time for, and nothing is left. The fixture counts tasks."""

from __future__ import annotations

import asyncio

import pytest

from support.waiting import wait_for
from uno_devserver.protocol.http import server as server_module
from uno_devserver.protocol.http import websocket as websocket_module
from uno_devserver.protocol.http.messages import Answer, Request, Response, Sink, Streaming, Upgrade, WebSocket
from uno_devserver.protocol.http.server import HttpServer, open_sockets
from uno_devserver.system.ports import is_free

from .serving import PATIENCE, Client, Paused, Serve, Signal, answering, echo, streaming, upgrading
from .test_websocket import CLOSE, frame_from, upgraded

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
AT_ONCE = 2.0  # seconds; generous for a busy machine, and well below every deadline that counts where it is used


def test_idle_connections_are_closed_at_once(serve: Serve) -> None:
    server = serve(answering(b"hello"))
    fresh, used, begun = server.client(), server.client(), server.client()
    used.ask()
    begun.send(b"GET / HTTP/1.1\r\nHost: loc")
    wait_for(lambda: len(server.server._connections) == 3)

    took = server.stop(grace_seconds=PATIENCE)

    assert took < AT_ONCE
    assert [client.rest() for client in (fresh, used, begun)] == [b"", b"", b""]


def test_nothing_is_accepted_any_more_and_the_port_is_free(serve: Serve) -> None:
    server = serve()
    server.client().ask()

    server.stop()

    with pytest.raises(ConnectionRefusedError):
        Client(server.port)
    assert is_free(server.port)


def test_a_handler_at_work_finishes_its_answer(serve: Serve) -> None:
    handler = Paused(Response(200, b"done"))
    server = serve(handler)
    client = server.asking(GET + GET, handler)

    server.loop.call_soon_threadsafe(server.loop.call_later, 0.1, handler.go_on.set)
    took = server.stop(grace_seconds=PATIENCE)
    reply = client.reply()

    assert took < PATIENCE / 2
    assert (reply.body, reply.headers["connection"], client.rest()) == (b"done", "close", b"")


def test_a_handler_that_takes_longer_than_the_grace_is_cancelled(serve: Serve) -> None:
    handler = Paused()
    server = serve(handler)
    client = server.asking(GET, handler)

    took = server.stop(grace_seconds=0.1)

    assert took < 0.1 + AT_ONCE
    assert handler.cancelled.is_set
    assert client.rest() == b""


def test_a_handler_whose_client_left_gets_the_grace_too(serve: Serve) -> None:
    handler = Paused()
    server = serve(handler)
    server.asking(GET, handler).reset()
    wait_for(lambda: not server.server._connections)

    server.loop.call_soon_threadsafe(server.loop.call_later, 0.1, handler.go_on.set)
    server.stop(grace_seconds=PATIENCE)

    assert handler.done.is_set


def test_a_stubborn_handler_is_left_behind_and_named(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CANCEL_SECONDS", 0.2)
    monkeypatch.setattr(server_module, "CLOSE_SECONDS", 0.2)
    asked, give_up = Signal(), Signal()

    async def handler(_: Request) -> Answer:
        asked.set()
        while not give_up.is_set:
            try:
                await give_up.passed()
            except asyncio.CancelledError:
                continue
        return Response(200)

    server = serve(handler)
    client = server.client()
    client.send(GET)
    asked.wait()

    took = server.stop(grace_seconds=0.1)
    give_up.set()

    assert took < 0.5 + AT_ONCE
    assert client.rest() == b""
    assert "requests that go on although they were cancelled: 1" in capsys.readouterr().err
    wait_for(lambda: server.tasks() == set())


@pytest.mark.parametrize("well", [True, False])
def test_a_stream_ends_with_the_last_chunk_only_if_it_ends_well(serve: Serve, well: bool) -> None:
    async def run(sink: Sink) -> None:
        await sink.write(b"hello")
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if not well:
                raise
            await sink.write(b"bye")

    server = serve(streaming(run))
    client = server.client()
    client.send(GET)
    client.head()
    assert client.chunk() == b"hello"

    took = server.stop(grace_seconds=PATIENCE)

    assert took < AT_ONCE
    assert not well or list(client.chunks()) == [b"bye"]
    assert client.rest() == b""


def test_a_stream_that_begins_while_the_server_stops_is_ended(serve: Serve) -> None:
    cleaned = Signal()

    async def run(_: Sink) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    handler = Paused(Streaming(200, (), run))
    server = serve(handler)
    server.asking(GET, handler)

    server.loop.call_soon_threadsafe(server.loop.call_later, 0.1, handler.go_on.set)
    took = server.stop(grace_seconds=PATIENCE)

    assert took < PATIENCE / 2
    assert cleaned.is_set


def test_a_stream_whose_reader_does_not_read_is_cut_off(serve: Serve) -> None:
    async def run(sink: Sink) -> None:
        while True:
            await sink.write(bytes(100_000))

    server = serve(streaming(run))
    client = server.client(receive_buffer=4096)
    client.send(GET)
    wait_for(lambda: any(each._wire.stalled for each in server.server._connections))

    assert server.stop(grace_seconds=PATIENCE) < 1 + AT_ONCE


@pytest.mark.parametrize("answers", [True, False], ids=["polite", "mute"])
def test_a_websocket_is_told_that_the_server_goes_away(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    for module in (server_module, websocket_module):
        monkeypatch.setattr(module, "CLOSE_SECONDS", PATIENCE if answers else 1.0)
    cancelled = Signal()

    async def run(websocket: WebSocket) -> None:
        try:
            await websocket.receive()
        finally:
            cancelled.set()

    server = serve(upgrading(run))
    client = upgraded(server)

    stopping = asyncio.run_coroutine_threadsafe(server.server.stop(PATIENCE), server.loop)
    opcode, payload = frame_from(client)
    if answers:
        client.send(bytes([0x80 | CLOSE, 0x80 | 2, 0, 0, 0, 0]) + payload[:2])
    began = server.loop.time()
    stopping.result(PATIENCE)

    assert (opcode, payload[:2]) == (CLOSE, (1001).to_bytes(2, "big"))
    assert cancelled.is_set
    assert server.loop.time() - began < (AT_ONCE if answers else 1 + AT_ONCE)
    assert client.rest() == b""


def test_everything_at_once_is_over_in_bounded_time(serve: Serve) -> None:
    async def forever(_: object) -> None:
        await asyncio.sleep(3600)

    async def handler(request: Request) -> Answer:
        if request.path == "/ws":
            return Upgrade(forever)
        if request.path == "/stream":
            return Streaming(200, (), forever)
        if request.path == "/slow":
            await asyncio.sleep(3600)
        return Response(200)

    server = serve(handler)
    clients = [server.client() for _ in range(40)]
    for number, client in enumerate(clients):
        if number % 4 == 3:
            upgraded(server, client)
        else:
            client.request("GET", ("/", "/stream", "/slow")[number % 4])
    for client in clients[::4]:
        client.reply()

    took = server.stop(grace_seconds=0.2)

    assert took < 0.2 + 1 + AT_ONCE
    assert server.tasks() == set()


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    sockets = open_sockets(0)
    server = HttpServer(echo, sockets)

    asyncio.run(server.stop())

    assert is_free(server.port)


def test_stopping_twice_is_stopping_once(serve: Serve) -> None:
    server = serve()
    server.client().ask()

    server.stop()

    assert server.stop() < AT_ONCE
