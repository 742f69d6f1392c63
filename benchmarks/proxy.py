"""How fast is the proxy, compared with a bare interpreter start and with its own Host asked directly?

Each round starts, as whole processes and through the installed console script: a bare interpreter; the proxy until
`tools/list` is answered, with a catalogue and without one; the proxy until the first call of a tool of the Host is
answered, cold, and once more right after it has been quit. Then one connected proxy and its Host are asked in turn:
time per call, calls per second with 32 under way, memory. Last, the Host is killed again and again while sixteen
callers call. Every answer is checked. Exit code 1 means a wrong answer; a missed bar is printed, not hidden.

With --inspector every proxy also serves its page, at which nobody looks: the bars are the same.
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
from pathlib import Path
from typing import Any

import psutil

from benchmarks.conversations import LIMIT_SECONDS, Direct, Pipes, request
from benchmarks.figures import clean_environment, median, save, start_rows, start_table
from benchmarks.workspaces import WORK

PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
PROXY = (PROGRAM, "--mcp-app")
INSPECTOR = ("--inspector", "0")

BARE, FROM_CATALOGUE, FIRST_EVER, COLD, AGAIN, HEALED = (
    "bare interpreter",
    "launch → `tools/list` from the catalogue",
    "launch → `tools/list`, first start ever",
    "launch → first call of a Host's tool, cold",
    "the same, right after quitting",
    "`kill -9` of the Host under 16 callers → next good call",
)
BARS = {FROM_CATALOGUE: 3.0, FIRST_EVER: 3.0, COLD: 20.0, AGAIN: 20.0, HEALED: 20.0}
ADDED, RATE, MEMORY = "a call takes longer by", "calls/s with 32 under way, of the direct rate", "memory, connected"
ADDED_BAR_MS, RATE_BAR, MEMORY_BAR_MB = 0.4, 0.8, 40

ROUNDS = 15
CALLS = 400  # per block; blocks of both ways alternate
BLOCKS = 5
AT_ONCE = 32
RATE_SECONDS = 1.5
KILLS = 50
CALLERS = 16

Command = tuple[str, ...]

ADDIN = '''
"""What the benchmark calls: a tool that does next to nothing, and one more so that there is a list."""

from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    async def double(number: int) -> str:
        """Twice the number."""
        return str(2 * number)

    @addin.tool()
    async def append(text: str) -> str:
        """Something that must not happen twice."""
        return text
'''
CALL = {"name": "double", "arguments": {"number": 21}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="5 rounds, 10 kills")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    parser.add_argument("--inspector", action="store_true", help="with the inspector on in every proxy")
    options = parser.parse_args()
    command = PROXY + INSPECTOR if options.inspector else PROXY
    rounds, kills = (5, 10) if options.quick else (max(1, options.rounds), KILLS)
    workspace = _workspace()
    samples: dict[str, list[float]] = {name: [] for name in (BARE, FROM_CATALOGUE, FIRST_EVER, COLD, AGAIN)}
    for number in range(rounds + 1):  # the first one warms the disk cache and does not count
        measured = _round(command, workspace)
        for name, milliseconds in measured.items() if number else ():
            samples[name].append(milliseconds)
    added, rates, memory = _connected(command, workspace)
    samples[HEALED] = _kills(command, workspace, kills)
    report = render(samples, added, rates, memory, rounds)
    print(report)
    if options.save:
        rows = start_rows(samples, BARS, BARE)
        rows += [
            {"what": ADDED, "milliseconds": added},
            {"what": RATE, "direct": round(rates[0]), "proxy": round(rates[1])},
            {"what": MEMORY, "bytes": memory},
        ]
        save("inspector" if options.inspector else "proxy", rounds, rows, report)
    return 0


def _workspace() -> Path:
    """One whose Host has the benchmark's tools, where nothing of this machine's own servers can be found."""
    folder = WORK / "proxy"
    shutil.rmtree(folder, ignore_errors=True)
    addins = folder / ".devtools" / "addins"
    addins.mkdir(parents=True)
    (addins / "bench.py").write_text(ADDIN, "utf-8")
    return folder


def _environment() -> dict[str, str]:
    return clean_environment(UNO_DEVSERVER_TRUST="1")


def _round(command: Command, workspace: Path) -> dict[str, float]:
    cold = _first_call(command, workspace)
    return {
        BARE: _bare(),
        COLD: cold,
        AGAIN: _first_call(command, workspace),
        FROM_CATALOGUE: _tools(command, workspace, "double"),
        FIRST_EVER: _tools(command, _never_seen(), "uno_health"),
    }


def _bare() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return (time.perf_counter() - started) * 1000


def _never_seen() -> Path:
    folder = WORK / "never-seen" / str(time.monotonic_ns())
    folder.mkdir(parents=True)
    return folder


def _tools(command: Command, workspace: Path, expected: str) -> float:
    """Milliseconds until the list of tools, which must have the expected one, was answered."""
    proxy = Pipes(command, _environment(), workspace)
    try:
        proxy.shake_hands()
        answer = proxy.ask("tools/list", {})
        milliseconds = (time.perf_counter() - proxy.started) * 1000
        names = [tool["name"] for tool in answer["result"]["tools"]]
        if expected not in names:
            raise SystemExit(f"'{expected}' is not among the tools: {names}")
        return milliseconds
    finally:
        proxy.quit()


def _first_call(command: Command, workspace: Path) -> float:
    """Milliseconds until a tool of the Host has answered; the call waits for it."""
    proxy = Pipes((*command, "--wait-calls"), _environment(), workspace)
    try:
        proxy.shake_hands()
        _check(proxy.ask("tools/call", CALL))
        return (time.perf_counter() - proxy.started) * 1000
    finally:
        proxy.quit()


def _check(answer: dict[str, Any]) -> None:
    if answer.get("result", {}).get("content") != [{"type": "text", "text": "42"}]:
        raise SystemExit(f"wrong answer to a call: {answer}")


# One that is connected.


def _connected(command: Command, workspace: Path) -> tuple[float, tuple[float, float], int]:
    """Added milliseconds per call, both rates, and the resident set."""
    proxy = Pipes((*command, "--wait-calls"), _environment(), workspace)
    try:
        proxy.shake_hands()
        _check(proxy.ask("tools/call", CALL))
        direct = Direct(_port(workspace))
        times: tuple[list[float], list[float]] = ([], [])
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(BLOCKS):
            ways: tuple[Direct | Pipes, ...] = (direct, proxy)
            for number, way in enumerate(ways):
                for _ in range(CALLS):
                    started = time.perf_counter()
                    answer = way.ask("tools/call", CALL)
                    times[number].append((time.perf_counter() - started) * 1000)
                    _check(answer)
                rates[number].append(way.in_flight("tools/call", CALL, AT_ONCE, RATE_SECONDS))
        memory = psutil.Process(proxy.process.pid).memory_info().rss
        direct.close()
        return median(times[1]) - median(times[0]), (median(rates[0]), median(rates[1])), memory
    finally:
        proxy.quit()


def _server(workspace: Path) -> dict[str, Any]:
    listed = subprocess.run(
        [PROGRAM, "list", "--json"], cwd=workspace, env=_environment(), capture_output=True, text=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(listed.stdout)["servers"]
    if len(found) != 1:
        raise SystemExit(f"there should be one Host: {found}")
    return found[0]


def _port(workspace: Path) -> int:
    return int(_server(workspace)["port"])


def _kills(command: Command, workspace: Path, kills: int) -> list[float]:
    """Milliseconds from each kill until the next good answer; every call must be answered exactly once."""
    proxy = Pipes((*command, "--wait-calls"), _environment(), workspace)
    healed = []
    try:
        proxy.shake_hands()
        _check(proxy.ask("tools/call", CALL))
        waiting: set[int] = set()
        for _ in range(kills):
            host = _host_of(proxy.process.pid)
            while len(waiting) < CALLERS:
                _send(proxy, waiting)
            os.kill(host, signal.SIGKILL)
            killed = time.perf_counter()
            healed.append((_next_good(proxy, waiting, host) - killed) * 1000)
        while waiting:
            _answered(proxy, waiting)
    finally:
        proxy.quit()
    return healed


def _send(proxy: Pipes, waiting: set[int]) -> None:
    request_id = proxy.next_id()
    waiting.add(request_id)
    proxy.send(request(request_id, "tools/call", CALL))


def _next_good(proxy: Pipes, waiting: set[int], killed: int) -> float:
    """When a call that was sent after the kill is answered well; meanwhile the callers go on."""
    newest = max(waiting)
    deadline = time.perf_counter() + LIMIT_SECONDS
    while time.perf_counter() < deadline:
        answer = _answered(proxy, waiting)
        _send(proxy, waiting)
        if answer["id"] > newest and not answer["result"].get("isError"):
            _check(answer)
            if psutil.pid_exists(killed) and psutil.Process(killed).status() != psutil.STATUS_ZOMBIE:
                raise SystemExit("the Host was not killed")
            return time.perf_counter()
    raise SystemExit(f"no good answer within {LIMIT_SECONDS:g} s of the kill")


def _answered(proxy: Pipes, waiting: set[int]) -> dict[str, Any]:
    while True:
        message: dict[str, Any] = json.loads(proxy.line())
        if "method" in message:
            continue
        if message.get("id") not in waiting:
            raise SystemExit(f"an answer that nobody waits for: {message}")
        waiting.discard(message["id"])
        if "result" not in message:
            raise SystemExit(f"a call was refused: {message}")
        return message


def _host_of(proxy: int) -> int:
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        for child in psutil.Process(proxy).children():
            try:
                if "uno_devserver.host" in child.cmdline():
                    return child.pid
            except psutil.Error:
                continue
        time.sleep(0.002)
    raise SystemExit("the proxy has no Host")


def render(samples: dict[str, list[float]], added: float, rates: tuple[float, float], memory: int, rounds: int) -> str:
    lines = start_table(samples, BARS, BARE, rounds)
    verdict = "pass" if added <= ADDED_BAR_MS else "MISS"
    lines.append(f"| {ADDED} | {added:.2f} | | ≤ {ADDED_BAR_MS} ms | {verdict} |")
    share = rates[1] / rates[0]
    verdict = "pass" if share >= RATE_BAR else "MISS"
    lines.append(f"| {RATE} ({rates[1]:.0f} of {rates[0]:.0f}) | {share:.0%} | | ≥ {RATE_BAR:.0%} | {verdict} |")
    verdict = "pass" if memory <= MEMORY_BAR_MB * 1e6 else "MISS"
    lines.append(f"| {MEMORY} | {memory / 1e6:.0f} MB | | ≤ {MEMORY_BAR_MB} MB | {verdict} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
