"""Another user of the same machine gets no answer from a port, no access to a socket, and can read no file.

Nor does code of another user run where this user has agreed to code of the same path.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.bundled import BundledHost, ask
from support.files import write
from support.machine import Machine
from support.privileges import SETPRIV
from support.proxies import Proxies, ProxyClient
from support.reloading import hot
from support.waiting import wait_for

from .victim import program

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
VICTIM, NOBODY = 54321, 65534
PROGRAM = [sys.executable, "-P", "-m", "uno_devserver"]
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
        client = hot(proxies, "--http", "0", "--inspector", "0")  # its control channel is open then
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


# Run as nobody: asks for the health at each address, and tries to listen there.
NEIGHBOUR = r"""
for address in ("127.0.0.1", "::1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as peer, socket.socket(family) as listener:
        peer.connect((address, int(sys.argv[1])))
        peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        print(peer.recv(12).decode(), flush=True)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, int(sys.argv[1])))
            listener.listen()
        except OSError as error:
            print(error.strerror, flush=True)
"""


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_a_host_that_is_bound_to_loopback_refuses_other_users_and_leaves_them_no_address(
    tmp_path: Path, bind: str
) -> None:
    with (
        BundledHost(tmp_path, "--addins", ";", "--bind", bind) as host,
        program(NEIGHBOUR, str(host.port), user=NOBODY) as neighbour,
    ):
        assert neighbour.stdout
        assert neighbour.stdout.read().splitlines() == ["HTTP/1.1 403", "Address already in use"] * 2
        assert host.ask("GET", "/health").status == 200
        assert ask(host.port, "GET", "/health", headers={"Host": "192.168.1.5"}).status == 403


FLOOD = r"""
peers = []
for _ in range(600):
    peers.append(socket.socket())
    peers[-1].setblocking(False)
    peers[-1].connect_ex((b"127.0.0.1", int(sys.argv[1])))
print("flooded", flush=True)
sys.stdin.read()
"""


def test_a_host_that_is_busy_has_room_for_more_connections_than_another_user_opens_at_once(tmp_path: Path) -> None:
    with (
        BundledHost(tmp_path, "--addins", ";") as host,
        program(FLOOD, str(host.port), user=NOBODY) as flood,
    ):
        assert flood.stdout
        os.kill(host.process.pid, signal.SIGSTOP)
        try:
            assert flood.stdout.readline() == "flooded\n"
            socket.create_connection(("127.0.0.1", host.port), 0.9).close()  # without room, it takes a second
        finally:
            os.kill(host.process.pid, signal.SIGCONT)
        assert host.ask("GET", "/health").status == 200


def _ports_of(client: ProxyClient) -> list[int]:
    """Of the proxy itself, for MCP and for the inspector, as it tells them on standard error."""
    pattern = re.compile(r"http://localhost:(\d+)/(?:mcp| )")
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


@pytest.mark.skipif(SETPRIV is None, reason="needs setpriv")
def test_code_that_another_user_puts_where_a_trusted_workspace_was_is_not_trusted(machine: Machine) -> None:
    shared, home = machine.root / "shared", machine.home
    for folder in (shared, home):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)  # as /tmp is
    _make_workspace(VICTIM, shared)
    assert _trust(home, shared / "demo").returncode == 0
    assert _list(home)["trusted"] is True

    _as_user(VICTIM, ["rm", "-r", str(shared / "demo")])
    _make_workspace(NOBODY, shared)

    refused = _trust(home, shared / "demo")
    started = _as_user(VICTIM, [*PROGRAM, "start", "--trust"], home=home, cwd=shared / "demo")
    told = f"{shared}/demo belongs to another user (id {NOBODY}"
    assert _list(home) == {"trusted": False, "outdated": f"{told})"}
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"error: {told}; yours is {VICTIM})" in refused.stderr
    assert (started.returncode, started.stderr) == (1, refused.stderr)
    assert "next: Copy the workspace, or make it yours with chown." in refused.stderr


def _make_workspace(user: int, shared: Path) -> None:
    code = "import os, sys; os.makedirs('demo/.devtools/addins'); open('demo/.devtools/addins/greeter.py', 'x').close()"
    _as_user(user, [sys.executable, "-ISc", code], cwd=shared).check_returncode()


def _list(home: Path) -> dict[str, Any]:
    listed = _as_user(VICTIM, [*PROGRAM, "trust", "--list", "--json"], home=home)
    (one,) = json.loads(listed.stdout)["agreements"]
    return {name: one[name] for name in ("trusted", "outdated")}


def _trust(home: Path, workspace: Path) -> subprocess.CompletedProcess[str]:
    return _as_user(VICTIM, [*PROGRAM, "trust"], home=home, cwd=workspace)


def _as_user(
    user: int, line: list[str], *, home: Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program as a user who may read everything, because our Python may be below the home folder of root."""
    reads = "+dac_read_search"
    become = [str(SETPRIV), f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    become += [f"--inh-caps={reads}", f"--ambient-caps={reads}"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return subprocess.run([*become, *line], cwd=cwd or "/", env=environment, capture_output=True, text=True, timeout=60)
