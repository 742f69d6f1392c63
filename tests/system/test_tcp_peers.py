"""Whose a TCP connection is, asked of the kernel: this user's and root's are served, others' are not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from uno_devserver.system import tcp_peers
from uno_devserver.system.tcp_peers import is_another_users

NOBODY = 65534
CONNECTS = """
import os, socket, sys
os.setuid(int(sys.argv[3]))
peer = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
peer.connect((sys.argv[1], int(sys.argv[2])))
peer.sendall(b"x")
if sys.argv[4] == "goes":
    peer.close()
print("in", flush=True)
sys.stdin.read()
"""
LOOPBACK = ["127.0.0.1", "::1"]
needs_two_users = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both"
)


@contextmanager
def connection(host: str, user: int, then: str = "stays") -> Iterator[socket.socket]:
    """Our end of a connection that a program of that user has made."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        argv = [sys.executable, "-ISc", CONNECTS, host, str(listener.getsockname()[1]), str(user), then]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout
            assert client.stdout.readline() == b"in\n"
            ours, _ = listener.accept()
            with ours:
                yield ours
            client.communicate()


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_program_of_this_user_is_no_stranger(host: str) -> None:
    with connection(host, os.geteuid()) as ours:
        assert not is_another_users(ours.getpeername(), ours.getsockname())


def test_a_program_that_connects_from_a_socket_of_both_families_is_no_stranger() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(("::ffff:127.0.0.1", listener.getsockname()[1])) as theirs,
    ):
        ours, _ = listener.accept()
        with ours:
            assert theirs.family == socket.AF_INET6
            assert not is_another_users(ours.getpeername(), ours.getsockname())


@needs_two_users
@pytest.mark.parametrize("host", LOOPBACK)
def test_a_program_of_another_user_is_one(host: str) -> None:
    with connection(host, NOBODY) as ours:
        assert is_another_users(ours.getpeername(), ours.getsockname())


@needs_two_users
@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("user", [NOBODY, tcp_peers.ROOT])  # newer kernels know whose it was; of root all say the same
def test_one_that_has_closed_its_end_already_does_not_pass_for_root(host: str, user: int) -> None:
    with connection(host, user, "goes") as ours:
        assert is_another_users(ours.getpeername(), ours.getsockname())


def test_a_connection_that_does_not_exist_any_more_is_a_strangers() -> None:
    with connection("127.0.0.1", os.geteuid()) as ours:
        host, port = ours.getpeername()

        assert is_another_users((host, port ^ 1), ours.getsockname())


def test_where_the_kernel_tells_of_no_socket_at_all_nobody_is_a_stranger() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen: a port of which there is nothing to tell

        assert not is_another_users(("127.0.0.1", 1), silent.getsockname())


def test_where_windows_shares_the_loopback_addresses_its_programs_are_no_strangers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tcp_peers, "MIRRORED", str(tmp_path))
    with connection("127.0.0.1", os.geteuid()) as ours:
        host, port = ours.getpeername()

        assert not is_another_users((host, port ^ 1), ours.getsockname())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_nobody_gets_in_because_no_more_files_can_be_opened_to_ask() -> None:
    import resource

    with connection("127.0.0.1", os.geteuid()) as ours:
        peer, own = ours.getpeername(), ours.getsockname()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            refused = is_another_users(peer, own)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert refused


def test_of_what_comes_from_elsewhere_nothing_is_known() -> None:
    assert not is_another_users(("192.0.2.1", 40000), ("192.0.2.2", 5000))
