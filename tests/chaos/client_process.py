"""The process of a client, which starts a proxy on our pipes; either of the two can be killed, or stopped."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.hosts import is_running

# It does nothing but run the proxy, with our ends of the pipes: so it can be killed as a real client can.
CLIENT = "import os, sys; sys.exit(os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:]) & 255)"
LOOK_SECONDS = 0.01


class ClientProcess:
    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        line = [sys.executable, "-IS", "-c", CLIENT, *argv]
        self._process = subprocess.Popen(line, cwd=cwd, env=dict(env), stdin=pipe, stdout=pipe, stderr=pipe)
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self.stderr = self._process.stderr
        self._writing = threading.Lock()

    @property
    def proxy(self) -> int | None:
        """The id of the proxy's process; None: it does not run yet, or any more."""
        try:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text("ascii").split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def write(self, data: bytes) -> None:
        with self._writing:
            try:
                self._stdin.write(data)
                self._stdin.flush()
            except (BrokenPipeError, ValueError):
                pass  # it has ended; who reads will notice

    def read(self, most: int, seconds: float) -> bytes | None:
        """What has come, empty at the end; None: nothing within these seconds."""
        if not select.select([self._stdout], [], [], seconds)[0]:
            return None
        return os.read(self._stdout.fileno(), most)

    def close_stdin(self) -> None:
        with self._writing:
            try:
                self._stdin.close()
            except (BrokenPipeError, ValueError):
                pass  # it has ended

    def close_stdout(self) -> None:
        self._stdout.close()

    def awake_proxy(self) -> int | None:
        """The proxy's id, when it runs and is not stopped; None: it has ended by itself."""
        while (proxy := self.proxy) is None and self._process.poll() is None:
            time.sleep(LOOK_SECONDS)  # it is just being started
        if proxy is not None:
            send(proxy, signal.SIGCONT)
        return proxy

    def kill(self) -> None:
        """Kill the client, but not its proxy."""
        self._process.kill()

    def exit_code(self) -> int:
        return self._process.wait()


def ends(pid: int | None, seconds: float) -> bool:
    """Whether a process ends in time; if not, it is killed."""
    deadline = time.monotonic() + seconds
    while pid is not None and is_running(pid):
        if time.monotonic() > deadline:
            send(pid, signal.SIGKILL)
            return False
        time.sleep(LOOK_SECONDS)
    return True


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it was quicker
