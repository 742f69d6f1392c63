"""Plain requests and answers over real sockets: framing, order, limits, and what happens when one side misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from support.waiting import wait_for
from uno_devserver.protocol.http import server as server_module
from uno_devserver.protocol.http import server_connection
from uno_devserver.protocol.http.guard import guard_for
from uno_devserver.protocol.http.messages import Answer, Request, Response, Sink, Streaming, Upgrade, WebSocket
from uno_devserver.protocol.http.server_connection import HttpLimits
from uno_devserver.system import log as log_module
from uno_devserver.system.log import log

from .serving import PATIENCE, Client, Paused, Reply, Running, Serve, Signal, answering

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


# --- answers ------------------------------------------------------------------------------------------------------


def test_a_request_is_answered_with_length_and_date(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    client.send(GET)
    head = client.until(b"\r\n\r\n")

    assert re.fullmatch(
        rb"HTTP/1\.1 200 OK\r\nContent-Length: 5\r\n"
        rb"Date: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n\r\n",
        head,
    )
    assert client.exactly(5) == b"hello"


def test_the_handler_gets_the_request_as_it_was_sent(serve: Serve) -> None:
    client = serve().client()

    reply = client.ask("POST", "/a%2Fb?c=d", b"body")

    assert json.loads(reply.body) == {"method": "POST", "path": "/a%2Fb", "query": "c=d", "body": "body"}


def test_head_and_body_leave_in_one_piece(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    client.send(GET)

    assert client.socket.recv(65536).endswith(b"\r\n\r\nhello")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_answers_over_ipv4_and_ipv6(serve: Serve, host: str) -> None:
    assert serve().client(host).ask().status == 200


def test_small_answers_are_not_held_back_by_the_kernel(serve: Serve) -> None:
    options: list[int] = []

    async def handler(_: Request) -> Answer:
        [transport] = [each._wire._transport for each in server.server._connections]
        options.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return Response(200)

    server = serve(handler)
    server.client().ask()

    assert options == [1]


def test_a_connection_is_kept_for_the_next_request(serve: Serve) -> None:
    client = serve().client()

    replies = [client.ask("POST", f"/{number}", b"x" * number) for number in range(20)]

    assert [json.loads(reply.body)["path"] for reply in replies] == [f"/{number}" for number in range(20)]
    assert all("connection" not in reply.headers for reply in replies)


def test_head_is_answered_without_the_body(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    reply = client.ask("HEAD")

    assert (reply.headers["content-length"], reply.body) == ("5", b"")
    assert client.ask("GET").body == b"hello"


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_has_no_body_has_no_length(serve: Serve, status: int) -> None:
    async def handler(_: Request) -> Answer:
        return Response(status, b"not sent")

    client = serve(handler).client()

    assert "content-length" not in client.ask().headers
    assert client.ask().status == status


def test_an_unusual_status_needs_no_reason(serve: Serve) -> None:
    async def handler(_: Request) -> Answer:
        return Response(299)

    client = serve(handler).client()
    client.send(GET)

    assert client.until(b"\r\n") == b"HTTP/1.1 299 \r\n"


def test_a_client_that_wants_to_close_gets_its_answer_and_the_end(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    reply = client.ask(Connection="close")

    assert (reply.headers["connection"], reply.body, client.rest()) == ("close", b"hello", b"")


def test_an_http_1_0_client_gets_its_answer_and_the_end(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    client.send(b"GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
    reply = client.reply()

    assert (reply.headers["connection"], reply.body, client.rest()) == ("close", b"hello", b"")


def test_extra_headers_are_on_every_answer(serve: Serve) -> None:
    extra = (("Cross-Origin-Embedder-Policy", "require-corp"), ("Cross-Origin-Opener-Policy", "same-origin"))
    server = serve(extra_headers=extra)

    refused = server.client().ask(Host="evil.example")
    wrong = server.client()
    wrong.send(b"garbage\r\n\r\n")

    for reply in (server.client().ask(), refused, wrong.reply()):
        assert reply.headers["cross-origin-embedder-policy"] == "require-corp"
        assert reply.headers["cross-origin-opener-policy"] == "same-origin"


# --- requests that come in pieces, or several at once ---------------------------------------------------------------


def test_a_request_may_come_byte_by_byte(serve: Serve) -> None:
    client = serve().client()

    for byte in b"POST /slow HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n":
        client.send(bytes([byte]))

    assert json.loads(client.reply().body)["body"] == "abc"


def test_requests_sent_ahead_are_answered_in_order_although_later_ones_are_faster(serve: Serve) -> None:
    first_waits = Signal()

    async def handler(request: Request) -> Answer:
        if request.path == "/0":
            await first_waits.passed()
        return Response(200, request.path.encode())

    client = serve(handler).client()

    client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number for number in range(50)))
    first_waits.set()

    assert [client.reply().body for _ in range(50)] == [b"/%d" % number for number in range(50)]


def test_requests_sent_ahead_in_pieces_are_answered_in_order(serve: Serve) -> None:
    client = serve().client()
    requests = b"".join(
        b"POST /%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n%d" % (n, n) for n in range(9)
    )

    for at in range(0, len(requests), 7):
        client.send(requests[at : at + 7])

    said = [json.loads(client.reply().body) for _ in range(9)]
    assert [(each["path"], each["body"]) for each in said] == [(f"/{n}", str(n)) for n in range(9)]


def test_requests_behind_one_that_closes_are_not_answered(serve: Serve) -> None:
    client = serve().client()

    client.send(b"GET /1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + GET)

    assert json.loads(client.reply().body)["path"] == "/1"
    assert client.rest() == b""


def test_a_client_that_never_reads_its_answers_is_not_read_either(serve: Serve) -> None:
    asked: list[str] = []

    async def handler(request: Request) -> Answer:
        asked.append(request.path)
        return Response(200, bytes(1024 * 1024))

    client = serve(handler).client(receive_buffer=4096)
    client.socket.settimeout(0.5)

    with pytest.raises(TimeoutError):  # noqa: PT012  # at some point the server takes no more
        while True:
            client.send(GET * 1000)

    assert len(asked) < 20


def test_a_client_that_resets_its_connection_makes_no_noise(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_: Request) -> Answer:
        if client.socket.fileno() >= 0:
            client.reset()  # in the event loop, which so has to find out by writing
        return Response(200, b"hello")

    server = serve(handler)
    client = server.client()

    client.send(GET * 50)
    wait_for(lambda: client.socket.fileno() < 0 and not server.server._connections)

    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


def test_a_client_that_ends_its_side_still_gets_its_answer(serve: Serve) -> None:
    asked, answer = Signal(), Signal()

    async def handler(_: Request) -> Answer:
        asked.set()
        await answer.passed()
        return Response(200, b"hello")

    client = serve(handler).client()

    client.send(GET + GET)
    client.end()
    asked.wait()
    answer.set()

    assert [client.reply().body, client.reply().body, client.rest()] == [b"hello", b"hello", b""]


def test_the_end_of_a_client_may_come_together_with_its_request(serve: Serve) -> None:
    server = serve(answering(b"hello"))

    for _ in range(20):
        client = server.client()
        client.send(GET)
        client.end()
        assert client.reply().body == b"hello"


# --- permission to send a body --------------------------------------------------------------------------------------


def test_a_client_that_asks_first_is_told_to_send_its_body(serve: Serve) -> None:
    client = serve().client()

    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    permission = client.until(b"\r\n\r\n")
    client.send(b"hi")

    assert permission == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert json.loads(client.reply().body)["body"] == "hi"


def test_permission_comes_behind_the_answers_to_earlier_requests(serve: Serve) -> None:
    client = serve().client()

    client.send(GET + b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")

    assert client.reply().status == 200
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hi")
    assert json.loads(client.reply().body)["body"] == "hi"


def test_a_body_that_is_too_long_is_refused_instead_of_permitted(serve: Serve) -> None:
    client = serve(max_body=10).client()

    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n")

    assert client.reply().status == 413
    assert client.rest() == b""


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"complete nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 2000, 431),
    ],
)
def test_a_request_that_cannot_be_taken_is_answered_with_the_reason_and_the_end(
    serve: Serve, sent: bytes, status: int
) -> None:
    asked: list[Request] = []

    async def handler(request: Request) -> Answer:
        asked.append(request)
        return Response(200)

    client = serve(handler, max_body=100, max_headers=1000).client()

    client.send(sent)
    reply = client.reply()

    assert (reply.status, reply.headers["content-type"], reply.headers["connection"]) == (
        status, "application/json", "close",
    )  # fmt: skip
    assert reply.error
    assert client.rest() == b""
    assert asked == []


def test_a_request_before_a_bad_one_is_answered_first(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    client.send(GET + b"garbage\r\n\r\n")

    assert [client.reply().status, client.reply().status, client.rest()] == [200, 400, b""]


def test_a_client_gets_the_refusal_although_it_is_still_sending(serve: Serve) -> None:
    client = serve(max_body=1000).client()

    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 4_000_000)

    assert client.reply().status == 413


@pytest.mark.parametrize(
    "start",
    [
        b"POST /1 HTTP/1.1\r\nHost: evil.example",
        b"POST /2 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example",
        b"POST http://evil.example/3 HTTP/1.1\r\nHost: localhost",
    ],
)
def test_a_stranger_is_refused_before_its_body_has_come(serve: Serve, start: bytes) -> None:
    asked: list[str] = []

    async def handler(request: Request) -> Answer:
        asked.append(request.path)
        return Response(200)

    client = serve(handler).client()

    client.send(start + b"\r\nContent-Length: 16000000\r\n\r\n")
    refusal = client.reply()

    assert (refusal.status, refusal.headers["connection"], asked) == (403, "close", [])
    assert "evil.example" in refusal.error
    assert client.rest() == b""


def test_a_request_before_that_of_a_stranger_is_answered(serve: Serve) -> None:
    client = serve(answering(b"hello")).client()

    client.send(GET + GET.replace(b"localhost", b"evil.example") + GET)

    assert [client.reply().status, client.reply().status, client.rest()] == [200, 403, b""]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
@pytest.mark.parametrize("any_user", [False, True])
def test_a_program_of_another_user_is_refused_unless_any_user_may_come(serve: Serve, any_user: bool) -> None:
    asks = (
        "import os, socket, sys; os.setuid(65534);"
        "peer = socket.socket(); peer.connect(('127.0.0.1', int(sys.argv[1])));"
        "peer.sendall(b'GET /x HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n');"
        "print(peer.makefile('rb').read())"
    )
    server = serve(answering(b"hello"), any_user=any_user)

    stranger = subprocess.run([sys.executable, "-ISc", asks, str(server.port)], capture_output=True, timeout=PATIENCE)

    told = b"HTTP/1.1 200" if any_user else b"HTTP/1.1 403"
    assert told in stranger.stdout
    assert (b"programs of other users of this machine are not served" in stranger.stdout) is not any_user
    assert server.client().ask().status == 200


@pytest.mark.parametrize("bind", [None, "0.0.0.0"])
def test_a_phone_calls_an_opened_server_by_its_address_and_so_do_pages_of_this_user(
    serve: Serve, page: str, bind: str | None
) -> None:
    server = serve(bind=bind, guard=guard_for(bind), any_user=True)
    origin = page.replace("localhost", "192.168.1.5")

    statuses = [
        server.client().ask(Host="192.168.1.5:5000").status,
        server.client().ask(Host="192.168.1.5:5000", Origin=origin).status,
        server.client().ask(Host="192.168.1.5:5000", Origin="http://192.168.1.5:1").status,
    ]

    assert statuses == ([403] * 3 if bind is None else [200, 200, 403 if sys.platform == "linux" else 200])


@pytest.mark.skipif(sys.platform != "linux", reason="others keep nothing of a connection that was reset")
def test_what_somebody_has_left_who_has_gone_before_anybody_looked_is_not_done(serve: Serve) -> None:
    asked: list[str] = []

    async def handler(request: Request) -> Answer:
        asked.append(request.path)
        return Response(200, b"hello")

    server = serve(handler)

    async def leave() -> None:  # in the event loop, which so cannot look before
        gone = socket.create_connection(("127.0.0.1", server.port))
        gone.sendall(GET.replace(b"/", b"/gone", 1))
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()

    server.do(leave())

    assert server.client().ask().status == 200
    assert "/gone" not in asked


def test_there_is_an_end_to_the_number_of_connections(serve: Serve) -> None:
    handler = Paused()
    server = serve(handler, max_connections=3)
    clients = busy_clients(server, 3)

    one_too_many = server.client()
    refused = one_too_many.reply()
    handler.go_on.set()

    assert (refused.status, refused.error) == (503, "3 connections are open already")
    assert [client.reply().status for client in clients] == [200] * 3
    assert server.client().ask().status == 200


def test_those_that_are_refused_do_not_pile_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "LINGER_SECONDS", 1000.0)
    handler = Paused()
    server = serve(handler, max_connections=8)
    clients = busy_clients(server, 8)

    too_many = [server.client() for _ in range(30)]

    statuses = {client.reply().status for client in too_many if client.socket.recv(1, socket.MSG_PEEK)}
    wait_for(lambda: len(server.server._connections) <= 8 + 1)
    handler.go_on.set()
    assert statuses == {503}
    assert [client.reply().status for client in clients] == [200] * 8


def test_a_process_that_may_open_fewer_files_has_fewer_connections(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "open_files", lambda: 256)
    handler = Paused()
    server = serve(handler, max_connections=8)
    clients = busy_clients(server, 2)

    assert server.client().reply().status == 503
    handler.go_on.set()
    assert [client.reply().status for client in clients] == [200] * 2


SLOW = {
    "silent": b"",
    "in its headers": b"POST / HTTP/1.1\r\nHost: localhost\r\nSlow: ",
    "in its body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nonly this",
    "between two requests": GET,
    "not reading its answer": GET.replace(b"/", b"/large", 1),
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_the_one_that_has_let_us_wait_longest_makes_room(serve: Serve, sent: bytes) -> None:
    async def handler(request: Request) -> Answer:
        return Response(200, bytes(20_000_000 if request.path == "/large" else 1))

    server = serve(handler, max_connections=4)
    slow = []
    for number in range(4):  # one after the other, so that their order is known
        slow.append(server.client(receive_buffer=4096))
        slow[-1].send(sent)
        wait_for(lambda at=number: waiting_connections(server) == at + 1)  # type: ignore[misc]

    served = server.client().ask()

    assert served.status == 200
    wait_for(lambda: len(server.server._connections) == 4)
    if sent != SLOW["not reading its answer"]:
        assert [is_closed(client) for client in slow] == [True, False, False, False]


def test_a_crowd_of_slow_ones_cannot_keep_others_out(serve: Serve) -> None:
    server = serve(max_connections=16)

    for _ in range(3):
        for _ in range(16):
            server.client().send(SLOW["in its body"])
        assert server.client().ask().status == 200


def test_neither_handlers_nor_streams_nor_websockets_make_room(serve: Serve) -> None:
    go_on, open_ones = Signal(), []

    async def run(sink: Sink) -> None:
        await sink.write(b"begun")
        open_ones.append(1)
        await go_on.passed()
        await sink.write(b"ended")

    async def talk(websocket: WebSocket) -> None:
        open_ones.append(1)
        await go_on.passed()
        await websocket.send(b"ended")

    async def handler(request: Request) -> Answer:
        if request.path == "/stream":
            return Streaming(200, (), run)
        if request.path == "/ws":
            return Upgrade(talk)
        open_ones.append(1)
        await go_on.passed()
        return Response(200, b"ended")

    server = serve(handler, max_connections=3)
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + "A" * 22
    clients = [server.client() for _ in range(3)]
    for client, path, more in zip(clients, ("/", "/stream", "/ws"), ("A: b", "A: b", f"{upgrade}=="), strict=True):
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n\r\n".encode())
    wait_for(lambda: len(open_ones) == 3)

    statuses = [server.client().reply().status for _ in range(5)]
    go_on.set()

    assert statuses == [503] * 5
    assert all(b"ended" in client.until(b"ended") for client in clients)


def _has_taken(server: Running, size: int) -> bool:
    return server.server._settings.incoming._total >= size


def test_unfinished_bodies_share_one_budget_and_the_one_without_progress_for_longest_makes_room(serve: Serve) -> None:
    server = serve(max_body=400_000, max_incoming=1_000_000)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n"
    crowd = [server.client() for _ in range(8)]
    refused = []
    for number, client in enumerate(crowd):
        client.send(head + bytes(350_000))
        if number >= 2:
            refused.append(crowd[number - 2].reply())
        else:
            wait_for(partial(_has_taken, server, (number + 1) * 350_000))

    assert {each.status for each in refused} == {503}
    assert "too many large requests" in refused[0].error
    wait_for(lambda: sum(each._inbox._reader.body_size for each in server.server._connections) == 700_000)
    for client in crowd[6:]:
        client.send(bytes(50_000))
        assert client.reply().status == 200


def test_the_longest_bodies_are_taken_one_after_the_other_and_nothing_of_them_is_kept(serve: Serve) -> None:
    async def measure(request: Request) -> Answer:
        return Response(200, str(len(request.body)).encode())

    server = serve(measure)
    size = HttpLimits().max_body
    clients = [server.client() for _ in range(3)]

    answers = [client.ask("POST", "/", bytes(size)).body for client in clients for _ in range(2)]

    assert answers == [str(size).encode()] * 6
    wait_for(lambda: server.server._settings.incoming._total == 0)
    assert [each._inbox._reader.body_size for each in server.server._connections] == [0, 0, 0]


def test_a_client_that_leaves_its_body_unfinished_gives_its_share_back(serve: Serve) -> None:
    server = serve()
    client = server.client()
    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n" + bytes(350_000))
    budget = server.server._settings.incoming
    wait_for(lambda: budget._total == 350_000)

    client.reset()

    wait_for(lambda: budget._total == 0)


def test_small_bodies_are_taken_while_the_budget_is_used_up(serve: Serve) -> None:
    server = serve(max_incoming=400_000)
    large = server.client()
    large.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n" + bytes(399_999))
    wait_for(lambda: server.server._settings.incoming._total == 399_999)

    assert server.client().ask("POST", "/", b"small").status == 200
    large.send(b"x")
    assert large.reply().status == 200


def test_large_bodies_count_until_they_are_answered_and_small_ones_are_not_held_up(serve: Serve) -> None:
    go_on = Signal()

    async def slow(request: Request) -> Answer:
        if request.path == "/slow":
            await go_on.passed()
        return Response(200, str(len(request.body)).encode())

    server = serve(slow, max_body=400_000, max_incoming=1_000_000)
    busy = [server.client() for _ in range(2)]
    for client in busy:
        client.request("POST", "/slow", bytes(400_000))
    wait_for(partial(_has_taken, server, 800_000))

    late = server.client()
    late.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n" + bytes(300_000))
    refused = late.reply()
    small = server.client().ask("POST", "/", bytes(60_000))
    go_on.set()

    assert (refused.status, small.status) == (503, 200)
    assert "too many large requests" in refused.error
    assert [client.reply().body for client in busy] == [b"400000"] * 2
    wait_for(lambda: server.server._settings.incoming._total == 0)
    assert server.client().ask("POST", "/", bytes(400_000)).status == 200


def test_of_answers_that_nobody_reads_the_one_without_progress_for_longest_is_given_up(serve: Serve) -> None:
    size = 12_000_000  # more than the kernel takes

    answered = []

    async def handler(_: Request) -> Answer:
        answered.append(1)
        return Response(200, bytes(size))

    server = serve(handler, max_outgoing=3 * size)
    crowd = [server.client() for _ in range(8)]
    for number, client in enumerate(crowd):
        client.request()
        wait_for(partial(_has_length, answered, number + 1))

    wait_for(lambda: len(server.server._connections) < 8)
    assert len(crowd[-1].reply().body) == size
    assert server.server._settings.outgoing._total <= 3 * size
    with pytest.raises((OSError, AssertionError, EOFError)):
        crowd[0].reply()


def _has_length(items: list[int], length: int) -> bool:
    return len(items) == length


def test_an_answer_longer_than_the_budget_is_delivered(serve: Serve) -> None:
    async def handler(_: Request) -> Answer:
        return Response(200, bytes(12_000_000))

    server = serve(handler, max_outgoing=100_000)

    assert len(server.client().ask().body) == 12_000_000
    wait_for(lambda: server.server._settings.outgoing._total == 0)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both")
def test_those_of_other_users_keep_nobody_out(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "LINGER_SECONDS", 1000.0)
    crowd = (
        "import os, socket, sys; os.setuid(65534);"
        "peers = [socket.socket() for _ in range(40)];"
        "[(peer.connect(('127.0.0.1', int(sys.argv[1]))), peer.recv(1)) for peer in peers];"
        "print('in', flush=True); sys.stdin.read()"
    )
    server = serve(max_connections=8)
    idle = server.client()
    assert idle.ask().status == 200

    argv = [sys.executable, "-ISc", crowd, str(server.port)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as others:
        assert others.stdout
        assert others.stdout.readline() == b"in\n"
        statuses = [server.client().ask().status for _ in range(5)]
        others.communicate()

    assert statuses == [200] * 5
    assert idle.ask().status == 200  # those who were refused went first


def busy_clients(server: Running, count: int) -> list[Client]:
    """Clients whose requests are being handled."""
    clients = [server.client() for _ in range(count)]
    for client in clients:
        client.send(GET)
    wait_for(lambda: len(server.server._connections) == count and waiting_connections(server) == 0)
    return clients


def waiting_connections(server: Running) -> int:
    """How many connections wait for their clients."""

    async def count() -> int:
        return sum(each.waiting_since is not None for each in server.server._connections)

    return server.do(count())


def is_closed(client: Client) -> bool:
    """Whether the server has closed this connection, after at most one answer."""
    client.socket.setblocking(False)
    try:
        while client.socket.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


# --- handlers that fail ---------------------------------------------------------------------------------------------


def test_a_handler_that_fails_is_a_500_and_the_reason_is_in_the_log(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(request: Request) -> Answer:
        if request.path == "/bad":
            raise LookupError("the secret of the house")
        return Response(200)

    monkeypatch.setattr(log, "level", log_module.DEBUG)
    client = serve(handler).client()

    reply = client.ask("GET", "/bad")

    assert reply.status == 500
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body
    assert client.ask().status == 200
    logged = capsys.readouterr().err
    assert "GET /bad failed: LookupError: the secret of the house" in logged
    assert "Traceback" in logged


def test_a_handler_that_waited_for_something_cancelled_is_a_500(serve: Serve) -> None:
    async def handler(_: Request) -> Answer:
        raise asyncio.CancelledError

    client = serve(handler).client()

    assert [client.ask().status, client.ask().status] == [500, 500]


@pytest.mark.parametrize(
    "header",
    [
        ("X", "a\r\nSet-Cookie: b"),
        ("X\r\nY", "a"),
        ("", "a"),
        ("X", "snowman ☃"),
        ("Content-Length", "3"),
        ("transfer-encoding", "chunked"),
    ],
)
def test_a_handlers_header_cannot_break_the_answer(serve: Serve, header: tuple[str, str]) -> None:
    async def handler(request: Request) -> Answer:
        return Response(200, b"hello", (header,) if request.path == "/bad" else ())

    client = serve(handler).client()

    assert client.ask("GET", "/bad").status == 500
    assert client.ask().body == b"hello"


# --- clients that go away or dawdle ---------------------------------------------------------------------------------


def test_a_handler_runs_to_its_end_although_its_client_left(serve: Serve) -> None:
    handler = Paused()
    server = serve(handler)
    server.asking(GET, handler).reset()
    wait_for(lambda: not server.server._connections)
    handler.go_on.set()

    handler.done.wait()
    assert server.client().ask().status == 200


def test_a_client_that_vanishes_in_the_middle_of_its_body_is_forgotten(serve: Serve) -> None:
    asked: list[Request] = []

    async def handler(request: Request) -> Answer:
        asked.append(request)
        return Response(200)

    server = serve(handler)
    client = server.client()
    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nonly this")
    wait_for(lambda: bool(server.server._connections))

    client.close()

    wait_for(lambda: not server.server._connections)
    assert server.tasks() == set()
    assert asked == []


@pytest.mark.parametrize("pause", [False, True], ids=["stopped", "dripping"])
def test_headers_that_do_not_come_to_an_end_are_given_up(serve: Serve, pause: bool) -> None:
    client = serve(header_timeout=0.3).client()
    ended = threading.Event()

    def drip() -> None:
        try:
            while pause and not ended.wait(0.05):
                client.send(b"x")
        except OSError:
            pass

    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nSlow: ")
    dripping = threading.Thread(target=drip)
    dripping.start()
    reply = client.reply()
    ended.set()
    dripping.join()

    assert reply.status == 408
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize("drips", [False, True], ids=["stopped", "dripping"])
@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_to_an_end_is_given_up(serve: Serve, framing: str, drips: bool) -> None:
    client = serve(body_timeout=0.3).client()
    ended = threading.Event()

    def drip() -> None:
        try:
            while drips and not ended.wait(0.05):
                client.send(b"1\r\nx\r\n")
        except OSError:
            pass

    client.send(f"POST / HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode())
    dripping = threading.Thread(target=drip)
    dripping.start()
    reply = client.reply()
    ended.set()
    dripping.join()

    assert (reply.status, reply.headers["connection"]) == (408, "close")


def test_a_body_may_take_longer_than_headers_and_idle_time(serve: Serve) -> None:
    client = serve(idle_timeout=0.1, header_timeout=0.1).client()
    began = time.monotonic()

    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n")
    while time.monotonic() - began < 0.4:
        assert not threading.Event().wait(0.05)
    client.send(b"x" * 20)

    assert client.reply().status == 200


def test_an_idle_connection_is_closed_without_a_word(serve: Serve) -> None:
    server = serve(idle_timeout=0.2)
    fresh, used = server.client(), server.client()

    used.ask()

    assert (fresh.rest(), used.rest()) == (b"", b"")


def test_empty_lines_do_not_keep_a_connection_alive(serve: Serve) -> None:
    client = serve(idle_timeout=0.3).client()

    with pytest.raises(OSError):  # noqa: PT012  # it takes a while until the system tells
        for _ in range(int(PATIENCE / 0.05)):
            client.send(b"\r\n")
            assert not threading.Event().wait(0.05)


def test_a_handler_may_take_longer_than_every_timeout(serve: Serve) -> None:
    async def handler(_: Request) -> Answer:
        await asyncio.sleep(0.5)
        return Response(200)

    assert serve(handler, header_timeout=0.1, idle_timeout=0.1).client().ask().status == 200


def test_a_client_that_does_not_take_its_answer_is_given_up(serve: Serve) -> None:
    server = serve(answering(bytes(20_000_000)), idle_timeout=0.2)

    server.client(receive_buffer=4096).send(GET)
    wait_for(lambda: bool(server.server._connections))

    wait_for(lambda: not server.server._connections)


@pytest.mark.parametrize("connection_header", ["keep-alive", "close"])
def test_a_client_that_reads_slowly_gets_all_of_its_answer(serve: Serve, connection_header: str) -> None:
    size = 40_000_000  # more than the kernel keeps for us
    client = serve(answering(bytes(size)), idle_timeout=1.0).client(receive_buffer=65536)
    client.request("GET", "/", Connection=connection_header)
    client.head()
    got = 0

    for _ in range(14):  # 1.4 seconds, longer than the timeout
        got += len(client.exactly(2_000_000))
        assert not threading.Event().wait(0.1)
    got += len(client.exactly(size - got))

    assert got == size


def test_many_clients_are_served_at_the_same_time(serve: Serve) -> None:
    together = threading.Barrier(20, timeout=PATIENCE)

    async def handler(_: Request) -> Answer:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        return Response(200, b"hello")

    server = serve(handler)
    replies: list[Reply] = []

    def visit() -> None:
        client = Client(server.port)
        together.wait()
        replies.extend(client.ask() for _ in range(10))
        client.close()

    visitors = [threading.Thread(target=visit) for _ in range(20)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()

    assert [reply.body for reply in replies] == [b"hello"] * 200


def test_the_server_costs_asyncio_and_the_parser_and_nothing_else() -> None:
    code = """
import asyncio, sys, typing
before = set(sys.modules)
import uno_devserver.protocol.http.server
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    names = [name for name in result.stdout.split() if "cython" not in name]  # the parser's own, no files
    assert names == ["__future__", "httptools", "uno_devserver"]
