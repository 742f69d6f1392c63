"""The path of one ordinary call, as a trace shows it, is the list in docs/architecture.md, and is short."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from support.machine import DATA_HOME

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "uno_devserver"
SERVER = ROOT / "benchmarks" / "lean_server.py"
DOCUMENT = ROOT / "docs" / "architecture.md"
MOST_STEPS, MOST_FILES = 25, 12
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)

# Notes the functions of ours that run in the main thread from one readable input to the next. A step is a function that
# is entered.
PROGRAM = """
import json, sys
source, target = sys.argv[1:3]
steps = []
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source) and not code.co_name.startswith("<"):
        if code.co_name == "_readable":
            with open(target, "a") as stream:
                stream.write(json.dumps(steps) + "\\n")
            steps.clear()
        steps.append((code.co_filename[len(source) + 1:], code.co_qualname))
sys.setprofile(profile)
from uno_devserver.cli.main import main
main(sys.argv[3:])
"""


def test_one_call_takes_the_steps_of_the_architecture_and_no_more(tmp_path: Path) -> None:
    trace = traced_call(tmp_path)

    assert trace == documented_steps(), "docs/architecture.md lists other steps"
    assert len(trace) <= MOST_STEPS
    assert len({file for file, _ in trace}) <= MOST_FILES


def documented_steps() -> list[tuple[str, str]]:
    text = DOCUMENT.read_text("utf-8")
    chapter = text.partition("## One call, step by step")[2].partition("\n## ")[0]
    return [(file, function) for file, function in STEP.findall(chapter)]


def traced_call(folder: Path) -> list[tuple[str, str]]:
    """The steps of an ordinary call of a server on pipes, which is neither the first nor the last message."""
    target = folder / "trace"
    command = [sys.executable, "-c", PROGRAM, str(SOURCE), str(target), "mcp", "start", "--wait-calls", "--"]
    proxy = subprocess.Popen(
        [*command, sys.executable, str(SERVER)],
        cwd=folder,
        env={**os.environ, DATA_HOME: str(folder / "data")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    try:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        call = {"name": "double", "arguments": {"number": 21}}
        # The first call opens the client's connection, the second one proves that the server works.
        requests = [("initialize", hello), *[("tools/call", call)] * 20, ("ping", {})]
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            proxy.stdin.write(json.dumps(message) + "\n")
            proxy.stdin.flush()
            while json.loads(proxy.stdout.readline()).get("id") != number:
                pass
    finally:
        proxy.stdin.close()
        proxy.wait(60)
        proxy.stdout.close()
    # Each line holds what ran before a readable input. What a timer does meanwhile is not part of a call.
    turns = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    calls = [turn for turn in turns if any(function == "RelayedCall.settle" for _, function in turn)]
    return [(file, function) for file, function in min(calls, key=len)]
