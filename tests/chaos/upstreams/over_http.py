"""An MCP server over Streamable HTTP, as `python over_http.py <port>`. ORDERS are all that it can do wrong itself.

What happens on the way (cuts, delays, noise) is the relay's business.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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
)

DELAY_SECONDS = 3.0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message or "method" not in message:
            self._send(b"", 202)
            return
        params = message.get("params") or {}
        order = None
        if message["method"] == "tools/call":
            text = run(params["name"], params.get("arguments") or {})
            order = take_order()
            result: dict[str, Any] | None = said(text + " " + "x" * HUGE_CHARACTERS if order == "huge answer" else text)
        else:
            result = hello(message["method"], params)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = in_its_era(params, result)
        ORDERS.get(order or "", Handler.well)(self, answer)

    def do_GET(self) -> None:
        self._send(b"", 405)

    def do_DELETE(self) -> None:
        self._send(b"", 405)

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

    def _send(self, body: bytes, status: int = 200, content_type: str = "application/json") -> None:
        self._head(status, content_type, len(body))
        self.wfile.write(body)

    def _head(self, status: int, content_type: str, length: int) -> None:
        self.send_response(status)
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


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client hung up: that is what this is about."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    server.serve_forever()
