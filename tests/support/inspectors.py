"""The inspector of a proxy, as a program that has its URL sees it: MCP in both eras, health, and the events.

page = inspector_of(client)
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

URL = re.compile(r"http://localhost:(\d+)/\?token=([A-Za-z0-9_-]{32})")
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "page", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LAST_PORT = 65_535
HELLO = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}


class InspectorClient:
    def __init__(self, url: str) -> None:
        found = URL.fullmatch(url)
        assert found, url
        self.url = url
        self.port, self.token = int(found[1]), found[2]

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        return ask(self.port, method, f"{path}?token={self.token}", body, headers)

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
        return Listening(self.port, f"{path}?token={self.token}", headers)


class Listening:
    """A stream of server-sent events."""

    def __init__(
        self, port: int, path: str, headers: Mapping[str, str], method: str = "GET", body: bytes = b""
    ) -> None:
        lines = {"Host": f"localhost:{port}", "Accept": "text/event-stream", **headers}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.sendall(f"{head}\r\n".encode() + body)
        self._received = b""

    def wait(self, text: str) -> None:
        """Read until the text was received."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in self._received:
            assert time.monotonic() < deadline, self._received[-2000:]
            data = self._socket.recv(65536)
            assert data, f"the stream ended before {text!r}: {self._received[-2000:]!r}"
            self._received += data

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


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
    """A client of the inspector, once that is open."""
    report = client.wait_health(lambda report: report["proxy"]["inspector"], "one with an inspector")
    return InspectorClient(report["proxy"]["inspector"])
