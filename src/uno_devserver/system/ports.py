"""TCP ports of this machine: which are free, and sockets that listen on them.

A server listens on the same port of all loopback addresses: otherwise `localhost` could mean the server at `127.0.0.1`
or another program at `::1`.
"""

from __future__ import annotations

import errno
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    Address = tuple[int, tuple[str | int, ...]]  # the family, and the socket address, whose second item is the port

MAX_PORT = 65_535
LOOPBACK_IPV4, LOOPBACK_IPV6 = LOOPBACK = ("127.0.0.1", "::1")
# Connections that the kernel accepts while the event loop is busy; Linux allows as many by default (somaxconn). A
# client that finds no place tries again after a second, so whoever fills them all delays the others.
BACKLOG = 4096
FREE_PORT_ATTEMPTS = 50  # a port free on IPv4 is nearly always free on IPv6; after 50 failures something else is wrong
# Errors that mean that the machine or container does not have the address or its family.
ABSENT = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)
WINDOWS_ACCESS_DENIED = 10013  # another program has the port exclusively


class PortTaken(OSError):
    """Another program listens on the port."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} on {address} is taken by another program")
        self.port = port
        self.address = address


def is_free(port: int) -> bool:
    """Whether a server could listen on that port of all loopback addresses now."""
    try:
        close_all(listen_on(loopback_addresses(port)))
    except (OSError, OverflowError):
        return False
    return True


def free_port() -> int:
    """A port that is free on all loopback addresses; another program may take it before the caller does."""
    sockets = listen_on(loopback_addresses(0))
    port: int = sockets[0].getsockname()[1]
    close_all(sockets)
    return port


def loopback_addresses(port: int) -> list[Address]:
    import socket

    return [(socket.AF_INET, (LOOPBACK_IPV4, port)), (socket.AF_INET6, (LOOPBACK_IPV6, port))]


def listen_on(addresses: Sequence[Address]) -> list[socket.socket]:
    """Sockets that listen on the addresses that the machine has, all on one port; the port 0 means any free one.

    Raises PortTaken if any of them is taken, and OSError if the system refuses, or has none of the addresses.
    """
    picks = addresses[0][1][1] == 0
    for _ in range(FREE_PORT_ATTEMPTS if picks else 1):
        try:
            return _listen_on_all(addresses)
        except PortTaken as problem:
            taken = problem
    raise taken


def _listen_on_all(addresses: Sequence[Address]) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, (host, port, *rest) in addresses:
        if sockets:
            port = sockets[0].getsockname()[1]
        try:
            sockets.append(_listening_socket(family, (host, port, *rest), dual=len(addresses) == 1))
        except OSError as error:
            if error.errno in ABSENT:
                absent = error
                continue
            close_all(sockets)
            if means_taken(sys.platform, error.errno):
                raise PortTaken(int(port), str(host)) from error
            raise
    if not sockets and absent is not None:
        raise absent
    return sockets


def _listening_socket(family: int, address: tuple[str | int, ...], dual: bool) -> socket.socket:
    import socket

    # The protocol is given, because asyncio sets TCP_NODELAY only on sockets that have it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, getattr(socket, sharing_option(sys.platform)), 1)
        if family == socket.AF_INET6:
            # "::" includes the IPv4 addresses, unless they are listed as well.
            only_ipv6 = not (dual and address[0] == "::")
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_ipv6)
        listener.bind(address)
        listener.listen(BACKLOG)  # Linux refuses an address that another program has here, not in `bind`
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def sharing_option(platform: str) -> str:
    """The socket option with which a port can be used again right after a stop, but not by two programs at once.

    On Unix that is SO_REUSEADDR. On Windows, where a port is free at once anyway, SO_REUSEADDR would let any program
    take it over from its listener.
    """
    return "SO_EXCLUSIVEADDRUSE" if platform == "win32" else "SO_REUSEADDR"


def means_taken(platform: str, code: int | None) -> bool:
    return code == errno.EADDRINUSE or (platform == "win32" and code == WINDOWS_ACCESS_DENIED)


def close_all(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()
