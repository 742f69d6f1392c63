"""Programs for Windows, run by the Wine of a Debian in a folder; `install.py` makes the folder.

Each run has mounts, process ids and a Wine of its own, which end with it. It sees the repository as `Z:\\repository`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ENTER = Path(__file__).with_name("enter.sh")
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
REPOSITORY = "Z:\\repository"
PREFIX = "/opt/wine"
PYTHON = "C:\\Python\\python.exe"
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "WINEPREFIX": PREFIX,
    "WINEPATH": "C:\\Python;C:\\Python\\Scripts",
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=",  # it would offer to download what we do not use
}


class System:
    def __init__(self, folder: Path, repository: Path) -> None:
        self._folder = folder
        self._repository = repository

    def change(self, *command: str) -> None:
        """Run a command that installs something; it must end well."""
        with self._start("keep", command) as running:
            said, _ = running.communicate()
        if running.returncode:
            sys.exit(f"{' '.join(command)} ended with {running.returncode}: {said.decode(errors='replace')}")

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command whose changes, to the system and to the repository, end with it."""
        return self._start("discard", ["env", "--chdir=/repository", *command])

    def _start(self, changes: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        entered = [*UNSHARE, str(ENTER), str(self._folder), str(self._repository), changes]
        # Wine would take a terminal for a console of Windows; what clients give us are pipes.
        return subprocess.Popen(
            [*entered, *command],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
