"""A proxy that a command runs for as long as it runs itself.

It is a child whose input we hold, so it ends with us whatever happens to us, with all that it started. What it prints
is shown as it comes.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections import deque

from ..issues import Severity
from ..proxy.front.client_watch import CLIENT
from ..proxy.health.status_file import status_of
from ..proxy.state import ConnectionState
from ..system.folders import folders
from ..system.log import log
from ..system.processes import GRACE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OPEN_SECONDS = 15.0  # the page is there a second after the start; a busy machine takes longer
POLL_SECONDS = 0.1  # within which Ctrl+C is heeded
LAST_LINES = 10
LAST_WORDS_SECONDS = 1.0  # from the end of the process to the end of its output
WAITING_LINES = 10_000  # that nobody has read yet: a terminal may be held, and the proxy must not be
NO_PAGE = "InspectorNotServed"
NOT_STARTED = "HostNotStarted"  # that it is so, where another issue says why
_SAYS = re.compile(r"Inspector: (\S+)")


class ProxyChild:
    def __init__(self, directory: str, options: Sequence[str]) -> None:
        """Start it there; OSError where that is not possible."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "uno_devserver", "mcp", "start", "--solution-dir", directory, *options],
            cwd=directory,
            env={**os.environ, CLIENT: str(os.getpid())},  # not the shell above us, which may end before us
            stdin=subprocess.PIPE,  # nobody writes to it; its end is the end
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._printed: queue.Queue[str | None] = queue.Queue(WAITING_LINES)  # None: its end
        self._all_read = False
        self._left_out = 0  # lines for which there was no room
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._trouble: Mapping[str, str] | None = None  # what was told of it
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
        while time.monotonic() < deadline and not interrupted() and not self.has_no_place():
            line = self._next()
            if line is None:
                return None
            if found := _SAYS.search(line):
                return found[1]
            self._show(line)
        return None

    def stay(self, interrupted: Callable[[], bool], steps: Mapping[str, str]) -> bool:
        """Until it has ended by itself, or we are told to end; whether it runs still.

        `steps`: what a person does about an issue, by its code, where the proxy tells an agent something else.
        """
        while not interrupted():
            line = self._next()
            if line is None:
                return False
            self._show(line)
            if not line:
                self._tell_trouble(steps)
        return True

    def end(self) -> int:
        """With all that it started, when what it said is shown; its exit code."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            code = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # it hangs; the Host that it may have started sees that it has gone
            self._process.kill()
            code = self._process.wait()
        self._show_the_rest()
        return code

    def has_no_place(self) -> bool:
        """Whether it goes on without a page, since no port is free."""
        return any(issue["code"] == NO_PAGE for issue in self._issues())

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def _tell_trouble(self, steps: Mapping[str, str]) -> None:
        """Why there is no server, and what to do, in the words of the page; once, until it changes."""
        issues = self._issues(ConnectionState.DEGRADED)
        reasons = [
            issue for issue in issues if issue["severity"] == Severity.FATAL.value and issue["code"] != NOT_STARTED
        ]
        trouble = next(reversed(reasons or issues), None)
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble is not None:
            reason = trouble["message"].splitlines()[-1]
            if not any(line.endswith(reason) for line in self._last):
                log.warn(reason)
            log.info(f"next: {steps.get(trouble['code'], trouble['remediation'])}")

    def _issues(self, state: ConnectionState | None = None) -> list[Mapping[str, str]]:
        """What it says is wrong; in this state only, if one is named."""
        status = status_of(folders().state, self.pid) or {}
        issues = status.get("issues")
        return issues if isinstance(issues, list) and (state is None or status.get("state") == state.value) else []

    def _show_the_rest(self) -> None:
        """What it said last says why it ended; another thread reads it, and may be behind."""
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < deadline and (line := self._next()) is not None:
            self._show(line)

    def _next(self) -> str | None:
        """What it prints next, empty if that is nothing for now; None at its end."""
        if self._all_read:
            return None
        try:
            line = self._printed.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return ""
        self._all_read = line is None
        return line

    def _show(self, line: str) -> None:
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            log.info(f"[… {left_out:,} lines left out …]")
        if line:
            self._last.append(line)
            log.info(line)

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._put(line.decode("utf-8", "replace").rstrip("\r\n"))
        self._process.wait()
        self._put(None)

    def _put(self, line: str | None) -> None:
        """The newest are the ones that count."""
        if self._printed.full():
            try:
                self._printed.get_nowait()
                self._left_out += 1
            except queue.Empty:  # all were read meanwhile
                pass
        self._printed.put(line)  # by this thread alone, so there is room
