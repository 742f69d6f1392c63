"""Is this checkout fit for a release? `python tests/release/run.py [--python PATH …] [--publish]` builds and tries it.

The sdist and the wheel are built once, and looked into. Then they are installed in every way that the documents name,
each on a machine of its own in a temporary folder, with nothing of this checkout in reach: with every Python that is
here (or those that are named), by pip, uv and pipx. What was installed is used as users would use it, and must leave
nothing running. Exit code 1: something of that is not so. Only the packages of `requirements/` are downloaded, and
never a Python. With --publish, placeholders and other things that must not be published are an error before all that,
and afterwards `dist/` has the files that were tried.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from release.building import ROOT, Built, build, download, problems_of
from release.machine import ReleaseMachine
from release.publishing import keep, problems
from release.pythons import OLDEST, Python, of_path, on_this_machine
from release.smoke import ENVIRONMENT, FROM_RUNNER, Check
from release.ways import by_pip, by_pipx, by_uv_tool, by_uvx, from_checkout
from support.long_runs import interruptible, need

LONGEST = 1000  # characters of a problem: its end says most

Installed = Callable[[ReleaseMachine, Built, Python], None]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python tests/release/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python",
        action="append",
        type=_supported,
        default=[],
        metavar="PATH",
        help="an interpreter to try it with, and others where it is given again (all that are here)",
    )
    parser.add_argument("--publish", action="store_true", help="refuse what must not be published; fill dist/ (no)")
    options = parser.parse_args()
    need(parser, "uv")
    if options.publish and (found := problems(ROOT)):
        print("\n".join(["This must not be published:", *found]))
        return 1
    with interruptible():
        return _release(sorted(options.python) or on_this_machine(), ROOT / "dist" if options.publish else None)


def _supported(path: str) -> Python:
    oldest = ".".join(map(str, OLDEST))
    try:
        python = of_path(path)
    except (OSError, ValueError, subprocess.SubprocessError):
        raise argparse.ArgumentTypeError(f"{path} is no released Python; name one from {oldest} on") from None
    if python.number < OLDEST:
        raise argparse.ArgumentTypeError(f"{path} is Python {python.version}; name one from {oldest} on")
    return python


def _release(pythons: list[Python], kept: Path | None) -> int:
    if not pythons:
        print("no Python that this program supports was found; name one with --python")
        return 1
    newest = pythons[-1]
    with tempfile.TemporaryDirectory(prefix="uno-release-") as folder:
        os.environ.update(download(Path(folder) / "packages", pythons))  # for all installers from here on
        built = build(Path(folder))
        rows = [_told("the files themselves", problems_of(built), 0.0)]
        trials: list[tuple[str, Installed, Python, Iterable[Check]]] = [
            *(("pip install <wheel>", by_pip("wheel"), python, ENVIRONMENT) for python in pythons),
            ("pip install <sdist>", by_pip("sdist"), newest, ENVIRONMENT),
            ("uv tool install <wheel>", by_uv_tool, newest, ENVIRONMENT),
            ("pipx install .", by_pipx, newest, ENVIRONMENT),
            ("uvx --from <wheel>", by_uvx, newest, FROM_RUNNER),
            ("uvx --from .", from_checkout, newest, FROM_RUNNER),
        ]
        rows += [_tried(name, installed, built, python, checks) for name, installed, python, checks in trials]
        good = all(good for _, good in rows)
        if good and kept is not None:
            keep(built, kept)
    print(f"\nuno-devserver {built.version}, {built.wheel.name} and {built.sdist.name}\n")
    print("\n".join(["| what | seconds | |", "|---|---:|---|", *(row for row, _ in rows)]))
    return 0 if good else 1


def _tried(way: str, installed: Installed, built: Built, python: Python, checks: Iterable[Check]) -> tuple[str, bool]:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ur") as folder:  # sockets are made below it, and have short paths
        machine = ReleaseMachine(Path(folder).resolve(), built.version)
        try:
            installed(machine, built, python)
            problems = [problem for check in checks if (problem := _problem(check, machine))]
        except subprocess.SubprocessError as error:
            problems = [f"it cannot be installed: {error}"]
        problems += [f"left running: {process}" for process in machine.left_running()]
    return _told(f"{way}, Python {python.version}", problems, time.perf_counter() - started)


def _problem(check: Check, machine: ReleaseMachine) -> str | None:
    """What is wrong, if anything: all checks are made, whatever one of them finds."""
    try:
        check(machine)
    except (AssertionError, LookupError, OSError, ValueError, subprocess.SubprocessError) as error:
        return f"{check.__name__}: {type(error).__name__}: {str(error)[-LONGEST:]}"
    return None


def _told(name: str, problems: list[str], seconds: float) -> tuple[str, bool]:
    print(f"{name}: {'; '.join(problems) or 'good'} ({seconds:.1f} s)", flush=True)
    return f"| {name} | {seconds:.1f} | {'FAILED' if problems else 'good'} |", not problems


if __name__ == "__main__":
    sys.exit(main())
