"""Does everything hold that was promised? One table: each bar, what was measured, and whether it is reached.

Figures are those that were saved last (`make bench SAVE=--save` measures them and then asks here; the long runs save
their own); of another commit than this one they say so. Bars that are no figures are held by tests: all tests are run
(`make test`), and a bar is reached if its tests were run and passed. A missed bar is shown as MISS with its figure,
and does not change the exit code; a failing test does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from benchmarks import discovery, host, hotreload, proxy, registration, relay, scale, servers
from benchmarks.figures import COMMIT, RESULTS, machine_and_commit, median, save
from benchmarks.peers import reloaders
from benchmarks.peers.installed import ALONE, OURS
from benchmarks.workspaces import WORK

ROOT = Path(__file__).parents[1]
SUITE_MINUTES, DEMO_SECONDS = 8, 20
COVERED = 90
STARTS, MEMORY = " bare starts", "memory of the idle Host"

Row = dict[str, Any]
Line = tuple[str, str, str, str, bool]  # area, what, bar, measured, reached


class Bar(NamedTuple):
    """One that is a figure."""

    area: str
    what: str
    result: str  # the name of the file with the figures
    read: Callable[[list[Row]], float]  # the figure, from the rows of that file
    limit: float
    unit: str
    at_least: bool = False

    @property
    def wanted(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{self.unit}"

    def judged(self, rows: list[Row]) -> tuple[str, bool]:
        """What was measured, and whether that is enough."""
        value = self.read(rows)
        reached = value >= self.limit if self.at_least else value <= self.limit
        return f"{_short(value)}{self.unit}", reached


class Held(NamedTuple):
    """A bar that is no figure, and the tests that hold it: files, or single tests of one."""

    area: str
    what: str
    tests: Sequence[str]

    def judged(self, outcomes: Mapping[str, bool]) -> tuple[str, str, bool]:
        passed = [outcome for name, outcome in outcomes.items() if name.startswith(tuple(self.tests))]
        missing = [test for test in self.tests if not any(name.startswith(test) for name in outcomes)]
        told = f"{sum(passed)} of {len(passed)} tests" + "".join(f", not run: {test}" for test in missing)
        return "all pass", told, all(passed) and not missing


# How a figure is read.


def of(row: str, read: Callable[[Row], float]) -> Callable[[list[Row]], float]:
    return lambda rows: read(next(each for each in rows if _name(each) == row))


def number(field: str) -> Callable[[Row], float]:
    return lambda row: float(row[field])


def megabytes(row: Row) -> float:
    return float(row["bytes"]) / 1e6


def share(row: Row) -> float:
    return 100 * float(row["proxy"]) / float(row["direct"])


def delayed(fault: str) -> Callable[[list[Row]], float]:
    """How much longer calls take while another server has the fault."""

    def read(rows: list[Row]) -> float:
        both = [row for row in rows if row["what"] == fault]
        return median([row["disturbed"] for row in both]) - median([row["undisturbed"] for row in both])

    return read


def longer(server: str, way: str) -> Callable[[list[Row]], float]:
    """How much longer new code takes than the server's own start, in the same round."""

    def read(rows: list[Row]) -> float:
        both = [row for row in rows if row["what"] == server and "reloader" in row]
        taken = {row["reloader"]: row["milliseconds"] for row in both}
        return median([ours - own for ours, own in zip(taken[way], taken[reloaders.OWN], strict=True)])

    return read


def lead(row: Row) -> float:
    """How many times as good as the best of the others; without end where no other can do it."""
    figures = {name: float(peer["median"]) for name, peer in row["peers"].items() if "median" in peer and name != ALONE}
    ours = figures.pop(OURS)
    if not figures:
        return math.inf
    return ours / max(figures.values()) if row["unit"] == "/s" else min(figures.values()) / ours


def broken(rows: list[Row]) -> int:
    return sum(held != "held" for held in rows[0]["invariants"].values())


def found(rows: list[Row]) -> int:
    return sum(int(row["findings"]) for row in rows)


def covered(rows: list[Row]) -> float:
    return 100 - 100 * float(rows[0]["missed_branches"]) / float(rows[0]["branches"])


def grown(rows: list[Row]) -> int:
    return len(rows[0]["wrong"]) + sum(bool(row["grows"]) for row in rows[1:])


def starts(area: str, result: str, bars: Mapping[str, float], where: str = "") -> list[Bar]:
    return [Bar(area, what + where, result, of(what, ratio), most, STARTS) for what, most in bars.items()]


def proxy_bars(area: str, result: str, where: str) -> list[Bar]:
    """The same of the proxy alone, and of one that serves its page."""
    return [
        *starts(area, result, proxy.BARS, where),
        Bar(area, proxy.ADDED + where, result, of(proxy.ADDED, number("milliseconds")), proxy.ADDED_BAR_MS, " ms"),
        Bar(area, proxy.RATE + where, result, of(proxy.RATE, share), 100 * proxy.RATE_BAR, " %", True),
        Bar(area, proxy.MEMORY + where, result, of(proxy.MEMORY, megabytes), proxy.MEMORY_BAR_MB, " MB"),
    ]


ratio = number("ratioToBare")
SCENARIOS = "tests/proxy/scenarios/"

BARS = [
    *(
        Bar(
            "discovery", f"`disco`, {size:,} packages, {files}", "discovery", of(f"{size} {files}", ratio), most, STARTS
        )
        for (files, size), most in discovery.BARS.items()
    ),
    *starts("Host", "host", host.BARS),
    Bar("Host", MEMORY, "host", of(MEMORY, megabytes), host.MEMORY_BAR_MB, " MB"),
    *proxy_bars("proxy", "proxy", ""),
    *(
        Bar("a call", row.what, "relay", of(row.what, number("figure")), row.limit, row.unit, row.at_least)
        for row in relay.ROWS
        if row.limit is not None
    ),
    *starts("several servers", "servers", servers.BARS),
    *(
        Bar("several servers", f"calls during: {fault}", "servers", delayed(fault), servers.DELAY_BAR_MS, " ms longer")
        for fault in (f"{fault} of the {server}" for server in servers.TOOLS for fault in servers.FAULTS)
    ),
    *(
        Bar("hot reload", f"{what}, 10,000 files", "hotreload", of(what, number("medianMilliseconds")), most, " ms")
        for what, most in hotreload.MILLISECONDS.items()
    ),
    *(
        Bar("hot reload", what, "hotreload", of(what, number("ratioToSha256sum")), most, " × `sha256sum`")
        for what, most in hotreload.RATIOS.items()
    ),
    *(
        Bar(
            "hot reload", f"edit → new code, {server}, {way}", "reload", longer(server, way), most, " ms over its start"
        )
        for server in ("a plain Node server", "a server made with fastmcp")
        for way, most in reloaders.BARS.items()
    ),
    *starts("registration", "registration", registration.BARS),
    *proxy_bars("inspector", "inspector", ", page on"),
    Bar("long runs", "chaos: broken invariants", "chaos", broken, 0, ""),
    Bar("long runs", "fuzz: findings", "fuzz", found, 0, ""),
    Bar("long runs", "soak: wrong answers, and what grows", "soak", grown, 0, ""),
    Bar("long runs", "branches that tests take", "coverage", covered, COVERED, " %", True),
]

HELD = [
    Held(
        "discovery",
        "real MSBuild, NuGet, .NET and the .NET tool, as recorded",
        (
            "tests/msbuild/test_golden.py",
            "tests/discovery/test_golden_restore.py",
            "tests/discovery/test_golden_uno_cli.py",
            "tests/workspace/test_solutions.py",
            "tests/discovery/test_dotnet.py",
        ),
    ),
    Held("discovery", "every row of the validation chain", ("tests/discovery/test_validation_chain.py",)),
    Held("Host", "start, list, a call by the official client, stop", ("tests/examples/test_workspace.py",)),
    Held(
        "Host",
        "20 rounds of two starts at once: one Host; a killed Host is replaced",
        (
            "tests/cli/test_start_bundled.py::test_of_two_starts",
            "tests/cli/test_start_bundled.py::test_a_killed_host_is_forgotten",
        ),
    ),
    Held(
        "Host",
        "the conformance suite: Host, proxy, page, servers of others",
        ("tests/conformance/test_conformance.py",),
    ),
    Held(
        "Host",
        "recorded bytes: registry, `.csproj.user`, `/rc`, IDE channel, UTF-16",
        (
            "tests/instances/test_csproj_user.py",
            "tests/host/remote_control/",
            "tests/host/ide/",
            "tests/instances/test_registry.py",
            "tests/system/test_dotnet_formats.py",
        ),
    ),
    Held("proxy", "kills under callers: one answer each", (SCENARIOS + "test_kills.py",)),
    Held(
        "proxy",
        "20 relaunches right after quitting; the owner gone, tools again in 2 s",
        (SCENARIOS + "test_sharing.py::test_a_relaunch", SCENARIOS + "test_sharing.py::test_when_the_owner_goes"),
    ),
    Held(
        "proxy",
        "client killed or gone: all gone in 1 s, behind wrappers, too",
        (SCENARIOS + "test_end.py", "tests/proxy/front/test_client_watch.py"),
    ),
    Held(
        "hot reload",
        "each criterion of hot reload; git, `touch`, `chmod`: no rebuild; one byte under 8 calls: one build",
        (SCENARIOS + "test_hot_reload_criteria.py",),
    ),
    Held("hot reload", "sources as `tsc` lists them", ("tests/hotreload/sources/typescript/test_tsc.py",)),
    Held("hot reload", "`swap` under callers: none fails, none twice", (SCENARIOS + "test_hot_reload_swap.py",)),
    Held(
        "hot reload",
        "projects of npm, pnpm, yarn, tsc, tsx, uv, pip, fastmcp and Go reload",
        (SCENARIOS + "test_real_projects.py",),
    ),
    Held(
        "hot reload",
        "TypeScript and Python servers of the official SDKs reload",
        (SCENARIOS + "test_hot_reload_examples.py",),
    ),
    Held(
        "registration",
        "every example of the specification, 54 recorded situations",
        ("tests/setup/scenarios/test_seed_examples.py", "tests/setup/scenarios/test_golden_registration.py"),
    ),
    Held(
        "registration",
        "install, twice, uninstall: the same bytes in JSONC, TOML, YAML",
        ("tests/setup/scenarios/test_round_trip.py", "tests/setup/edits/"),
    ),
    Held("documents", "the table of clients is current", ("tests/documents/test_generated_pages.py",)),
    Held("inspector", "the page in a real browser; axe-core finds nothing serious", ("tests/browser/",)),
    Held("documents", "every command of the documents runs", ("tests/documents/",)),
    Held("proxy", "a second server that is kept ready takes over", (SCENARIOS + "test_standby.py",)),
    Held(
        "proxy", "what is imported before the first answer", ("tests/test_hot_path.py", "tests/proxy/test_hot_path.py")
    ),
    Held("a call", "an ordinary call, step by step: 25 in 12 files at most", ("tests/proxy/calls/test_trace.py",)),
    Held("Host", "`start`, step by step: 45 in 20 files at most", ("tests/cli/test_start_trace.py",)),
    Held(
        "remote servers",
        "headers, certificates, HTTP+SSE; sign-in, renewal and expiry with a real authorization server",
        (SCENARIOS + "test_remote_servers.py", SCENARIOS + "test_signed_in.py", "tests/cli/test_server_login.py"),
    ),
    Held("security", "each attack, and each claim of docs/security.md", ("tests/security/",)),
]


def bars(results: Mapping[str, list[Row]]) -> list[Bar]:
    """All of them. What grows, and what others do as well, is named by its record."""
    both = [row["what"] for row in results["peers"] if OURS in row.get("peers", {})]
    compared = [Bar("beside others", what, "peers", of(what, lead), 1, " × as good as the best", True) for what in both]
    return [*BARS, *compared, *(bar for row in results["scale"] if row["what"] != scale.DIRECT for bar in growth(row))]


def growth(row: Row) -> list[Bar]:
    """How fast it grows, and what it takes where people usually are."""
    usual, name = row["usual"], f"{row['what']}, {row['axis']}"
    grows = Bar("scale", f"{name}: slope", "scale", lambda _: scale.slope(row["points"]), scale.LINEAR, "")
    if not usual:
        return [grows]
    took = float(dict(row["points"])[usual])
    return [grows, Bar("scale", f"{name}: at {usual:,}", "scale", lambda _: took, scale.MOST_MS, " ms")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("--save", action="store_true", help="put the table into the documents")
    options = parser.parse_args()
    records = {path.stem: json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}
    suite_seconds, outcomes = _tested()
    demo_seconds = [_demonstrated() for _ in range(2)][1]
    lines = [line_of(bar, records) for bar in bars({name: record["rows"] for name, record in records.items()})]
    lines += [(held.area, held.what, *held.judged(outcomes)) for held in HELD]
    in_time = demo_seconds <= DEMO_SECONDS
    lines.append(
        ("this program", "`make demo`, the second time", f"≤ {DEMO_SECONDS} s", f"{demo_seconds:.1f} s", in_time)
    )
    minutes, seconds = divmod(round(suite_seconds), 60)
    in_time = suite_seconds <= 60 * SUITE_MINUTES
    told = f"{minutes} min {seconds} s, {len(outcomes):,} tests"
    lines.append(("this program", "`make test`: lint and every test", f"≤ {SUITE_MINUTES} min", told, in_time))
    report = render(lines)
    print(report)
    failed = sorted(name for name, passed in outcomes.items() if not passed)
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    if options.save:
        rows = [dict(zip(("area", "what", "bar", "measured", "reached"), line, strict=True)) for line in lines]
        save("bars", 1, rows, report)
    return 1 if failed else 0


def line_of(bar: Bar, records: Mapping[str, Mapping[str, Any]]) -> Line:
    if bar.result not in records:
        return bar.area, bar.what, bar.wanted, "not recorded", False
    record = records[bar.result]
    measured, reached = bar.judged(record["rows"])
    commit = record.get("commit", "unknown")
    return bar.area, bar.what, bar.wanted, measured if commit == COMMIT else f"{measured} (of {commit})", reached


def render(lines: Sequence[Line]) -> str:
    """Areas stay in the order in which they come first."""
    areas = list(dict.fromkeys(area for area, *_ in lines))
    table = [f"{machine_and_commit()}.", "", "| | what | bar | measured | |", "|---|---|---:|---:|---|"]
    for area, what, bar, measured, reached in sorted(lines, key=lambda line: areas.index(line[0])):
        table.append(f"| {area} | {what} | {bar} | {measured} | {'pass' if reached else 'MISS'} |")
    return "\n".join(table) + "\n"


def _name(row: Mapping[str, Any]) -> str:
    return str(row["what"]) if "what" in row else f"{row['packages']} {row['variant']}"


def _short(value: float) -> str:
    if value == math.inf:
        return "∞"
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
