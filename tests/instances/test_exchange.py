"""One exchange over HTTP: whole answers in every form, and a reason instead of each broken one."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from support.stand_in_host import Rule, StandInHost
from uno_devserver.instances import local_http
from uno_devserver.instances.local_http import REFUSED, HttpAnswer, NoHttpAnswer, http_request

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
