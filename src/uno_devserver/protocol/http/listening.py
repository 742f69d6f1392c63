"""Where the server listens: on loopback, IPv4 and IPv6 with one port, unless told otherwise.

Either all addresses that were asked for are ours when this returns, or none is and the reason is said in a sentence.
The kernel takes connections from then on; they wait until the server is started.
"""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, cast

from ...system.ports import PortTaken, listen_on, loopback_addresses

if TYPE_CHECKING:
    from ...system.ports import Address

__all__ = ["ListenProblem", "PortTaken", "open_sockets"]

HIGHEST_PORT = 65535


class ListenProblem(OSError):
    """It cannot listen there, for another reason than that the port is taken; the text is for the user."""


def open_sockets(port: int, bind: str | None = None) -> list[socket.socket]:
    """Listening sockets on the loopback addresses, or on those of `bind`; port 0 picks a free one.

    Raises PortTaken or ListenProblem.
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise ListenProblem(f"{port} is no port: ports go from 1 to {HIGHEST_PORT}, and 0 picks a free one")
    addresses = loopback_addresses(port) if bind is None else _addresses_of(bind, port)
    try:
        return listen_on(addresses)
    except PortTaken:
        raise
    except OSError as error:
        raise ListenProblem(_reason(error, port, bind)) from error


def _addresses_of(bind: str, port: int) -> list[Address]:
    host = bind[1:-1] if bind.startswith("[") and bind.endswith("]") else bind
    if not host.strip():
        raise ListenProblem("the address to listen on is empty; name one, like 0.0.0.0, or leave it out for loopback")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host name can be that long
        raise ListenProblem(f"'{bind}' is no address of this machine: {_text(error)}") from error
    # The third form of an address is of Pythons without IPv6.
    return list(dict.fromkeys((int(family), cast("tuple[str | int, ...]", where)) for family, _, _, _, where in found))


def _reason(error: OSError, port: int, bind: str | None) -> str:
    where = bind if bind is not None else "the loopback addresses"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to listen on port {port} of {where}; choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL and bind is not None:
        return f"'{bind}' is no address of this machine; use one of its own, or 0.0.0.0 for all"
    return f"cannot listen on port {port} of {where}: {_text(error)}"


def _text(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
