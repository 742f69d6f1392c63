"""Find out whether a TCP connection of this machine was made by another user.

Every user of a machine can connect to its loopback addresses. Linux reports the owner of each socket (sock_diag); on
other systems, no connection is taken for another user's.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    Address = tuple[str | int, ...]  # as `getpeername` returns it: host, port, and more for IPv6

ROOT = 0  # the user id of root, who may do everything anyway
NETLINK, SOCK_DIAG = 16, 4  # AF_NETLINK, and its protocol for information about sockets
BY_FAMILY, ERROR = 20, 2  # SOCK_DIAG_BY_FAMILY, NLMSG_ERROR
REQUEST, ANY_STATE, NO_COOKIE = 1, 0xFFFFFFFF, 0xFFFFFFFF
ANSWER_SECONDS = 1.0  # the kernel answers at once
NO_FILES = (errno.EMFILE, errno.ENFILE)
# This file exists if WSL mirrors the network of Windows. Then programs of Windows reach the loopback addresses, and
# this kernel does not know their sockets.
MIRRORED = "/sys/class/net/loopback0"

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port id
_QUESTION = struct.Struct("=BBBxI")  # family, protocol, extensions, states
_PORTS = struct.Struct(">HH")  # the port of the socket, and the port at the other end
_REST = struct.Struct("=III")  # interface, and a cookie in two halves
_OWNER = struct.Struct("=II")  # user and inode
_OWNER_OFFSET = _HEADER.size + 4 + 48 + 12  # after the family and other bytes, the addresses, a timer and two queues


def is_another_users(peer: Address, own: Address) -> bool:
    """Whether the connection from `peer` to `own` was made by a program of another user, other than root."""
    if sys.platform != "linux" or not _is_loopback(str(own[0])):
        return False
    try:
        owner = _owner(peer, own)
        if owner is None:  # the peer has closed its socket, or the kernel does not report sockets at all
            return _owner(own, peer) is not None and not os.path.exists(MIRRORED)
    except (OSError, struct.error) as error:
        return (
            isinstance(error, OSError) and error.errno in NO_FILES
        )  # so that using up all handles does not disable this
    user, inode = owner
    # A socket that its program has closed is reported as root's, without an inode. Its owner is not known.
    return inode == 0 if user == ROOT else user != os.geteuid()


def _is_loopback(host: str) -> bool:
    """Whether this is a loopback address, so that connections to it come from this machine."""
    return host == "::1" or host.startswith("127.")


def _owner(local: Address, remote: Address) -> tuple[int, int] | None:
    """The user and the inode of the socket from `local` to `remote`; None if there is none. Raises OSError."""
    family = socket.AF_INET6 if ":" in str(local[0]) else socket.AF_INET
    addresses = b"".join(socket.inet_pton(family, str(each[0])).ljust(16, b"\0") for each in (local, remote))
    sockets = _PORTS.pack(local[1], remote[1]) + addresses + _REST.pack(0, NO_COOKIE, NO_COOKIE)
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, ANY_STATE) + sockets
    with socket.socket(NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(_HEADER.pack(_HEADER.size + len(question), BY_FAMILY, REQUEST, 1, 0) + question)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] == ERROR:
        return None
    user, inode = _OWNER.unpack_from(answer, _OWNER_OFFSET)
    return user, inode
