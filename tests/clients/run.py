"""Do real AI clients see what `mcp install` writes, and connect? `python tests/clients/run.py [<client>...]` asks them.

Each has a scratch home. There, for the workspace and for the user: `mcp install` registers this checkout's command; the
client's own list names the servers and, where that can be seen, it connects to our proxy; `mcp status`, `--verify` and
`mcp doctor` agree with it; `mcp uninstall` gives the file back, and the client forgets. Then two servers of one
repository get names of their own, and go one by one. Claude Desktop, which is not for Linux, is replaced by FastMCP's
client, which reads the same file. Exit code 1: something of that is not so, or something is left running.
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
from support.registration import server_in
from uno_devserver.setup.definitions import CLIENTS, packaged

EXAMPLE = Path(__file__).parents[2] / "examples" / "workspace"
PROGRAM = str(Path(sys.executable).with_name("uno-devserver"))
SECONDS = 120  # they take one to five; the first run unpacks itself
GONE_SECONDS = 5
NAMED, DESKTOP = "names", "claude-desktop"
SEARCHES_UP = [id_ for id_, one in packaged(f"{CLIENTS}.json").items() if id_[0] != "$" and one.get("searchesUp")]


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
        failed += [] if _tried(kind, NAMED, packages) else [f"{kind.id} ({NAMED})"]
    if not wanted or DESKTOP in wanted:
        failed += [] if _tried(Kind(DESKTOP, "", (), ()), NAMED, packages) else [DESKTOP]
    print(f"failed: {', '.join(failed)}" if failed else "all clients see what is registered")
    return 1 if failed else 0


def _tried(kind: Kind, scope: str, packages: Path) -> bool:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="uno-client-") as folder:
        # Clients know a workspace by its real path.
        machine = Machine(kind, Path(folder).resolve(), packages)
        trial = NamedTrial(machine) if scope == NAMED else Trial(machine, scope)
        try:
            problems = list(trial.problems())
        except (subprocess.TimeoutExpired, ValueError) as error:
            problems = [str(error)]
        problems += [f"left running: {process}" for process in _left_running(str(machine.home))]
    seconds = time.perf_counter() - started
    print(f"{kind.id} ({scope}): {'; '.join(problems or trial.worked)} ({seconds:.1f} s)", flush=True)
    return not problems


class Machine:
    """A home folder with one client, and a workspace."""

    def __init__(self, kind: Kind, folder: Path, packages: Path) -> None:
        self.kind = kind
        self.home, self.workspace = folder / "home", folder / "workspace"
        shutil.copytree(EXAMPLE, self.workspace, ignore=shutil.ignore_patterns("__pycache__"))
        self.home.mkdir()
        for path, text in {**kind.before, **kind.consent(self.home, self.workspace)}.items():
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_bytes(text.encode())
        self.environ = _environment(self.home, programs(packages, folder / "bin"), kind.environ)

    def files(self) -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for root in (self.home, self.workspace)
            for path in root.rglob("*")
            if path.is_file() and path.stat().st_size < 1_000_000
        }

    def listed(self, cwd: Path | None = None) -> str:
        return self.client(*self.kind.list, cwd=cwd)

    def client(self, *arguments: str, cwd: Path | None = None) -> str:
        name = Path(self.kind.program).name
        ran = self.run([shutil.which(name, path=self.environ["PATH"]) or name, *arguments], cwd)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", ran.stdout + ran.stderr)

    def connects(self, said: str, server: str) -> bool:
        """Whether the client's list says that it is connected to a server."""
        line = next((line for line in said.splitlines() if _names(line, server)), "")
        return re.search(rf"\b{self.kind.connected}\b", line) is not None

    def ours(self, *words: str, cwd: Path | None = None) -> dict[str, Any]:
        ran = self.run([PROGRAM, "mcp", words[0], self.kind.id, *words[1:], "--json"], cwd)
        answer: dict[str, Any] = json.loads(ran.stdout)
        if "error" in answer:
            raise ValueError(f"mcp {' '.join(words)}: {answer['error']}")
        return answer

    def run(self, command: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=cwd or self.workspace,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


class Trial:
    """One client, in one scope: the servers of an Uno workspace."""

    def __init__(self, machine: Machine, scope: str) -> None:
        self.machine = machine
        self.kind = machine.kind
        self.scope = scope
        self.worked = ["sees the servers"]

    def problems(self) -> Iterator[str]:
        """What is not as it should be, in the order of events."""
        machine = self.machine
        before = machine.listed()
        if any(_names(before, server) for server in SERVERS):
            yield f"it knows a server before it is registered: {before!r}"
        files = machine.files()
        installed = machine.ours("install", "--runner", "path", "--scope", self.scope)
        if [one["action"] for one in installed["operations"]] not in (["created"] * 2, ["updated"] * 2):
            yield f"mcp install says {installed}"
            return
        machine.run([PROGRAM, "trust"])  # what is registered for all workspaces is no agreement to this one
        (path,) = {Path(one["path"]) for one in installed["operations"]}
        left = path.read_bytes()
        if self.kind.approve and self.scope == WORKSPACE:
            for server in SERVERS:
                machine.client(*self.kind.approve, server)
        yield from self._while_registered()
        untouched = path.exists() and path.read_bytes() == left
        removed = machine.ours("uninstall", *self.kind.uninstall)
        if [one["action"] for one in removed["operations"]] != ["removed"] * 2:
            yield f"mcp uninstall says {removed}"
        now = path.read_bytes() if path.exists() else None
        if untouched and now != files.get(path):
            yield f"{path} is not as it was: {now!r}"
        self.worked.append("its file is as it was" if untouched else "the client has written to its file, too")
        after = machine.listed()
        if any(_names(after, server) for server in SERVERS):
            yield f"it still knows a server that is gone: {after!r}"

    def _while_registered(self) -> Iterator[str]:
        machine = self.machine
        said = machine.listed()
        for server in SERVERS:
            if not _names(said, server):
                yield f"its list does not name {server}: {said!r}"
        if self.kind.connected:
            if not machine.connects(said, "UnoApp"):
                yield f"it does not connect: {said!r}"
            self.worked.append("connects")
        elif self.kind.proof is not None and self.scope in self.kind.proven:
            if not self.kind.proof(machine.workspace, machine.environ):
                yield "it does not connect"
            self.worked.append("connects")
        status = machine.ours("status", "--verify")
        states = {one["name"]: ide["status"] for one in status["servers"] for ide in self._of(one["ides"], "ide")}
        if states != dict.fromkeys(SERVERS, "registered"):
            yield f"mcp status says {states}"
        verified = [one.get("sees") for one in self._of(status["verified"], "client")]
        if verified != [dict.fromkeys(SERVERS, True)]:
            yield f"mcp status --verify says {status['verified']}"
        examined = machine.ours("doctor", "--servers", "UnoApp")
        if [one["ok"] for one in examined["entries"]] != [True]:
            yield f"mcp doctor says {examined}"

    def _of(self, items: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
        return [item for item in items if item[key] == self.kind.id]


class NamedTrial:
    """One client, and two servers of one repository: `weather`, the name of its package, and `headlines`, by --name."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.worked = ["has two servers of a repository under their names"]

    def problems(self) -> Iterator[str]:
        machine, kind = self.machine, self.machine.kind
        machine.run(["git", "init", "--quiet"])
        folders = {one: server_in(machine.workspace / "servers" / one, one) for one in ("weather", "news")}
        files = machine.files()
        common = ("--workspace", str(machine.workspace), "--runner", "path")
        scope = ("--scope", WORKSPACE) if kind.scopes else ()
        for folder, name in ((folders["weather"], ()), (folders["news"], ("--name", "headlines"))):
            options = (*common, *scope, "--solution-dir", str(folder), *name, "--trust")
            installed = machine.ours("install", *options)
            if [one["action"] for one in installed["operations"]] not in (["created"], ["updated"]):
                yield f"mcp install says {installed}"
                return
        (path,) = {Path(one["path"]) for one in installed["operations"]}
        left = path.read_bytes()
        yield from self._seen("weather", "headlines") if kind.program else self._read(path)
        states = [machine.ours("status", *common, "--name", name)["servers"] for name in ("weather", "headlines")]
        found = [ide["status"] for (server,) in states for ide in server["ides"] if ide["ide"] == kind.id]
        if found != ["registered", "registered"]:
            yield f"mcp status says {found}"
        examined = machine.ours("doctor", "--workspace", str(machine.workspace), "--servers", "weather,headlines")
        if [(one["ok"], one["tools"]) for one in examined["entries"]] != [(True, 1), (True, 1)]:
            yield f"mcp doctor says {examined}"
        untouched = path.read_bytes() == left
        everywhere = ("--workspace", str(machine.workspace), *kind.uninstall)
        for gone, others in (("weather", ["headlines"]), ("headlines", [])):
            removed = machine.ours("uninstall", *everywhere, "--name", gone)
            if [one["action"] for one in removed["operations"]] != ["removed"]:
                yield f"mcp uninstall says {removed}"
            if kind.program:
                yield from self._seen(*others)
        if untouched and (path.read_bytes() if path.exists() else None) != files.get(path):
            yield f"{path} is not as it was"

    def _seen(self, *servers: str) -> Iterator[str]:
        """Whether the client sees exactly these servers, below the repository's folder where its profile says so."""
        machine, kind = self.machine, self.machine.kind
        if kind.approve:
            for server in servers:
                machine.client(*kind.approve, server)
        said = machine.listed()
        seen = [name for name in ("weather", "headlines") if _names(said, name)]
        if seen != list(servers):
            yield f"it sees {seen}, and not {servers}: {said!r}"
        for name in servers if kind.connected else ():
            if not machine.connects(said, name):
                yield f"it does not connect to {name}: {said!r}"
        below = machine.listed(machine.workspace / "servers")
        if servers and all(_names(below, name) for name in servers) is not (kind.id in SEARCHES_UP):
            yield f"in a subfolder it says {below!r}"

    def _read(self, path: Path) -> Iterator[str]:
        """Whether a client of this file's format has the tools of both servers, started where no workspace is."""
        script = (
            "import asyncio, fastmcp, json, sys\n"
            "async def main():\n"
            "    async with fastmcp.Client(json.load(open(sys.argv[1]))) as client:\n"
            "        while True:\n"
            "            tools = {tool.name for tool in await client.list_tools()}\n"
            "            if {'weather_weather', 'headlines_news'} <= tools:\n"
            "                return\n"
            "            await asyncio.sleep(0.1)\n"
            f"asyncio.run(asyncio.wait_for(main(), {SECONDS / 2}))\n"
        )
        ran = self.machine.run([sys.executable, "-c", script, str(path)], self.machine.home)
        if ran.returncode:
            yield f"its tools are not those of both servers: {ran.stderr[-500:]!r}"
        self.worked.append("a client of its format has the tools of both")


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
