"""An authorization server, as `python authorization.py <port>`: everybody may sign in, and no page has a form.

As careful ones do, it takes the second use of a refresh token for a theft, and ends the sign-in. It is told what to do
wrong by a file in the world's folder: `refuse` (503 to whoever wants a token).
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from chaos.upstreams.tools import folder, read_sign_ins, write_sign_ins

TOKEN_SECONDS = 90  # a renewal takes a second, and half a minute on a machine that is very busy
REFUSE = "refuse"

_changing = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        here, parts = f"http://127.0.0.1:{sys.argv[1]}", urlsplit(self.path)
        if parts.path == "/.well-known/oauth-authorization-server":
            metadata: dict[str, Any] = {"issuer": here, "authorization_endpoint": f"{here}/authorize"}
            metadata |= {f"{name}_endpoint": f"{here}/{name}" for name in ("token", "registration")}
            metadata |= {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
            self._send(200, metadata)
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer = urlencode({"code": "code", "state": asked["state"]})
            self._send(302, {}, f"{asked['redirect_uri']}?{answer}")
        elif parts.path in CHANGES:
            with _changing:
                state = read_sign_ins()
                CHANGES[parts.path](state)
                write_sign_ins(state)
            self._send(200, {})
        else:
            self._send(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/registration":
            self._send(201, {**json.loads(body), "client_id": "one"})
        elif os.path.exists(os.path.join(folder(), REFUSE)):
            self._send(503, {})
        else:
            self._send(*token({name: values[0] for name, values in parse_qs(body.decode()).items()}))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the library's)
        """Write no log."""

    def _send(self, status: int, answer: dict[str, Any], location: str = "") -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def token(asked: dict[str, str]) -> tuple[int, dict[str, Any]]:
    with _changing:
        state = read_sign_ins()
        if asked["grant_type"] == "authorization_code":
            sign_in = secrets.token_hex(4)
        else:
            given = asked["refresh_token"]
            sign_in = next((name for name, current in state["refresh"].items() if current == given), "")
            if not sign_in:
                state["refresh"].pop(state["used"].get(given, ""), None)
                write_sign_ins(state)
                return 400, {"error": "invalid_grant"}
            state["used"][given] = sign_in
        access, refresh = (f"{kind}-{secrets.token_hex(8)}" for kind in ("access", "refresh"))
        state["access"][access], state["refresh"][sign_in] = time.time() + TOKEN_SECONDS, refresh
        write_sign_ins(state)
    return 200, {"access_token": access, "token_type": "Bearer", "expires_in": TOKEN_SECONDS, "refresh_token": refresh}


def expire(state: dict[str, Any]) -> None:
    state["access"].clear()


def revoke(state: dict[str, Any]) -> None:
    state["access"].clear()
    state["refresh"].clear()


CHANGES = {"/expire": expire, "/revoke": revoke}  # that the world asks for


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client hung up."""


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
