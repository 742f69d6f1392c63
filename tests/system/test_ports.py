"""Which ports are free, and what the other systems need to share none."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys

import pytest

from uno_devserver.system import ports
from uno_devserver.system.ports import PortTaken, free_port, is_free, listen_on, means_taken, sharing_option


def test_a_free_port_is_free_on_both_loopback_addresses() -> None:
    port = free_port()

    assert is_free(port)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as mine:
            mine.bind((address, port))


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_with_a_listener_on_one_of_them_is_not_free(family: int, address: str) -> None:
    with socket.socket(family) as other:
        other.bind((address, 0))
        other.listen()

        assert not is_free(other.getsockname()[1])


@pytest.mark.parametrize("number", [-1, 65536, 10**6])
def test_a_number_that_is_no_port_is_not_free(number: int) -> None:
    assert not is_free(number)


def test_a_picked_port_is_tried_again_when_the_other_address_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real, tried = ports._listening_socket, list[int]()

    def sometimes_taken(family: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
        if family == socket.AF_INET6:
            tried.append(int(address[1]))
            if len(tried) < 3:
                raise OSError(errno.EADDRINUSE, "taken")
        return real(family, address, dual)

    monkeypatch.setattr(ports, "_listening_socket", sometimes_taken)

    assert free_port() == tried[-1]
    assert len(tried) == 3


def test_a_port_that_was_asked_for_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def taken(_: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
        tried.append(int(address[1]))
        raise OSError(errno.EADDRINUSE, "taken")

    monkeypatch.setattr(ports, "_listening_socket", taken)

    with pytest.raises(PortTaken):
        listen_on(ports.loopback_addresses(5000))
    assert tried == [5000]


@pytest.mark.parametrize("missing", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_machine_with_one_address_family_listens_on_that(
    monkeypatch: pytest.MonkeyPatch, missing: int, code: int
) -> None:
    real = ports._listening_socket

    def without(family: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
        if family == missing:
            raise OSError(code, "not here")
        return real(family, address, dual)

    monkeypatch.setattr(ports, "_listening_socket", without)

    [listener] = listen_on(ports.loopback_addresses(0))
    listener.close()
    assert listener.family != missing
    assert free_port() > 0


def test_a_machine_with_no_address_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(family: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
        raise OSError(errno.EADDRNOTAVAIL, "not here")

    monkeypatch.setattr(ports, "_listening_socket", nowhere)

    with pytest.raises(OSError, match="not here"):
        listen_on(ports.loopback_addresses(0))
    assert not is_free(5000)


def test_each_system_has_its_own_way_to_share_no_port() -> None:
    assert [sharing_option(platform) for platform in ("linux", "darwin", "win32")] == [
        "SO_REUSEADDR",
        "SO_REUSEADDR",
        "SO_EXCLUSIVEADDRUSE",
    ]
    assert means_taken("win32", 10013)
    assert means_taken("linux", errno.EADDRINUSE)
    assert not means_taken("linux", errno.EACCES)


def test_asking_for_a_port_does_not_load_the_server() -> None:
    code = """
import sys
from uno_devserver.system import ports
print("socket" in sys.modules)
print(ports.is_free(ports.free_port()))
print("asyncio" in sys.modules or "httptools" in sys.modules)
"""

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.split() == ["False", "True", "False"]
