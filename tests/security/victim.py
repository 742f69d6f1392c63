"""A user whose proxy and Host run, with every listener open, and records of what an attacker has gained from them.

with Victim() as victim:
    victim.ask(victim.host, tool_call("somebody"))
    assert victim.gains() == {"tool somebody"}
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from websockets.sync.client import connect

from support.bundled import BOTH, Reply, ask, parse_reply
from support.files import write
from support.inspectors import META
from support.machine import Machine
from support.ports import lasting_port
from support.proxies import MODERN, Proxies, ProxyClient
from support.waiting import wait_for

NOBODY = 65534
ANSWER_SECONDS = 10.0
IMPORTS = "import os, socket, struct, sys, threading"  # first: another user may not be able to read Python's modules
needs_two_users = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs two users, and who may be both"
)
# The tool is a coroutine: calls run in the order in which they came.
ADDIN = """
import asyncio

from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool
    async def note(who: str) -> str:
        with open({path!r}, "a") as diary:
            diary.write(who + "\\n")
        return "noted"

    @addin.tool
    async def rest(seconds: float, pad: str) -> str:
        await asyncio.sleep(seconds)
        return "rested"
"""

CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "note", "arguments": {"who": "%"}, "_meta": META},
}
CALL_HEADERS = {
    "Content-Type": "application/json",
    "Accept": BOTH,
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "note",
}


class Victim:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="u", dir="/tmp")
        os.chmod(self._folder.name, 0o755)  # all users may enter: only their own modes protect files
        self.machine = Machine(Path(self._folder.name))
        self.machine.environment["UNO_DEVSERVER_TRUST"] = "1"
        # Only names inside the workspace say what may be edited: it lies in a folder whose name protects others.
        self.workspace = self.machine.workspace = self.machine.root / ".vs" / "paint-shop"
        self._diary = self.machine.root / "diary"
        write(self.workspace / ".devtools" / "addins" / "diary.py", ADDIN.format(path=str(self._diary)))
        self.proxies = Proxies(self.machine)

    def __enter__(self) -> Victim:
        self.proxies.__enter__()
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.proxies.__exit__(kind, error, trace)
        finally:
            self._folder.cleanup()

    def start(self, inspector: int = 0, http: int = 0) -> None:
        """A proxy with its ports `http` and `inspector`, whose Host has the port `host`."""
        self.http, self.inspector = http or lasting_port(), inspector or lasting_port()
        self.log = self.machine.root / f"proxy-{self.inspector}.log"
        options = ("--http", str(self.http), "--inspector", str(self.inspector), "--file-log", str(self.log))
        self.agent: ProxyClient = self.proxies.connected(*options)
        registry = self.machine.data / "Uno Platform" / "DevServers"
        entry = next(path for path in registry.glob("devserver-*.json") if ".aux" not in path.name)
        self.host, self.host_pid = int(json.loads(entry.read_text())["Port"]), int(entry.stem.partition("-")[2])
        wait_for(lambda: is_listening(self.inspector), "the inspector")

    def end_proxy(self) -> None:
        self.agent.close_stdin()
        assert self.agent.exit_code() == 0

    # --- what somebody has gained

    def gains(self, *who: str) -> set[str]:
        """Tools that ran, launches that were announced, pipes that were opened, and files that were written."""
        for _ in range(3):  # whatever came before these calls has been answered, too
            assert self.ask(self.host, tool_call("the user")).status == 200
            assert self.ask(self.http, tool_call("the user")).status == 200
        health = ask(self.host, "GET", "/health").json
        pipes = os.listdir(self.machine.environment["TMPDIR"])
        found = {f"tool {name}" for name in self._diary.read_text().splitlines()}
        found |= {f"launch {launch['platform']}" for launch in health["launches"]}
        found |= {f"pipe {name.removeprefix('CoreFxPipe_')}" for name in pipes}
        found |= {f"file {path.relative_to(self.workspace)}" for path in self.workspace.rglob("*") if path.is_file()}
        return {gain for gain in found if any(name in gain for name in who)}

    @staticmethod
    def ask(port: int, request: bytes, address: str = "127.0.0.1") -> Reply:
        with socket.create_connection((address, port), ANSWER_SECONDS) as connection:
            connection.sendall(request)
            return parse_reply(b"".join(iter(lambda: connection.recv(65536), b"")))

    def edit(self, *edits: Mapping[str, Any]) -> list[int]:
        """Edit files over `/rc` as an app does; the codes of the results."""
        with connect(f"ws://127.0.0.1:{self.host}/rc") as app:
            app.send(frame("UpdateFileRequest", {"RequestId": "1", "Edits": edits}))
            answer = app.recv(ANSWER_SECONDS)
            assert isinstance(answer, bytes)
        return [each["Result"] for each in json.loads(answer[answer.index(b"{") :])["Results"]]


def is_listening(port: int) -> bool:
    with socket.socket() as visitor:
        return visitor.connect_ex(("127.0.0.1", port)) == 0


def tool_call(who: str, headers: Mapping[str, str] | None = None) -> bytes:
    """One request that calls the tool, in the modern era, which needs no session."""
    body = json.dumps(CALL).replace("%", who)
    lines = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(body)), **CALL_HEADERS}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **(headers or {})}.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n{body}".encode()


def frame(name: str, content: object) -> bytes:
    """A frame of `/rc`: a version and three strings, each after its length in groups of seven bits."""
    return b"\x01\x00" + b"".join(map(_string, ("HotReload", name, json.dumps(content))))


def _string(text: str) -> bytes:
    length, encoded = len(text.encode()), bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*encoded, length]) + text.encode()


@contextmanager
def program(source: str, *arguments: str, user: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A Python program, of another user if one is given, with pipes to talk to it; it ends with the block."""
    becomes = "" if user is None else f"os.setgroups([]); os.setgid({user}); os.setuid({user})\n"
    argv = [sys.executable, "-ISc", f"{IMPORTS}\n{becomes}{source}", *arguments]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
