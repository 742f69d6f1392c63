"""How long this program takes on Windows, beside Linux on the same machine.

`python tests/windows/speed.py` measures this system, and prints it as JSON. `make test-windows` has both measured in
turn: Wine's own cost is in the rows without this program, a bare start of Python and a call through two threads that
copy lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.machine import home_variables

LEAN = (sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "lean_server.py"))
COPIER = (sys.executable, __file__, "copy", *LEAN)
PROXY = (sys.executable, "-P", "-m", "uno_devserver", "mcp", "start", "--wait-calls", "--", *LEAN)
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "speed", "version": "1"}}
STARTS, CALLS = 5, 200
BARE, LAUNCH = "bare start of Python", "launch to the list of tools"
DIRECT, COPIED, RELAYED = "call of a server", "the same, copied by threads", "the same, by the proxy"
MOST = 3.0  # times as slow as on Linux, where Wine's own cost does not count

Times = dict[str, float]  # milliseconds


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="uno-speed-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        environ = home_variables(root, root / "data")
        _launched(root, environ)  # keeps what the later ones find
        told = {
            BARE: median(_bare(environ) for _ in range(STARTS)),
            LAUNCH: median(_launched(root, environ) for _ in range(STARTS)),
            DIRECT: _call(LEAN, root, environ),
            COPIED: _call(COPIER, root, environ),
            RELAYED: _call(PROXY, root, environ),
        }
    print(json.dumps(told))


class Row(NamedTuple):
    """A time of this program, and the one that is the system's own."""

    what: str
    own: str


ROWS = (Row(LAUNCH, BARE), Row(RELAYED, COPIED))


def compared(linux: Sequence[Times], windows: Sequence[Times]) -> tuple[str, bool]:
    """A table of medians, and whether all rows keep to the bar."""
    here = {what: median(times[what] for times in linux) for what in linux[0]}
    there = {what: median(times[what] for times in windows) for what in windows[0]}
    lines = [f"{'ms, medians':<30}{'Linux':>10}{'Wine':>10}{'times':>8}"]
    lines += [f"{what:<30}{here[what]:>10.2f}{there[what]:>10.2f}{there[what] / here[what]:>8.1f}" for what in here]
    kept = True
    for what, own in ROWS:
        times = (there[what] / here[what]) / (there[own] / here[own])
        kept &= times <= MOST
        lines.append(f"{what}: {times:.1f} times as slow as on Linux, beyond Wine's own cost ({MOST:g} at most)")
    return "\n".join(lines), kept


class _Session:
    def __init__(self, command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._last_id = 0
        self.ask("initialize", HELLO)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params or {}})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._last_id:
                return message["result"]
        raise SystemExit(f"no answer to {method}")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.communicate(timeout=60)


def _bare(environ: Mapping[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=environ, check=True)
    return (time.perf_counter() - started) * 1000


def _launched(folder: Path, environ: Mapping[str, str]) -> float:
    session = _Session(PROXY, folder, environ)
    assert session.ask("tools/list")["tools"]
    milliseconds = (time.perf_counter() - session.started) * 1000
    session.end()
    return milliseconds


def _call(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    session = _Session(command, folder, environ)
    times = []
    for number in range(CALLS):
        started = time.perf_counter()
        result = session.ask("tools/call", {"name": "double", "arguments": {"number": number}})
        times.append((time.perf_counter() - started) * 1000)
        assert result["content"][0]["text"] == str(2 * number), result
    session.end()
    return median(times)


def _copy(command: Sequence[str]) -> None:
    """Be what relays calls with the least effort that works on each system."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    answers = threading.Thread(target=_pass_on, args=(server.stdout, sys.stdout.buffer), daemon=True)
    answers.start()
    _pass_on(sys.stdin.buffer, server.stdin)
    server.wait()


def _pass_on(source: Any, target: Any) -> None:
    for line in source:
        target.write(line)
        target.flush()
    target.close()


if __name__ == "__main__":
    _copy(sys.argv[2:]) if sys.argv[1:2] == ["copy"] else main()
