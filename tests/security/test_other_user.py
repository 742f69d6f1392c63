"""Another user of the same machine gets no answer from a port, no access to a socket, and can read no file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both"
)

ADDIN = """
from uno_devserver.host.addins import AddIn

addin = AddIn("greeter")


@addin.tool()
def greet(name: str) -> str:
    return f"Hello, {name}!"
"""
# Run as nobody: tries each file, socket and port, and prints the results.
ATTACK = r"""
import json, os, socket, stat, sys
targets = json.loads(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
told = {"entered": [], "read": [], "connected": [], "answers": {}}
for path in targets["paths"]:
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            socket.socket(socket.AF_UNIX).connect(path)
            told["connected"].append(path)
        elif os.path.isdir(path):
            os.listdir(path)
            told["entered"].append(path)
        else:
            open(path, "rb").close()
            told["read"].append(path)
    except OSError:
        pass
for port, lines in targets["requests"]:
    peer = socket.socket()
    peer.settimeout(10)
    peer.connect(("127.0.0.1", port))
    peer.sendall(lines.encode())
    told["answers"][f"{port} {lines.split()[1]}"] = peer.makefile("rb").readline().decode()
print(json.dumps(told))
"""
POST = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
UPGRADE = (
    "GET /rc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """In a folder that all users may enter, so that only their own modes protect its files."""
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        made = Machine(Path(folder))
        made.environment["UNO_DEVSERVER_TRUST"] = "1"
        write(made.workspace / ".devtools" / "addins" / "greeter.py", ADDIN)
        yield made


def test_another_user_reaches_no_port_no_socket_and_no_file(machine: Machine) -> None:
    with Proxies(machine) as proxies:
        os.chmod(machine.environment["TMPDIR"], 0o1777)  # as /tmp is
        client = proxies.connected("--http", "0", "--inspector", "0")
        entry = next((machine.data / "Uno Platform" / "DevServers").glob("devserver-*[0-9].json"))
        host_port = json.loads(entry.read_text())["Port"]
        ports = [host_port, *_ports_of(client)]
        requests = [(port, POST.format(path)) for port in ports for path in ("/mcp", "/devserver/idechannel/x")]
        paths = [os.path.join(folder, name) for folder, folders, files in _walk(machine) for name in (*folders, *files)]

        told = _as_nobody({"paths": paths, "requests": [*requests, (host_port, UPGRADE)]})

    assert len(ports) == 3
    assert any("CoreFxPipe_" in path for path in paths), "the control channel is there"
    assert told["connected"] == told["read"] == []
    assert told["entered"] == []
    assert told["answers"]
    assert set(told["answers"].values()) == {"HTTP/1.1 403 Forbidden\r\n"}


def _ports_of(client: ProxyClient) -> list[int]:
    """Of the proxy itself, for MCP and for the inspector, as it tells them on standard error."""
    pattern = re.compile(r"http://localhost:(\d+)/(?:mcp|\?token)")
    wait_for(lambda: len(set(pattern.findall(client.stderr))) == 2, "both addresses")
    return sorted({int(port) for port in pattern.findall(client.stderr)})


def _walk(machine: Machine) -> Iterator[tuple[str, list[str], list[str]]]:
    for root in (str(machine.data), machine.environment["TMPDIR"]):
        yield from os.walk(root)


def _as_nobody(targets: dict[str, Any]) -> dict[str, Any]:
    line = [sys.executable, "-ISc", ATTACK, json.dumps(targets)]
    done = subprocess.run(line, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
