"""Does a fault of one server delay the calls of another behind the same proxy?

One proxy has three servers: a Host, a command on pipes, a command that listens at a URL. Each in turn is killed, edited
and stopped (SIGSTOP) while the other two are called, one call after the other; the same calls were made just before,
undisturbed. What counts is the difference of the two medians. Each round also starts a bare interpreter, and the proxy
until its list of all tools is answered from the catalogue. Every answer is checked. Exit code 1 means a wrong answer; a
missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.conversations import LIMIT_SECONDS, Pipes, request
from benchmarks.figures import clean_environment, median, save, start_rows, start_table
from benchmarks.proxy import ADDIN, PROXY
from benchmarks.workspaces import WORK
from uno_devserver.system.ports import free_port

BARE, FIRST = "bare interpreter", "launch → `tools/list` of three servers from the catalogue"
BARS = {FIRST: 2.2}
DELAY_BAR_MS = 5.0
FAULTS = ("kill", "edit", "hang")
# Each server with its tool: all offer `double`, and the further ones get their names as a prefix.
TOOLS = {"Host": "double", "pipes": "pipes_double", "http": "http_double"}
ROUNDS, CALLS = 15, 100  # calls of each other server, before and during a fault

Delays = dict[tuple[str, str], list[tuple[float, float]]]  # by server and fault: both medians of each round


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = 3 if options.quick else max(1, options.rounds)
    workspace = Workspace(WORK / "servers")
    delays: Delays = {(server, fault): [] for server in TOOLS for fault in FAULTS}
    proxy = Pipes((*PROXY, "--wait-calls"), environment(), workspace.folder)
    try:
        proxy.shake_hands()
        for server in TOOLS:
            call_until_good(proxy, server)
        for _ in range(rounds):
            for server, fault in delays:
                delays[server, fault].append(disturbed(proxy, workspace, server, fault))
    finally:
        proxy.quit()
    samples: dict[str, list[float]] = {BARE: [], FIRST: []}
    for number in range(rounds + 1):  # the first one warms the disk cache and does not count
        measured = {BARE: bare(), FIRST: first_list(workspace)}
        for name, milliseconds in measured.items() if number else ():
            samples[name].append(milliseconds)
    report = render(samples, delays, rounds)
    print(report)
    if options.save:
        rows = start_rows(samples, BARS, BARE)
        rows += [
            {"what": f"{fault} of the {server}", "undisturbed": before, "disturbed": during}
            for (server, fault), measured_delays in delays.items()
            for before, during in measured_delays
        ]
        save("servers", rounds, rows, report)
    return 0


def environment() -> dict[str, str]:
    return clean_environment(UNO_DEVSERVER_TRUST="1")


class Workspace:
    """One whose proxy has the three servers."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.sources = {
            "Host": folder / ".devtools" / "addins" / "bench.py",
            "pipes": folder / "pipes" / "server.py",
            "http": folder / "http" / "server.py",
        }
        port = free_port()
        lean = Path(__file__).with_name("lean_server.py").read_text("utf-8")
        for name, source in self.sources.items():
            source.parent.mkdir(parents=True)
            source.write_text(ADDIN if name == "Host" else lean, "utf-8")
        python = {"command": sys.executable}
        servers = {
            "pipes": {**python, "args": ["-IS", "server.py"], "root": "../pipes"},
            "http": {
                **python,
                "args": ["-IS", "server.py", "--http", str(port)],
                "root": "../http",
                "url": f"http://localhost:{port}/mcp",
            },
        }
        config = folder / ".devtools" / "host.config.jsonc"
        config.write_text(json.dumps({"servers": servers}), "utf-8")


def disturbed(proxy: Pipes, workspace: Workspace, server: str, fault: str) -> tuple[float, float]:
    """The median milliseconds of calls of the other servers, before and during the fault, which is over at the end."""
    others = [other for other in TOOLS if other != server]
    before = call_others(proxy, others)
    process = process_of(proxy, server)
    if fault == "edit":
        with workspace.sources[server].open("a", encoding="utf-8") as stream:
            stream.write("# edited\n")
    else:
        os.kill(process, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    # A call of the server itself, which waits until the server is back: that long the fault lasts.
    waiting = proxy.next_id()
    proxy.send(request(waiting, "tools/call", call_of(server)))
    during = call_others(proxy, others, until=None if fault == "hang" else waiting)
    if fault == "hang":
        with suppress(ProcessLookupError):  # one that cannot be reached for seconds is started again
            os.kill(process, signal.SIGCONT)
    call_until_good(proxy, server)
    if fault != "hang" and process_of(proxy, server) == process:
        raise SystemExit(f"the {server} was not started again after '{fault}'")
    return before, during


def call_of(server: str) -> dict[str, Any]:
    return {"name": TOOLS[server], "arguments": {"number": 21}}


def call_others(proxy: Pipes, servers: list[str], until: int | None = None) -> float:
    """The median milliseconds of CALLS calls of each, and of more until the request `until` is answered."""
    times: list[float] = []
    deadline = time.perf_counter() + LIMIT_SECONDS
    while len(times) < CALLS * len(servers) or until is not None:
        request_id, started = proxy.next_id(), time.perf_counter()
        proxy.send(request(request_id, "tools/call", call_of(servers[len(times) % len(servers)])))
        while (answer := json.loads(proxy.line())).get("id") != request_id or "method" in answer:
            if answer.get("id") == until and "method" not in answer:
                until = None
        times.append((time.perf_counter() - started) * 1000)
        if not is_good(answer):
            raise SystemExit(f"a wrong answer while another server has a fault: {answer}")
        if time.perf_counter() > deadline:
            raise SystemExit("the server with the fault does not come back")
    return median(times)


def is_good(answer: dict[str, Any]) -> bool:
    result = answer.get("result", {})
    content = result.get("content") or [{}]
    return not result.get("isError") and bool(content[0].get("text") == "42")


def call_until_good(proxy: Pipes, server: str) -> None:
    """Call as an agent does: where it is told that the server restarts, mcpStatus waits for it."""
    deadline = time.perf_counter() + LIMIT_SECONDS
    while not is_good(answer := proxy.ask("tools/call", call_of(server))):
        if time.perf_counter() > deadline:
            raise SystemExit(f"the {server} does not come back: {answer}")
        proxy.ask("tools/call", {"name": "mcpStatus", "arguments": {}})


def process_of(proxy: Pipes, server: str) -> int:
    answer = proxy.ask("tools/call", {"name": "uno_health", "arguments": {"details": True}})
    report = answer["result"]["structuredContent"]
    upstreams = {each["name"]: each["upstream"] for each in report["servers"]}
    return int((report["proxy"]["upstream"] if server == "Host" else upstreams[server])["processId"])


def bare() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return (time.perf_counter() - started) * 1000


def first_list(workspace: Workspace) -> float:
    """Milliseconds until the list of tools, which must have those of all servers, was answered."""
    proxy = Pipes(PROXY, environment(), workspace.folder)
    try:
        proxy.shake_hands()
        answer = proxy.ask("tools/list", {})
        milliseconds = (time.perf_counter() - proxy.started) * 1000
        names = {tool["name"] for tool in answer["result"]["tools"]}
        if not names.issuperset(TOOLS.values()):
            raise SystemExit(f"tools are missing: {names}")
        return milliseconds
    finally:
        proxy.quit()


def render(samples: dict[str, list[float]], delays: Delays, rounds: int) -> str:
    lines = [*start_table(samples, BARS, BARE, rounds), ""]
    lines += ["| fault | of the | undisturbed ms | during it ms | longer by | |", "|---|---|---:|---:|---:|---|"]
    for (server, fault), measured in delays.items():
        before, during = (median([pair[side] for pair in measured]) for side in (0, 1))
        verdict = "pass" if during - before <= DELAY_BAR_MS else "MISS"
        lines.append(f"| {fault} | {server} | {before:.2f} | {during:.2f} | {during - before:.2f} | {verdict} |")
    lines.append(f"\nA call of the others may take {DELAY_BAR_MS:g} ms longer at the median.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
