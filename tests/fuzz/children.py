"""The processes of a round: each in a group of its own, and all of them gone at once when the round is ended."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO

NICENESS = 10  # a long run leaves the machine usable
HANGS = -1  # the code of a process that did not end by itself


class Ended(Exception):
    """The round was ended, so the results of its processes do not matter."""


class Children:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def run(self, command: Sequence[str], env: Mapping[str, str], output: IO[bytes], seconds: float) -> int:
        """Its exit code. Many may run, each in a thread of its own."""
        with self._lock:
            if self._over:
                raise Ended
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env),
                start_new_session=True,
            )
            self._running.add(child)
        try:
            os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = HANGS
        finally:
            child.kill()
            child.wait()
            with self._lock:
                self._running.discard(child)
        if self._over:
            raise Ended
        return code

    def end(self) -> None:
        """All that run, and no other is started."""
        with self._lock:
            self._over = True
            for child in self._running:
                child.kill()
