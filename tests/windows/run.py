"""The program on Windows, by Wine: `python tests/windows/run.py <folder> [<pytest argument>...]` (`make test-windows`).

First the tests, without those of `left_out.py`, or those that the arguments name. Without arguments there follow the
walk through every command, and the speed beside Linux. Wine is no Windows: docs/compatibility.md says what it lacks.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from windows import speed
from windows.wine import PYTHON, System

ROOT = Path(__file__).parents[2]
PYTEST = ["-u", "-m", "pytest", "-p", "no:cacheprovider", "-rfE", "--tb=short", "--timeout=300"]
ALL_TESTS = ["-v", "-n", "3", "--dist", "worksteal"]
# Lines of a whole run that only tell that it goes on; what fails is told at once, because a run takes an hour or more.
GOES_ON = re.compile(r"(\[gw\d+\] \[ *(\d+)%\] (PASSED|SKIPPED) |tests[/\\])")
SPEED_ROUNDS = 3


def main(folder: Path, arguments: Sequence[str]) -> int:
    system = System(folder, ROOT)
    failed = []
    if not _ran(system, *PYTEST, *(arguments or ALL_TESTS)):
        failed.append("tests")
    if not arguments:
        if not _ran(system, "tests\\windows\\walk.py"):
            failed.append("walk")
        if not _is_fast_enough(system):
            failed.append("speed")
    print(f"failed: {', '.join(failed)}" if failed else "all of it works on Windows, as far as Wine is one")
    return 1 if failed else 0


def _ran(system: System, *arguments: str) -> bool:
    """Run Python for Windows, and pass on what it prints, but of tests that pass only how far they are."""
    running = system.start("wine", PYTHON, *arguments)
    told = ""
    for line in _lines(running):
        goes_on = GOES_ON.match(line) if arguments[-len(ALL_TESTS) :] == tuple(ALL_TESTS) else None
        if goes_on is None:
            print(line, flush=True)
        elif goes_on[2] and goes_on[2] != told:
            told = goes_on[2]
            print(f"{told} %", flush=True)
    return running.wait() == 0


def _is_fast_enough(system: System) -> bool:
    linux: list[speed.Times] = []
    windows: list[speed.Times] = []
    for _ in range(SPEED_ROUNDS):
        here = subprocess.run([sys.executable, speed.__file__], stdout=subprocess.PIPE, check=True)
        linux.append(json.loads(here.stdout))
        there = list(_lines(system.start("wine", PYTHON, "tests\\windows\\speed.py")))
        windows.append(json.loads(there[-1]))
    table, kept = speed.compared(linux, windows)
    print(table, flush=True)
    return kept


def _lines(running: subprocess.Popen[bytes]) -> Iterator[str]:
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.close()
    for line in running.stdout:
        yield line.decode("utf-8", "replace").rstrip("\r\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
