"""The public conformance suite, as its lock file says."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from support.npm import NODE, installed

RUN_SECONDS = 240


class Check(NamedTuple):
    scenario: str
    status: str  # SUCCESS, FAILURE, WARNING, INFO or SKIPPED
    text: str


class Suite:
    """One release of the suite."""

    def __init__(self, package: str) -> None:
        self._program = installed(Path(__file__).parent) / "node_modules" / package / "dist" / "index.js"

    def scenarios(self) -> set[str]:
        """The names of all server scenarios."""
        listed = self._run("list", "--server").stdout
        return {line.split()[1] for line in listed.splitlines() if line.startswith("  - ")}

    def check_server(self, url: str, *which: str) -> list[Check]:
        """Run scenarios against the server at `url`; everything that was checked."""
        with tempfile.TemporaryDirectory() as folder:
            ran = self._run("server", "--url", url, *which, "--output-dir", folder)
            results = sorted(Path(folder).glob("server-*/checks.json"))
            if not results:
                raise RuntimeError(f"The suite checked nothing:\n{ran.stdout}\n{ran.stderr}")
            return [check for result in results for check in _checks(result)]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(NODE), str(self._program), *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )


def _checks(result: Path) -> list[Check]:
    # The folder is named server-<scenario>-<time, which begins with the year and has five more parts>.
    scenario = "-".join(result.parent.name.removeprefix("server-").split("-")[:-6])
    return [
        Check(scenario, check["status"], f"{check['id']}: {check.get('errorMessage') or check['description']}")
        for check in json.loads(result.read_text("utf-8"))
    ]
