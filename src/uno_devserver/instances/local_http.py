"""HTTP/1.1 requests to servers of this machine: a status from any loopback address, or a whole answer from one.

A Host may listen on IPv4, on IPv6 or on both, and `localhost` may mean either; `Loopback.ask` takes the first answer.
Every request is bounded in time. Nothing is sent to a program of another user, who may have taken the port of a server
that has ended: where the kernel reports owners of sockets, it is asked once a connection is open. Modules that take
long to import are imported inside the functions.

Hand-written, because importing `http.client` takes as long as a bare interpreter start, and it tries one address after
the other.
"""

from __future__ import annotations

import time

from ..system.ports import LOOPBACK, MAX_PORT
from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    import socket
    from collections.abc import Callable, Mapping

CHECK_SECONDS = 0.02  # the time between two calls of `abandon`
STATUS_BYTES = 256  # a status line has about 25 bytes; a server that sends more without a line end does not speak HTTP
MAX_ANSWER_BYTES = 4 * 1024 * 1024  # a list of a hundred tools has a few hundred KB
REFUSED = "refuses connections"
OTHERS = "belongs to a program of another user"
_SILENT = "gave no answer in time"
_FOREIGN = "speaks something else than HTTP"
_CHUNK = 64 * 1024
_BODILESS = (204, 304)


class Loopback:
    """The loopback addresses, including those of `localhost`, which a thread looks up because that may take seconds."""

    def __init__(self) -> None:
        import threading

        self._addresses = list(LOOPBACK)
        threading.Thread(target=self._look_up, daemon=True).start()

    def ask(
        self, method: str, port: int, path: str, seconds: float, *, abandon: Callable[[], bool] = lambda: False
    ) -> int | None:
        """The HTTP status of the first answer; None if none came in time, or `abandon` returned True."""
        import selectors

        request = _request("localhost", port, method, path, {"Content-Length": "0"})
        questions = [_Question(host, port, request) for host in self._addresses]
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
        import socket

        try:
            found = socket.getaddrinfo(b"localhost", None, type=socket.SOCK_STREAM)  # a str would import idna (5 ms)
        except OSError:
            return
        for family, _, _, _, address in found:
            host = str(address[0])
            if family in (socket.AF_INET, socket.AF_INET6) and host not in self._addresses:
                self._addresses.append(host)


def _first_answer(selector: selectors.BaseSelector, deadline: float, abandon: Callable[[], bool]) -> int | None:
    import selectors

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
    """One connection: connects, sends, and reads the status line, each when the socket is ready for it."""

    def __init__(self, host: str, port: int, request: bytes) -> None:
        self._request = request
        self._received = b""
        self._checked = False  # whether the server is this user's
        self.socket = _connecting(host, port)
        self.sent = False
        self.status: int | None = None

    def proceed(self) -> bool:
        """Do the next step, and return whether there are more."""
        from ..system.tcp_peers import is_another_users_server

        assert self.socket
        try:
            if not self._checked and is_another_users_server(self.socket):
                return False
            self._checked = True
            if not self.sent:
                self._request = self._request[self.socket.send(self._request) :]
                self.sent = not self._request
                return True
            chunk = self.socket.recv(STATUS_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # the connection was refused or reset
            return False
        self._received += chunk
        self.status = _status(self._received)
        return self.status is None and bool(chunk) and len(self._received) < STATUS_BYTES

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()


def _connecting(host: str, port: int) -> socket.socket | None:
    """A socket that is connecting; None if that was refused at once, or the machine lacks the address family."""
    import errno
    import socket

    try:
        connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return None
    connection.setblocking(False)
    if connection.connect_ex((host, port)) in (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN):
        return connection
    connection.close()
    return None


def _status(received: bytes) -> int | None:
    line, end, _ = received.partition(b"\r\n")
    words = line.split(b" ")
    if not end or not words[0].startswith(b"HTTP/") or len(words) < 2 or len(words[1]) != 3 or not words[1].isdigit():
        return None
    return int(words[1])


class NoHttpAnswer(Exception):
    """There is no answer; the message is the end of a sentence whose subject is the port."""


class HttpAnswer(Value):
    status: int
    headers: Mapping[str, str]  # the names are in lower case
    body: bytes


def http_request(
    address: str,
    port: int,
    method: str,
    path: str,
    *,
    deadline: float,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    enough: Callable[[bytes], bool] | None = None,
) -> HttpAnswer:
    """Send one request and return the answer; `deadline` is a time of `time.monotonic()`.

    Reading stops when `enough` returns True for the body: an event stream may stay open after the event that matters.
    """
    import socket

    from ..system.tcp_peers import is_another_users_server

    if not 0 < port <= MAX_PORT:  # the resolver would use it modulo 65536, and so reach another program
        raise NoHttpAnswer("is no port")
    length = {"Content-Length": str(len(body))} if body else {}
    request = _request(address, port, method, path, {**(headers or {}), **length})
    try:
        place = (address.encode("ascii"), port)  # a str would import idna, which takes 5 ms
        with socket.create_connection(place, _left(deadline)) as connection:  # type: ignore[arg-type]
            if is_another_users_server(connection):
                raise NoHttpAnswer(OTHERS)
            connection.sendall(request + body)
            return _receive(connection, deadline, enough)
    except TimeoutError as error:
        raise NoHttpAnswer(_SILENT) from error
    except ConnectionRefusedError as error:
        raise NoHttpAnswer(REFUSED) from error
    except OSError as error:
        raise NoHttpAnswer(f"cannot be reached: {error}") from error


def _request(address: str, port: int, method: str, path: str, headers: Mapping[str, str]) -> bytes:
    host = f"[{address}]" if ":" in address else address
    fields = {"Host": f"{host}:{port}", "Connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise NoHttpAnswer(_SILENT)
    return left


def _receive(connection: socket.socket, deadline: float, enough: Callable[[bytes], bool] | None) -> HttpAnswer:
    received = bytearray()
    while True:
        connection.settimeout(_left(deadline))
        chunk = connection.recv(_CHUNK)
        received += chunk
        head, blank_line, rest = bytes(received).partition(b"\r\n\r\n")
        if blank_line:
            status, headers = _head(head)
            body, whole = _body(headers, rest, ended=not chunk)
            if whole or status in _BODILESS or (enough and enough(body)):
                return HttpAnswer(status, headers, body)
        if not chunk:
            raise NoHttpAnswer("broke off in the middle of its answer" if received else "hung up without an answer")
        if len(received) > MAX_ANSWER_BYTES:
            raise NoHttpAnswer(f"answered with more than {MAX_ANSWER_BYTES // 1024 // 1024} MB")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    protocol, _, rest = first.partition(" ")
    if not protocol.startswith("HTTP/1.") or not rest[:3].isascii() or not rest[:3].isdigit():
        raise NoHttpAnswer(_FOREIGN)
    fields = (line.partition(":") for line in lines)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in fields}


def _body(headers: Mapping[str, str], received: bytes, *, ended: bool) -> tuple[bytes, bool]:
    """The body as far as it was received, and whether it is complete."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _joined(received)
    length = headers.get("content-length")
    if length is None:
        return received, ended
    if not length.isascii() or not length.isdigit():
        raise NoHttpAnswer(_FOREIGN)
    size = int(length[:10])  # ten digits are already more than MAX_ANSWER_BYTES
    return received[:size], len(received) >= size


def _joined(chunks: bytes) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    position = 0
    while (end := chunks.find(b"\r\n", position)) >= 0:
        try:
            size = int(chunks[position:end].partition(b";")[0], 16)
        except ValueError as error:
            raise NoHttpAnswer(_FOREIGN) from error
        if size <= 0:
            return b"".join(pieces), True
        pieces.append(chunks[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
    return b"".join(pieces), False
