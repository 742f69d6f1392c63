"""The HTTP client against servers of all manners, on real sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.certificates import private_certificates
from support.raw_servers import WAIT_SECONDS, RawServer, Visitor
from support.waiting import until
from uno_devserver.protocol.http import client as client_module
from uno_devserver.protocol.http.client import HttpClient, Origin, encode_headers, split_url
from uno_devserver.protocol.http.client_connection import MAX_HEAD, REST_BYTES, UNREAD_BYTES, BodyTooLong, HttpFailure


def client_of(server: RawServer, host: str = "127.0.0.1") -> HttpClient:
    return HttpClient(Origin("http", host, server.port))


@asynccontextmanager
async def visited(
    script: Callable[[Visitor], Awaitable[None]], listens: str = "127.0.0.1", called: str = "127.0.0.1"
) -> AsyncIterator[tuple[RawServer, HttpClient]]:
    """A server that does what the script says, and its client."""
    async with RawServer(script, listens) as server:
        client = client_of(server, called)
        try:
            yield server, client
        finally:
            client.close()


def saying(answer: bytes) -> Callable[[Visitor], Awaitable[None]]:
    """The script of a server that answers each visitor once, and stays."""

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(answer)
        await visitor.gone()

    return script


async def asked_once(answer: bytes) -> tuple[int, Mapping[str, str], bytes]:
    """What the client makes of one answer, after which the server says nothing more."""

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(answer)
        visitor.writer.write_eof()
        await visitor.gone()

    async with visited(script) as (_, client):
        reply = await client.request("GET", "/")
        return reply.status, reply.headers, await reply.read()


# --- requests


async def test_a_request_has_its_line_its_headers_and_its_body() -> None:
    seen = []

    async def script(visitor: Visitor) -> None:
        seen.append(await visitor.asked())
        visitor.answer(b"thanks", X_Two="1")

    async with visited(script) as (server, client):
        headers = encode_headers({"Accept": "text/plain", "X-Name": "é"})
        reply = await client.request("POST", "/a?b=c", headers, "grüße".encode())

        assert (reply.status, reply.headers["x-two"], await reply.read()) == (200, "1", b"thanks")
        assert (seen[0].method, seen[0].target, seen[0].body) == ("POST", "/a?b=c", "grüße".encode())
        assert seen[0].headers == {
            "host": f"127.0.0.1:{server.port}",
            "accept": "text/plain",
            "x-name": "é",
            "content-length": "7",
        }


def test_headers_cannot_smuggle_others() -> None:
    with pytest.raises(ValueError, match="HTTP does not allow"):
        encode_headers({"X": "1\r\nY: 2"})


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://localhost:5000/mcp", "http://localhost:5000", "/mcp"),
        ("HTTP://Example.COM", "http://example.com", "/"),
        ("http://example.com:80/", "http://example.com", "/"),
        ("https://example.com/a/b?c=d#e", "https://example.com", "/a/b?c=d"),
        ("http://example.com?c=d", "http://example.com", "/?c=d"),
        ("http://[::1]:81/x", "http://[::1]:81", "/x"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example", "/%C3%BC"),
        (" http://127.0.0.1:1/mcp ", "http://127.0.0.1:1", "/mcp"),
    ],
)
def test_a_url_says_where_to_go_and_what_to_ask_for(url: str, origin: str, target: str) -> None:
    found, asked = split_url(url)

    assert (str(found), asked) == (origin, target)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:5000", "ftp://x/", "http://", "http:///x", "http://x:0/", "http://x:65536/", "http://x:y/"]
    + [
        "http://a b/",
        "http://x/a b",
        "http://x/\x1b",
        "http://x?\x7f",
        "http://user:secret@x/",
        "ftp://x/?key=secret",
        "http://[::1",
        "http://x\r\n/",
        "http://\0/",
        "http://x\x7f/",
        "http://" + "ü" * 70,
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no") as refused:
        split_url(url)

    assert "secret" not in str(refused.value)


# --- answers


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n", b"hello"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    ],
)
async def test_a_body_ends_where_the_head_says(answer: bytes, body: bytes) -> None:
    assert (await asked_once(answer))[2] == body


async def test_repeated_headers_are_joined() -> None:
    _, headers, _ = await asked_once(b"HTTP/1.1 200 OK\r\nA: 1\r\na:  2 \r\nContent-Length: 0\r\n\r\n")

    assert headers == {"a": "1, 2", "content-length": "0"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "hung up without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "broke off in the middle"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "broke off in the middle"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "broke off in the middle"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\nhello\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol"),
    ],
)
async def test_what_is_no_answer_is_told(answer: bytes, why: str) -> None:
    with pytest.raises(HttpFailure, match=why) as failure:
        await asked_once(answer)

    assert failure.value.sent
    assert failure.value.began == bool(answer)


@pytest.mark.parametrize(
    "endless",
    [
        b"X: y\r\n",
        b"X",
        b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 10,
        b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: x\r\n",
    ],
    ids=["headers", "a header", "a chunk's extension", "trailers"],
)
async def test_a_head_without_an_end_is_not_read_for_ever(endless: bytes) -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(b"HTTP/1.1 200 OK\r\n" + endless)
        drip = endless[-6:]
        while not visitor.writer.transport.is_closing():
            visitor.say(drip * 100)
            await visitor.writer.drain()

    async with visited(script) as (_, client):
        with pytest.raises(HttpFailure, match=f"more than {MAX_HEAD} bytes"):
            await (await client.request("GET", "/")).read()


async def test_a_head_that_ends_after_the_limit_is_refused_as_well() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: " + b"x" * (MAX_HEAD + 100) + b"\r\n\r\n")

    async with visited(script) as (_, client):
        with pytest.raises(HttpFailure, match=f"more than {MAX_HEAD} bytes"):
            await client.request("GET", "/")


async def test_a_body_that_is_too_long_is_not_read_for_ever() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.begin_events()
        while not visitor.writer.transport.is_closing():
            visitor.chunk(b"x" * 10_000)
            await visitor.writer.drain()

    async with visited(script) as (_, client):
        reply = await client.request("GET", "/")
        with pytest.raises(BodyTooLong, match="more than 100000 bytes"):
            await reply.read(100_000)


async def test_a_body_that_came_at_once_and_is_too_long_is_refused_too() -> None:
    async def script(visitor: Visitor) -> None:
        while True:
            await visitor.asked()
            visitor.answer(b"x" * 1001)

    async with visited(script) as (_, client):
        with pytest.raises(BodyTooLong):
            await (await client.request("GET", "/")).read(1000)
        assert await (await client.request("GET", "/")).read(1001) == b"x" * 1001


async def test_an_answer_may_drip() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":
            visitor.say(bytes([byte]))
            await asyncio.sleep(0)
        await visitor.gone()

    async with visited(script) as (_, client):
        assert await (await client.request("GET", "/")).read() == b"hello"


async def test_a_stream_is_read_as_it_comes() -> None:
    go_on = asyncio.Event()

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.begin_events()
        visitor.chunk(b"one")
        await go_on.wait()
        visitor.chunk(b"two")
        visitor.end_events()
        await visitor.gone()

    async with visited(script) as (_, client):
        reply = await client.request("GET", "/")
        assert await reply.part() == b"one"
        assert not reply.ended
        go_on.set()
        assert await reply.part() == b"two"
        assert await reply.part() == b""


async def test_a_server_waits_for_a_reader_that_is_slow() -> None:
    total = 64 * UNREAD_BYTES

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        visitor.say(b"x" * total)
        await visitor.gone()

    async with visited(script) as (server, client):
        reply = await client.request("GET", "/")
        backlog = server.visitors[0].writer.transport.get_write_buffer_size
        for _ in range(200):  # turns in which all of it would have come
            await asyncio.sleep(0.001)
        assert backlog() > total // 2

        size = 0
        while part := await reply.part():
            assert len(part) < 2 * UNREAD_BYTES
            size += len(part)
        assert size == total


# --- connections


async def echo(visitor: Visitor) -> None:
    while True:
        visitor.answer((await visitor.asked()).body)


async def test_a_connection_is_used_again_and_the_last_used_first() -> None:
    async with visited(echo) as (server, client):
        first = await asyncio.gather(*(client.request("POST", "/", b"", b"%d" % n) for n in range(3)))
        assert [await reply.read() for reply in first] == [b"0", b"1", b"2"]
        assert len(server.visitors) == 3

        for n in range(20):
            assert await (await client.request("POST", "/", b"", b"%d" % n)).read() == b"%d" % n
        assert len(server.visitors) == 3


@pytest.mark.parametrize("last_word", [b"", b"HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n", b"junk"])
async def test_a_kept_connection_that_the_server_closed_is_replaced(last_word: bytes) -> None:
    async def script(visitor: Visitor) -> None:
        visitor.answer((await visitor.asked()).body)
        await visitor.writer.drain()
        visitor.say(last_word)

    async with visited(script) as (server, client):
        for n in range(3):
            assert await (await client.request("POST", "/", b"", b"%d" % n)).read() == b"%d" % n
            await until(lambda: server.visitors[-1].writer.transport.is_closing())
        assert len(server.visitors) == 3


async def test_the_end_of_a_kept_connection_is_seen_before_the_event_loop_tells() -> None:
    import socket

    listener = socket.create_server(("127.0.0.1", 0))

    def serve_once() -> socket.socket:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        return connection

    client = HttpClient(Origin("http", "127.0.0.1", listener.getsockname()[1]))
    serving = asyncio.get_running_loop().run_in_executor(None, serve_once)
    assert await (await client.request("POST", "/", b"", b"1")).read() == b"x"
    (await serving).close()  # and the loop has no turn before the next request

    serving = asyncio.get_running_loop().run_in_executor(None, serve_once)
    assert await (await client.request("POST", "/", b"", b"2")).read() == b"x"
    (await serving).close()
    client.close()
    listener.close()


async def closes_at_second_request(visitor: Visitor) -> None:
    await visitor.asked()
    visitor.answer(b"1")
    await visitor.asked()
    visitor.abort()


async def test_a_request_that_may_have_been_seen_is_not_sent_again() -> None:
    seen: list[bytes] = []

    async def script(visitor: Visitor) -> None:
        seen.append((await visitor.asked()).body)
        visitor.answer()
        seen.append((await visitor.asked()).body)

    async with visited(script) as (_, client):
        await client.request("POST", "/", b"", b"1")

        with pytest.raises(HttpFailure, match="hung up without an answer") as failure:
            await client.request("POST", "/", b"", b"2")

        assert (failure.value.sent, failure.value.began) == (True, False)
        assert seen == [b"1", b"2"]


async def test_an_answer_that_had_begun_is_not_asked_for_again() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.answer(b"1")
        await visitor.asked()
        visitor.say(b"HTTP/1.1 200 O")

    async with visited(script) as (server, client):
        await client.request("GET", "/")

        with pytest.raises(HttpFailure, match="broke off in the middle"):
            await client.request("GET", "/")

        assert len(server.visitors) == 1


async def test_a_question_without_consequences_is_asked_once_more() -> None:
    async with visited(closes_at_second_request) as (server, client):
        await client.request("GET", "/")

        assert await (await client.request("GET", "/")).read() == b"1"
        assert len(server.visitors) == 2


async def test_a_fresh_connection_is_not_tried_twice() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()

    async with visited(script) as (server, client):
        with pytest.raises(HttpFailure):
            await client.request("GET", "/")
        assert len(server.visitors) == 1


@pytest.mark.parametrize("second", [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond", b"junk", b"\x00\xff"])
async def test_of_two_answers_the_first_counts_and_the_connection_is_left(second: bytes) -> None:
    async with visited(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst" + second)) as (server, client):
        for n in range(1, 3):
            assert await (await client.request("POST", "/", b"", b"?")).read() == b"first"
            assert len(server.visitors) == n
        await until(lambda: all(visitor.left.is_set() for visitor in server.visitors))


async def test_a_connection_that_the_server_wants_closed_is_closed() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.answer(b"bye", Connection="close")
        await visitor.gone()

    async with visited(script) as (server, client):
        assert await (await client.request("GET", "/")).read() == b"bye"
        await until(lambda: server.visitors[0].left.is_set())


@pytest.mark.parametrize("how", [HttpClient.break_off, HttpClient.close])
async def test_a_request_that_still_connects_when_all_is_broken_off_is_not_sent(
    how: Callable[[HttpClient], None],
) -> None:
    async with visited(echo) as (server, client):
        asking = asyncio.ensure_future(client.request("POST", "/", b"", b"1"))
        await asyncio.sleep(0)  # it has begun to connect
        how(client)

        with pytest.raises(HttpFailure) as failure:
            await asking
        assert not failure.value.sent
        await until(lambda: all(visitor.left.is_set() for visitor in server.visitors))


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "IDLE_SECONDS", 0.02)
    async with visited(echo) as (server, client):
        await client.request("POST", "/", b"", b"1")
        await until(lambda: server.visitors[0].left.is_set())


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with visited(echo) as (server, client):
        await client.request("POST", "/", b"", b"1")
        monkeypatch.setattr(client_module, "IDLE_SECONDS", -1)  # from now on, any time is long
        await client.request("POST", "/", b"", b"2")
        assert len(server.visitors) == 2


async def test_a_connection_is_used_again_after_an_answer_that_nobody_read() -> None:
    async def script(visitor: Visitor) -> None:
        while True:
            visitor.answer(b"x" * int((await visitor.asked()).body))

    async with visited(script) as (_, client):
        for extra in (1, 100, 1):
            reply = await client.request("POST", "/", b"", b"%d" % UNREAD_BYTES)
            await until(lambda reply=reply: reply.ended)  # type: ignore[misc]
            long = await client.request("POST", "/", b"", b"%d" % (UNREAD_BYTES + extra))
            assert len(await long.read()) == UNREAD_BYTES + extra


async def test_no_more_connections_are_kept_or_opened_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_IDLE", 1)
    monkeypatch.setattr(client_module, "MAX_CONNECTIONS", 3)
    go_on = asyncio.Event()

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        await go_on.wait()
        visitor.answer(b"x")
        await visitor.gone()

    async with visited(script) as (server, client):
        waiting = [asyncio.create_task(client.request("GET", "/")) for _ in range(3)]
        await until(lambda: len(server.visitors) == 3)
        with pytest.raises(HttpFailure, match="3 connections") as failure:
            await client.request("GET", "/")
        assert not failure.value.sent

        go_on.set()
        await asyncio.gather(*waiting)
        await until(lambda: sum(visitor.left.is_set() for visitor in server.visitors) == 2)


@pytest.mark.parametrize("answered", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"])
async def test_a_request_that_is_cancelled_closes_its_connection(answered: bytes) -> None:
    async def ask(client: HttpClient) -> None:
        await (await client.request("POST", "/", b"", b"")).read()

    async with visited(saying(answered)) as (server, client):
        asking = asyncio.create_task(ask(client))
        await until(lambda: len(server.visitors) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(server.visitors[0].left.wait(), WAIT_SECONDS)


async def test_a_cancelled_request_does_not_harm_the_next_one_on_its_connection() -> None:
    async with visited(echo) as (_, client):
        await client.request("POST", "/", b"", b"warm")
        for _ in range(50):
            asking = asyncio.create_task(client.request("POST", "/", b"", b"unwanted"))
            for _ in range(3):
                await asyncio.sleep(0)
            asking.cancel()
            replies = await asyncio.gather(*(client.request("POST", "/", b"", b"%d" % n) for n in range(3)))
            assert [await reply.read() for reply in replies] == [b"0", b"1", b"2"]
            await asyncio.wait([asking])


async def test_closing_tells_everybody_who_waits() -> None:
    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        await visitor.gone()

    async with RawServer(script) as server:
        client = client_of(server)
        asking = asyncio.create_task(client.request("GET", "/"))
        await until(lambda: len(server.visitors) == 1)
        client.close()
        with pytest.raises(HttpFailure) as failure:
            await asking
        assert failure.value.sent
        with pytest.raises(HttpFailure) as refused:
            await client.request("GET", "/")
        assert not refused.value.sent


# --- what is not wanted of an answer


async def test_a_short_rest_that_nobody_wants_leaves_the_connection_usable() -> None:
    go_on = asyncio.Event()

    async def script(visitor: Visitor) -> None:
        while True:
            await visitor.asked()
            visitor.begin_events()
            visitor.chunk(b"what counts")
            await go_on.wait()
            visitor.chunk(b"the rest")
            visitor.end_events()

    async with visited(script) as (server, client):
        reply = await client.request("GET", "/")
        assert await reply.part() == b"what counts"
        reply.release()
        go_on.set()
        await until(lambda: reply.ended)

        assert (await (await client.request("GET", "/")).read()).startswith(b"what counts")
        assert len(server.visitors) == 1


@pytest.mark.parametrize("endless", [True, False])
async def test_a_long_rest_that_nobody_wants_ends_the_connection(
    endless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uno_devserver.protocol.http.client_connection.REST_SECONDS", WAIT_SECONDS if endless else 0.02)

    async def script(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.begin_events()
        visitor.chunk(b"what counts")
        while endless and not visitor.writer.transport.is_closing():
            visitor.chunk(b"x" * (REST_BYTES // 10))
            await visitor.writer.drain()
        await visitor.gone()

    async with visited(script) as (server, client):
        reply = await client.request("GET", "/")
        await reply.part()
        reply.release()
        await asyncio.wait_for(server.visitors[0].left.wait(), WAIT_SECONDS / 2)


# --- where servers are


async def test_nobody_there_is_told_as_such() -> None:
    async with RawServer(echo) as server:
        port = server.port
    for host in ("127.0.0.1", "localhost"):
        client = HttpClient(Origin("http", host, port))
        with pytest.raises(HttpFailure, match="refuses connections") as failure:
            await client.request("POST", "/", b"", b"")
        assert not failure.value.sent


async def test_a_name_that_does_not_exist_is_told_as_such() -> None:
    client = HttpClient(Origin("http", "there-is-no-such-host.invalid", 80))
    with pytest.raises(HttpFailure, match="cannot be reached") as failure:
        await client.request("GET", "/")
    assert not failure.value.sent


async def test_a_server_that_does_not_take_the_connection_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import socket

    monkeypatch.setattr(client_module, "CONNECT_SECONDS", 0.05)
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    port = listener.getsockname()[1]
    fillers = []
    for _ in range(4):  # until its queue is full
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        fillers.append(filler)
    client = HttpClient(Origin("http", "127.0.0.1", port))
    with pytest.raises(HttpFailure, match="could not be reached within") as failure:
        await client.request("GET", "/")
    assert not failure.value.sent
    for each in (*fillers, listener):
        each.close()


@pytest.mark.parametrize(("listens", "called"), [("::1", "localhost"), ("127.0.0.1", "localhost"), ("::1", "::1")])
async def test_a_server_of_this_machine_is_found_on_either_address(listens: str, called: str) -> None:
    async with visited(echo, listens, called=called) as (_, client):
        for n in range(2):
            assert await (await client.request("POST", "/", b"", b"%d" % n)).read() == b"%d" % n


async def test_a_server_is_not_mistaken_for_another_one_on_its_port() -> None:
    async def stranger(visitor: Visitor) -> None:
        await visitor.asked()
        visitor.answer(b"stranger")

    async with RawServer(echo, "::1") as server:
        client = client_of(server, "localhost")
        await client.request("POST", "/", b"", b"1")
        listener = await asyncio.start_server(
            lambda reader, writer: stranger(Visitor(reader, writer)), "127.0.0.1", server.port
        )
        client.break_off()
        assert await (await client.request("POST", "/", b"", b"2")).read() == b"2"
        client.close()
        listener.close()


async def test_a_secure_server_is_believed_if_its_certificate_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = private_certificates(tmp_path, "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)

    async with RawServer(echo, tls=tls) as server:
        stranger = HttpClient(Origin("https", "localhost", server.port))
        with pytest.raises(HttpFailure, match="certificate"):
            await stranger.request("GET", "/")

        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
        client = HttpClient(Origin("https", "localhost", server.port))
        for n in range(3):
            assert await (await client.request("POST", "/", b"", b"%d" % n)).read() == b"%d" % n
        client.close()
