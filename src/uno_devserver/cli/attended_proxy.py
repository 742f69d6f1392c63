"""A proxy that a command runs for as long as it runs itself.

It is a child whose input we hold, so it ends with us whatever happens to us, with all that it started. What it prints
is shown as it comes.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import threading
import time
from collections import deque

from ..proxy.health.status_file import status_of
from ..system.folders import folders
from ..system.log import log
from ..system.processes import GRACE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OPEN_SECONDS = 15.0  # the page is there a second after the start; a busy machine takes longer
POLL_SECONDS = 0.1  # within which Ctrl+C is heeded
LAST_LINES = 10
NO_PAGE = "InspectorNotServed"
_SAYS = re.compile(r"Inspector: (\S+)")


class AttendedProxy:
    def __init__(self, directory: str, options: Sequence[str]) -> None:
        """Start it there; OSError where that is not possible."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "uno_devserver", "mcp", "start", "--solution-dir", directory, *options],
            cwd=directory,
            stdin=subprocess.PIPE,  # nobody writes to it; its end is the end
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._printed: queue.Queue[str | None] = queue.Queue()  # None: its end
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        return tuple(self._last)

    def url(self, interrupted: Callable[[], bool]) -> str | None:
        """Where its page is, when it says so. None: it cannot have one, has ended, took too long, or we are to end."""
        deadline = time.monotonic() + OPEN_SECONDS
        while time.monotonic() < deadline and not interrupted() and not self._has_no_place():
            line = self._next()
            if line is None:
                return None
            if found := _SAYS.search(line):
                return found[1]
            self._show(line)
        return None

    def stay(self, interrupted: Callable[[], bool]) -> bool:
        """Until it has ended by itself, or we are told to end; whether it runs still."""
        while not interrupted():
            line = self._next()
            if line is None:
                return False
            self._show(line)
        return True

    def end(self) -> int:
        """With all that it started; its exit code."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            return self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # it hangs; the Host that it may have started sees that it has gone
            self._process.kill()
            return self._process.wait()

    def _has_no_place(self) -> bool:
        """Whether it goes on without a page."""
        issues = (status_of(folders().state, self.pid) or {}).get("issues")
        return isinstance(issues, list) and any(issue.get("code") == NO_PAGE for issue in issues)

    def _next(self) -> str | None:
        """What it prints next, empty if that is nothing for now; None at its end."""
        try:
            return self._printed.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return ""

    def _show(self, line: str) -> None:
        if line:
            self._last.append(line)
            log.info(line)

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._printed.put(line.decode("utf-8", "replace").rstrip("\r\n"))
        self._process.wait()
        self._printed.put(None)
