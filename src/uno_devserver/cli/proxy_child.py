"""The proxy that `inspect` runs. Separate from inspect.py, which needs these imports only if it starts a proxy.

The proxy is a child process that ends, with all processes that it started, when its standard input is closed; the
system does that even if this process is killed. The proxy's output goes to the log.
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
from .proxies import list_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..proxy.health.status_file import Status

OPEN_SECONDS = 15.0  # the page is open a second after the start; a busy machine takes longer
POLL_SECONDS = 0.1  # the longest delay before Ctrl+C is noticed
LAST_LINES = 10
LAST_OUTPUT_SECONDS = 1.0  # the longest time from the end of the process to the end of its output
WAITING_LINES = 10_000  # lines that wait to be shown: a stopped terminal must not block the proxy
NO_PAGE = "InspectorNotServed"
NOT_STARTED = "HostNotStarted"  # reported together with another issue that gives the reason
_PAGE = re.compile(r"Inspector: http://")  # a line for people who start a proxy by hand


class ProxyChild:
    def __init__(self, directory: str, options: Sequence[str]) -> None:
        """Start a proxy in that folder; raises OSError if that fails."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "uno_devserver", "mcp", "start", "--solution-dir", directory, *options],
            cwd=directory,
            env={**os.environ, CLIENT: str(os.getpid())},  # instead of our shell, which may end first
            stdin=subprocess.PIPE,  # only to be closed
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._printed: queue.Queue[str | None] = queue.Queue(WAITING_LINES)  # None at the end of its output
        self._all_read = False
        self._left_out = 0  # lines that were dropped
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._shown_issue: Mapping[str, Any] | None = None
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        return tuple(self._last)

    def status_with_page(self, interrupted: Callable[[], bool]) -> Status | None:
        """Wait for the page; None if no port is free, the proxy ended, or at a timeout or interrupt."""
        deadline = time.monotonic() + OPEN_SECONDS
        while time.monotonic() < deadline and not interrupted() and not self.found_no_port():
            status = status_of(folders().state, self.pid)
            if status is not None and status.get("inspector"):
                return status
            line = self._next()
            if line is None:
                return None
            if not _PAGE.search(line):
                self._show(line)
        return None

    def stay(self, interrupted: Callable[[], bool], steps: Mapping[str, str]) -> bool:
        """Show the proxy's output until it ends or an interrupt comes; returns whether it still runs.

        `steps` has next steps for people, by issue code; they replace the proxy's own steps, which are for agents.
        """
        while not interrupted():
            line = self._next()
            if line is None:
                return False
            self._show(line)
            if not line:
                self._show_issue(steps)
        return True

    def end(self) -> int:
        """End the proxy with all processes that it started, and show its last output; returns its exit code."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            code = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # the proxy hangs; a Host that it started notices its end
            self._process.kill()
            code = self._process.wait()
        deadline = time.monotonic() + LAST_OUTPUT_SECONDS  # the reading thread may be behind
        while time.monotonic() < deadline and (line := self._next()) is not None:
            self._show(line)
        return code

    def found_no_port(self) -> bool:
        """Whether the proxy runs without a page, because no port is free."""
        return any(issue["code"] == NO_PAGE for issue in self._issues())

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def _show_issue(self, steps: Mapping[str, str]) -> None:
        """Log why there is no server and what to do, once per issue."""
        issues = self._issues(ConnectionState.DEGRADED)
        reasons = [
            issue for issue in issues if issue["severity"] == Severity.FATAL.value and issue["code"] != NOT_STARTED
        ]
        shown = next(reversed(reasons or issues), None)
        if shown == self._shown_issue:
            return
        self._shown_issue = shown
        if shown is not None:
            message = shown["message"]  # with the last lines of a server that ended: which one explains is not known
            if not any(line.endswith(message) for line in self._last):
                log.warn(message)
            log.info(f"next: {steps.get(shown['code'], shown['remediation'])}")

    def _issues(self, state: ConnectionState | None = None) -> list[Any]:
        """The issues in the proxy's status; none if `state` is given and is not the proxy's state."""
        status = status_of(folders().state, self.pid) or {}
        return list_in(status, "issues") if state is None or status.get("state") == state.value else []

    def _next(self) -> str | None:
        """The next line of the proxy's output; empty if there is none yet, None at the end."""
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
        """Queue a line; drops the oldest one if the queue is full."""
        if self._printed.full():
            try:
                self._printed.get_nowait()
                self._left_out += 1
            except queue.Empty:  # the lines were read meanwhile
                pass
        self._printed.put(line)  # only this thread puts, so there is room
