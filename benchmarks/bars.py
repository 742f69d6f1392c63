"""Does everything hold that was promised? One table: each bar, what was measured, and whether it is reached.

Figures are those of the run that was saved last (`make bench SAVE=--save` measures all of them and then asks here).
Bars that are no figures are held by tests: all tests are run (`make test`), and a bar is reached if its tests were
run and passed. A missed bar is shown as MISS with its figure, and does not change the exit code; a failing test does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from benchmarks import proxy, relay
from benchmarks.figures import RESULTS, machine, save
from benchmarks.workspaces import WORK

ROOT = Path(__file__).parents[1]
SUITE_MINUTES, DEMO_SECONDS = 8, 20
ORDINARY_CALL = 8  # a part of a later round, behind the seven of the first two
PART_NAMES = {ORDINARY_CALL: "1 (round 3)"}

Rows = list[dict[str, Any]]


class Figure(NamedTuple):
    part: int
    what: str
    result: str  # the name of the file with the figures
    row: str  # its row there
    read: Callable[[dict[str, Any]], float]
    limit: float
    unit: str
    at_least: bool = False

    def judged(self, results: Mapping[str, Rows]) -> tuple[str, str, bool]:
        """The bar, what was measured, and whether that is enough."""
        value = self.read(next(row for row in results[self.result] if _name(row) == self.row))
        sign, reached = ("≥", value >= self.limit) if self.at_least else ("≤", value <= self.limit)
        return f"{sign} {self.limit:g}{self.unit}", f"{_short(value)}{self.unit}", reached


class Held(NamedTuple):
    """A bar that is no figure, and the tests that hold it: files, or single tests of one."""

    part: int
    what: str
    tests: Sequence[str]

    def judged(self, outcomes: Mapping[str, bool]) -> tuple[str, str, bool]:
        passed = [outcome for name, outcome in outcomes.items() if name.startswith(tuple(self.tests))]
        missing = [test for test in self.tests if not any(name.startswith(test) for name in outcomes)]
        told = f"{sum(passed)} of {len(passed)} tests" + "".join(f", not run: {test}" for test in missing)
        return "all pass", told, all(passed) and not missing


def ratio(row: dict[str, Any]) -> float:
    return float(row["ratioToBare"])


def megabytes(row: dict[str, Any]) -> float:
    return float(row["bytes"]) / 1e6


def milliseconds(row: dict[str, Any]) -> float:
    return float(row["medianMilliseconds"])


def added(row: dict[str, Any]) -> float:
    return float(row["milliseconds"])


def share(row: dict[str, Any]) -> float:
    return 100 * float(row["proxy"]) / float(row["direct"])


def compared(row: dict[str, Any]) -> float:
    return float(row["figure"])


def proxy_bars(part: int, result: str, where: str) -> list[Figure]:
    """The same of the proxy alone, and of one that serves its page."""
    starts = " bare starts"
    return [
        Figure(
            part, f"launch → `tools/list` from the catalogue{where}", result, proxy.FROM_CATALOGUE, ratio, 3, starts
        ),
        Figure(part, f"launch → `tools/list`, first start ever{where}", result, proxy.FIRST_EVER, ratio, 3, starts),
        Figure(part, f"launch → first call of a Host's tool, cold{where}", result, proxy.COLD, ratio, 20, starts),
        Figure(part, f"the same, right after quitting{where}", result, proxy.AGAIN, ratio, 20, starts),
        Figure(
            part, f"50 × `kill -9` under 16 callers → next good call{where}", result, proxy.HEALED, ratio, 20, starts
        ),
        Figure(part, f"a call takes longer by{where}", result, proxy.ADDED, added, 0.4, " ms"),
        Figure(
            part, f"rate with 32 calls under way, of the direct one{where}", result, proxy.RATE, share, 80, " %", True
        ),
        Figure(part, f"memory of the connected proxy{where}", result, proxy.MEMORY, megabytes, 40, " MB"),
    ]


SCENARIOS = "tests/proxy/scenarios/"

FIGURES = [
    Figure(1, "`disco`, 500 packages, assets file only", "discovery", "500 assets only", ratio, 5, " bare starts"),
    Figure(1, "`disco`, 2,000 packages, assets file only", "discovery", "2000 assets only", ratio, 9, " bare starts"),
    Figure(
        1, "`disco`, 500 packages, whole restore", "discovery", "500 all files of a restore", ratio, 4, " bare starts"
    ),
    Figure(
        1,
        "`disco`, 2,000 packages, whole restore",
        "discovery",
        "2000 all files of a restore",
        ratio,
        5,
        " bare starts",
    ),
    Figure(2, "Host: launch → `initialize`", "host", "Host, launch → `initialize` answered", ratio, 12, " bare starts"),
    Figure(2, "`start` until ready", "host", "`start` on the example until ready", ratio, 18, " bare starts"),
    Figure(2, "memory of the idle Host", "host", "memory of the idle Host", megabytes, 60, " MB"),
    *proxy_bars(3, "proxy", ""),
    Figure(
        4,
        "the check that finds nothing, 10,000 files",
        "hotreload",
        "nothing changed, watching: `digest()`",
        milliseconds,
        2,
        " ms",
    ),
    Figure(
        4,
        "all files read again, of `sha256sum`",
        "hotreload",
        "nothing changed, all files read again",
        lambda row: float(row["ratioToSha256sum"]),
        1.3,
        " ×",
    ),
    Figure(
        5,
        "`mcp status` over all profiles, all registered",
        "registration",
        "the same, registered with all clients (JSON, TOML, YAML)",
        ratio,
        8,
        " bare starts",
    ),
    *proxy_bars(6, "inspector", ", page on"),
    *(
        Figure(ORDINARY_CALL, row.what, "relay", row.what, compared, row.limit, row.unit, row.at_least)
        for row in relay.ROWS
        if row.limit is not None
    ),
]

HELD = [
    Held(
        1,
        "real MSBuild, NuGet, .NET and the .NET tool, as recorded",
        (
            "tests/msbuild/test_golden.py",
            "tests/discovery/test_golden_restore.py",
            "tests/discovery/test_golden_uno_cli.py",
            "tests/workspace/test_solutions.py",
            "tests/discovery/test_dotnet.py",
        ),
    ),
    Held(1, "every row of the validation chain", ("tests/discovery/test_validation_chain.py",)),
    Held(2, "start, list, a call by the official client, stop", ("tests/examples/test_workspace.py",)),
    Held(
        2,
        "20 rounds of two starts at once: one Host; a killed Host is replaced",
        (
            "tests/cli/test_start_bundled.py::test_of_two_starts",
            "tests/cli/test_start_bundled.py::test_a_killed_host_is_forgotten",
        ),
    ),
    Held(2, "the conformance suite: Host, proxy, page, servers of others", ("tests/conformance/test_conformance.py",)),
    Held(
        2,
        "recorded bytes: registry, `.csproj.user`, `/rc`, IDE channel, UTF-16",
        (
            "tests/instances/test_csproj_user.py",
            "tests/host/remote_control/",
            "tests/host/ide/",
            "tests/instances/test_registry.py",
            "tests/system/test_dotnet_formats.py",
        ),
    ),
    Held(3, "kills under callers: one answer each", (SCENARIOS + "test_kills.py",)),
    Held(
        3,
        "20 relaunches right after quitting; the owner gone, tools again in 2 s",
        (SCENARIOS + "test_sharing.py::test_a_relaunch", SCENARIOS + "test_sharing.py::test_when_the_owner_goes"),
    ),
    Held(
        3,
        "client killed or gone: all gone in 1 s, behind wrappers, too",
        (SCENARIOS + "test_end.py", "tests/proxy/front/test_client_watch.py"),
    ),
    Held(
        4,
        "each criterion of hot reload; git, `touch`, `chmod`: no rebuild; one byte under 8 calls: one build",
        (SCENARIOS + "test_hot_reload_criteria.py",),
    ),
    Held(4, "sources as `tsc` lists them", ("tests/hotreload/sources/typescript/test_tsc.py",)),
    Held(4, "`swap` under callers: none fails, none twice", (SCENARIOS + "test_hot_reload_swap.py",)),
    Held(
        4,
        "projects of npm, pnpm, yarn, tsc, tsx, uv, pip, fastmcp and Go reload",
        (SCENARIOS + "test_real_projects.py",),
    ),
    Held(4, "TypeScript and Python servers of the official SDKs reload", (SCENARIOS + "test_hot_reload_examples.py",)),
    Held(
        5,
        "every example of the specification, 54 recorded situations",
        ("tests/setup/scenarios/test_seed_examples.py", "tests/setup/scenarios/test_golden_registration.py"),
    ),
    Held(
        5,
        "install, twice, uninstall: the same bytes in JSONC, TOML, YAML",
        ("tests/setup/scenarios/test_round_trip.py", "tests/setup/edits/"),
    ),
    Held(5, "the table of clients is current", ("tests/documents/test_generated_pages.py",)),
    Held(6, "the page in a real browser; axe-core finds nothing serious", ("tests/browser/",)),
    Held(6, "every command of the documents runs", ("tests/documents/",)),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("--save", action="store_true", help="put the table into the documents")
    options = parser.parse_args()
    results = {name: _saved(name) for name in sorted({figure.result for figure in FIGURES})}
    suite_seconds, outcomes = _tested()
    demo_seconds = [_demonstrated() for _ in range(2)][1]
    lines = [(figure.part, figure.what, *figure.judged(results)) for figure in FIGURES]
    lines += [(held.part, held.what, *held.judged(outcomes)) for held in HELD]
    demo_told = f"{demo_seconds:.1f} s"
    lines.append((6, "`make demo`, the second time", f"≤ {DEMO_SECONDS} s", demo_told, demo_seconds <= DEMO_SECONDS))
    minutes, seconds = divmod(round(suite_seconds), 60)
    in_time = suite_seconds <= 60 * SUITE_MINUTES
    told = f"{minutes} min {seconds} s, {len(outcomes):,} tests"
    lines.append((7, "`make test`: lint and every test", f"≤ {SUITE_MINUTES} min", told, in_time))
    report = render(lines)
    print(report)
    failed = sorted(name for name, passed in outcomes.items() if not passed)
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    if options.save:
        rows = [dict(zip(("part", "what", "bar", "measured", "reached"), line, strict=True)) for line in lines]
        save("bars", 1, rows, report)
    return 1 if failed else 0


def render(lines: Sequence[tuple[int, str, str, str, bool]]) -> str:
    table = [f"{machine()}.", "", "| part | what | bar | measured | |", "|---:|---|---:|---:|---|"]
    for part, what, bar, measured, reached in sorted(lines, key=lambda line: line[0]):
        table.append(
            f"| {PART_NAMES.get(part, part)} | {what} | {bar} | {measured} | {'pass' if reached else 'MISS'} |"
        )
    return "\n".join(table) + "\n"


def _saved(name: str) -> Rows:
    data = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    rows: Rows = data["rows"]
    return rows


def _name(row: Mapping[str, Any]) -> str:
    return str(row["what"]) if "what" in row else f"{row['packages']} {row['variant']}"


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _tested() -> tuple[float, dict[str, bool]]:
    """Run `make test`: its seconds, and of each test, named as pytest names it, whether it passed."""
    report = WORK / "tests.xml"
    report.unlink(missing_ok=True)
    begun = time.monotonic()
    environ = {**os.environ, "PYTEST_ADDOPTS": f"--junitxml={report}"}
    subprocess.run(["make", "test"], cwd=ROOT, env=environ, check=False)
    return time.monotonic() - begun, outcomes_of(report)


def outcomes_of(report: Path) -> dict[str, bool]:
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        if case.find("skipped") is None:
            outcomes[f"{file}::{case.get('name')}"] = case.find("failure") is None and case.find("error") is None
    return outcomes


def _demonstrated() -> float:
    begun = time.monotonic()
    subprocess.run(["make", "demo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
