"""A process that listens on a free port and does what a test wants of a Host, or of a stranger on its port.

Rules are tried in order: the first whose text occurs in the request answers it. A request that no rule knows is never
answered. `{PID}` in a body stands for the id of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from support.files import write
from support.golden import GOLDEN
from uno_devserver.instances.registry import RegisteredServer, write_sidecar
from uno_devserver.system.processes import machine_name, user_name

STARTED = "2026-11-15T08:27:37.4240525Z"

_SCRIPT = r"""
import json, os, socket, sys, threading

address, rules, log = sys.argv[1], json.load(sys.stdin), sys.argv[2]
listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
listener.bind((address, 0))
listener.listen()


def request_of(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return data
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < int((lengths or [0])[0]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


held = []


def serve(connection):
    request = request_of(connection).decode()
    with open(log, "a") as stream:
        stream.write(json.dumps(request) + "\n")
    rule = next((rule for rule in rules if rule["on"] in request), None)
    if rule is None:
        held.append(connection)
        return
    connection.sendall(rule["raw"].replace("{PID}", str(os.getpid())).encode())
    if rule["hold"]:
        held.append(connection)
    else:
        connection.close()


print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Rule(NamedTuple):
    on: str  # a part of the request
    raw: str  # what is sent
    hold: bool = False  # keep the connection open afterwards


def answer(
    on: str, status: int, body: object = "", *, hold: bool = False, headers: Mapping[str, str] | None = None
) -> Rule:
    """An answer of that status; a body that is no text becomes JSON. Its end is the end of the connection."""
    text = body if isinstance(body, str) else json.dumps(body)
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return Rule(on, "\r\n".join([*lines, "", text]), hold)


def recorded(on: str, exchange: Mapping[str, Any]) -> Rule:
    """What a .NET Host answered, byte for byte; a chunked body in two chunks."""
    head, body = exchange["responseHead"], exchange["responseBody"]
    if not exchange["chunked"]:
        return Rule(on, f"{head}\r\n\r\n{body}")
    data = body.encode()
    chunks = [data[:20], data[20:], b""]
    return Rule(on, f"{head}\r\n\r\n" + "".join(f"{len(one):x}\r\n{one.decode()}\r\n" for one in chunks))


# What a bundled Host says at `/health`.
HEALTH = {
    "status": "Healthy",
    "hostVersion": "0.2.0",
    "processId": "{PID}",
    "addIns": [
        {"name": "colours", "version": "1.0", "assemblyPath": "/ws/colours.py", "loaded": True, "error": None},
    ],
    "ideChannelConnected": True,
    "discoveryError": None,
    "toolCount": 7,
}


def bundled_host(**changes: object) -> list[Rule]:
    page = json.dumps(HEALTH | changes).replace('"{PID}"', "{PID}")
    return [answer("GET /health", 200, page), answer("GET /mcp", 405)]


def http_records(name: str) -> dict[str, Any]:
    exchanges = json.loads((GOLDEN / "host" / "http" / f"{name}.json").read_text("utf-8"))
    return {exchange["name"]: exchange for exchange in exchanges}


def dotnet_host(**instead: Rule) -> list[Rule]:
    """The recorded answers of a .NET Host whose add-in brings MCP."""
    record = http_records("with-addin")
    rules = {
        "health": recorded("GET /health", record["GET /unknown"]),
        "get": recorded("GET /mcp", record["GET /mcp no Accept"]),
        "initialize": recorded('"initialize"', record["initialize 2025-06-18"]),
        "initialized": recorded("notifications/initialized", record["notifications/initialized"]),
        "tools": recorded("tools/list", record["tools/list"]),
        "call": recorded("uno_health", record["tools/call uno_health"]),
        "delete": recorded("DELETE /mcp", record["DELETE session"]),
    }
    return list((rules | instead).values())


class StandInHost:
    def __init__(self, folder: Path, rules: Sequence[Rule], address: str = "127.0.0.1") -> None:
        self._log = folder / "requests.jsonl"
        text = json.dumps([rule._asdict() for rule in rules])
        command = [sys.executable, "-ISc", _SCRIPT, address, str(self._log)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(text)
        self._process.stdin.close()
        self.pid = self._process.pid
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    def requests(self) -> list[str]:
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()] if self._log.exists() else []

    def server(self, solution: str | None = None) -> RegisteredServer:
        return RegisteredServer(self.pid, 0, solution, STARTED, self.port, machine_name(), user_name(), None)

    def sign_in(self, registry: Path, solution: Path | None, workspace: Path | None = None) -> None:
        """As a Host does; with `workspace`, as a launcher adds to it."""
        entry = {
            "ProcessId": self.pid,
            "ParentProcessId": 0,
            "SolutionPath": str(solution) if solution else None,
            "StartTime": "2999-01-01T00:00:00.0000000Z",  # after the process was created, whatever the clock says
            "Port": self.port,
            "MachineName": machine_name(),
            "UserName": user_name(),
            "IdeChannelId": None,
        }
        write(registry / f"devserver-{self.pid}.json", json.dumps(entry, indent=2))
        if workspace:
            write_sidecar(str(registry), self.pid, ide_channel=None, workspace=str(workspace))
