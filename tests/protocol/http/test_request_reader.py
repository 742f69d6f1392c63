"""Bytes become requests, or one problem; no socket is needed to see that."""

from __future__ import annotations

import pytest

from uno_devserver.protocol.http.messages import Request
from uno_devserver.protocol.http.request_reader import ReadStage, RequestProblem, RequestReader

MAX_BODY, MAX_HEADERS = 1000, 500
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


def reader_after(*pieces: bytes) -> RequestReader:
    reader = RequestReader(MAX_BODY, MAX_HEADERS)
    for piece in pieces:
        if reader.problem is None:
            reader.feed(piece)
    return reader


def requests_in(*pieces: bytes) -> list[Request]:
    reader = reader_after(*pieces)
    assert reader.problem is None
    return [each.request for each in reader.complete]


def problem_of(*pieces: bytes) -> RequestProblem:
    reader = reader_after(*pieces)
    assert reader.problem is not None, f"{len(reader.complete)} requests were read instead"
    return reader.problem


# --- requests -----------------------------------------------------------------------------------------------------


def test_a_request_has_its_parts() -> None:
    [request] = requests_in(b"POST /a%20b?c=d%26 HTTP/1.1\r\nHost: localhost\r\nX-Two: 1\r\nx-two: 2\t \r\n"
                            b"Content-Length: 3\r\n\r\nxyz")  # fmt: skip

    headers = {"host": "localhost", "x-two": "1, 2", "content-length": "3"}
    assert request == Request("POST", "/a%20b", "c=d%26", headers, b"xyz")


def test_chunks_are_put_together_and_their_trailers_forgotten() -> None:
    body = b"2;name=value\r\nxy\r\n1\r\nz\r\n0\r\nHost: evil.example\r\nX-Late: 1\r\n\r\n"

    first, second = requests_in(POST + b"Transfer-Encoding: Chunked\r\n\r\n" + body + GET + b"\r\n")

    assert first.body == b"xyz"
    assert first.headers["host"] == "localhost"
    assert "x-late" not in {**first.headers, **second.headers}


@pytest.mark.parametrize(
    ("target", "path", "query", "host"),
    [
        (b"/", "/", "", "localhost"),
        (b"/mcp?", "/mcp", "", "localhost"),
        (b"/mcp?a=/b?c", "/mcp", "a=/b?c", "localhost"),
        (b"/mcp#part", "/mcp", "", "localhost"),
        (b"//mcp", "//mcp", "", "localhost"),
        (b"*", "*", "", "localhost"),
        (b"http://127.0.0.1:80/mcp?a", "/mcp", "a", "127.0.0.1:80"),
        (b"http://evil.example", "/", "", "evil.example"),
        (b"http://evil.example?a", "/", "a", "evil.example"),
    ],
)
def test_the_target_is_a_path_and_a_query_and_may_name_the_host(
    target: bytes, path: str, query: str, host: str
) -> None:
    [request] = requests_in(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert (request.path, request.query, request.headers["host"]) == (path, query, host)


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_only_http_1_1_keeps_its_connection(version: bytes, connection: bytes, keep_alive: bool) -> None:
    reader = reader_after(b"GET / HTTP/" + version + b"\r\nHost: localhost\r\n" + connection + b"\r\n")

    assert reader.complete[0].keep_alive is keep_alive
    assert reader.complete[0].chunks is (version == b"1.1")


CONVERSATION = (
    GET + b"\r\n"
    b"\r\n" + POST + b"Content-Length: 4\r\n\r\nGET " + POST + b"Transfer-Encoding: chunked\r\n\r\n"
    b"a\r\n0123456789\r\n1\r\nx\r\n0\r\nTrailer: t\r\n\r\n" + POST + b"Upgrade: h2c\r\nConnection: Upgrade\r\n"
    b"Content-Length: 2\r\n\r\nhi" + b"DELETE /last HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
)


def test_bytes_may_come_one_by_one() -> None:
    requests = requests_in(*(CONVERSATION[at : at + 1] for at in range(len(CONVERSATION))))

    assert [request.body for request in requests] == [b"", b"GET ", b"0123456789x", b"hi", b""]


def test_the_stage_tells_how_far_a_request_is() -> None:
    reader = RequestReader(MAX_BODY, MAX_HEADERS)

    stages = [reader.stage]
    for piece in (b"\r\n", POST, b"Content-Length: 2\r\n\r\n", b"a", b"b"):
        reader.feed(piece)
        stages.append(reader.stage)

    assert stages == [
        ReadStage.BETWEEN,
        ReadStage.BETWEEN,
        ReadStage.HEAD,
        ReadStage.BODY,
        ReadStage.BODY,
        ReadStage.BETWEEN,
    ]


# --- requests for another protocol --------------------------------------------------------------------------------


def test_what_follows_a_request_for_a_websocket_is_left_unread() -> None:
    reader = RequestReader(MAX_BODY, MAX_HEADERS)

    rest = reader.feed(GET + b"Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\r\n\x81\x00 and more")

    assert rest == b"\x81\x00 and more"
    assert [each.websocket for each in reader.complete] == [True]


def test_after_a_request_for_a_websocket_http_can_go_on() -> None:
    reader = RequestReader(MAX_BODY, MAX_HEADERS)

    rest = reader.feed(GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + GET + b"\r\n")
    reader.feed(rest)

    assert [each.websocket for each in reader.complete] == [True, False]


def test_http_1_0_has_no_websockets() -> None:
    request = b"GET / HTTP/1.0\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

    assert [each.websocket for each in reader_after(request).complete] == [False]


def test_any_number_of_requests_may_wish_for_another_protocol() -> None:
    assert len(requests_in((GET + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n") * 3000)) == 3000


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_a_request_with_a_body_is_a_plain_one_whatever_protocol_it_wishes(protocol: bytes) -> None:
    wish = b"Upgrade: " + protocol + b"\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\n"

    reader = reader_after(POST + wish + b"Content-Length: 2\r\n\r\nhi" + GET + b"\r\n")

    assert [(each.request.body, each.websocket) for each in reader.complete] == [(b"hi", False), (b"", False)]


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "smuggled",
    [
        POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
        POST + b"Content-Length: 1, 1\r\n\r\nx",
        POST + b"Content-Length: +1\r\n\r\nx",
        POST + b"Content-Length: -1\r\n\r\nx",
        POST + b"Content-Length: 0x1\r\n\r\nx",
        POST + b"Content-Length: \r\n\r\nx",
        POST + b"Content-Length: 1 1\r\n\r\nx",
        POST + b"Content-Length : 1\r\n\r\nx",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        GET + b"Folded: a\r\n b\r\n\r\n",
        GET + b"Folded:\r\n\tb\r\n\r\n",
        GET + b" Host: evil.example\r\n\r\n",
        GET + b"Host: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n",
        b"GET / HTTP/1.1\nHost: localhost\n\n",
        b"GET / HTTP/1.1\rHost: localhost\r\r",
        GET + b"Nul: a\0b\r\n\r\n",
        GET + b"Bare: a\rb\r\n\r\n",
        GET + b"NoColon\r\n\r\n",
        GET + b": no name\r\n\r\n",
        GET + b"Sp ace: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET relative HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / more HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"NONSENSE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS client
        b"\0" * 100,
    ],
)  # fmt: skip
def test_what_two_servers_could_read_differently_is_refused(smuggled: bytes) -> None:
    assert problem_of(smuggled).status == 400
    assert problem_of(*(smuggled[at : at + 1] for at in range(len(smuggled)))).status == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
        (POST + b"Expect: a-miracle\r\n\r\n", 417),
        (b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        (b"GET /\r\n\r\n", 505),
        (b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
    ],
)
def test_what_is_valid_and_not_offered_is_said_so(data: bytes, status: int) -> None:
    assert problem_of(data).status == status


def test_requests_before_a_problem_still_count() -> None:
    reader = reader_after(GET + b"\r\n" + b"garbage")

    assert len(reader.complete) == 1
    assert reader.problem is not None


# --- limits -------------------------------------------------------------------------------------------------------


def test_a_body_may_have_just_the_limit() -> None:
    [request] = requests_in(POST + b"Content-Length: %d\r\n\r\n" % MAX_BODY + b"x" * MAX_BODY)

    assert len(request.body) == MAX_BODY


def test_a_longer_body_is_refused_before_it_comes() -> None:
    assert problem_of(POST + b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1)).status == 413
    assert problem_of(POST + b"Content-Length: 99999999999999999999\r\n\r\n").status == 400


def test_chunks_beyond_the_limit_are_refused() -> None:
    chunk = b"64\r\n" + b"x" * 100 + b"\r\n"

    assert problem_of(POST + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 11).status == 413


@pytest.mark.parametrize(
    "pieces",
    [
        [b"GET /" + b"x" * 600 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"GET /", *[b"x" * 50] * 20],
        [b"GET / HTTP/1.1\r\nHost: localhost\r\nLong: ", *[b"x"] * 600],
        [GET, *[b"x" * 50] * 20],
        [GET, *[b"A: b\r\n"] * 100],
        [GET + b"A: b\r\n" * 100 + b"\r\n"],
        [POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", *[b"Trailer: x\r\n"] * 50],
        [POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ", *[b"x" * 50] * 20],
        [POST + b"Transfer-Encoding: chunked\r\n\r\n1;extension=", *[b"x" * 50] * 20],
    ],
    ids=[
        "target",
        "endless target",
        "value",
        "endless name",
        "many",
        "many at once",
        "trailers",
        "trailer",
        "extension",
    ],
)
def test_endless_headers_are_refused(pieces: list[bytes]) -> None:
    assert problem_of(*pieces).status == 431


def test_many_requests_in_one_piece_are_no_long_headers() -> None:
    assert len(requests_in((GET + b"\r\n") * 100)) == 100


# --- waiting for permission ---------------------------------------------------------------------------------------


def test_a_client_may_wait_for_permission_to_send_its_body() -> None:
    reader = RequestReader(MAX_BODY, MAX_HEADERS)

    reader.feed(POST + b"Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
    waits = reader.wants_continue
    reader.feed(b"hi")

    assert (waits, reader.wants_continue, reader.complete[0].request.body) == (True, False, b"hi")


def test_a_client_that_does_not_wait_needs_no_permission() -> None:
    assert not reader_after(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nh").wants_continue
    assert not reader_after(
        POST.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    ).wants_continue
