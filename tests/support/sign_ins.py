"""A real authorization server, MCP servers that it protects, and a browser that signs in on its pages.

with AuthorizationServer() as authorization:
    url = authorization.protected_server()
    signed_in = login(machine, url)
"""

from __future__ import annotations

import html
import json
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urljoin

import httpx2

from support.machine import COMMAND, RUN_SECONDS, Machine
from support.npm import NODE, installed

HERE = Path(__file__).parent / "authorization"
START_SECONDS = 60.0
TOKEN = "good"  # which opens every page of a `Site`
HOPS = 20  # more than a sign-in has pages and redirects


class Site:
    """A server whose answers a test writes: by path, a status, headers and a JSON value or bytes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: dict[str, tuple[int, dict[str, str], object]] = {}
        self.asked: list[str] = []

    def names_authorization(self, **metadata: object) -> None:
        """Ask for a sign-in with this server itself, whose metadata are usual but for `metadata`."""
        here = self.address
        self.answers["/mcp"] = (401, {"WWW-Authenticate": "Bearer"}, {})
        self.answers["/.well-known/oauth-protected-resource/mcp"] = (
            200,
            {},
            {"resource": f"{here}/mcp", "authorization_servers": [here]},
        )
        usual = {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "registration_endpoint": f"{here}/register",
            "response_types_supported": ["code"],
        }
        self.answers["/.well-known/oauth-authorization-server"] = (200, {}, {**usual, **metadata})
        self.answers["/register"] = (201, {}, {"client_id": "one"})


@contextmanager
def served(certificate: Path | None = None) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            found.asked.append(f"{self.command} {path} {body.decode()}")
            status, headers, value = found.answers.get(path, (404, {}, {}))
            if self.headers.get("Authorization") == f"Bearer {TOKEN}":
                status, headers, value = 200, {}, {}
            answer = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    found = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(RUN_SECONDS)


class AuthorizationServer:
    """oidc-provider in a process, and the MCP servers that trust it. All end with the block."""

    def __init__(self, access_token_seconds: int = 3600, clients: Sequence[dict[str, Any]] = ()) -> None:
        settings = json.dumps({"accessTokenSeconds": access_token_seconds, "clients": list(clients)})
        self._processes: list[subprocess.Popen[str]] = []
        modules = installed(HERE) / "node_modules"
        self.issuer = f"http://127.0.0.1:{self._start([str(NODE), str(HERE / 'provider.mjs'), str(modules), settings])}"

    def __enter__(self) -> AuthorizationServer:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait(RUN_SECONDS)
            assert process.stdin
            assert process.stdout
            process.stdin.close()
            process.stdout.close()

    def protected_server(self, audience: str = "", scopes: str = "mcp:tools") -> str:
        """Start an MCP server that takes tokens of this authorization server; its URL."""
        script = str(HERE / "protected_server.py")
        return f"http://127.0.0.1:{self._start([sys.executable, script, self.issuer, audience, scopes])}/mcp"

    def token_requests(self) -> int:
        count: int = httpx2.get(f"{self.issuer}/test/counts").json()["tokenRequests"]
        return count

    def refuse_token_requests(self, number: int) -> None:
        """Answer the next token requests with 503."""
        httpx2.get(f"{self.issuer}/test/refuse/{number}").raise_for_status()

    def is_active(self, token: str) -> bool:
        answer = httpx2.post(
            f"{self.issuer}/token/introspection",
            data={"token": token},
            auth=("resource-server", "resource-server-secret"),
        )
        active: bool = answer.json()["active"]
        return active

    def revoke(self, record: dict[str, Any]) -> None:
        """Revoke the refresh token of a stored sign-in, and with it everything that it was granted."""
        client = record["client"]
        httpx2.post(
            f"{self.issuer}/token/revocation",
            data={"token": record["tokens"]["refresh_token"]},
            auth=(client["client_id"], client["client_secret"]),
        ).raise_for_status()

    def _start(self, command: list[str]) -> int:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._processes.append(process)
        timer = threading.Timer(START_SECONDS, process.kill)
        timer.start()
        assert process.stdout
        line = process.stdout.readline()
        timer.cancel()
        assert line, f"{command[1]} did not start"
        return int(line)


class Login:
    """`uno-devserver login --no-open <url>` in a process, up to the page on which the user signs in."""

    def __init__(self, machine: Machine, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [COMMAND, "login", "--no-open", "--json", *arguments],
            env=machine.variables(),
            cwd=machine.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._pages: Queue[str] = Queue()
        self._stderr: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def page(self) -> str:
        """The address that is printed for the user."""
        page = self._pages.get(timeout=RUN_SECONDS)
        assert page, f"no page to sign in on: {self.result()}"
        return page

    def result(self) -> dict[str, Any]:
        """What it prints at its end."""
        assert self._process.stdout
        timer = threading.Timer(RUN_SECONDS, self._process.kill)
        timer.start()
        output = self._process.stdout.read()
        self._process.wait(RUN_SECONDS)
        timer.cancel()
        self._reader.join(RUN_SECONDS)
        self._process.stdout.close()
        result: dict[str, Any] = json.loads(output)
        return result

    @property
    def stderr(self) -> str:
        return "".join(self._stderr)

    def _read(self) -> None:
        assert self._process.stderr
        with self._process.stderr as stream:
            for line in stream:
                self._stderr.append(line)
                if line.startswith("http"):
                    self._pages.put(line.strip())
        self._pages.put("")  # it has ended


def login(machine: Machine, *arguments: str) -> dict[str, Any]:
    """Sign in as a user does; what the command prints."""
    running = Login(machine, *arguments)
    browse(running.page())
    return running.result()


def stored(result: dict[str, Any]) -> dict[str, Any]:
    """The file that a sign-in has left."""
    record: dict[str, Any] = json.loads(Path(result["file"]).read_text("utf-8"))
    return record


def browse(page: str) -> httpx2.Response:
    """Follow redirects, and fill in and send each form, until a page has none; that page."""
    with httpx2.Client(timeout=RUN_SECONDS) as browser:
        response = browser.get(page)
        for _ in range(HOPS):
            if response.is_redirect:
                response = browser.get(urljoin(str(response.url), response.headers["location"]))
            elif (
                form := re.search(r"<form[^>]*action=\"([^\"]+)\"[^>]*>(.*?)</form>", response.text, re.DOTALL)
            ) is not None:
                action = urljoin(str(response.url), html.unescape(form[1]))
                response = browser.post(action, data=_filled_in(form[2]))
            else:
                return response
    raise AssertionError(f"the sign-in has no end: {response.url}")


def _filled_in(form: str) -> dict[str, str]:
    """The values of a form, as a user would send it."""
    values: dict[str, str] = {}
    for field in re.findall(r"<input[^>]*>", form):
        name, value = (re.search(rf'{key}="([^"]*)"', field) for key in ("name", "value"))
        if name is not None:
            values[name[1]] = html.unescape(value[1]) if value is not None else "somebody"
    return values
