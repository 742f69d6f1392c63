"""Where the server listens, and what the user is told when it cannot."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from uno_devserver.protocol.http.server import ListenProblem, are_open, open_sockets
from uno_devserver.system import ports
from uno_devserver.system.ports import PortTaken, free_port, listen_on


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as sockets:
        yield sockets


def keep(opened: ExitStack, *sockets: socket.socket) -> list[tuple[str, int]]:
    return [opened.enter_context(each).getsockname()[:2] for each in sockets]


def stranger(opened: ExitStack, family: int, address: str, port: int = 0) -> int:
    other = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
    if family == socket.AF_INET6:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    other.bind((address, port))
    other.listen()
    taken: int = other.getsockname()[1]
    return taken


def test_by_default_both_loopback_addresses_listen_on_the_same_port(opened: ExitStack) -> None:
    (first, port), (second, same) = keep(opened, *open_sockets(0))

    assert (first, second) == ("127.0.0.1", "::1")
    assert port == same
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as client:
            client.settimeout(5)
            client.connect((address, port))


def test_a_port_can_be_asked_for(opened: ExitStack) -> None:
    port = free_port()

    assert {each for _, each in keep(opened, *open_sockets(port))} == {port}


@pytest.mark.parametrize(
    ("family", "address"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")],
)
def test_a_port_that_a_stranger_has_on_one_address_is_taken(opened: ExitStack, family: int, address: str) -> None:
    port = stranger(opened, family, address)

    with pytest.raises(PortTaken) as problem:
        open_sockets(port)

    assert problem.value.port == port
    assert problem.value.address == ("127.0.0.1" if family == socket.AF_INET else "::1")
    assert f"port {port} on {problem.value.address} is taken by another program" in str(problem.value)
    assert isinstance(problem.value, OSError)


def test_a_refused_port_leaves_no_socket_open(opened: ExitStack) -> None:
    port = stranger(opened, socket.AF_INET6, "::1")

    with pytest.raises(PortTaken):
        open_sockets(port)

    stranger(opened, socket.AF_INET, "127.0.0.1", port)  # would fail if our half were still there


def test_two_servers_cannot_have_the_same_port(opened: ExitStack) -> None:
    [(_, port), _] = keep(opened, *open_sockets(0))

    with pytest.raises(PortTaken):
        open_sockets(port)


def test_the_port_can_be_had_again_directly_after_a_stop(opened: ExitStack) -> None:
    sockets = open_sockets(0)
    port = sockets[0].getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    server, _ = sockets[0].accept()
    server.close()  # the side that closes first is remembered by the kernel for a minute (TIME_WAIT)
    assert client.recv(1) == b""
    client.close()
    for each in sockets:
        each.close()

    assert keep(opened, *open_sockets(port))[0] == ("127.0.0.1", port)


@pytest.mark.parametrize(
    ("bind", "addresses"),
    [
        ("0.0.0.0", ["0.0.0.0"]),
        ("::", ["::"]),
    ],
)
def test_another_address_can_be_asked_for(opened: ExitStack, bind: str, addresses: list[str]) -> None:
    sockets = open_sockets(0, bind)

    assert [address for address, _ in keep(opened, *sockets)] == addresses
    assert are_open(sockets)


@pytest.mark.parametrize(
    ("bind", "more"),
    [("127.0.0.1", []), ("::1", []), ("[::1]", []), ("localhost", []), ("127.0.0.2", ["127.0.0.2"])],
)
def test_whoever_asks_for_a_loopback_address_gets_the_usual_ones_too(
    opened: ExitStack, bind: str, more: list[str]
) -> None:
    sockets = open_sockets(0, bind)

    found = keep(opened, *sockets)
    assert [address for address, _ in found] == ["127.0.0.1", "::1", *more]
    assert len({port for _, port in found}) == 1
    assert not are_open(sockets)


def test_all_addresses_of_both_families_can_be_listened_on_side_by_side(opened: ExitStack) -> None:
    found = keep(opened, *listen_on([(socket.AF_INET, ("0.0.0.0", 0)), (socket.AF_INET6, ("::", 0))]))

    assert [address for address, _ in found] == ["0.0.0.0", "::"]


def test_every_address_of_the_machine_includes_those_of_ipv4(opened: ExitStack) -> None:
    [(_, port)] = keep(opened, *open_sockets(0, "::"))

    for address in ("127.0.0.1", "::1"):
        opened.enter_context(socket.create_connection((address, port), timeout=5))


@pytest.mark.parametrize(
    ("port", "bind", "words"),
    [
        (70000, None, "70000 is no port"),
        (-5, None, "-5 is no port"),
        (0, "", "the address to listen on is empty"),
        (0, "  ", "the address to listen on is empty"),
        (0, "[]", "the address to listen on is empty"),
        (0, "no.such.host.invalid", "'no.such.host.invalid' is no address of this machine"),
        (0, "192.0.2.1", "'192.0.2.1' is no address of this machine"),
        (0, "2001:db8::1", "is no address of this machine"),
        (0, "300.1.1.1", "'300.1.1.1' is no address of this machine"),
        (0, "a" * 300, "is no address of this machine"),
        (0, "nul\0byte", "is no address of this machine"),
    ],
)
def test_an_address_that_cannot_be_used_is_said_in_a_sentence(port: int, bind: str | None, words: str) -> None:
    with pytest.raises(ListenProblem) as problem:
        open_sockets(port, bind)

    assert words in str(problem.value)
    assert not isinstance(problem.value, PortTaken)


def test_a_port_that_the_system_keeps_for_itself_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(family: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
        raise OSError(errno.EACCES, "Permission denied")  # tests may run as root, who is refused nothing

    monkeypatch.setattr(ports, "_listening_socket", forbidden)

    with pytest.raises(ListenProblem, match=r"no permission to listen on port 80 .* choose a port above 1023"):
        open_sockets(80)
