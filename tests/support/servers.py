"""Idle processes that stand in for Hosts, and the registry of servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from support.machine import SLOWNESS
from uno_devserver.instances.registry import RegisteredServer, new_entry, register, write_sidecar
from uno_devserver.system.dotnet_formats import to_time

# Enough for a busy machine; only a failing test waits so long.
WAIT_SECONDS = 20.0 * SLOWNESS

OBEYS = """
import sys
print("ready", flush=True)
sys.stdin.read()
"""

IGNORES_SIGTERM = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
"""

LISTENS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print("ready", listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Processes:
    """Starts processes, and ends all of them."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, code: str = OBEYS, cwd: Path | None = None) -> StandIn:
        """Start a process and wait until it is ready. It ends with its input, so none outlives the tests."""
        process = subprocess.Popen(
            [sys.executable, "-ISc", code], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._started.append(process)
        assert process.stdout
        ready, *said = process.stdout.readline().split()
        assert ready == b"ready"
        return StandIn(process, tuple(int(word) for word in said))

    def zombie(self) -> int:
        """The id of a process that has ended and has not been waited for."""
        process = subprocess.Popen([sys.executable, "-ISc", ""])
        self._started.append(process)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process.pid

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait(WAIT_SECONDS)
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()


class StandIn:
    def __init__(self, process: subprocess.Popen[bytes], said: tuple[int, ...]) -> None:
        self._process = process
        self.said = said

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def exit_code(self) -> int:
        return self._process.wait(WAIT_SECONDS)


class Registry:
    """The registry of a machine in a folder, with its servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def sign_in(
        self, pid: int, *, port: int = 5611, workspace: Path | None = None, **fields: object
    ) -> RegisteredServer:
        """Register a process as its Host would; `workspace` comes into the sidecar."""
        server = new_entry(port).replace(process_id=pid, **fields)
        register(str(self.folder), server)
        if workspace:
            path = Path(write_sidecar(str(self.folder), pid, ide_channel=None, workspace=str(workspace)))
            sidecar = json.loads(path.read_bytes()) | {"StartTime": server.started}
            path.write_text(json.dumps(sidecar))
        return server

    def file(self, name: str, content: str | bytes) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder)) if self.folder.exists() else []


def an_hour_ago() -> str:
    return to_time(time.time_ns() - 3600 * 10**9)
