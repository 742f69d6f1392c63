"""An MCP server over HTTP, as `python over_http.py <port> [<url> <issuer>]`. ORDERS are what it can do wrong itself.

At /mcp it speaks Streamable HTTP, at /sse the older HTTP+SSE. With the URL by which it is known and the authorization
server that it trusts, it wants tokens of that. What happens on the way (cuts, delays, noise) is the relay's business.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from chaos.upstreams.tools import (
    FLOOD_MESSAGES,
    HUGE_CHARACTERS,
    hello,
    in_its_era,
    notification,
    run,
    said,
    take_order,
    valid_tokens,
)

DELAY_SECONDS = 3.0


RESOURCE_METADATA = "/.well-known/oauth-protected-resource/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, _, session = self.path.partition("?")
        if path == "/mcp" and not self._is_allowed():
            where = f"{SIGN_IN[0].removesuffix('/mcp')}{RESOURCE_METADATA}"
            self._send(b"", 401, authenticate=f'Bearer resource_metadata="{where}"')
        elif path == "/messages":
            self._take(session, message)
        elif path != "/mcp":
            self._send(b"", 405)
        elif "id" not in message or "method" not in message:
            self._send(b"", 202)
        else:
            order, answer = answer_to(message)
            ORDERS.get(order or "", Handler.well)(self, answer)

    def do_GET(self) -> None:
        if self.path == "/sse":
            self._stream()
        elif self.path == RESOURCE_METADATA and SIGN_IN:
            url, issuer = SIGN_IN
            self._send(json.dumps({"resource": url, "authorization_servers": [issuer]}).encode())
        else:
            self._send(b"", 405)

    def do_DELETE(self) -> None:
        self._send(b"", 405)

    def _is_allowed(self) -> bool:
        return not SIGN_IN or self.headers.get("Authorization", "").removeprefix("Bearer ") in valid_tokens()

    def _stream(self) -> None:
        """The stream of a session, until its client goes, or an order ends it."""
        session = f"{next(numbers)}"
        sessions[session] = events = SimpleQueue[bytes]()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        event = b"event: endpoint\ndata: /messages?%s\n\n" % session.encode()
        try:
            while event:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                event = events.get()
        finally:
            del sessions[session]
            self.close_connection = True

    def _take(self, session: str, message: dict[str, Any]) -> None:
        events = sessions.get(session)
        self._send(b"", 404 if events is None else 202)
        if events is not None and "id" in message and "method" in message:
            threading.Thread(target=_say, args=(events, message), daemon=True).start()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the library's)
        """Write no log."""

    def well(self, answer: dict[str, Any]) -> None:
        self._send(json.dumps(answer).encode())

    def flood(self, answer: dict[str, Any]) -> None:
        self._events([*map(notification, range(FLOOD_MESSAGES)), answer])

    def duplicate(self, answer: dict[str, Any]) -> None:
        self._events([answer, answer])

    def unknown_ids(self, answer: dict[str, Any]) -> None:
        self._events([{**answer, "id": "nobody"}, {**answer, "id": 987654321}, answer])

    def bad_json(self, answer: dict[str, Any]) -> None:
        self._send(json.dumps(answer).encode()[:-2])

    def binary(self, answer: dict[str, Any]) -> None:
        self._send(bytes(range(256)))

    def wrong_version(self, answer: dict[str, Any]) -> None:
        self._send(json.dumps({**answer, "jsonrpc": "1.0"}).encode())

    def failure(self, answer: dict[str, Any]) -> None:
        self._send(b"it went wrong", 500, "text/plain")

    def half(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self._head(200, "application/json", len(body))
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    def delay(self, answer: dict[str, Any]) -> None:
        time.sleep(DELAY_SECONDS)
        self.well(answer)

    def _events(self, messages: list[dict[str, Any]]) -> None:
        body = b"".join(b"data: " + json.dumps(message).encode() + b"\n\n" for message in messages)
        self._send(body, content_type="text/event-stream")

    def _send(
        self, body: bytes, status: int = 200, content_type: str = "application/json", authenticate: str = ""
    ) -> None:
        self._head(status, content_type, len(body), authenticate)
        self.wfile.write(body)

    def _head(self, status: int, content_type: str, length: int, authenticate: str = "") -> None:
        self.send_response(status)
        if authenticate:
            self.send_header("WWW-Authenticate", authenticate)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(length))
        self.end_headers()


ORDERS = {
    "flood of notifications": Handler.flood,
    "duplicate answer": Handler.duplicate,
    "unknown ids": Handler.unknown_ids,
    "bad json": Handler.bad_json,
    "binary": Handler.binary,
    "wrong version": Handler.wrong_version,
    "failure": Handler.failure,
    "half answer": Handler.half,
    "delay": Handler.delay,
}


def answer_to(message: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The answer to a request, and the order to misbehave with it."""
    params, order = message.get("params") or {}, None
    if message["method"] == "tools/call":
        text = run(params["name"], params.get("arguments") or {})
        order = take_order()
        result: dict[str, Any] | None = said(text + " " + "x" * HUGE_CHARACTERS if order == "huge answer" else text)
    else:
        result = hello(message["method"], params)
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        return order, {**answer, "error": {"code": -32601, "message": "no such method"}}
    return order, {**answer, "result": in_its_era(params, result)}


# --- the older transport: what a stream can have besides an answer, as the data of events; nothing ends it


def _say(events: SimpleQueue[bytes], message: dict[str, Any]) -> None:
    order, answer = answer_to(message)
    if order == "delay":
        time.sleep(DELAY_SECONDS)
    for data in BESIDE.get(order or "", _alone)(answer):
        events.put(b"data: %b\n\n" % data if data else data)


def _alone(answer: dict[str, Any]) -> list[bytes]:
    return [json.dumps(answer).encode()]


BESIDE: dict[str, Callable[[dict[str, Any]], list[bytes]]] = {
    "flood of notifications": lambda answer: [
        *(json.dumps(notification(number)).encode() for number in range(FLOOD_MESSAGES)),
        *_alone(answer),
    ],
    "duplicate answer": lambda answer: _alone(answer) * 2,
    "unknown ids": lambda answer: [*_alone({**answer, "id": "nobody"}), *_alone(answer)],
    "bad json": lambda answer: [b"nonsense", b"[1, 2]", *_alone(answer)],
    "binary": lambda answer: [bytes(range(128, 256)), *_alone(answer)],
    "wrong version": lambda answer: [*_alone({**answer, "jsonrpc": "1.0"}), *_alone(answer)],
    "half line and death": lambda answer: [_alone(answer)[0][:20], b""],
}
numbers = itertools.count(1)
sessions: dict[str, SimpleQueue[bytes]] = {}
SIGN_IN = sys.argv[2:4] if __name__ == "__main__" else []


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client hung up: that is what this is about."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    server.serve_forever()
