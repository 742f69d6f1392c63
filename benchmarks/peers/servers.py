"""The servers behind the proxies: the bundled Host, which runs already; and three files that a proxy starts itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.installed import HOME, Command, environment
from benchmarks.proxy import ADDIN, PROGRAM
from benchmarks.reloads import PLAIN, SDK
from benchmarks.workspaces import WORK

# `fastmcp run --reload` takes servers made with fastmcp only; the others start the same file.
FASTMCP = """
from fastmcp import FastMCP

REVISION = "0"
server = FastMCP("bench")


@server.tool
def revision() -> str:
    return REVISION


if __name__ == "__main__":
    server.run(show_banner=False)
"""
SDK_DOUBLE = '''
from mcp.server import MCPServer

server = MCPServer("bench")


@server.tool()
async def double(number: int) -> str:
    """Twice the number."""
    return str(2 * number)


server.run("stdio")
'''


def lean() -> Command:
    """A server of thirty lines without any library: what is left of the time is the proxy's own."""
    return _server("lean.py", PLAIN)


def sdk() -> Command:
    """The official SDK's, as most servers are: its own start is the larger part."""
    return _server("revisions.py", SDK)


def _server(name: str, code: str) -> Command:
    file = HOME / name
    file.write_text(code, "utf-8")
    return [sys.executable, str(file)]


def with_standby(server: Command) -> Path:
    """A folder whose config has this server, with a second one that stands by."""
    program, *arguments = server
    folder = HOME / "standby"
    (folder / ".devtools").mkdir(parents=True, exist_ok=True)
    config = {"mcpServer": {"command": program, "args": arguments, "standby": True}, "hotReload": {"enabled": False}}
    (folder / ".devtools" / "host.config.jsonc").write_text(json.dumps(config), "utf-8")
    return folder


class Edited:
    """A server file in a workspace of its own, to be edited while it runs."""

    def __init__(self, name: str, strategy: str) -> None:
        self.folder = HOME / "edited" / f"{name.replace(' ', '-')}-{strategy}"
        self.file = self.folder / "server.py"
        self.command = [str(HOME / "fastmcp" / "bin" / "python"), str(self.file)]
        self.revision = 0
        devtools = self.folder / ".devtools"
        devtools.mkdir(parents=True, exist_ok=True)
        config = {"mcpServerRoot": "..", "hotReload": {"strategy": strategy}, "pipeline": {"concurrency": 16}}
        (devtools / "host.config.jsonc").write_text(json.dumps(config), "utf-8")
        self._write()

    def edit(self) -> str:
        self.revision += 1
        self._write()
        return str(self.revision)

    def _write(self) -> None:
        self.file.write_text(FASTMCP.replace('REVISION = "0"', f'REVISION = "{self.revision}"'), "utf-8")


@contextmanager
def running_host() -> Iterator[str]:
    """Its URL. Also writes the server that stands alone: the same tool, made with the official SDK."""
    (HOME / "sdk.py").write_text(SDK_DOUBLE, "utf-8")
    workspace = WORK / "behind-peers"
    addins = workspace / ".devtools" / "addins"
    addins.mkdir(parents=True, exist_ok=True)
    (addins / "bench.py").write_text(ADDIN, "utf-8")
    started = json.loads(_ours(workspace, "start", "--json"))
    try:
        yield f"http://127.0.0.1:{started['port']}/mcp"
    finally:
        _ours(workspace, "stop")


def _ours(workspace: Path, *arguments: str) -> str:
    command = [PROGRAM, *arguments]
    return subprocess.run(command, cwd=workspace, env=environment(), capture_output=True, text=True, check=True).stdout
