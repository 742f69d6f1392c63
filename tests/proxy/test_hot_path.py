"""What a proxy imports before its first answers decides how long an AI client waits for its tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.machine import DATA_HOME
from uno_devserver.proxy.lists.catalogue import Catalogue, identity_of, save
from uno_devserver.proxy.lists.merge import Offered, entries
from uno_devserver.proxy.options import ProxyOptions

# What may be imported, and below it what these import themselves. `typing` alone takes as long as a bare interpreter,
# `asyncio` four times as long; both come with the engine, behind the answers.
ALLOWED = {"__future__", "binascii", "collections", "enum", "json", "re", "select", "time", "uno_devserver"}
ALLOWED |= {"_collections", "_functools", "_json", "_operator", "_sre", "_struct", "_thread", "copyreg", "functools"}
ALLOWED |= {"_types", "itertools", "keyword", "operator", "reprlib", "types", "_sha2", "_sha256"}

# Ours that may be: none that keeps an upstream, speaks HTTP, or looks for what a workspace runs.
OURS = {"__main__", "cli", "issues", "protocol", "proxy", "system", "workspace"}
OURS_IN_PROTOCOL = {"jsonrpc", "lines", "peer_info", "versions"}
OURS_IN_WORKSPACE = {"devtools_folder", "paths"}

# Tells what has been imported when answers have been written.
PROGRAM = """
import os, sys
before = set(sys.modules)
from uno_devserver.proxy.front import output
flush = output.ClientOutput.flush
def noting(self):
    written = len(self.queued)
    flush(self)
    if written:
        names = " ".join(sorted(set(sys.modules) - before))
        os.write(2, f"{written} {names}\\n".encode())
output.ClientOutput.flush = noting
from uno_devserver.cli.main import main
main(sys.argv[1:])
"""

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
FIRST = [
    ("server/discover", {"_meta": META}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}),
    ("ping", {}),
    ("tools/list", {}),
]


TYPED = ("mcp", "start", "--", sys.executable, "-c", "pass")


@pytest.mark.parametrize(
    ("known", "words"),
    [(False, ("--mcp-app",)), (True, ("--mcp-app",)), (False, TYPED)],
    ids=["first start", "with a catalogue", "a typed command"],
)
def test_the_first_answers_need_nothing_that_takes_long_to_import(
    tmp_path: Path, known: bool, words: tuple[str, ...]
) -> None:
    if known:
        tools = entries((f"tool_{number}", b'{"name":"tool_%d"}' % number) for number in range(12))
        state = tmp_path / "data" / "Uno Platform" / "uno.devserver"
        catalogue = Catalogue(Offered(tools=tools), {}, {}, None, time.time(), sdk_version="6.5.31")
        save(str(state), identity_of(ProxyOptions(str(tmp_path))), catalogue)
    requests = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(FIRST)
    ]

    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        input="\n".join(requests) + "\n",
        cwd=tmp_path,
        env={**os.environ, DATA_HOME: str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    answers = [json.loads(line)["result"] for line in result.stdout.splitlines()[: len(FIRST)]]
    assert len(answers[-1]["tools"]) == (16 if known else 3 if words is TYPED else 5)
    imported = _imported_at(result.stderr, len(FIRST))
    assert "uno_devserver.proxy.front.dispatcher" in imported
    assert {name.partition(".")[0] for name in imported} - ALLOWED == set()
    ours = [name.split(".")[1:] for name in imported if name.startswith("uno_devserver.")]
    assert {parts[0] for parts in ours} - OURS == set()
    assert {parts[1] for parts in ours if parts[0] == "protocol" and parts[1:]} - OURS_IN_PROTOCOL == set()
    assert {parts[1] for parts in ours if parts[0] == "workspace" and parts[1:]} - OURS_IN_WORKSPACE == set()


def _imported_at(notes: str, answers: int) -> list[str]:
    """What had been imported when so many answers were written."""
    written = 0
    for note in notes.splitlines():
        count, *names = note.split()
        written += int(count)
        if written >= answers:
            return names
    raise AssertionError(notes)
