"""WebSockets: raw frames, and a real client library. The rules are those of RFC 6455."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import struct
import threading
from functools import partial

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.waiting import wait_for
from uno_devserver.protocol.http import websocket as websocket_module
from uno_devserver.protocol.http.messages import Answer, Request, Response, Upgrade, WebSocket

from .serving import PATIENCE, Client, Running, Serve, Signal, upgrading

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MASK = b"\x11\x22\x33\x44"


def upgrade_request(**headers: str) -> bytes:
    fields = {
        "Host": "localhost",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = ["GET /ws HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value), "", ""]
    return "\r\n".join(lines).encode()


def upgraded(server: Running, client: Client | None = None) -> Client:
    client = client or server.client()
    client.send(upgrade_request())
    assert client.head()[0] == 101
    return client


def frame(opcode: int, payload: bytes = b"", *, final: bool = True, masked: bool = True) -> bytes:
    first = bytes([(0x80 if final else 0) | opcode])
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        length = bytes([bit | len(payload)])
    elif len(payload) < 65536:
        length = bytes([bit | 126]) + struct.pack("!H", len(payload))
    else:
        length = bytes([bit | 127]) + struct.pack("!Q", len(payload))
    if not masked:
        return first + length + payload
    return first + length + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


def frame_from(client: Client) -> tuple[int, bytes]:
    first, second = client.exactly(2)
    assert first & 0x80, "the server does not send in fragments"
    assert not second & 0x80, "a server does not mask"
    length = second
    if second == 126:
        [length] = struct.unpack("!H", client.exactly(2))
    elif second == 127:
        [length] = struct.unpack("!Q", client.exactly(8))
    return first & 0x0F, client.exactly(length)


def close_code(client: Client) -> int:
    opcode, payload = frame_from(client)
    assert opcode == CLOSE
    return int.from_bytes(payload[:2], "big")


async def parrot(request: Request) -> Answer:
    async def run(websocket: WebSocket) -> None:
        while (message := await websocket.receive()) is not None:
            await websocket.send(message)

    return Upgrade(run) if request.path == "/ws" else Response(200, b"plain")


# --- the handshake --------------------------------------------------------------------------------------------------


def test_the_handshake_proves_that_it_was_understood(serve: Serve) -> None:
    client = serve(parrot, extra_headers=(("X-Extra", "1"),)).client()

    client.send(upgrade_request(Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits"))
    status, headers = client.head()

    proof = base64.b64encode(hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    assert (status, headers["sec-websocket-accept"]) == (101, proof.decode())
    assert (headers["upgrade"].lower(), headers["connection"].lower()) == ("websocket", "upgrade")
    assert headers["x-extra"] == "1"
    assert "sec-websocket-extensions" not in headers  # compression costs more than it saves on one machine


def test_frames_that_come_with_the_handshake_are_not_lost(serve: Serve) -> None:
    client = serve(parrot).client()

    client.send(upgrade_request() + frame(TEXT, b"one") + frame(TEXT, b"two")[:5])
    assert client.head()[0] == 101
    client.send(frame(TEXT, b"two")[5:])

    assert [frame_from(client), frame_from(client)] == [(BINARY, b"one"), (BINARY, b"two")]


def test_a_plain_request_may_come_before_the_handshake_in_one_piece(serve: Serve) -> None:
    client = serve(parrot).client()

    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + upgrade_request() + frame(TEXT, b"one"))

    assert client.reply().body == b"plain"
    assert client.head()[0] == 101
    assert frame_from(client) == (BINARY, b"one")


@pytest.mark.parametrize(
    "headers",
    [
        {"Upgrade": ""},
        {"Connection": "keep-alive"},
        {"Upgrade": "h2c"},
        {"Sec_WebSocket_Key": ""},
        {"Sec_WebSocket_Key": "not base64"},
        {"Sec_WebSocket_Key": "c2hvcnQ="},
        {"Sec_WebSocket_Version": "12"},
        {"Sec_WebSocket_Version": ""},
    ],
)
def test_what_is_no_handshake_is_refused_and_the_connection_stays(serve: Serve, headers: dict[str, str]) -> None:
    client = serve(parrot).client()

    client.send(upgrade_request(**headers))
    reply = client.reply()

    assert (reply.status, bool(reply.error)) == (400, True)
    assert client.ask("GET", "/").body == b"plain"


def test_an_address_without_a_websocket_answers_a_handshake_plainly(serve: Serve) -> None:
    client = serve(parrot).client()

    client.send(upgrade_request().replace(b"/ws", b"/no") + b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert [client.reply().body, client.reply().body] == [b"plain", b"plain"]


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
def test_a_web_site_gets_no_websocket(serve: Serve, headers: dict[str, str]) -> None:
    client = serve(parrot).client()

    client.send(upgrade_request(**headers))

    assert client.reply().status == 403


def test_a_page_of_this_user_gets_one(serve: Serve, page: str) -> None:
    client = serve(parrot).client()

    client.send(upgrade_request(Origin=page))

    assert client.head()[0] == 101


# --- messages -------------------------------------------------------------------------------------------------------


SIZES = [0, 1, 125, 126, 65535, 65536, 3_000_000]


def test_messages_of_any_size_come_and_go_and_text_is_received_as_utf_8(serve: Serve) -> None:
    client = upgraded(serve(parrot))

    for opcode, message in [*((BINARY, os.urandom(size)) for size in SIZES), (TEXT, "Grüße".encode())]:
        client.send(frame(opcode, message))
        assert frame_from(client) == (BINARY, message)


def test_frames_may_come_byte_by_byte(serve: Serve) -> None:
    client = upgraded(serve(parrot))

    for byte in frame(TEXT, b"slowly") + frame(BINARY, b"x" * 200):
        client.send(bytes([byte]))

    assert [frame_from(client), frame_from(client)] == [(BINARY, b"slowly"), (BINARY, b"x" * 200)]


def test_fragments_are_put_together_also_around_a_ping_and_within_a_character(serve: Serve) -> None:
    client = upgraded(serve(parrot))
    word = "für".encode()

    client.send(frame(TEXT, word[:2], final=False))
    client.send(frame(PING, b"are you there?"))
    client.send(frame(CONTINUATION, b"", final=False))
    client.send(frame(CONTINUATION, word[2:]))

    assert frame_from(client) == (PONG, b"are you there?")
    assert frame_from(client) == (BINARY, word)


def test_a_real_client_talks_with_it(serve: Serve) -> None:
    server = serve(parrot)

    with connect(f"ws://localhost:{server.port}/ws", max_size=None) as client:
        for message in ("text", b"bytes", "", b"x" * 1_000_000):
            client.send(message)
            assert client.recv(PATIENCE) == (message.encode() if isinstance(message, str) else message)
        assert client.ping().wait(PATIENCE)

    assert client.protocol.close_code == 1000


def test_many_messages_keep_their_order(serve: Serve) -> None:
    server = serve(parrot)

    with connect(f"ws://localhost:{server.port}/ws") as client:

        def send() -> None:
            for number in range(2000):
                client.send(str(number))

        sender = threading.Thread(target=send)
        sender.start()
        received = [int(client.recv(PATIENCE)) for _ in range(2000)]
        sender.join()

    assert received == list(range(2000))


# --- the end --------------------------------------------------------------------------------------------------------


def test_a_close_is_answered_and_the_connection_ends(serve: Serve) -> None:
    client = upgraded(serve(parrot))

    client.send(frame(CLOSE, struct.pack("!H", 4321) + b"enough"))

    assert frame_from(client) == (CLOSE, struct.pack("!H", 4321) + b"enough")
    assert client.rest() == b""


def test_messages_before_a_close_are_delivered(serve: Serve) -> None:
    received: list[bytes | None] = []
    go_on, done = Signal(), Signal()

    async def run(websocket: WebSocket) -> None:
        await go_on.passed()
        received.extend([await websocket.receive() for _ in range(4)])
        done.set()

    client = upgraded(serve(upgrading(run)))
    client.send(frame(TEXT, b"one") + frame(TEXT, b"two") + frame(CLOSE))
    assert frame_from(client) == (CLOSE, b"")
    go_on.set()
    done.wait()

    assert received == [b"one", b"two", None, None]


def test_a_client_that_vanishes_ends_the_receiving(serve: Serve) -> None:
    received: list[bytes | None] = []
    done = Signal()

    async def run(websocket: WebSocket) -> None:
        received.append(await websocket.receive())
        received.append(await websocket.receive())
        with pytest.raises(ConnectionError):
            await websocket.send(b"anybody?")
        await websocket.close()
        done.set()

    client = upgraded(serve(upgrading(run)))
    client.send(frame(TEXT, b"last words") + frame(TEXT, b"and half a f")[:7])
    client.close()

    done.wait()
    assert received == [b"last words", None]


@pytest.mark.parametrize(
    ("ends", "code"), [("returns", 1000), ("closes", 4000), ("fails", 1011)], ids=["returns", "closes", "fails"]
)
def test_the_handlers_end_is_the_websockets_end(serve: Serve, ends: str, code: int) -> None:
    async def run(websocket: WebSocket) -> None:
        await websocket.send(b"bye")
        if ends == "closes":
            await websocket.close(4000)
            with pytest.raises(ConnectionError):
                await websocket.send(b"one more thing")
        if ends == "fails":
            raise LookupError("nothing to say")

    server = serve(upgrading(run))

    with connect(f"ws://localhost:{server.port}/ws") as client:
        assert client.recv(PATIENCE) == b"bye"
        with pytest.raises(ConnectionClosed):
            client.recv(PATIENCE)

    assert client.protocol.close_code == code


def test_a_handler_that_hears_by_sending_that_the_client_left_is_no_failure(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Signal()

    async def run(websocket: WebSocket) -> None:
        try:
            while True:
                await websocket.send(b"tick")
                await asyncio.sleep(0.01)
        finally:
            done.set()

    server = serve(upgrading(run))
    client = upgraded(server)
    client.send(frame(CLOSE))
    done.wait()
    wait_for(lambda: not server.tasks())

    assert capsys.readouterr().err == ""


def test_a_client_that_does_not_answer_a_close_is_left(serve: Serve) -> None:
    async def run(_: WebSocket) -> None:
        pass

    client = upgraded(serve(upgrading(run)))

    assert close_code(client) == 1000
    client.send(frame(TEXT, b"not listening"))
    assert client.rest() == b""


# --- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(TEXT, b"bare", masked=False), 1002),
        (frame(3, b"unknown opcode"), 1002),
        (frame(CONTINUATION, b"of nothing"), 1002),
        (frame(TEXT, b"a", final=False) + frame(TEXT, b"b"), 1002),
        (frame(PING, b"x", final=False), 1002),
        (frame(PING, b"x" * 126), 1002),
        (bytes([0xC1, 0x80]) + MASK, 1002),
        (frame(CLOSE, b"\x03"), 1002),
        (frame(CLOSE, struct.pack("!H", 999)), 1002),
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(TEXT, b"\xc3", final=False) + frame(CONTINUATION, b"("), 1007),
        (bytes([0x82, 0xFF]) + struct.pack("!Q", 16 * 1024 * 1024 + 1), 1009),
        (bytes([0x82, 0xFF]) + struct.pack("!Q", 2**62), 1009),
    ],
)
def test_what_is_against_the_rules_closes_with_the_right_code(serve: Serve, data: bytes, code: int) -> None:
    client = upgraded(serve(parrot))

    client.send(data)

    assert close_code(client) == code
    assert client.rest() == b""


def test_many_fragments_cannot_make_a_message_too_big(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "MAX_MESSAGE", 1000)
    client = upgraded(serve(parrot))

    client.send(frame(BINARY, b"x" * 500, final=False) + frame(CONTINUATION, b"x" * 501))

    assert close_code(client) == 1009


def test_what_follows_a_wrong_frame_is_not_looked_at(serve: Serve) -> None:
    received: list[bytes | None] = []
    done = Signal()

    async def run(websocket: WebSocket) -> None:
        while received[-1:] != [None]:
            received.append(await websocket.receive())
        done.set()

    client = upgraded(serve(upgrading(run)))
    client.send(frame(TEXT, b"good") + frame(TEXT, b"\xff") + frame(TEXT, b"late"))

    done.wait()
    assert received == [b"good", None]


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_a_handler_that_does_not_receive_stops_the_reading(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "MAX_QUEUED", 1_000_000)
    go_on, count = Signal(), 400
    sizes: list[int] = []
    done = Signal()

    async def run(websocket: WebSocket) -> None:
        await go_on.passed()
        while (message := await websocket.receive()) is not None:
            sizes.append(len(message))
        done.set()

    server = serve(upgrading(run))
    client = upgraded(server)
    messages = frame(BINARY, bytes(100_000)) * count + frame(CLOSE)
    sender = threading.Thread(target=client.send, args=(messages,))
    sender.start()

    [connection] = server.server._connections
    wait_for(lambda: connection._websocket is not None and connection._websocket._queued > 1_000_000)
    before = -1
    while connection._websocket is not None and connection._websocket._queued != before:
        before = connection._websocket._queued
        server.do(asyncio.sleep(0.1))

    assert before < 1_500_000
    go_on.set()
    sender.join()
    done.wait()
    assert sizes == [100_000] * count


def test_there_are_fewer_places_for_websockets_than_for_connections(serve: Serve) -> None:
    server = serve(parrot, max_connections=16, max_websockets=3)
    apps = [upgraded(server) for _ in range(3)]

    late = server.client()
    late.send(upgrade_request())
    refusal = late.reply()

    assert (refusal.status, refusal.error) == (503, "3 WebSockets are open already")
    assert late.ask(path="/plain").status == 200
    apps[0].close()
    wait_for(lambda: len(server.server._connections) == 3)
    upgraded(server, late).send(frame(TEXT, b"now"))
    assert frame_from(late)[1] == b"now"


def _has_taken(server: Running, size: int) -> bool:
    return server.server._settings.incoming._total >= size


@pytest.mark.parametrize("unfinished", ["a frame", "a fragmented message", "messages that nobody receives"])
def test_websockets_share_one_budget_and_the_one_without_progress_for_longest_is_closed(
    serve: Serve, unfinished: str
) -> None:
    async def deaf(_: WebSocket) -> None:
        await Signal().passed()

    data = {
        "a frame": frame(BINARY, bytes(400_000))[:-1],
        "a fragmented message": frame(BINARY, bytes(200_000), final=False) + frame(CONTINUATION, bytes(200_000))[:-1],
        "messages that nobody receives": frame(BINARY, bytes(100_000)) * 4,
    }[unfinished]
    server = serve(upgrading(deaf), max_incoming=1_000_000)
    budget = server.server._settings.incoming
    crowd = [upgraded(server) for _ in range(5)]
    closed = []
    for number, client in enumerate(crowd):
        client.send(data)
        if number >= 2:
            closed.append(close_code(crowd[number - 2]))
        else:
            wait_for(partial(_has_taken, server, (number + 1) * 399_999))

    assert closed == [1013] * 3
    assert budget._total < 1_000_000
    for client in crowd:
        client.close()
    wait_for(lambda: not server.server._connections)
    if unfinished != "messages that nobody receives":  # these stay for the handler, which may still receive them
        assert budget._total == 0


def test_a_message_that_its_handler_never_received_is_dropped_with_its_handler(serve: Serve) -> None:
    go_on = Signal()

    async def deaf(_: WebSocket) -> None:
        await go_on.passed()

    server = serve(upgrading(deaf))
    client = upgraded(server)
    client.send(frame(BINARY, bytes(400_000)))
    wait_for(lambda: server.server._settings.incoming._total >= 400_000)

    go_on.set()

    assert close_code(client) == 1000
    wait_for(lambda: server.server._settings.incoming._total == 0)


def test_messages_that_a_handler_keeps_count_until_it_has_handled_them(serve: Serve) -> None:
    go_on = Signal()

    async def hoard(websocket: WebSocket) -> None:
        for _ in range(2):
            assert await websocket.receive()
            websocket.keep(400_000)
        await websocket.receive()
        await go_on.passed()
        websocket.handled(400_000)
        await websocket.send(b"one is handled")
        await websocket.receive()

    server = serve(upgrading(hoard), max_incoming=1_000_000)
    budget = server.server._settings.incoming
    hoarder, late = upgraded(server), upgraded(server)
    hoarder.send(frame(BINARY, bytes(400_000)) * 2 + frame(BINARY, b"small"))
    wait_for(lambda: 800_000 <= budget._total < 810_000)

    late.send(frame(BINARY, bytes(400_000)))
    assert close_code(late) == 1013
    go_on.set()

    assert frame_from(hoarder)[1] == b"one is handled"
    assert 400_000 <= budget._total < 410_000
    hoarder.close()
    wait_for(lambda: budget._total == 0)


def test_the_longest_message_comes_whole(serve: Serve) -> None:
    async def measure(websocket: WebSocket) -> None:
        while (message := await websocket.receive()) is not None:
            await websocket.send(str(len(message)).encode())

    client = upgraded(serve(upgrading(measure)))
    longest = frame(BINARY, bytes(websocket_module.MAX_MESSAGE))

    for _ in range(2):
        client.send(longest)
        assert frame_from(client) == (BINARY, str(websocket_module.MAX_MESSAGE).encode())


def test_a_client_that_does_not_read_makes_sending_wait(serve: Serve) -> None:
    sent = 0

    async def run(websocket: WebSocket) -> None:
        nonlocal sent
        while True:
            await websocket.send(bytes(100_000))
            sent += 100_000

    server = serve(upgrading(run))
    client = upgraded(server, server.client(receive_buffer=65536))
    before = -1
    while sent != before:
        before = sent
        server.do(asyncio.sleep(0.2))

    [connection] = server.server._connections
    assert connection._wire.backlog < 500_000
    assert frame_from(client) == (BINARY, bytes(100_000))


def test_pings_whose_answers_are_not_read_stop_the_reading(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "MAX_BACKLOG", 100_000)
    server = serve(parrot)
    client = upgraded(server, server.client(receive_buffer=4096))
    client.socket.settimeout(0.5)
    pings = frame(PING, b"x" * 125) * 1000

    with pytest.raises(TimeoutError):  # noqa: PT012  # at some point the server takes no more
        while True:
            client.send(pings)

    [connection] = server.server._connections
    assert connection._wire.backlog < 1_000_000


def test_an_idle_client_is_pinged_and_one_that_stays_silent_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_module, "PING_SECONDS", 0.05)
    monkeypatch.setattr(websocket_module, "SILENCE_SECONDS", 0.4)
    server = serve(parrot)
    client = upgraded(server)

    for _ in range(12):  # longer than the silence that is allowed
        assert frame_from(client) == (PING, b"")
        client.send(frame(PONG))
    assert server.server._connections
    with pytest.raises(ConnectionError):  # noqa: PT012  # pings come until the server has had enough
        while True:
            frame_from(client)

    wait_for(lambda: not server.server._connections)


def test_a_real_client_stays_although_it_says_nothing(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "PING_SECONDS", 0.05)
    monkeypatch.setattr(websocket_module, "SILENCE_SECONDS", 0.2)
    server = serve(parrot)

    with connect(f"ws://localhost:{server.port}/ws") as client:
        with pytest.raises(TimeoutError):
            client.recv(0.6)
        client.send("still here")
        assert client.recv(PATIENCE) == b"still here"
