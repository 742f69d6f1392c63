"""Do real AI clients see what `mcp install` writes, and connect? `python tests/clients/run.py [<client>...]` asks them.

Each has a scratch home. There, for the workspace and for the user: `mcp install` registers this checkout's command; the
client's own list names the servers and, where that can be seen, it connects to our proxy; `mcp status`, `--verify` and
`mcp doctor` agree with it; `mcp uninstall` gives the file back, and the client forgets. Exit code 1: something of that
is not so, or something is left running.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from clients.kinds import SERVERS, WORKSPACE, Kind, kinds, programs
from support.npm import installed

EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
SECONDS = 120  # they take one to five; the first run unpacks itself
GONE_SECONDS = 5


def main(wanted: Sequence[str]) -> int:
    packages = installed(Path(__file__).parent) / "node_modules"
    failed = []
    for kind in kinds():
        if wanted and kind.id not in wanted:
            continue
        if not (packages / kind.program).exists():
            print(f"{kind.id}: not tried, there is none for this system")
            continue
        failed += [f"{kind.id} ({scope})" for scope in kind.scopes if not _tried(kind, scope, packages)]
    print(f"failed: {', '.join(failed)}" if failed else "all clients see what is registered")
    return 1 if failed else 0


def _tried(kind: Kind, scope: str, packages: Path) -> bool:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="uno-client-") as folder:
        # Clients know a workspace by its real path.
        trial = Trial(kind, scope, Path(folder).resolve(), packages)
        try:
            problems = list(trial.problems())
        except (subprocess.TimeoutExpired, ValueError) as error:
            problems = [str(error)]
        problems += [f"left running: {process}" for process in _left_running(str(trial.home))]
    seconds = time.perf_counter() - started
    print(f"{kind.id} ({scope}): {'; '.join(problems or trial.worked)} ({seconds:.1f} s)", flush=True)
    return not problems


class Trial:
    """One client, in one scope, on a machine of its own."""

    def __init__(self, kind: Kind, scope: str, folder: Path, packages: Path) -> None:
        self.kind = kind
        self.scope = scope
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.worked = ["sees the servers"]
        shutil.copytree(EXAMPLE, self.workspace, ignore=shutil.ignore_patterns("__pycache__"))
        for path, text in {**kind.before, **kind.consent(self.home, self.workspace)}.items():
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_bytes(text.encode())
        self.environ = _environment(self.home, programs(packages, folder / "bin"), kind.environ)

    def problems(self) -> Iterator[str]:
        """What is not as it should be, in the order of events."""
        before = self._listed()
        if any(_names(before, server) for server in SERVERS):
            yield f"it knows a server before it is registered: {before!r}"
        files = self._files()
        installed = self._ours("install", "--runner", "path", "--scope", self.scope)
        if [one["action"] for one in installed["operations"]] not in (["created"] * 2, ["updated"] * 2):
            yield f"mcp install says {installed}"
            return
        self._run([PROGRAM, "trust"])  # what is registered for all workspaces is no agreement to this one
        (path,) = {Path(one["path"]) for one in installed["operations"]}
        left = path.read_bytes()
        if self.kind.approve and self.scope == WORKSPACE:
            for server in SERVERS:
                self._client(*self.kind.approve, server)
        yield from self._while_registered()
        untouched = path.exists() and path.read_bytes() == left
        removed = self._ours("uninstall", *self.kind.uninstall)
        if [one["action"] for one in removed["operations"]] != ["removed"] * 2:
            yield f"mcp uninstall says {removed}"
        now = path.read_bytes() if path.exists() else None
        if untouched and now != files.get(path):
            yield f"{path} is not as it was: {now!r}"
        self.worked.append("its file is as it was" if untouched else "the client has written to its file, too")
        after = self._listed()
        if any(_names(after, server) for server in SERVERS):
            yield f"it still knows a server that is gone: {after!r}"

    def _while_registered(self) -> Iterator[str]:
        said = self._listed()
        for server in SERVERS:
            if not _names(said, server):
                yield f"its list does not name {server}: {said!r}"
        if self.kind.connected:
            line = next((line for line in said.splitlines() if _names(line, "UnoApp")), "")
            if re.search(rf"\b{self.kind.connected}\b", line) is None:
                yield f"it does not connect: {said!r}"
            self.worked.append("connects")
        elif self.kind.proof is not None and self.scope in self.kind.proven:
            if not self.kind.proof(self.workspace, self.environ):
                yield "it does not connect"
            self.worked.append("connects")
        status = self._ours("status", "--verify")
        states = {one["name"]: ide["status"] for one in status["servers"] for ide in self._of(one["ides"], "ide")}
        if states != dict.fromkeys(SERVERS, "registered"):
            yield f"mcp status says {states}"
        verified = [one.get("sees") for one in self._of(status["verified"], "client")]
        if verified != [dict.fromkeys(SERVERS, True)]:
            yield f"mcp status --verify says {status['verified']}"
        examined = self._ours("doctor", "--servers", "UnoApp")
        if [one["ok"] for one in examined["entries"]] != [True]:
            yield f"mcp doctor says {examined}"

    def _of(self, items: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
        return [item for item in items if item[key] == self.kind.id]

    def _files(self) -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for root in (self.home, self.workspace)
            for path in root.rglob("*")
            if path.is_file() and path.stat().st_size < 1_000_000
        }

    def _listed(self) -> str:
        return self._client(*self.kind.list)

    def _client(self, *arguments: str) -> str:
        name = Path(self.kind.program).name
        ran = self._run([shutil.which(name, path=self.environ["PATH"]) or name, *arguments])
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", ran.stdout + ran.stderr)

    def _ours(self, *words: str) -> dict[str, Any]:
        ran = self._run([PROGRAM, "mcp", words[0], self.kind.id, *words[1:], "--json"])
        answer: dict[str, Any] = json.loads(ran.stdout)
        if "error" in answer:
            raise ValueError(f"mcp {' '.join(words)}: {answer['error']}")
        return answer

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.workspace,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def _names(said: str, server: str) -> bool:
    return re.search(rf"(?<![\w./-]){server}(?![\w/-])", said) is not None


def _environment(home: Path, path: str, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TERM", "TMPDIR")}
    places = {"HOME": str(home), "USERPROFILE": str(home), "XDG_DATA_HOME": str(home / ".local/share")}
    return {**kept, **places, "PATH": path, **more}


def _left_running(home: str) -> list[str]:
    """Processes of that home which do not go; the client itself has ended."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := _of_home(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in left:
        process.kill()
    return [str(process) for process in left]


def _of_home(home: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == home:
                found.append(process)
        except psutil.Error:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
