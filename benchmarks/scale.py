"""How does the cost grow with what people have?

One axis after the other: proxies of one workspace, tools of a server, bytes of a result, source files of a package,
projects of a solution. Whole processes are measured, through the installed console script, and the fingerprint as the
proxy uses it; every answer is checked. The slope is that between the two largest sizes, on logarithmic scales: 1 is
linear. Exit code 1 means a wrong answer; a missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.conversations import LIMIT_SECONDS, Pipes
from benchmarks.figures import RESULTS, clean_environment, machine_and_commit, median, save
from benchmarks.host import start
from benchmarks.proxy import ADDIN, CALL, PROGRAM, PROXY
from benchmarks.relay import cpu_seconds
from benchmarks.scale_plot import draw
from benchmarks.workspaces import ALL_FILES, WORK, Case, build
from uno_devserver.hotreload.fingerprint import Fingerprint
from uno_devserver.hotreload.sources.finder import find_sources
from uno_devserver.hotreload.watched_package import Role, WatchedPackage

ROUNDS, QUICK_ROUNDS = 7, 3
LINEAR = 1.1  # a slope above it is worse than linear
MOST_MS = 100.0  # for anything that a user waits for, at the usual size of an axis
IDLE_SECONDS = 3.0
PACKAGES = 20  # of each project's restore
FOLDER = WORK / "scale"
DIRECT = "a call without a proxy"

SERVER = '''
"""A server on pipes with as many tools as its argument says; `fill` answers with as many bytes as it is asked for."""
import json, sys

names = ["fill", *(f"tool{number}" for number in range(1, int(sys.argv[1])))]
number = {"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]}
about = "A tool of a long list, which is described in a sentence of the usual length, as people and models like it."
tools = [{"name": name, "description": about, "inputSchema": number} for name in names]
info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "scale", "version": "1"}}
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "x" * asked["params"]["arguments"]["bytes"]}]}
    else:
        result = {"initialize": info, "tools/list": {"tools": tools}}.get(asked["method"], {})
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
'''

Samples = dict[str, list[float]]  # by what was measured: milliseconds


class Axis(NamedTuple):
    name: str
    sizes: tuple[int, ...]
    measure: Callable[[int, int], Samples]  # from the size and the rounds
    usual: int  # the size at which MOST_MS holds; 0: nobody waits for it that often


def main() -> int:
    names = [axis.name for axis in AXES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="3 rounds, and without the largest size of each axis")
    parser.add_argument("--axis", action="append", choices=names, help="only this one (repeatable)")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else max(1, options.rounds)
    shutil.rmtree(FOLDER, ignore_errors=True)
    rows: list[dict[str, Any]] = []
    for axis in AXES:
        if options.axis and axis.name not in options.axis:
            continue
        sizes = axis.sizes[:-1] if options.quick else axis.sizes
        by_size = {size: axis.measure(size, rounds) for size in sizes}
        for what in by_size[sizes[0]]:
            points = [[size, round(median(by_size[size][what]), 4)] for size in sizes]
            rows.append({"axis": axis.name, "what": what, "usual": axis.usual, "points": points})
            print(as_line(rows[-1]), flush=True)
    report = render(rows)
    if options.save:
        save("scale", rounds, rows, report)
        (RESULTS / "scale.svg").write_text(draw(rows), "utf-8")
    return 0


# Proxies of one workspace: they share one Host.


def measure_proxies(size: int, rounds: int) -> Samples:
    """What one more proxy costs where so many are connected, and what all of them cost while nobody calls."""
    folder = fresh_folder(f"proxies-{size}")
    (folder / ".devtools" / "addins").mkdir(parents=True)
    (folder / ".devtools" / "addins" / "bench.py").write_text(ADDIN, "utf-8")
    samples: Samples = {}
    with ExitStack() as opened:
        proxies = [connect(opened, (*PROXY, "--wait-calls"), folder) for _ in range(size)]
        for proxy in proxies:
            check(proxy.ask("tools/call", CALL), "42")
        for _ in range(rounds):
            with ExitStack() as one_more:
                proxy = connect(one_more, (*PROXY, "--wait-calls"), folder)
                proxy.ask("tools/list", {})
                add(samples, "launch of one more → `tools/list`", proxy.started)
                check(proxy.ask("tools/call", CALL), "42")
                add(samples, "launch of one more → first call", proxy.started)
            called = time.perf_counter()
            check(proxies[0].ask("tools/call", CALL), "42")
            add(samples, "a call of one", called)
            called = time.perf_counter()
            ids = [proxy.send_request("tools/call", CALL) for proxy in proxies]
            for proxy, request_id in zip(proxies, ids, strict=True):
                check(proxy.answer(request_id), "42")
            add(samples, "a call of each at once", called)
        used = processor_seconds(proxies)
        time.sleep(IDLE_SECONDS)
        idle = (processor_seconds(proxies) - used) / IDLE_SECONDS
        samples["processor time of all in an idle second"] = [idle * 1000]
    return samples


def processor_seconds(proxies: list[Pipes]) -> float:
    """Of the proxies and what they started, the Host among it."""
    started = (psutil.Process(proxy.process.pid) for proxy in proxies)
    return sum(cpu_seconds(each.pid) for process in started for each in (process, *process.children(recursive=True)))


# Tools of a server, and bytes of a result: a server on pipes, alone and behind a proxy.


def measure_tools(size: int, rounds: int) -> Samples:
    folder, behind = served(size)
    samples: Samples = {}
    with ExitStack() as opened:
        proxy = connect(opened, behind, folder)
        check(proxy.ask("tools/call", fill(1)), "x")
        await_catalogue(behind, folder, size)
        for _ in range(rounds):
            with ExitStack() as one_more:
                another = connect(one_more, behind, folder)
                listed = another.ask("tools/list", {})["result"]["tools"]
                add(samples, "launch → `tools/list` from the catalogue", another.started)
                if len(listed) < size:
                    raise SystemExit(f"{len(listed)} of {size} tools are listed")
            called = time.perf_counter()
            proxy.ask("tools/list", {})
            add(samples, "`tools/list` of a connected server", called)
            called = time.perf_counter()
            check(proxy.ask("tools/call", fill(1)), "x")
            add(samples, "a call", called)
    return samples


def await_catalogue(behind: tuple[str, ...], folder: Path, size: int) -> None:
    """It is written a moment after the server was first connected."""
    deadline = time.perf_counter() + LIMIT_SECONDS
    while time.perf_counter() < deadline:
        with ExitStack() as opened:
            if len(connect(opened, behind, folder).ask("tools/list", {})["result"]["tools"]) >= size:
                return
    raise SystemExit(f"the catalogue does not get {size} tools")


def measure_results(size: int, rounds: int) -> Samples:
    folder, behind = served(1)
    samples: Samples = {}
    with ExitStack() as opened:
        ways = {DIRECT: connect(opened, server(1), folder), "a call": connect(opened, behind, folder)}
        for number in range(rounds + 1):  # the first call waits for the server
            for what, way in ways.items():
                called = time.perf_counter()
                check(way.ask("tools/call", fill(size)), "x" * size)
                if number:
                    add(samples, what, called)
    return samples


def server(tools: int) -> tuple[str, ...]:
    return (sys.executable, "-IS", str(FOLDER / "server.py"), str(tools))


def served(tools: int) -> tuple[Path, tuple[str, ...]]:
    folder = fresh_folder(f"tools-{tools}")
    (FOLDER / "server.py").write_text(SERVER, "utf-8")
    return folder, (PROGRAM, "mcp", "start", "--wait-calls", "--", *server(tools))


def fill(size: int) -> dict[str, Any]:
    return {"name": "fill", "arguments": {"bytes": size}}


# Source files of a package: its fingerprint.


def measure_files(size: int, rounds: int) -> Samples:
    folder = fresh_folder(f"files-{size}")
    for number in range(size):
        inside = folder / "src" / f"area{number // 100}"
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"module{number}.py").write_text(f"value = {number}\n" * 20, "utf-8")
    edited = folder / "src" / "area0" / "module0.py"
    package = WatchedPackage(Role.SERVER, str(folder))
    samples: Samples = {}
    for number in range(rounds):
        with closing(Fingerprint(lambda: find_sources(package), watches=True)) as fingerprint:
            called = time.perf_counter()
            before = fingerprint.digest()
            add(samples, "first digest: list, watch, read", called)
            called = time.perf_counter()
            fingerprint.news()
            add(samples, "a question while nothing has changed", called)
            edited.write_text(f"value = 'round {number}'\n", "utf-8")
            called = time.perf_counter()
            after = fingerprint.digest()
            add(samples, "an edit → its digest", called)
            if after == before or not fingerprint.watching:
                raise SystemExit(f"the edit was not seen, or nothing is watched, with {size} files")
    return samples


# Projects of a solution, each restored.


def measure_projects(size: int, rounds: int) -> Samples:
    case = Case(PACKAGES, ALL_FILES)
    if not case.expected_file.exists():
        build(PACKAGES)
    folder = fresh_folder(f"projects-{size}")
    listed = []
    for number in range(size):
        listed.append(f"src/App{number}/App{number}.csproj")
        copy_project(case.workspace / "src" / "App", folder / "src" / f"App{number}")
    solution = "".join(f'  <Project Path="{path}" />\n' for path in listed)
    (folder / "App.slnx").write_text(f"<Solution>\n{solution}</Solution>\n", "utf-8")
    shutil.copy(case.workspace / "global.json", folder)
    environ = clean_environment(NUGET_PACKAGES=str(case.nuget))
    expected = set(case.expected_file.read_text("utf-8").split())
    samples: Samples = {}
    for number in range(rounds + 1):
        started = time.perf_counter()
        asked = [PROGRAM, "disco", "--addins-only"]
        done = subprocess.run(asked, cwd=folder, env=environ, capture_output=True, text=True, check=True)
        milliseconds = (time.perf_counter() - started) * 1000
        if set(done.stdout.strip().split(";")) != expected:
            raise SystemExit(f"wrong add-ins with {size} projects: {done.stdout}")
        until_ready = start(folder, environ)
        if number:  # the first round warms the disk cache
            samples.setdefault("`disco`", []).append(milliseconds)
            samples.setdefault("`start` until ready", []).append(until_ready)
    return samples


def copy_project(source: Path, into: Path) -> None:
    """With its own name in all files."""
    for path in source.rglob("*"):
        if path.is_file():
            inside = into / path.relative_to(source).with_name(path.name.replace("App.csproj", f"{into.name}.csproj"))
            inside.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8").replace("App.csproj", f"{into.name}.csproj")
            inside.write_text(text.replace("src/App/", f"src/{into.name}/"), "utf-8")


# What all axes share.


def fresh_folder(name: str) -> Path:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def connect(opened: ExitStack, command: tuple[str, ...], folder: Path) -> Pipes:
    pipes = Pipes(command, clean_environment(UNO_DEVSERVER_TRUST="1"), folder)
    opened.callback(pipes.quit)
    pipes.shake_hands()
    return pipes


def add(samples: Samples, what: str, started: float) -> None:
    samples.setdefault(what, []).append((time.perf_counter() - started) * 1000)


def check(answer: Mapping[str, Any], expected: str) -> None:
    content = answer.get("result", {}).get("content") or [{}]
    if content[0].get("text") != expected:
        raise SystemExit(f"wrong answer to a call: {json.dumps(answer)[:500]}")


AXES = (
    Axis("proxies", (1, 10, 100), measure_proxies, 100),
    Axis("tools", (10, 1_000, 10_000), measure_tools, 1_000),
    Axis("bytes of a result", (1_000, 1_000_000, 50_000_000), measure_results, 1_000_000),
    Axis("source files", (10, 1_000, 10_000, 100_000), measure_files, 0),
    Axis("projects", (1, 10, 100, 300), measure_projects, 300),
)


def slope(points: list[list[float]]) -> float:
    """Of the last step, on logarithmic scales; what takes next to no time has none."""
    (size, value), (larger, later) = points[-2:]
    return math.log(max(later, 0.001) / max(value, 0.001)) / math.log(larger / size)


def render(rows: list[dict[str, Any]]) -> str:
    head = ["| axis | what | ms at each size | slope | |", "|---|---|---|---:|---|"]
    return "\n".join([f"{machine_and_commit()}; medians.", "", *head, *map(as_line, rows)]) + "\n"


def as_line(row: Mapping[str, Any]) -> str:
    points, usual = row["points"], row["usual"]
    told = ", ".join(f"{size:,}: {f'{value:,.0f}' if value >= 100 else f'{value:.3g}'}" for size, value in points)
    slow = [value for size, value in points if size == usual and value > MOST_MS]
    steep = slope(points)
    verdict = "MISS" if steep > LINEAR or slow else "pass"
    if row["what"] == DIRECT:  # what it is compared with
        verdict = ""
    return f"| {row['axis']} | {row['what']} | {told} | {steep:.2f} | {verdict} |"


if __name__ == "__main__":
    sys.exit(main())
