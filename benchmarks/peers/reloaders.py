"""Programs that start a server again when its code was edited, ours among them, in one run on the same servers.

In each round every one of them does one edit, in turn. The time counts from the edit until the new code has answered a
call of a client that calls all the time, and greets again where it has to. Beside it stands what the server itself
needs from its launch until a client has greeted it, listed its tools and called one, in the same rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import median
from benchmarks.peers.experiments import EDIT_SECONDS, REVISION, bound, text_of
from benchmarks.peers.installed import HOME, NODE, OURS, Command, installed, node_version, python_version
from benchmarks.peers.servers import FASTMCP
from benchmarks.peers.sessions import OnPipes, end, last_words, why
from benchmarks.proxy import PROGRAM

OWN, RESTART, SWAP = "its own start", f"{OURS}, restart", f"{OURS}, swap"
BARS = {RESTART: 60.0, SWAP: 20.0}  # milliseconds that ours may add to the server's own start
UNFIT = "–"

PLAIN_NODE = """
import { createInterface } from "node:readline";

const REVISION = "0";
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "bench", version: REVISION },
  }),
  "tools/list": () => ({ tools: [{ name: "revision", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: REVISION }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method]?.(params);
  const rest = result ? { result } : { error: { code: -32601, message: "unknown" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
});
"""


class Server(NamedTuple):
    name: str
    file: str
    code: str
    interpreter: str
    manifest: str = ""

    def new_folder(self, name: str) -> Path:
        folder = HOME / "reloaded" / f"{self.file}-{name}".replace(" ", "-").replace(",", "")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.manifest:
            (folder / self.manifest).write_text('{ "name": "bench", "version": "1.0.0" }', "utf-8")
        self.write(folder, 0)
        return folder

    def write(self, folder: Path, revision: int) -> None:
        text = self.code.replace('REVISION = "0"', f'REVISION = "{revision}"')
        (folder / self.file).write_text(text, "utf-8")


SERVERS = (
    Server("a plain Node server", "server.mjs", PLAIN_NODE, NODE, "package.json"),
    Server("a server made with fastmcp", "server.py", FASTMCP, str(HOME / "fastmcp" / "bin" / "python")),
)


class Reloader(NamedTuple):
    name: str
    command: Callable[[Command], Command]  # of the server, in its folder
    only: str = ""  # the file that it can serve


class Edited:
    """One server behind one of them; its session stays over the rounds."""

    def __init__(self, server: Server, reloader: Reloader) -> None:
        self._server = server
        self._folder = server.new_folder(reloader.name)
        devtools = self._folder / ".devtools"
        devtools.mkdir()
        config = {
            "mcpServerRoot": "..",
            "mcpServer": {"command": server.interpreter, "args": [server.file]},
            "hotReload": {"strategy": "swap" if reloader.name == SWAP else "restart"},
        }
        (devtools / "host.config.jsonc").write_text(json.dumps(config), "utf-8")
        self._revision = 0
        self.session = OnPipes(reloader.command([server.interpreter, server.file]), self._folder)
        self.session.shake_hands()

    def edit(self, seconds: float) -> float:
        """Milliseconds until the new code answers."""
        self._until_answered(seconds)
        self._revision += 1
        self._server.write(self._folder, self._revision)
        begun = time.perf_counter()
        self._until_answered(seconds)
        return (time.perf_counter() - begun) * 1000

    def _until_answered(self, seconds: float) -> None:
        self.session.until(lambda answer: text_of(answer) == str(self._revision), REVISION, seconds)


class Measured(NamedTuple):
    versions: dict[str, str]
    samples: dict[tuple[str, str], list[float]]  # by server and reloader, and its own start
    reasons: dict[tuple[str, str], str]  # why there is none
    load: float  # processes that wanted to run, on average


def reloaders() -> list[Reloader]:
    nodemon = str(HOME / "npm" / "node_modules" / ".bin" / "nodemon")
    mcpmon, fastmcp = (str(HOME / name / "bin" / name) for name in ("mcpmon", "fastmcp"))
    ours = [PROGRAM, "mcp", "start", "--wait-calls"]
    return [
        Reloader(RESTART, lambda _: ours),
        Reloader(SWAP, lambda _: ours),
        Reloader("node --watch", lambda command: [NODE, "--watch", command[-1]], SERVERS[0].file),
        Reloader("nodemon", lambda command: [NODE, nodemon, "--quiet", "--exec", command[0], command[-1]]),
        Reloader("mcpmon", lambda command: [mcpmon, "--quiet", "--ext", "py,mjs", "--watch", ".", "--", *command]),
        Reloader(
            "fastmcp run --reload",
            lambda command: [fastmcp, "run", "--no-banner", "--reload", command[-1]],
            SERVERS[1].file,
        ),
    ]


def measure(rounds: int) -> Measured:
    installed()
    versions = {"nodemon": node_version("nodemon"), **{name: python_version(name) for name in ("mcpmon", "fastmcp")}}
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    reasons: dict[tuple[str, str], str] = {}
    all_of_them = reloaders()
    for server in SERVERS:
        kept: dict[str, Edited] = {}
        fit = [one for one in all_of_them if one.only in ("", server.file)]
        try:
            for number in range(rounds + 1):  # the first one finds out who can do it, and does not count otherwise
                own = _own_start(server)
                if number:
                    samples[server.name, OWN].append(own)
                for reloader in fit[number % len(fit) :] + fit[: number % len(fit)]:
                    key = (server.name, reloader.name)
                    if key in reasons:
                        continue
                    try:
                        if reloader.name not in kept:
                            kept[reloader.name] = Edited(server, reloader)
                        taken = kept[reloader.name].edit(bound(EDIT_SECONDS, own / 1000 / 20))
                    except (Exception, SystemExit) as error:  # whatever it is, the others are measured
                        said = last_words(kept[reloader.name].session) if reloader.name in kept else ""
                        reasons[key] = why(error) + said
                        print(f"{': '.join(key)}: no: {reasons[key]}", file=sys.stderr)
                        continue
                    if number:
                        samples[key].append(taken)
        finally:
            for edited in kept.values():
                end(edited.session)
    return Measured(versions, samples, reasons, os.getloadavg()[0])


def _own_start(server: Server) -> float:
    """Milliseconds from its launch, without any of them, until a client has greeted it, listed and called."""
    session = OnPipes([server.interpreter, server.file], server.new_folder("alone"))
    try:
        session.shake_hands()
        session.ask("tools/list", {})
        session.ask("tools/call", REVISION)
        return (time.perf_counter() - session.started) * 1000
    finally:
        end(session)


def render(measured: Measured) -> list[str]:
    names = [OWN, *(reloader.name for reloader in reloaders())]
    versions = ", ".join(f"{name} {version}" for name, version in measured.versions.items())
    lines = [
        f"Beside others ({versions}): edit → new code answers, medians; in brackets, how much longer than the server's",
        f"own start in the same round, as median and at most. The load of the machine was {measured.load:.1f};",
        "above its cores, small differences are noise.",
        "",
        f"| ms | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
    ]
    for server in SERVERS:
        cells = [_cell(measured, server.name, name) for name in names]
        lines.append(f"| {server.name} | {' | '.join(cells)} |")
    return lines


def missed(measured: Measured) -> list[str]:
    """Where ours adds more to the server's own start than its bar, or another is faster; to be empty."""
    found = []
    for server in SERVERS:
        added = {
            name: median(_added(measured, server.name, name))
            for (of, name), values in measured.samples.items()
            if of == server.name and name != OWN and values
        }
        found += [f"{server.name}: {name} failed" for name in BARS if name not in added]
        found += [
            f"{server.name}: {name} adds {added[name]:.0f} ms, not {bar:g}"
            for name, bar in BARS.items()
            if name in added and added[name] > bar
        ]
        best = min(added, key=lambda name: added[name])
        found += [] if best in BARS else [f"{server.name}: {best} is faster"]
    return found


def rows(measured: Measured) -> list[dict[str, object]]:
    """What is kept: every sample, and why there is none."""
    found: list[dict[str, object]] = [
        {"what": server, "reloader": name, "milliseconds": _rounded(values)}
        for (server, name), values in measured.samples.items()
    ]
    for (server, name), reason in measured.reasons.items():
        found.append({"what": server, "reloader": name, "no": reason})
    return found


def _cell(measured: Measured, server: str, name: str) -> str:
    values = measured.samples.get((server, name))
    if not values:
        return "no" if (server, name) in measured.reasons else UNFIT
    if name == OWN:
        return f"{median(values):.0f}"
    added = _added(measured, server, name)
    return f"{median(values):,.0f} ({median(added):+,.0f}, {max(added):+,.0f})"


def _added(measured: Measured, server: str, name: str) -> list[float]:
    """Of each round, the milliseconds that the new code took longer than the server's own start."""
    columns = measured.samples[server, name], measured.samples[server, OWN]  # one that failed has fewer rounds
    return [taken - own for taken, own in zip(*columns, strict=False)]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 2) for value in values]
