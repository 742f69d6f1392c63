"""Ask the kernel which user owns a TCP socket of this machine: the other end of a connection, or a listener.

Every user of a machine can connect to its loopback addresses, and can listen there. Linux reports the owner of each
socket (sock_diag). An answer counts only if it is about exactly the socket that was asked for. If a question fails for
lack of something that another user can use up (files, memory), access is refused. On other systems, and where Linux
does not report sockets at all, every socket counts as this user's.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Address = tuple[str | int, ...]  # as `getpeername` returns it: host, port, and more for IPv6

ROOT = 0  # the user id of root, who may do everything anyway
NETLINK, SOCK_DIAG = 16, 4  # AF_NETLINK, and its protocol for information about sockets
BY_FAMILY, ERROR = 20, 2  # SOCK_DIAG_BY_FAMILY, NLMSG_ERROR
REQUEST, ANY_STATE, NO_COOKIE = 1, 0xFFFFFFFF, 0xFFFFFFFF
ANSWER_SECONDS = 1.0  # the kernel answers at once
# The index of `lo`, the same on every Linux. Without it the kernel would not find sockets that are bound to that
# interface (SO_BINDTODEVICE, which needs no rights), and would answer about a listener on the same port instead.
LOOPBACK_INTERFACE = 1
ESTABLISHED, SYN_RECV, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT, LISTEN = 1, 3, 4, 5, 8, 10
# The states of the other end of a connection; in the last two it has closed its side.
OPEN_STATES = (ESTABLISHED, FIN_WAIT_1, FIN_WAIT_2)
# The errors of a system, container or sandbox that does not let this process ask at all.
UNAVAILABLE = (
    errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM,
    errno.EACCES,
)  # fmt: skip
NO_SOCKET = (errno.ENOENT, errno.EINVAL)  # the second is the answer about IPv6 of a kernel without IPv6
# This file exists if WSL mirrors the network of Windows. Then programs of Windows reach the loopback addresses and
# listen on them, and this kernel does not know their sockets.
MIRRORED = "/sys/class/net/loopback0"

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port id
_QUESTION = struct.Struct("=BBBxI")  # family, protocol, extensions, states
_PORTS = struct.Struct(">HH")  # the port of the socket, and the port at the other end
_REST = struct.Struct("=III")  # interface, and a cookie in two halves
# Family, state, two other bytes; ports and both addresses; interface, cookie, a timer and two queues; user and inode.
_REPORT = struct.Struct("=BBxx4s16s16s24xII")
_ERROR_NUMBER = struct.Struct("=i")  # negative
_MAPPED = b"\0" * 10 + b"\xff\xff"  # the start of an IPv4 address that is written as one of IPv6


class SocketReport:
    """What the kernel says about one socket. Addresses of IPv4 are written as those of IPv6."""

    user: int
    inode: int  # 0 if no program has the socket open

    def __init__(self, message: bytes) -> None:
        family, self.state, ports, own, remote, self.user, self.inode = _REPORT.unpack_from(message, _HEADER.size)
        self.ports = _PORTS.unpack(ports)
        self.addresses = tuple(each if family == socket.AF_INET6 else _MAPPED + each[:4] for each in (own, remote))


def is_another_users(accepted: socket.socket) -> bool:
    """Whether an accepted connection was, or may have been, made by another user than this one or root."""
    return _is_another_users(accepted, lambda client, own: _connection(client, own, OPEN_STATES))


def is_another_users_server(connected: socket.socket) -> bool:
    """Whether a connection to this machine has, or may have, reached a server of another user than this one or root."""
    return _is_another_users(connected, _server)


def _server(server: Address, own: Address) -> SocketReport | None:
    """The socket that serves this connection; the listener's, as long as that has not accepted it.

    The listener is asked for first. If the connection is not accepted after that, its listener must be that one:
    whoever closes a listener resets the connections that it has not accepted.
    """
    listener = _listener(_host(server), int(server[1]))
    accepted = _connection(server, own, (SYN_RECV, *OPEN_STATES))
    waits = accepted is not None and accepted.inode == 0 and accepted.state in (SYN_RECV, ESTABLISHED)
    return listener if waits else accepted


def _is_another_users(connection: socket.socket, other_end: Callable[[Address, Address], SocketReport | None]) -> bool:
    if sys.platform != "linux" or not is_loopback(own := connection.getsockname()):
        return False
    try:
        owner = other_end(connection.getpeername(), own)
        # Asked after that: the data of a connection that was reset can still be read, and by then a program of this
        # user may have connected with the same addresses and ports. While this end is alive, no other connection can.
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        if state not in (ESTABLISHED, CLOSE_WAIT):
            return True
        if owner is not None:
            # A socket that its program has closed is reported as root's, without an inode. Its owner is not known.
            return owner.inode == 0 if owner.user == ROOT else owner.user != os.geteuid()
        if state == ESTABLISHED and os.path.exists(MIRRORED):
            return False
        return _reports_sockets()
    except OSError as error:
        return error.errno not in UNAVAILABLE
    except struct.error:  # an answer that is too short
        return True


def is_this_users_port(hosts: Iterable[str], port: int) -> bool:
    """Whether every listener on this port of these addresses belongs to this user; False if there is none.

    True if that cannot be known: on other systems, where Linux does not report sockets, and in a mirrored WSL if no
    listener was found.
    """
    if sys.platform != "linux":
        return True
    try:
        found = [each for host in hosts if (each := _listener(host, port)) is not None]
        if found:
            return all(each.user == os.geteuid() for each in found)
        return os.path.exists(MIRRORED) or not _reports_sockets()
    except OSError as error:
        return error.errno in UNAVAILABLE
    except struct.error:
        return False


def is_loopback(address: Address) -> bool:
    """Whether this is a loopback address, so that connections to it come from this machine."""
    host = _host(address)
    return host == "::1" or host.startswith("127.")


def _connection(local: Address, remote: Address, states: tuple[int, ...]) -> SocketReport | None:
    """The socket from `local` to `remote` in one of these states; None if there is none. Raises OSError."""
    report = _ask(local, remote)
    asked = tuple(_packed(each) for each in (local, remote))
    ports = (local[1], remote[1])
    exact = report is not None and report.addresses == asked and report.ports == ports and report.state in states
    return report if exact else None


def _listener(host: str, port: int) -> SocketReport | None:
    """The socket that would accept a connection to this address; None if there is none. Raises OSError.

    The kernel finds it as for a packet that comes in. From port 0, no connection can exist.
    """
    report = _ask((host, port), (host, 0))
    if report is None or report.state != LISTEN or report.ports[0] != port:
        return None
    return report


def _reports_sockets() -> bool:
    """Whether the kernel reports sockets: it must know a listener that exists now. Raises OSError."""
    with socket.create_server(("127.0.0.1", 0)) as known:
        host, port = known.getsockname()
        return _listener(host, port) is not None


def _ask(local: Address, remote: Address) -> SocketReport | None:
    """Ask for the socket from `local` to `remote`; a listener at `local` is reported if there is none.

    None if there is neither, or if the kernel has no reports for TCP. Raises OSError.
    """
    family = socket.AF_INET6 if ":" in _host(local) else socket.AF_INET
    addresses = b"".join(socket.inet_pton(family, _host(each)).ljust(16, b"\0") for each in (local, remote))
    sockets = _PORTS.pack(local[1], remote[1]) + addresses + _REST.pack(LOOPBACK_INTERFACE, NO_COOKIE, NO_COOKIE)
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, ANY_STATE) + sockets
    with socket.socket(NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(_HEADER.pack(_HEADER.size + len(question), BY_FAMILY, REQUEST, 1, 0) + question)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] != ERROR:
        return SocketReport(answer)
    number = -_ERROR_NUMBER.unpack_from(answer, _HEADER.size)[0]
    if number in NO_SOCKET:
        return None
    raise OSError(number, os.strerror(number))


def _packed(address: Address) -> bytes:
    host = _host(address)
    return socket.inet_pton(socket.AF_INET6, host if ":" in host else f"::ffff:{host}")


def _host(address: Address) -> str:
    """The IP address; one of IPv4 as such, also where a socket of both families tells it."""
    return str(address[0]).removeprefix("::ffff:")
