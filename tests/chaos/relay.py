"""The way between a proxy and a server at a URL, which can be slow, be cut, and garble what it carries."""

from __future__ import annotations

import socket
import threading
import time

from support.ports import lasting_port

CHUNK_BYTES = 65536
WAKE_SECONDS = 0.05
NOISE = bytes(range(256))
OTHER_STATUS = b"HTTP/1.1 999 Nobody Knows\r\nContent-Length: 5\r\n\r\nnoise"


class Relay:
    """From a port of its own to `port`, both on this machine."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.slow_until = 0.0
        self.garble = ""  # how the next answer is spoiled
        self._cuts = 0
        self.port = lasting_port()
        self._listener = _listen(self.port)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections, and accept none until `restore` was called as often as this."""
        self._cuts += 1
        _shut(self._listener)  # else it would listen as long as a thread waits in accept()
        self._listener.close()
        with self._lock:
            ends = list(self._open)
        for end in ends:
            _shut(end)

    def restore(self) -> None:
        self._cuts -= 1
        if self._cuts:
            return
        self._listener = _listen(self.port)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self.cut()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # it was closed
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                _shut(client)
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for ends in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(CHUNK_BYTES):
                while time.monotonic() < self.slow_until and not self._closed.is_set():
                    time.sleep(WAKE_SECONDS)
                garble = self.garble if answers else ""
                if garble:
                    self.garble = ""
                    data = _garbled(data, garble)
                target.sendall(data)
                if garble == "half and a cut":
                    break
        except OSError:
            pass  # one of the two has gone
        finally:
            for end in (source, target):
                _shut(end)
            with self._lock:
                self._open -= {source, target}


def _garbled(data: bytes, manner: str) -> bytes:
    """Never an answer that looks well: a proxy could not know that it is wrong. Nor fewer bytes, unless the way is cut:
    a proxy would rightly wait for the rest, for minutes."""
    if manner == "noise before":
        return NOISE + data
    if manner == "half and a cut":
        return data[: len(data) // 2]
    if manner == "noise instead":
        return NOISE * (1 + len(data) // len(NOISE))
    return OTHER_STATUS.ljust(len(data), b"x")


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    return listener


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it was
