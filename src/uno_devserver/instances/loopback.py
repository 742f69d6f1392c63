"""Short questions to a server of this machine, over all its loopback addresses at once.

A Host may listen on IPv4, on IPv6 or on both, and `localhost` may mean either; the first address that answers counts.
Only the status of the answer is read. A question takes as long as it is given and no longer, whatever is there.
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Address = tuple[int, str]

LITERALS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
CHECK_SECONDS = 0.02  # how long the end of a question's reason can go unnoticed
STATUS_BYTES = 256  # a status line is some 25 bytes; who sends more without an end is no HTTP server
UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN)


class Loopback:
    """The addresses that mean this machine. What `localhost` means is looked up aside: a resolver may take seconds."""

    def __init__(self) -> None:
        self._addresses: list[Address] = list(LITERALS)
        threading.Thread(target=self._look_up, daemon=True).start()

    def ask(
        self, method: str, port: int, path: str, seconds: float, *, abandon: Callable[[], bool] = lambda: False
    ) -> int | None:
        """The HTTP status of the first answer; None when none came in time, or the question was abandoned."""
        request = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        questions = [_Question(family, host, port, request.encode("ascii")) for family, host in self._addresses]
        deadline = time.monotonic() + seconds
        try:
            with selectors.DefaultSelector() as selector:
                for question in questions:
                    if question.socket is not None:
                        selector.register(question.socket, selectors.EVENT_WRITE, question)
                return _first_answer(selector, deadline, abandon)
        finally:
            for question in questions:
                question.close()

    def _look_up(self) -> None:
        try:
            found = socket.getaddrinfo(b"localhost", None, type=socket.SOCK_STREAM)  # text would import idna, 5 ms
        except OSError:
            return
        for family, _, _, _, address in found:
            known = (family, str(address[0]))
            if family in (socket.AF_INET, socket.AF_INET6) and known not in self._addresses:
                self._addresses.append(known)


def _first_answer(selector: selectors.BaseSelector, deadline: float, abandon: Callable[[], bool]) -> int | None:
    while selector.get_map() and (left := deadline - time.monotonic()) > 0 and not abandon():
        for key, _ in selector.select(min(left, CHECK_SECONDS)):
            question: _Question = key.data
            if question.proceed():
                selector.modify(key.fileobj, selectors.EVENT_READ if question.sent else selectors.EVENT_WRITE, question)
            elif question.status is not None:
                return question.status
            else:
                selector.unregister(key.fileobj)
    return None


class _Question:
    """One connection: connect, send, read the status line, each when the socket is ready for it."""

    def __init__(self, family: int, host: str, port: int, request: bytes) -> None:
        self._request = request
        self._received = b""
        self.socket = _connecting(family, (host, port))
        self.sent = False
        self.status: int | None = None

    def proceed(self) -> bool:
        """Do the next step; whether there is more to do."""
        assert self.socket
        try:
            if not self.sent:
                self._request = self._request[self.socket.send(self._request) :]
                self.sent = not self._request
                return True
            chunk = self.socket.recv(STATUS_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # refused, reset
            return False
        self._received += chunk
        self.status = _status(self._received)
        return self.status is None and bool(chunk) and len(self._received) < STATUS_BYTES

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()


def _connecting(family: int, address: tuple[Any, ...]) -> socket.socket | None:
    """A socket that is about to be connected; None where that was refused at once, or there is no such family."""
    try:
        connection = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    connection.setblocking(False)
    if connection.connect_ex(address) in UNDER_WAY:
        return connection
    connection.close()
    return None


def _status(received: bytes) -> int | None:
    line, end, _ = received.partition(b"\r\n")
    words = line.split(b" ")
    if not end or not words[0].startswith(b"HTTP/") or len(words) < 2 or len(words[1]) != 3 or not words[1].isdigit():
        return None
    return int(words[1])
