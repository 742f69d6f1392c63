"""Questions to real sockets of this machine, well-behaved and not."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.hosts import wait_for
from uno_devserver.instances.local_http import Loopback
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
        listener.shutdown(socket.SHUT_RDWR)
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
