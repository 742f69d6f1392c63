"""One exchange over HTTP/1.1 with a port of this machine: a request, and the whole answer; bounded in time and size.

`http.client` takes 50 ms to import, as long as the rest of a command; what asking a Host takes of HTTP fits here. Each
exchange has a connection of its own. Whatever the other side does, `ask` returns an answer or raises `NoAnswer`.
"""

from __future__ import annotations

import time

from ..system.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

MAX_PORT = 65535
MAX_BYTES = 4 * 1024 * 1024  # a list of a hundred tools has some hundred KB
REFUSED = "refuses connections"
_SILENT = "gave no answer in time"
_FOREIGN = "speaks something else than HTTP"
_CHUNK = 64 * 1024
_BODILESS = (204, 304)


class NoAnswer(Exception):
    """Why there is no answer, as the end of a sentence whose subject is the port."""


class Answer(Value):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


def ask(
    address: str,
    port: int,
    method: str,
    path: str,
    *,
    deadline: float,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    enough: Callable[[bytes], bool] | None = None,
) -> Answer:
    """Send one request; `deadline` is a time of `time.monotonic()`.

    A body for which `enough` holds counts as whole: an event stream may stay open after the event that matters.
    """
    import socket

    if not 0 < port <= MAX_PORT:  # the resolver would take it modulo 65536, and a stranger would be asked
        raise NoAnswer("is no port")
    host = f"[{address}]" if ":" in address else address
    fields = {"Host": f"{host}:{port}", "Connection": "close", **(headers or {})}
    if body:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    try:
        place = (address.encode("ascii"), port)  # text would import idna, 5 ms
        with socket.create_connection(place, _left(deadline)) as connection:  # type: ignore[arg-type]
            connection.sendall("\r\n".join(lines).encode("latin-1") + body)
            return _receive(connection, deadline, enough)
    except TimeoutError as error:
        raise NoAnswer(_SILENT) from error
    except ConnectionRefusedError as error:
        raise NoAnswer(REFUSED) from error
    except OSError as error:
        raise NoAnswer(f"cannot be reached: {error}") from error


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise NoAnswer(_SILENT)
    return left


def _receive(connection: socket.socket, deadline: float, enough: Callable[[bytes], bool] | None) -> Answer:
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
                return Answer(status, headers, body)
        if not chunk:
            raise NoAnswer("broke off in the middle of its answer" if received else "hung up without an answer")
        if len(received) > MAX_BYTES:
            raise NoAnswer(f"answered with more than {MAX_BYTES // 1024 // 1024} MB")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    protocol, _, rest = first.partition(" ")
    if not protocol.startswith("HTTP/1.") or not rest[:3].isascii() or not rest[:3].isdigit():
        raise NoAnswer(_FOREIGN)
    fields = (line.partition(":") for line in lines)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in fields}


def _body(headers: Mapping[str, str], received: bytes, *, ended: bool) -> tuple[bytes, bool]:
    """The body as far as it is known, and whether it is whole."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _joined(received)
    length = headers.get("content-length")
    if length is None:
        return received, ended
    if not length.isascii() or not length.isdigit():
        raise NoAnswer(_FOREIGN)
    size = int(length[:10])  # ten digits are more than would be accepted anyway
    return received[:size], len(received) >= size


def _joined(chunks: bytes) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    position = 0
    while (end := chunks.find(b"\r\n", position)) >= 0:
        try:
            size = int(chunks[position:end].partition(b";")[0], 16)
        except ValueError as error:
            raise NoAnswer(_FOREIGN) from error
        if size <= 0:
            return b"".join(pieces), True
        pieces.append(chunks[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
    return b"".join(pieces), False
