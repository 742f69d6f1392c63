"""The inspector of a proxy, as a program that has its token sees it: MCP in both eras, health, and the events.

page = inspector_of(client)                    # with the token of the status file
page = InspectorClient.opened(url)             # as a page does: with the key for which it exchanges the code of the URL
assert page.call("echo", text="you") == "you"
with page.listen("/events") as events:
    events.wait("snapshot")
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from support.bundled import BOTH, Reply, ask
from support.proxies import MODERN, NEWEST_HANDSHAKE, PATIENCE, ProxyClient
from support.waiting import wait_for
from uno_devserver.system.files import read_bytes

ADDRESS = re.compile(r"http://localhost:(\d+)/")
URL = re.compile(r"http://((?:[0-9a-f]{20}\.)?localhost):(\d+)/\?code=([A-Za-z0-9_-]{32})")
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "page", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LAST_PORT = 65_535
HELLO = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}


class InspectorClient:
    def __init__(self, port: int, token: str, host: str = "localhost") -> None:
        """`token`: that of the proxy, or the key of a page, which is good at its own host."""
        self.port, self.token, self.host = port, token, host

    @classmethod
    def opened(cls, url: str) -> InspectorClient:
        """As a browser opens the URL."""
        host, port, _ = _parts(url)
        return cls(port, exchange(url).json["key"], host)

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Host": f"{self.host}:{self.port}", "Authorization": f"Bearer {self.token}"}

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        return ask(self.port, method, path, body, {**self.bearer, **(headers or {})})

    def new_url(self) -> str:
        """A URL by which a browser opens the page, once."""
        made = self.ask("POST", "/code").json
        return f"http://{made['host']}:{self.port}/?code={made['code']}"

    def post(self, method: str, params: Mapping[str, Any], session: str = "", *, number: int | None = 1) -> Reply:
        """Send one message; without a session in the modern era, unless it opens one."""
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        if session:
            headers["Mcp-Session-Id"] = session
        elif method != "initialize":
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": params.get("name", "")}
            params = {**params, "_meta": META}
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
        return self.ask("POST", "/mcp", json.dumps(message).encode(), headers)

    def open_session(self) -> str:
        session = self.post("initialize", HELLO).headers["mcp-session-id"]
        self.post("notifications/initialized", {}, session, number=None)
        return session

    def call(self, tool: str, session: str = "", **arguments: Any) -> str:
        result = self.post("tools/call", {"name": tool, "arguments": arguments}, session).json["result"]
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    def listen(self, path: str, **headers: str) -> Listening:
        return Listening(self.port, path, {**self.bearer, **headers})


class Listening:
    """A stream of server-sent events."""

    def __init__(
        self, port: int, path: str, headers: Mapping[str, str], method: str = "GET", body: bytes = b""
    ) -> None:
        lines = {"Host": f"localhost:{port}", "Accept": "text/event-stream", **headers}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.sendall(f"{head}\r\n".encode() + body)
        self.received = b""

    def wait(self, text: str) -> None:
        """Read until the text was received."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in self.received:
            assert time.monotonic() < deadline, self.received[-2000:]
            data = self._socket.recv(65536)
            assert data, f"the stream ended before {text!r}: {self.received[-2000:]!r}"
            self.received += data

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


def exchange(url: str) -> Reply:
    """Exchange the code of the URL for the key of a page."""
    host, port, code = _parts(url)
    return ask(port, "POST", "/key", code.encode(), {"Host": f"{host}:{port}"})


def _parts(url: str) -> tuple[str, int, str]:
    found = URL.fullmatch(url)
    assert found, url
    return found[1], int(found[2]), found[3]


@contextmanager
def last_port_taken() -> Iterator[int]:
    """Occupy the highest port, behind which there is no other; one test at a time has it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", LAST_PORT))
                taken.listen()
            except OSError:
                assert time.monotonic() < deadline, f"port {LAST_PORT} does not become free"
                time.sleep(0.01)
                continue
            yield LAST_PORT
            return


def inspector_of(client: ProxyClient) -> InspectorClient:
    """A client of the inspector, once that is open; with the token, as `inspect` finds it."""
    path = client.state / "proxies" / f"{client.pid}.json"

    def opened() -> InspectorClient | None:
        status = json.loads(read_bytes(str(path))) if path.exists() else {}
        address = ADDRESS.fullmatch(str(status.get("inspector")))
        return InspectorClient(int(address[1]), status["inspectorToken"]) if address else None

    found: InspectorClient = wait_for(opened, "a status file with an inspector", PATIENCE)
    return found
