"""The bundled Host as a real process, on a machine of its own, and a small HTTP client to talk to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from support.machine import SLOWNESS, home_variables
from support.waiting import wait_for

PATIENCE = 60.0 * SLOWNESS  # seconds for what takes milliseconds on an idle machine
HOST = [sys.executable, "-P", "-m", "uno_devserver.host"]
BOTH = "application/json, text/event-stream"
KEPT_AWAY = ("UNO_DEVSERVER_", "PYTHONUNBUFFERED")  # flags of a Host, and what would hide a line that is not flushed


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, or the last message of an event stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            data = [line[5:] for line in self.body.decode().splitlines() if line.startswith("data:")]
            return json.loads([each for each in data if each.strip()][-1])
        return json.loads(self.body)


class BundledHost:
    """`with BundledHost(tmp_path, "--addins", ";") as host:`. The process ends with the block."""

    def __init__(self, root: Path, *arguments: str, port: int = 0, environ: Mapping[str, str] | None = None) -> None:
        self.data = root / "data"
        # Socket paths are short; the folders of tests are not.
        self.temp = tempfile.TemporaryDirectory(prefix="u")
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(KEPT_AWAY)},
            **home_variables(root, self.data),
            "TMPDIR": self.temp.name,
            **(environ or {}),
        }
        self.output_path = root / f"host-{time.monotonic_ns()}.txt"
        self.argv = [*HOST, "--httpPort", str(port), *arguments]
        self.cwd = root
        self.stdin: int = subprocess.DEVNULL

    def __enter__(self) -> BundledHost:
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                self.argv, cwd=self.cwd, env=self.environ, stdin=self.stdin, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            self.port = self._port()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)
        self.temp.cleanup()

    @property
    def output(self) -> str:
        return self.output_path.read_text("utf-8", "replace")

    @property
    def registry(self) -> Path:
        return self.data / "Uno Platform" / "DevServers"

    @property
    def entry(self) -> Path:
        return self.registry / f"devserver-{self.process.pid}.json"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, address: str = ""
    ) -> Reply:
        return ask(self.port, method, path, body, headers, address or "127.0.0.1")

    def mcp(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> Reply:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        if session:
            headers["Mcp-Session-Id"] = session
        return self.ask("POST", "/mcp", json.dumps(message).encode(), headers)

    def open_session(self) -> str:
        client = {"name": "test", "version": "1"}
        reply = self.mcp("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        assert reply.status == 200, reply
        return reply.headers["mcp-session-id"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool in a new session."""
        session = self.open_session()
        return self.mcp("tools/call", {"name": tool, "arguments": arguments}, session).json["result"]

    def health(self) -> Any:
        """The health report, once the add-ins are loaded."""
        return wait_for(lambda: self._settled_health())

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def _settled_health(self) -> Any:
        report = self.ask("GET", "/health").json
        return None if report["loading"] else report

    def _port(self) -> int:
        def listening() -> int | None:
            if self.process.poll() is not None:
                raise AssertionError(f"the Host ended with {self.process.returncode}:\n{self.output}")
            marker = "Now listening on: http://"
            lines = [line for line in self.output.splitlines() if line.startswith(marker)]
            return int(lines[-1].rpartition(":")[2]) if lines and self.output.endswith("\n") else None

        port: int = wait_for(listening)
        return port


def run_host(root: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A Host that ends by itself."""
    host = BundledHost(root, environ=environ)
    try:
        return subprocess.run(
            [*HOST, *arguments],
            cwd=root,
            env=host.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    finally:
        host.temp.cleanup()


def changed(host: BundledHost, *lines: str) -> BundledHost:
    """Replace something inside that Host: a time that a test cannot wait for, a disk that hangs."""
    program = [*lines, "import sys", "from uno_devserver.cli.host import control"]
    program += ["from uno_devserver.host.main import main", "sys.exit(main(sys.argv[1:], control))"]
    host.argv[:4] = [sys.executable, "-c", "\n".join(program)]
    return host


def visit(host: BundledHost, channel: str) -> socket.socket:
    """Connect an IDE."""
    ide = socket.socket(socket.AF_UNIX)
    ide.connect(str(Path(host.temp.name) / f"CoreFxPipe_{channel}"))
    assert b"KeepAliveIdeMessage" in ide.recv(4096)
    return ide


def ask(
    port: int,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Reply:
    lines = {"Host": f"localhost:{port}", "Connection": "close", "Content-Length": str(len(body)), **(headers or {})}
    head = "".join(
        [f"{method} {path} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in lines.items()), "\r\n"]
    )
    with socket.create_connection((address, port), PATIENCE) as connection:
        connection.sendall(head.encode("latin-1") + body)
        return parse_reply(b"".join(iter(lambda: connection.recv(65536), b"")))


def parse_reply(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _dechunked(body)
    return Reply(int(first.split()[1]), headers, body)


def _dechunked(data: bytes) -> bytes:
    pieces = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(data[:length])
        data = data[length + 2 :]
        if length == 0:
            break
    return b"".join(pieces)


def write_addin(folder: Path, name: str, source: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(source, "utf-8")
    return str(path)


def joined(paths: Sequence[str | Path]) -> str:
    return ";".join(str(path) for path in paths)
