"""A page of the inspector, as far as its events go: it reads them in a thread, over a real socket.

with Page.of(client) as page:
    page.hear("call", lambda call: call["state"] == "running")
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.proxies import PATIENCE, ProxyClient
from uno_devserver.protocol.http.sse import EventReader

Accept = Callable[[Any], object]


def inspector_of(client: ProxyClient) -> str:
    """The address of its page, as soon as there is one."""
    report = client.wait_health(lambda report: report["proxy"]["inspector"], "one that names its inspector")
    return str(report["proxy"]["inspector"])


class Page:
    def __init__(self, url: str, *, reads: bool = True) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._changed = threading.Condition()
        self._over = False
        self._reads = threading.Event()
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        if reads:
            self._reads.set()
        else:  # so that the kernel does not read for it
            self._connection.sock = socket.socket()
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self._connection.sock.connect(("127.0.0.1", parts.port))
        token = parse_qs(parts.query)["token"][0]
        self._connection.request("GET", "/events", headers={"Authorization": f"Bearer {token}"})
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, client: ProxyClient, **how: Any) -> Page:
        return cls(inspector_of(client), **how)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reads.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the proxy has closed it
        self._thread.join(PATIENCE)
        self._connection.close()

    def read(self) -> None:
        """From now on."""
        self._reads.set()

    def all(self, name: str) -> list[Any]:
        return [data for event, data in list(self.heard) if event == name]

    def hear(self, name: str, accept: Accept = lambda _: True, seconds: float = PATIENCE) -> Any:
        """The first event of that name that is as wanted, also one that came before."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or any(map(accept, self.all(name))), seconds)
            found = [data for data in self.all(name) if accept(data)]
        assert found, f"no such {name}; the last were {self.all(name)[-3:]}"
        return found[0]

    @property
    def snapshot(self) -> Any:
        return self.hear("snapshot")

    @property
    def calls(self) -> dict[int, Any]:
        """As they were told last."""
        return {call["id"]: call for call in self.all("call")}

    def line(self, text: str, source: str = "proxy") -> Any:
        """The first line of the log that holds this."""

        def found(lines: list[Any]) -> list[Any]:
            return [line for line in lines if text in line["text"] and line["source"] == source]

        return found(self.hear("log", found))[0]

    def _read(self) -> None:
        events = EventReader()
        try:
            while self._reads.wait() and (chunk := self._answer.read1(65536)):
                told = [(event.name, json.loads(event.data)) for event in events.feed(chunk)]
                with self._changed:
                    self.heard += told
                    self._changed.notify_all()
        except (OSError, http.client.HTTPException, ValueError):
            pass  # its end, however it comes
        with self._changed:
            self._over = True
            self._changed.notify_all()
