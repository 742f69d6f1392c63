"""A machine that something was installed on: its home, a workspace, and how the program is called there.

What installs has the settings of the user who runs this (certificates, a mirror of packages); what was installed has
none of them, and cannot reach the checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from support.machine import DATA_HOME, SLOWNESS, WINDOWS, home_variables
from support.proxies import ProxyClient

SYSTEM_PATH = "C:\\windows\\system32" if WINDOWS else "/usr/bin:/bin"
EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"
SECONDS = 120  # a command takes a tenth of a second, the demo three; a runner installs first
GONE_SECONDS = 5 * SLOWNESS


class ReleaseMachine:
    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version  # that must have been installed
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.temp = folder / "t"
        for new in (self.home, self.temp):
            new.mkdir()
        shutil.copytree(EXAMPLE, self.workspace, ignore=shutil.ignore_patterns("__pycache__"))
        self.program: Sequence[str] = ()  # how `uno-devserver` is called
        self.cwd = self.workspace
        self.environment = {
            **home_variables(self.home, self.home / ".local" / "share"),
            "TMPDIR": str(self.temp),
            "PATH": SYSTEM_PATH,
            "LANG": "C.UTF-8",
        }

    def install(self, *command: str, cwd: Path | None = None) -> None:
        ran = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=installer_environment() | self.tool_folders(),
            capture_output=True,
            text=True,
            timeout=SECONDS * 5,
        )
        if ran.returncode:
            raise subprocess.SubprocessError(f"{' '.join(command)}: {ran.stderr[-2000:]}")

    def tool_folders(self) -> dict[str, str]:
        """Where uv and pipx keep things, so that nothing of the real ones is used or changed."""
        places = ("UV_CACHE_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR")
        return {name: str(self.folder / name.lower()) for name in places}

    def run(self, *argv: str, program: Sequence[str] = ()) -> str:
        """What `uno-devserver <argv>` prints; it must end well."""
        ran = subprocess.run(
            [*(program or self.program), *argv],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert ran.returncode == 0, f"{argv} ended with {ran.returncode}: {ran.stdout[-500:]} {ran.stderr[-1500:]}"
        return ran.stdout

    def json(self, *argv: str) -> Any:
        return json.loads(self.run(*argv, "--json"))

    def client(self, *argv: str) -> ProxyClient:
        """An AI client of `uno-devserver <argv>`, over pipes."""
        return ProxyClient([*self.program, *argv], self.cwd, self.environment, self.folder / "stderr")

    def left_running(self) -> list[str]:
        """Processes of this home which do not go; they are killed."""
        deadline = time.monotonic() + GONE_SECONDS
        while (left := self._processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in left:
            process.kill()
        return [str(process) for process in left]

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(DATA_HOME) == self.environment[DATA_HOME]:
                    found.append(process)
            except psutil.Error:
                continue
        return found


def installer_environment() -> dict[str, str]:
    """That of the user, without what would lead to this checkout's Python."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "UNO_DEVSERVER_")) and name != "VIRTUAL_ENV"
    }
