"""Do real AI clients connect to the proxy? `python tests/clients/run.py` asks each for its list of MCP servers.

The clients come from npm and need no account for that. Each has a scratch home whose configuration starts this
checkout's `uno-devserver --mcp-app` on the example workspace. Exit code 1: one of them did not connect, or left
something running.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from support.npm import NODE, installed

EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
SECONDS = 120  # they take two to four; the first run unpacks itself
GONE_SECONDS = 5
NAME = "uno-under-test"


class Client(NamedTuple):
    name: str
    program: Sequence[str]  # relative to the installed packages, or absolute
    config: str  # below the home
    content: object
    environ: Mapping[str, str]
    connected: str  # a pattern in the line that names the server


def main() -> int:
    packages = installed(Path(__file__).parent) / "node_modules"
    failed = [client.name for client in clients() if not _connects(client, packages)]
    print(f"did not connect: {', '.join(failed)}" if failed else "all connected")
    return 1 if failed else 0


def clients() -> list[Client]:
    command = [PROGRAM, "--mcp-app"]
    system, machine = _npm_platform()
    stdio = {"command": command[0], "args": command[1:]}
    return [
        Client(
            "Claude Code",
            [f"@anthropic-ai/claude-code-{system}-{machine}/claude", "mcp", "list"],
            ".claude.json",
            {"mcpServers": {NAME: {"type": "stdio", **stdio}}},
            {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
            "Connected",
        ),
        Client(
            "Gemini CLI",
            [str(NODE), "@google/gemini-cli/bundle/gemini.js", "mcp", "list"],
            ".gemini/settings.json",
            {"mcpServers": {NAME: stdio}},
            {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
            "Connected",
        ),
        Client(
            "OpenCode",
            [f"opencode-{system}-{machine}/bin/opencode", "mcp", "list"],
            ".config/opencode/opencode.json",
            {"mcp": {NAME: {"type": "local", "command": command, "enabled": True}}},
            {"OPENCODE_DISABLE_AUTOUPDATE": "1"},
            "connected",
        ),
    ]


def _npm_platform() -> tuple[str, str]:
    system = {"linux": "linux", "darwin": "darwin", "win32": "win32"}[sys.platform]
    return system, "arm64" if os.uname().machine in ("arm64", "aarch64") else "x64"


def _connects(client: Client, packages: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="uno-client-") as folder:
        home, workspace = Path(folder, "home"), Path(folder, "workspace")
        shutil.copytree(EXAMPLE, workspace, ignore=shutil.ignore_patterns("__pycache__"))
        config = home / client.config
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps(client.content), "utf-8")
        environ = _environment(home, client.environ)
        program = [
            str(packages / part) if "/" in part and not part.startswith("/") else part for part in client.program
        ]
        started = time.perf_counter()
        ran = subprocess.run(
            program,
            cwd=workspace,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        seconds = time.perf_counter() - started
        said = _without_colours(ran.stdout + ran.stderr)
        line = next((line.strip() for line in said.splitlines() if NAME in line), "")
        connected = re.search(rf"\b{client.connected}\b", line) is not None and "Disconnected" not in line
        left = _left_running(str(home))
        print(f"{client.name}: {line or said.strip() or f'exit code {ran.returncode}'} ({seconds:.1f} s)")
        for process in left:
            print(f"  left running: {process}")
        return connected and not left


def _environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TERM", "TMPDIR")}
    places = {name: str(home / ".local/share") for name in ("XDG_DATA_HOME",)}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home), **places, **more}


def _without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def _left_running(home: str) -> list[str]:
    """Processes of that home which do not go; the client itself has ended."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := _of_home(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in left:
        process.kill()
    return [str(process) for process in left]


def _of_home(home: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == home:
                found.append(process)
        except psutil.Error:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
