"""Who has a port, among real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from uno_devserver.system.ports import free_port
from uno_devserver.system.processes import listener, listener_in_family

LISTENER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator[tuple[int, int]]:
    """The process id of a child of ours, and the port it listens on."""
    arguments = [sys.executable, "-c", LISTENER]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())
        process.kill()


def test_the_process_that_listens_is_found_with_its_name(child: tuple[int, int]) -> None:
    pid, port = child

    found = listener(port)

    assert found
    assert found.pid == pid
    assert found.name
    assert found.name.startswith("python")


def test_a_port_that_nobody_has_has_no_listener() -> None:
    assert listener(free_port()) is None


def test_a_port_that_is_only_connected_from_has_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert listener(client.getsockname()[1]) is None


def test_a_process_and_its_descendants_are_one_family(child: tuple[int, int]) -> None:
    pid, port = child

    assert listener_in_family(pid, port) == pid
    assert listener_in_family(os.getpid(), port) == pid
    assert listener_in_family(pid, free_port()) is None


def test_a_process_that_is_gone_has_no_family() -> None:
    assert listener_in_family(2**31 - 1, 80) is None


def test_where_the_system_does_not_tell_nobody_is_named(
    child: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)  # as on macOS, for everybody but root

    assert listener(child[1]) is None
