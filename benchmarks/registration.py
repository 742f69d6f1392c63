"""How long does it take to see which AI clients know the servers, compared with a bare interpreter start?

`mcp status` over all profiles, as whole processes: on a machine without any client, on one with the usual few, and on
one where every client has a file of its own with the servers in it (JSON, TOML and YAML), each between other settings.
Every answer is checked. Exit code 1 means a wrong answer; a missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import clean_environment, save, start_rows, start_table
from benchmarks.workspaces import WORK

PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
FOLDER = WORK / "registration"
OUTPUT = FOLDER / "output.json"

BARE, NO_CLIENT, SOME_CLIENTS, ALL_CLIENTS = (
    "bare interpreter",
    "`mcp status --json` of all profiles, no client there",
    "the same, registered with four clients",
    "the same, registered with all clients (JSON, TOML, YAML)",
)
BARS = {NO_CLIENT: 8.0, SOME_CLIENTS: 8.0, ALL_CLIENTS: 8.0}
USUAL = ("vscode", "cursor", "claude-code", "codex")
ALL_FOUND = 25  # at least: some read the files of others, and have none of their own that would show them
ROUNDS = 15

Machine = Callable[[], tuple[float, dict[str, Any]]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.registration", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = max(1, options.rounds)
    shutil.rmtree(FOLDER, ignore_errors=True)
    everyone = [one["ide"] for one in _machine("none", ())()[1]["supportedIdes"] if one["strategy"] == "file"]
    cases: dict[str, Callable[[], float]] = {
        BARE: _bare,
        NO_CLIENT: lambda: _timed(nobody),
        SOME_CLIENTS: lambda: _timed(some),
        ALL_CLIENTS: lambda: _timed(every),
    }
    nobody, some, every = _machine("none", ()), _machine("some", USUAL), _machine("all", everyone)
    for machine, expected in ((nobody, 0), (some, len(USUAL)), (every, ALL_FOUND)):
        found = _found(machine()[1])
        if len(found) < expected or set(found.values()) - {"registered"}:
            print(f"not what was registered: {found}", file=sys.stderr)
            return 1
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):  # the first one warms the disk cache and does not count
        for name, run in cases.items():
            milliseconds = run()
            if number:
                samples[name].append(milliseconds)
    report = "\n".join(start_table(samples, BARS, BARE, rounds)) + "\n"
    print(report)
    if options.save:
        save("registration", rounds, start_rows(samples, BARS, BARE), report)
    return 0


def _machine(name: str, clients: Sequence[str]) -> Machine:
    """A home and a workspace in which these clients know the servers, and how to ask for the status there."""
    home, workspace = FOLDER / name / "home", FOLDER / name / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    places = {"HOME": home, "XDG_CONFIG_HOME": home / ".config", "XDG_DATA_HOME": home / ".local" / "share"}
    environ = {**clean_environment(**{key: str(path) for key, path in places.items()}), "PATH": "/usr/bin:/bin"}
    for client in clients:
        _run([PROGRAM, "mcp", "install", client, "--json"], workspace, environ)
    return lambda: _run([PROGRAM, "mcp", "status", "--json"], workspace, environ)


def _run(argv: list[str], cwd: Path, environ: dict[str, str]) -> tuple[float, dict[str, Any]]:
    milliseconds = _spawn(argv, cwd, environ)
    return milliseconds, json.loads(OUTPUT.read_bytes())


def _spawn(argv: list[str], cwd: Path, environ: dict[str, str]) -> float:
    """Without `subprocess`, whose own milliseconds would make every ratio look better."""
    os.chdir(cwd)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(OUTPUT), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    begun = time.perf_counter()
    process = os.posix_spawn(argv[0], argv, environ, file_actions=actions)
    _, status = os.waitpid(process, 0)
    milliseconds = (time.perf_counter() - begun) * 1000
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"{argv} ended with {os.waitstatus_to_exitcode(status)}")
    return milliseconds


def _timed(machine: Machine) -> float:
    return machine()[0]


def _bare() -> float:
    return _spawn([sys.executable, "-c", "pass"], FOLDER, clean_environment())


def _found(status: dict[str, Any]) -> dict[str, str]:
    """The clients that are found there, with what they know of UnoApp."""
    (app,) = [server for server in status["servers"] if server["name"] == "UnoApp"]
    return {one["ide"]: one["status"] for one in app["ides"]}


if __name__ == "__main__":
    sys.exit(main())
