"""The servers that the conformance suite is run against, each in a home of its own and gone when the block ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from support.npm import NODE, installed
from support.waiting import wait_for
from uno_devserver.proxy.health.status_file import inspector_page
from uno_devserver.system.folders import folders

ADDIN = Path(__file__).with_name("addin.py")
SDK_SERVER = Path(__file__).with_name("sdk_server.py")
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
START_SECONDS = 30
CAN: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}  # what clients of the suite can do
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": CAN,
        "clientInfo": {"name": "conformance", "version": "1"},
    },
}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": CAN,
        }
    },
}
STOP_SECONDS = 15


@contextmanager
def host() -> Iterator[str]:
    """A Host with the add-in that the scenarios need; the URL of its endpoint."""
    command = [sys.executable, "-m", "uno_devserver.host", "--httpPort", "0", "--addins", str(ADDIN)]
    with _home() as home, _process(command, home, _environment(home)) as process:
        assert process.stdout is not None
        port = _said(process, process.stdout, r"Now listening on: .*:(\d+)$")
        yield f"http://127.0.0.1:{port}/mcp"


# How a proxy is told to serve MCP over HTTP as well, and how it says where.
HTTP_FACE = ("--http", r"Serving MCP over HTTP at (http://\S+/mcp)")
INSPECTOR = ("--inspector", r"Inspector: (http://\S+/) ")


@contextmanager
def http_face_of_host() -> Iterator[str]:
    with _proxy_of_host(HTTP_FACE) as url:
        yield url


@contextmanager
def inspector_of_host() -> Iterator[str]:
    with _proxy_of_host(INSPECTOR) as url:
        yield url


@contextmanager
def _proxy_of_host(face: tuple[str, str]) -> Iterator[str]:
    """A proxy that has started such a Host for its workspace."""
    with _home() as workspace:
        addins = workspace / ".devtools" / "addins"
        addins.mkdir(parents=True)
        shutil.copy(ADDIN, addins)
        with proxy("--solution-dir", str(workspace), environ={"UNO_DEVSERVER_TRUST": "1"}, face=face) as url:
            yield url


@contextmanager
def proxy(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    modern: bool = False,
    face: tuple[str, str] = INSPECTOR,
) -> Iterator[str]:
    """The `/mcp` of a proxy, when what is behind it is connected; in the era of the client that has started it."""
    option, told = face
    command = [PROGRAM, "mcp", "start", option, "0", *arguments]
    with _home() as home, _process(command, home, _environment(home, environ or {}), stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stdin.write(json.dumps(DISCOVER if modern else INITIALIZE) + "\n")
        process.stdin.flush()
        address = _said(process, process.stderr, told).removesuffix("mcp").rstrip("/")
        state = folders(_environment(home)).state
        page = wait_for(lambda: inspector_page(state, process.pid)) if face is INSPECTOR else None
        token = page[1] if page else ""
        _await_connection(f"{address}/health?token={token}")
        yield f"{address}/mcp/{token}".rstrip("/")  # the suite drops the query of a URL here and there


@contextmanager
def everything() -> Iterator[tuple[str, Sequence[str]]]:
    """A third party's server, made with the TypeScript SDK: its URL, and the command that serves it on pipes."""
    packages = installed(Path(__file__).parent) / "node_modules"
    program = [str(NODE), str(packages / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")]
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    with _home() as home:
        environ = _environment(home, {"PORT": str(port)})
        with _process([*program, "streamableHttp"], home, environ) as process:
            assert process.stderr is not None
            _said(process, process.stderr, r"listening on port (\d+)")
            yield f"http://127.0.0.1:{port}/mcp", [*program, "stdio"]


@contextmanager
def proxies_of_sdk_server(modern: bool) -> Iterator[tuple[str, str]]:
    """The `/mcp` of a proxy of its URL, and of one of its command, each started by a client of that era."""
    program = [sys.executable, str(SDK_SERVER)]
    with _home() as home, _process([*program, "http"], home, _environment(home)) as process:
        assert process.stdout is not None
        port = _said(process, process.stdout, r"listening on port (\d+)")
        of_url = proxy("--upstream-url", f"http://127.0.0.1:{port}/mcp", modern=modern)
        with of_url as by_url, proxy("--", *program, modern=modern) as by_command:
            yield by_url, by_command


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="uno-") as home:
        yield Path(home)


def _environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    places = dict.fromkeys(("HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "TMPDIR"), str(home))
    return {**os.environ, **places, **(more or {})}


@contextmanager
def _process(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        list(command),
        env=dict(environ),
        cwd=folder,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _said(process: subprocess.Popen[str], stream: IO[str], pattern: str) -> str:
    """What it says when it listens; what it prints afterwards is read and forgotten."""
    too_late = threading.Timer(START_SECONDS, process.kill)
    too_late.start()
    printed = []
    try:
        for line in stream:
            printed.append(line)
            if found := re.search(pattern, line.rstrip()):
                for pipe in (process.stdout, process.stderr):
                    threading.Thread(target=_drain, args=(pipe,), daemon=True).start()
                return found[1]
    finally:
        too_late.cancel()
    raise RuntimeError(f"It ended with {process.wait()} before it listened:\n{''.join(printed)}")


def _drain(stream: IO[str] | None) -> None:
    try:
        for _ in stream or ():
            pass
    except ValueError:
        pass  # closed at the end


def _await_connection(health: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    report: object = None
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(health, timeout=START_SECONDS) as answer:
                report = json.load(answer)
        except urllib.error.HTTPError as error:  # it is not well yet, and says so
            report = json.load(error)
        if isinstance(report, dict) and report["upstreamConnected"]:
            return
        time.sleep(0.02)
    raise RuntimeError(f"The proxy did not connect: {report}")
