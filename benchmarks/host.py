"""How long until the Host answers, compared with a bare interpreter start?

Each round starts, as whole processes: a bare interpreter; the bundled Host until `/mcp` has answered `initialize`,
without add-ins and with the example workspace's; `uno-devserver start` on that workspace until it says ready. Every
answer is checked. Memory is the resident set of an idle Host that has answered. Exit code 1 means a wrong answer; a
missed bar is printed, not hidden.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from benchmarks.figures import clean_environment, save, start_rows, start_table
from benchmarks.workspaces import WORK

EXAMPLE = Path(__file__).parent.parent / "examples" / "workspace"
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
HOST = [sys.executable, "-P", "-m", "uno_devserver.host"]

BARE, HOST_ALONE, HOST_WITH_ADDIN, START = (
    "bare interpreter",
    "Host, launch → `initialize` answered",
    "the same with the example's add-in",
    "`start` on the example until ready",
)
BARS = {HOST_ALONE: 12.0, HOST_WITH_ADDIN: 12.0, START: 18.0}
MEMORY_BAR_MB = 60

ROUNDS = 15
LIMIT_SECONDS = 20.0
POLL_SECONDS = 0.0005  # far below what is measured

INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    }
).encode()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="5 rounds")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = 5 if options.quick else max(1, options.rounds)
    workspace = _example_copy()
    addins = ";".join(str(path) for path in sorted((workspace / ".devtools" / "addins").glob("*.py")))
    cases: dict[str, Callable[[], float]] = {
        BARE: bare,
        HOST_ALONE: lambda: host("--addins", ";")[0],
        HOST_WITH_ADDIN: lambda: host("--addins", addins, "--workingDir", str(workspace))[0],
        START: lambda: start(workspace, clean_environment()),
    }
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):  # the first one warms the disk cache and does not count
        for name, run in cases.items():
            milliseconds = run()
            if number:
                samples[name].append(milliseconds)
    memory = max(host("--addins", addins, "--workingDir", str(workspace))[1] for _ in range(3))
    report = render(samples, memory, rounds)
    print(report)
    if options.save:
        rows = start_rows(samples, BARS, BARE)
        save("host", rounds, [*rows, {"what": "memory of the idle Host", "bytes": memory}], report)
    return 0


def _example_copy() -> Path:
    """The example, where nothing of this machine's own servers can be found."""
    copy = WORK / "example"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def bare() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
    return (time.perf_counter() - started) * 1000


def host(*arguments: str) -> tuple[float, int]:
    """Milliseconds until `initialize` was answered, and the resident set of the Host when it has loaded its add-ins."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    argv = [*HOST, "--httpPort", str(port), *arguments]
    started = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, env=clean_environment(), stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        answer = _initialize(port, started + LIMIT_SECONDS)
        milliseconds = (time.perf_counter() - started) * 1000
        if b'"serverInfo"' not in answer:
            raise SystemExit(f"wrong answer to initialize: {answer!r}")
        _await_addins(port, started + LIMIT_SECONDS)
        return milliseconds, psutil.Process(process.pid).memory_info().rss
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_SECONDS)


def _initialize(port: int, deadline: float) -> bytes:
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(INITIALIZE)}\r\nConnection: close\r\n\r\n"
    ).encode()
    while time.perf_counter() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS) as connection:
                connection.sendall(head + INITIALIZE)
                return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            time.sleep(POLL_SECONDS)
    raise SystemExit(f"the Host did not answer within {LIMIT_SECONDS:g} s")


def _await_addins(port: int, deadline: float) -> None:
    while time.perf_counter() < deadline:
        with socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS) as connection:
            connection.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not json.loads(answer.partition(b"\r\n\r\n")[2])["loading"]:
            return
        time.sleep(0.01)
    raise SystemExit(f"the add-ins were not loaded within {LIMIT_SECONDS:g} s")


def start(workspace: Path, environ: Mapping[str, str]) -> float:
    started = time.perf_counter()
    done = subprocess.run([PROGRAM, "start", "--json"], cwd=workspace, env=environ, capture_output=True, text=True)
    milliseconds = (time.perf_counter() - started) * 1000
    if done.returncode:
        raise SystemExit(f"start failed: {done.stdout}{done.stderr}")
    subprocess.run([PROGRAM, "stop"], cwd=workspace, env=environ, capture_output=True, check=True)
    return milliseconds


def render(samples: dict[str, list[float]], memory: int, rounds: int) -> str:
    lines = start_table(samples, BARS, BARE, rounds)
    verdict = "pass" if memory <= MEMORY_BAR_MB * 1e6 else "MISS"
    lines.append(f"| memory of the idle Host | {memory / 1e6:.0f} MB | | ≤ {MEMORY_BAR_MB} MB | {verdict} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
