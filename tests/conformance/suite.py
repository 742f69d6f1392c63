"""The public conformance suite, as its lock file says."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from support.npm import NODE, installed

RUN_SECONDS = 240
CLIENT_MS = "120000"  # for a client on a busy machine; one run takes two seconds


class Check(NamedTuple):
    scenario: str
    status: str  # SUCCESS, FAILURE, WARNING, INFO or SKIPPED
    text: str


class Suite:
    """One release of the suite."""

    def __init__(self, package: str) -> None:
        self._program = installed(Path(__file__).parent) / "node_modules" / package / "dist" / "index.js"

    def scenarios(self, kind: str = "server") -> set[str]:
        """The names of all scenarios for a server, or for a client."""
        listed = self._run("list", f"--{kind}").stdout
        return {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}

    def check_server(self, url: str, *which: str) -> list[Check]:
        """Run scenarios against the server at `url`; everything that was checked."""
        with tempfile.TemporaryDirectory() as folder:
            ran = self._run("server", "--url", url, *which, "--output-dir", folder)
            results = sorted(Path(folder).glob("server-*/checks.json"))
            if not results:
                raise RuntimeError(f"The suite checked nothing:\n{ran.stdout}\n{ran.stderr}")
            return [check for result in results for check in _checks(result)]

    def check_client(self, command: str, scenario: str, *which: str) -> list[Check]:
        """Run a scenario with the client that `command` starts; everything that was checked."""
        with tempfile.TemporaryDirectory() as folder:
            options = ("--scenario", scenario, *which, "--output-dir", folder, "--timeout", CLIENT_MS)
            ran = self._run("client", "--command", command, *options)
            results = sorted(Path(folder).rglob("checks.json"))
            if not results:
                raise RuntimeError(f"The suite checked nothing:\n{ran.stdout}\n{ran.stderr}")
            checks = [check for result in results for check in _read(result, scenario)]
            if ran.returncode and all(check.status in ("SUCCESS", "INFO", "SKIPPED") for check in checks):
                raise RuntimeError(f"The client failed:\n{ran.stdout}\n{ran.stderr}")
            return checks

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(NODE), str(self._program), *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )


def _checks(result: Path) -> list[Check]:
    # The folder is named server-<scenario>-<time, which begins with the year and has five more parts>.
    scenario = "-".join(result.parent.name.removeprefix("server-").split("-")[:-6])
    return _read(result, scenario)


def _read(result: Path, scenario: str) -> list[Check]:
    return [
        Check(scenario, check["status"], f"{check['id']}: {check.get('errorMessage') or check['description']}")
        for check in json.loads(result.read_text("utf-8"))
    ]
