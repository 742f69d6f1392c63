"""Questions to real sockets of this machine, well-behaved and not."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ports import stop_listening
from support.stand_in_host import Rule, StandInHost
from support.waiting import wait_for
from uno_devserver.instances import local_http
from uno_devserver.instances.local_http import REFUSED, HttpAnswer, Loopback, NoHttpAnswer, http_request
from uno_devserver.system.ports import free_port


@contextmanager
def _server(
    answer: bytes | None, address: str = "127.0.0.1", *, closes: bool = True
) -> Iterator[tuple[int, list[bytes]]]:
    """Answers every connection with these bytes and closes it; None: says nothing and keeps it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    requests: list[bytes] = []
    held: list[socket.socket] = []
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                requests.append(connection.recv(4096))
                if answer is not None:
                    connection.sendall(answer)
                if answer is not None and closes:
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], requests
        stop_listening(listener)
        thread.join(10)
    for connection in held:
        connection.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_whichever_loopback_address_answers_counts(address: str) -> None:
    with _server(b"HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n", address) as (port, requests):
        status = Loopback().ask("GET", port, "/mcp", 10)

    assert status == 406
    assert requests[0].startswith(b"GET /mcp HTTP/1.1\r\nHost: localhost:")
    assert b"\r\nAccept" not in requests[0]  # a .NET Host would wait for a session


def test_another_address_that_the_system_calls_localhost_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    with _server(b"HTTP/1.1 200 OK\r\n\r\n", "127.0.0.2") as (port, _):
        assert Loopback().ask("GET", port, "/mcp", 10) == 200


def test_a_system_that_does_not_know_localhost_is_asked_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    with _server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, _):
        assert Loopback().ask("GET", port, "/mcp", 10) == 200


def test_a_port_where_nobody_listens_is_told_at_once() -> None:
    begun = time.monotonic()

    assert Loopback().ask("GET", free_port(), "/mcp", 60) is None
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1\r\n", b"HTTP/1.1 abc\r\n", b"HTTP/1.1 20", b"x" * 5000],
    ids=["hangs up", "ssh", "no status", "a word for a status", "breaks off", "endless line"],
)
def test_what_is_no_http_is_no_answer(answer: bytes) -> None:
    with _server(answer) as (port, _):
        assert Loopback().ask("GET", port, "/mcp", 10) is None


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    begun = time.monotonic()

    with _server(b"x" * 5000, closes=False) as (port, _):
        assert Loopback().ask("GET", port, "/mcp", 60) is None

    assert time.monotonic() - begun < 30


def test_silence_is_waited_for_no_longer_than_allowed() -> None:
    with _server(None) as (port, requests):
        assert Loopback().ask("GET", port, "/mcp", 0.2) is None

    assert len(requests) == 1


def test_a_question_that_has_become_pointless_is_abandoned() -> None:
    begun = time.monotonic()

    with _server(None) as (port, requests):
        assert Loopback().ask("GET", port, "/mcp", 60, abandon=lambda: bool(requests)) is None

    assert time.monotonic() - begun < 30


def test_no_socket_is_left_open() -> None:
    with _server(b"HTTP/1.1 200 OK\r\n\r\n") as (port, _):
        before = len(os.listdir("/proc/self/fd"))

        assert Loopback().ask("GET", port, "/mcp", 10) == 200

        wait_for(lambda: len(os.listdir("/proc/self/fd")) == before, "the closing of all sockets")


# --- whole answers ---------------------------------------------------------------------------------------------------


OK = "HTTP/1.1 200 OK\r\n"
# Patience with a server that answers; one that does not gets less.
SECONDS = 10.0
BRIEF = 0.3


def _ask(tmp_path: Path, raw: str, *, hold: bool = False, seconds: float = SECONDS) -> HttpAnswer:
    with StandInHost(tmp_path, [Rule("GET /x", raw, hold)]) as host:
        return http_request("127.0.0.1", host.port, "GET", "/x", deadline=time.monotonic() + seconds)


@pytest.mark.parametrize(
    "raw",
    [
        f"{OK}Content-Length: 5\r\n\r\nhello",
        f"{OK}content-length:5\r\n\r\nhello and what another answer would bring",
        f"{OK}Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;name=value\r\nllo\r\n0\r\n\r\n",
        f"{OK}TRANSFER-ENCODING: Chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
    ],
    ids=["length", "length, more behind it", "chunks", "chunks and a trailer"],
)
def test_an_answer_is_whole_although_the_connection_stays_open(tmp_path: Path, raw: str) -> None:
    answer = _ask(tmp_path, raw, hold=True)

    assert (answer.status, answer.body) == (200, b"hello")


def test_without_a_length_the_end_of_the_connection_is_the_end_of_the_answer(tmp_path: Path) -> None:
    answer = _ask(tmp_path, "HTTP/1.0 404\r\nX-Name:  value \r\n\r\nhello")

    assert answer == HttpAnswer(404, {"x-name": "value"}, b"hello")


def test_an_answer_that_cannot_have_a_body_is_whole_at_once(tmp_path: Path) -> None:
    assert _ask(tmp_path, "HTTP/1.1 204 No Content\r\n\r\n", hold=True).status == 204


def test_a_stream_that_stays_open_ends_for_us_when_it_said_enough(tmp_path: Path) -> None:
    raw = f"{OK}Transfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n4\r\nit\n\n\r\n"
    with StandInHost(tmp_path, [Rule("GET", raw, hold=True)]) as host:
        answer = http_request(
            "127.0.0.1", host.port, "GET", "/", deadline=time.monotonic() + SECONDS, enough=lambda body: b"it" in body
        )

    assert answer.body == b"data: it\n\n"


def test_the_request_is_what_a_server_expects(tmp_path: Path) -> None:
    with StandInHost(tmp_path, [Rule("POST", f"{OK}Content-Length: 0\r\n\r\n")]) as host:
        http_request(
            "localhost",
            host.port,
            "POST",
            "/mcp",
            deadline=time.monotonic() + SECONDS,
            headers={"Accept": "application/json"},
            body=b"{}",
        )
        [request] = host.requests()

    assert request.split("\r\n") == [
        "POST /mcp HTTP/1.1",
        f"Host: localhost:{host.port}",
        "Connection: close",
        "Accept: application/json",
        "Content-Length: 2",
        "",
        "{}",
    ]


def test_ipv6_is_spoken_too(tmp_path: Path) -> None:
    with StandInHost(tmp_path, [Rule("Host: [::1]:", f"{OK}Content-Length: 0\r\n\r\n")], "::1") as host:
        assert http_request("::1", host.port, "GET", "/", deadline=time.monotonic() + SECONDS).status == 200


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "hung up without an answer"),
        (OK, "broke off in the middle of its answer"),
        (f"{OK}Content-Length: 9\r\n\r\nhello", "broke off in the middle of its answer"),
        (f"{OK}Transfer-Encoding: chunked\r\n\r\n9\r\nhello", "broke off in the middle of its answer"),
        (f"{OK}Transfer-Encoding: chunked\r\n\r\nnine\r\nhello", "speaks something else than HTTP"),
        (f"{OK}Content-Length: -1\r\n\r\nhello", "speaks something else than HTTP"),
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\r\n", "speaks something else than HTTP"),
        ("HTTP/1.1 OK\r\n\r\n", "speaks something else than HTTP"),
    ],
)
def test_a_broken_answer_is_named_for_what_it_is(tmp_path: Path, raw: str, reason: str) -> None:
    with pytest.raises(NoHttpAnswer, match=f"^{reason}$"):
        _ask(tmp_path, raw)


@pytest.mark.parametrize("raw", ["", "HTTP/1.1 200", f"{OK}Content-Length: 9\r\n\r\nhell"], ids=repr)
def test_silence_ends_at_the_deadline(tmp_path: Path, raw: str) -> None:
    begun = time.monotonic()

    with pytest.raises(NoHttpAnswer, match=r"^gave no answer in time$"):
        _ask(tmp_path, raw, hold=True, seconds=BRIEF)

    assert time.monotonic() - begun >= BRIEF


def test_an_answer_without_end_is_given_up_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_http, "MAX_ANSWER_BYTES", 50_000)

    with pytest.raises(NoHttpAnswer, match=r"^answered with more than"):
        _ask(tmp_path, f"{OK}\r\n" + "x" * 60_000, hold=True)


def test_a_port_without_a_listener_refuses() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # taken, so that nobody else gets it, but not listening
        with pytest.raises(NoHttpAnswer, match=f"^{REFUSED}$"):
            http_request("127.0.0.1", free.getsockname()[1], "GET", "/", deadline=time.monotonic() + SECONDS)


@pytest.mark.parametrize("port", [-5, 0, 70000, 10**12])
def test_a_number_that_is_no_port_is_not_asked(port: int) -> None:
    with pytest.raises(NoHttpAnswer, match=r"^is no port$"):
        http_request("127.0.0.1", port, "GET", "/", deadline=time.monotonic() + SECONDS)


def test_a_deadline_that_has_passed_leaves_no_time() -> None:
    with pytest.raises(NoHttpAnswer, match=r"^gave no answer in time$"):
        http_request("127.0.0.1", 1, "GET", "/", deadline=time.monotonic() - 1)
