"""Whose a TCP socket is, asked of the kernel: connections of this user and of root, and this user's listeners."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uno_devserver.system import tcp_peers
from uno_devserver.system.ports import LOOPBACK
from uno_devserver.system.tcp_peers import is_another_users, is_another_users_server, is_this_users_port

NOBODY = 65534
CONNECTS = """
import os, socket, sys
os.setuid(int(sys.argv[3]))
peer = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
if sys.argv[4] == "from a bound port":
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    peer.bind((sys.argv[1], 0))
    print(peer.getsockname()[1], flush=True)
    sys.stdin.readline()
peer.connect((sys.argv[1], int(sys.argv[2])))
peer.sendall(b"x")
if sys.argv[4] == "goes":
    peer.close()
print("in", flush=True)
sys.stdin.read()
"""
LISTENS = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], int(sys.argv[3])), family=family)
print(listener.getsockname()[1], flush=True)
if sys.argv[4] == "accepts":
    accepted = listener.accept()
    print("accepted", flush=True)
sys.stdin.read()
"""
ASKS = (
    "import sys; sys.path.insert(0, sys.argv[1]); from uno_devserver.system.tcp_peers import is_this_users_port as ask"
)
SOURCE = str(Path(tcp_peers.__file__).parents[2])
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
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


@contextmanager
def listening(host: str, user: int | None = None, port: int = 0) -> Iterator[int]:
    """The port of a program of that user, or of this one."""
    argv = [sys.executable, "-ISc", LISTENS, host, str(os.geteuid() if user is None else user), str(port), ""]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        yield int(server.stdout.readline())
        server.communicate()


@contextmanager
def no_more_files() -> Iterator[None]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _end(ours: socket.socket, *, peer: object = None, own: object = None) -> Any:
    """Our end of a connection, with other addresses."""
    return SimpleNamespace(
        getpeername=lambda: peer or ours.getpeername(),
        getsockname=lambda: own or ours.getsockname(),
        getsockopt=ours.getsockopt,
    )


# --- connections ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_program_of_this_user_is_no_stranger(host: str) -> None:
    with connection(host, os.geteuid()) as ours:
        assert not is_another_users(ours)


def test_a_program_that_connects_from_a_socket_of_both_families_is_no_stranger() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(("::ffff:127.0.0.1", listener.getsockname()[1])) as theirs,
    ):
        ours, _ = listener.accept()
        with ours:
            assert theirs.family == socket.AF_INET6
            assert not is_another_users(ours)


@needs_two_users
@pytest.mark.parametrize("host", LOOPBACK)
def test_a_program_of_another_user_is_one(host: str) -> None:
    with connection(host, NOBODY) as ours:
        assert is_another_users(ours)


@needs_two_users
@pytest.mark.parametrize("host", LOOPBACK)
def test_one_whose_port_is_also_that_of_a_listener_does_not_pass_for_the_listeners_owner(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as served:
        argv = [sys.executable, "-ISc", CONNECTS, host, str(served.getsockname()[1]), str(NOBODY), "from a bound port"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout
            assert client.stdin
            port = int(client.stdout.readline())
            with socket.create_server((host, port), family=family):  # a program of ours takes the port, too
                client.stdin.write(b"\n")
                client.stdin.flush()
                assert client.stdout.readline() == b"in\n"
                ours, _ = served.accept()
                with ours:
                    assert is_another_users(ours)
                client.communicate()


@needs_linux
@pytest.mark.parametrize("host", LOOPBACK)
def test_a_listener_is_no_answer_about_a_connection(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with connection(host, os.geteuid()) as ours, socket.create_server((host, 0), family=family) as listener:
        assert is_another_users(_end(ours, peer=listener.getsockname()))


@needs_two_users
@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("user", [NOBODY, tcp_peers.ROOT])  # newer kernels know whose it was; of root all say the same
def test_one_that_has_closed_its_end_already_does_not_pass_for_root(host: str, user: int) -> None:
    with connection(host, user, "goes") as ours:
        assert is_another_users(ours)


def test_a_connection_that_does_not_exist_any_more_is_a_strangers() -> None:
    with connection("127.0.0.1", os.geteuid()) as ours:
        host, port = ours.getpeername()

        assert is_another_users(_end(ours, peer=(host, port ^ 1)))


NO_ANSWERS = [("SOCK_DIAG", 31), ("BY_FAMILY", 30)]  # no such protocol, as in some containers; no such question


@pytest.mark.parametrize(("name", "number"), NO_ANSWERS)
def test_where_the_kernel_tells_of_no_socket_at_all_nobody_is_a_stranger(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    monkeypatch.setattr(tcp_peers, name, number)
    with connection("127.0.0.1", os.geteuid()) as ours:
        host, port = ours.getpeername()

        assert not is_another_users(_end(ours, peer=(host, port ^ 1)))


TCP_REPAIR = 19  # with it, root may close a socket without a word to the other end


@needs_two_users
@pytest.mark.parametrize("mirrored", [True, False])
def test_where_windows_shares_the_loopback_addresses_its_programs_are_no_strangers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mirrored: bool
) -> None:
    monkeypatch.setattr(tcp_peers, "MIRRORED", str(tmp_path if mirrored else tmp_path / "missing"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        unknown = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
        unknown.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        unknown.close()
        with ours:
            assert is_another_users(ours) is not mirrored


@needs_linux
def test_nor_does_one_pass_for_such_a_program_by_leaving(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tcp_peers, "MIRRORED", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
        with ours:
            peer = ours.getpeername()
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.close()

            assert is_another_users(_end(ours, peer=peer))


@needs_linux
def test_nobody_gets_in_because_no_more_files_can_be_opened_to_ask() -> None:
    with connection("127.0.0.1", os.geteuid()) as ours, listening("127.0.0.1") as port, no_more_files():
        refused, is_ours = is_another_users(ours), is_this_users_port(LOOPBACK, port)

    assert refused
    assert not is_ours


def test_of_what_comes_from_elsewhere_nothing_is_known() -> None:
    with socket.socket() as ours:
        assert not is_another_users(_end(ours, peer=("192.0.2.1", 40000), own=("192.0.2.2", 5000)))


@needs_linux
@pytest.mark.parametrize("host", LOOPBACK)
def test_a_connection_that_was_reset_does_not_pass_for_the_next_one_from_its_port(host: str) -> None:
    for _ in range(100):
        try:
            assert _passes_after_a_reset(host) is False
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:  # another program has taken the port in between
                raise
    pytest.fail("no port stayed free for a moment")


def _passes_after_a_reset(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener, socket.socket(family) as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.connect(listener.getsockname())
        source = first.getsockname()
        ours, peer = listener.accept()
        first.close()
        with ours, socket.socket(family) as second:
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            second.bind(source)
            second.connect(listener.getsockname())
            return not is_another_users(_end(ours, peer=peer))


# --- servers ------------------------------------------------------------------------------------------------------


@contextmanager
def connected(host: str, listens: str, user: int, then: str) -> Iterator[socket.socket]:
    """Our end of a connection to a server of that user, which has accepted it, or has not yet."""
    argv = [sys.executable, "-ISc", LISTENS, listens, str(user), "0", then]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        with socket.create_connection((host, int(server.stdout.readline()))) as ours:
            assert then == "waits" or server.stdout.readline() == b"accepted\n"
            yield ours
        server.communicate()


SERVERS = [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "0.0.0.0"), ("::1", "::")]


@pytest.mark.parametrize("then", ["accepts", "waits"])
@pytest.mark.parametrize(("host", "listens"), SERVERS)
def test_a_server_of_this_user_is_no_strangers(host: str, listens: str, then: str) -> None:
    with connected(host, listens, os.geteuid(), then) as ours:
        assert not is_another_users_server(ours)


def test_nor_is_one_that_listens_for_both_families() -> None:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both,
        socket.create_connection(("127.0.0.1", both.getsockname()[1])) as ours,
    ):
        assert not is_another_users_server(ours)
        with both.accept()[0]:
            assert not is_another_users_server(ours)


@needs_two_users
@pytest.mark.parametrize("then", ["accepts", "waits"])
@pytest.mark.parametrize(("host", "listens"), SERVERS)
def test_a_server_of_another_user_is_a_strangers(host: str, listens: str, then: str) -> None:
    with connected(host, listens, NOBODY, then) as ours:
        assert is_another_users_server(ours)


@needs_two_users
def test_one_that_leaves_its_port_to_this_user_stays_a_strangers() -> None:
    source = LISTENS.replace('print("accepted"', 'listener.close(); print("accepted"')
    argv = [sys.executable, "-ISc", source, "127.0.0.1", str(NOBODY), "0", "accepts"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout
        port = int(server.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as ours:
            assert server.stdout.readline() == b"accepted\n"
            with socket.create_server(("127.0.0.1", port)):
                assert is_another_users_server(ours)
        server.communicate()


@needs_two_users
def test_a_user_believes_servers_of_root() -> None:
    with listening("127.0.0.1", tcp_peers.ROOT) as port:
        code = "from uno_devserver.system.tcp_peers import is_another_users_server as ask; import os, socket, sys; "
        code += f"os.setuid({NOBODY}); print(ask(socket.create_connection((b'127.0.0.1', {port}))))"
        argv = [sys.executable, "-Sc", f"import sys; sys.path.insert(0, sys.argv[1]); {code}", SOURCE]
        told = subprocess.run(argv, capture_output=True, text=True, timeout=20)

    assert (told.stdout, told.stderr) == ("False\n", "")


@pytest.mark.parametrize(("name", "number"), NO_ANSWERS)
def test_where_the_kernel_tells_of_no_socket_every_server_is_this_users(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    monkeypatch.setattr(tcp_peers, name, number)
    with connected("127.0.0.1", "127.0.0.1", os.geteuid(), "waits") as ours:
        assert not is_another_users_server(ours)


# --- listeners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_a_port_on_which_only_this_user_listens_is_this_users(host: str) -> None:
    with listening(host) as port:
        assert is_this_users_port(LOOPBACK, port)


def test_a_listener_of_both_families_counts_for_both() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        assert is_this_users_port(["127.8.9.10"], both.getsockname()[1])


@needs_linux
def test_a_port_on_which_nobody_listens_is_nobodys() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))

        assert not is_this_users_port(LOOPBACK, silent.getsockname()[1])


@needs_two_users
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_a_port_of_another_user_is_not_this_users(host: str) -> None:
    with listening(host, NOBODY) as port:
        assert not is_this_users_port(LOOPBACK, port)


@needs_two_users
def test_nor_is_one_that_two_users_share() -> None:
    with listening("127.0.0.1") as port, listening("::1", NOBODY, port):
        assert not is_this_users_port(LOOPBACK, port)
        assert is_this_users_port(["127.0.0.1"], port)


@needs_two_users
def test_nobody_can_take_a_port_from_its_user_by_listening_at_another_address() -> None:
    with listening("127.0.0.1") as port, listening("127.0.0.2", NOBODY, port):
        assert is_this_users_port(LOOPBACK, port)
        assert not is_this_users_port(["127.0.0.2"], port)


@needs_two_users
def test_a_port_of_root_is_not_that_of_another_user() -> None:
    with listening("127.0.0.1", tcp_peers.ROOT) as port:
        code = f"import os; {ASKS}; os.setuid({NOBODY}); print(ask(['127.0.0.1'], {port}))"
        argv = [sys.executable, "-Sc", code, SOURCE]
        told = subprocess.run(argv, capture_output=True, text=True, timeout=20)

    assert (told.stdout, told.stderr) == ("False\n", "")


@pytest.mark.parametrize(("name", "number"), NO_ANSWERS)
def test_where_the_kernel_tells_of_no_listener_every_port_is_this_users(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    monkeypatch.setattr(tcp_peers, name, number)
    with listening("127.0.0.1") as port:
        assert is_this_users_port(LOOPBACK, port)


def test_a_port_that_this_system_does_not_know_may_be_one_of_windows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tcp_peers, "MIRRORED", str(tmp_path))

    assert is_this_users_port(LOOPBACK, 1)
