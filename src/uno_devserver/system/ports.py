"""TCP ports of this machine: which are free, and sockets that listen on them.

A port counts as ours only when every loopback address of the machine has it: a server that is found under
`127.0.0.1` and a stranger that is found under `::1` would both be called `localhost`.
"""

from __future__ import annotations

import errno
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    Address = tuple[int, tuple[str | int, ...]]  # family and socket address, whose second item is the port

LOOPBACK_IPV4, LOOPBACK_IPV6 = "127.0.0.1", "::1"
BACKLOG = 128  # connections that the kernel takes for us while the event loop is busy
FREE_PORT_ATTEMPTS = 50  # a port free on IPv4 is nearly always free on IPv6; 50 misses mean something else is wrong
# The machine, or this container, has no such address family or no such address.
ABSENT = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)
WINDOWS_ACCESS_DENIED = 10013  # how Windows says that another program holds a port for itself alone


class PortTaken(OSError):
    """Another program listens there."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} on {address} is taken by another program")
        self.port = port
        self.address = address


def is_free(port: int) -> bool:
    """Whether a server could listen on that port of the loopback addresses now."""
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
    """Sockets that listen on those of the addresses that the machine has, all on one port; port 0 picks it.

    Raises PortTaken when any of them is taken, and OSError when the system refuses or none can be used.
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

    # Said expressly, because asyncio sends without delay (TCP_NODELAY) only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, getattr(socket, sharing_option(sys.platform)), 1)
        if family == socket.AF_INET6:
            # "::" means every address of the machine, IPv4 too, unless these are listed beside it.
            only_ipv6 = not (dual and address[0] == "::")
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_ipv6)
        listener.bind(address)
        listener.listen(BACKLOG)  # Linux lets two programs bind the same address, and refuses the second here
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def sharing_option(platform: str) -> str:
    """The option that lets us have a port again directly after a stop, and nobody else while we have it.

    On Unix that is SO_REUSEADDR. On Windows a port is free at once anyway, and SO_REUSEADDR would let any program
    take it over while we listen.
    """
    return "SO_EXCLUSIVEADDRUSE" if platform == "win32" else "SO_REUSEADDR"


def means_taken(platform: str, code: int | None) -> bool:
    return code == errno.EADDRINUSE or (platform == "win32" and code == WINDOWS_ACCESS_DENIED)


def close_all(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()
