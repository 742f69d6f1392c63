"""A small HTTP proxy on loopback, as companies have them: it connects to names that only it knows."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

WAIT_SECONDS = 20


class LoopbackProxy:
    """`with LoopbackProxy({"server.test": 8000}) as proxy:`; every name leads to a port of this machine."""

    def __init__(self, ports: Mapping[str, int], authorization: str | None = None) -> None:
        """`authorization`: the value of Proxy-Authorization that it wants."""
        self.asked: list[str] = []  # the first line of each request
        self._ports = ports
        self._authorization = authorization
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            sockets = [self._listener, *self._sockets]
        for each in sockets:
            _shut(each)

    def _accept(self) -> None:
        while True:
            try:
                visitor, _ = self._listener.accept()
            except OSError:
                return  # it is closed
            threading.Thread(target=self._serve, args=(visitor,), daemon=True).start()

    def _keep(self, each: socket.socket) -> None:
        with self._lock:
            self._sockets.append(each)

    def _serve(self, visitor: socket.socket) -> None:
        self._keep(visitor)
        try:
            head, rest = _head(visitor)
            line, *fields = head.split("\r\n")
            method, target, version = line.split(" ")
            self.asked.append(line)
            given = [field.partition(": ")[2] for field in fields if field.lower().startswith("proxy-authorization:")]
            if self._authorization is not None and given != [self._authorization]:
                visitor.sendall(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            authority = target if method == "CONNECT" else target.partition("://")[2].partition("/")[0]
            port = self._ports.get(authority.partition(":")[0])
            if port is None:
                visitor.sendall(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            server = socket.create_connection(("127.0.0.1", port), WAIT_SECONDS)
            self._keep(server)
            if method == "CONNECT":
                visitor.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:  # one request per connection, which is all that a test needs
                path = "/" + target.partition("://")[2].partition("/")[2]
                kept = [field for field in fields if not field.lower().startswith(("proxy-", "connection:"))]
                server.sendall("\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode())
            server.sendall(rest)
            back = threading.Thread(target=_copy, args=(server, visitor), daemon=True)
            back.start()
            _copy(visitor, server)
            back.join(WAIT_SECONDS)
        except (OSError, ValueError):
            pass  # one of them has hung up
        finally:
            _shut(visitor)


def _head(visitor: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = visitor.recv(65536)
        if not more:
            raise OSError("it hung up")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        _shut(sink)


def _shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()
