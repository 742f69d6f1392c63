"""Running the installed program with a hook in every Python process of it, which records what these start and reach."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path
from typing import Any

from support.files import write
from support.machine import COMMAND, Machine

SECONDS = 60.0
# Python runs a module of this name before anything else; it is found by PYTHONPATH, which children inherit.
HOOK = """
import os, sys

def note(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "subprocess.Popen", "os.exec",
                 "os.posix_spawn", "os.system", "urllib.Request"):
        shown = [repr(each) for each in args[:2]] if event != "socket.connect" else ["", repr(args[1])]
        line = repr((event, *shown)) + "\\n"
        handle = os.open(os.environ["AUDIT_INTO"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, line.encode("utf-8", "backslashreplace"))
        os.close(handle)

sys.addaudithook(note)
"""


class Audit:
    """A machine whose Python processes are watched."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._record = machine.root / "audit"
        hook = write(machine.root / "hook" / "sitecustomize.py", HOOK)
        machine.environment |= {"PYTHONPATH": str(hook.parent), "AUDIT_INTO": str(self._record)}

    def run(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        """`uno-devserver <argv>` as users start it, with the most careless umask that there is."""
        done = subprocess.run(
            [COMMAND, *argv],
            cwd=cwd or self.machine.workspace,
            env=self.machine.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            umask=0,
        )
        assert b"Traceback" not in done.stdout + done.stderr, (argv, done.stdout, done.stderr)
        return done

    def events(self, *kinds: str) -> list[tuple[str, Any, Any]]:
        """What was recorded: the kind of each event, and its first two arguments as Python shows them."""
        lines = self._record.read_text("utf-8").splitlines() if self._record.exists() else []
        return [event for event in map(ast.literal_eval, lines) if event[0] in kinds]

    def started(self) -> list[list[str]]:
        """The command lines of all programs that were started."""
        kinds = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system")
        lines = [ast.literal_eval(arguments) for _, _, arguments in self.events(*kinds)]
        return [[os.fsdecode(word) for word in line] for line in lines]

    def reached(self) -> list[Any]:
        """The addresses of all connections that were tried, and the names that were looked up."""
        connected = [ast.literal_eval(address) for _, _, address in self.events("socket.connect", "socket.sendto")]
        looked_up = [ast.literal_eval(name) for _, name, _ in self.events("socket.getaddrinfo", "urllib.Request")]
        return connected + looked_up
