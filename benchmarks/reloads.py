"""How long does an edit take until the new code answers, and does any call suffer?

A plain MCP server of some lines, a Python add-in in the bundled Host, and a server made with the official SDK are
edited again and again behind the proxy. *restart*: an agent calls, is told to wait, calls `mcpStatus` and calls again.
*swap*: sixteen callers go on all the time. Every answer is checked: one per call, none refused, and the code of each
edit must answer. Beside it stands what the server itself needs from its launch to its first answer. Then other programs
that reload servers have their turn beside ours, on a server that each can serve. Exit code 1 means a wrong answer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.conversations import LIMIT_SECONDS, Pipes, request
from benchmarks.figures import clean_environment, conditions, median, save
from benchmarks.workspaces import WORK

PROXY = [str(Path(sys.executable).with_name("uno-devserver")), "--mcp-app"]
EDITS = 20
CALLERS = 16
CALM_SECONDS = 0.2  # that the callers go on before the next edit
CALL = {"name": "revision", "arguments": {}}
META = "uno-devserver/hotReload"

PLAIN = """
import json, sys

REVISION = "0"
TOOL = {"name": "revision", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message.get("method")
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": REVISION},
        }
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": REVISION}]}
    else:
        answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}
        print(json.dumps(answer), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

SDK = """
from mcp.server.mcpserver import MCPServer

REVISION = "0"
server = MCPServer("bench")


@server.tool()
def revision() -> str:
    return REVISION


server.run()
"""

ADDIN = '''
REVISION = "0"


def register(addin):
    @addin.tool()
    async def revision() -> str:
        """Which code this is."""
        return REVISION
'''


class Case:
    """A server, its workspace, and the file that is edited."""

    def __init__(self, name: str, code: str, *, strategy: str = "restart", addin: bool = False) -> None:
        self.name = name
        self.folder = WORK / "reloads" / "".join(letter if letter.isalnum() else "-" for letter in name)
        self._code = code
        shutil.rmtree(self.folder, ignore_errors=True)
        devtools = self.folder / ".devtools"
        devtools.mkdir(parents=True)
        self.source = self.folder / "server.py"
        if addin:
            self.source = devtools / "addins" / "revision.py"
            self.source.parent.mkdir()
        else:
            config = {
                "mcpServerRoot": "..",
                "mcpServer": {"command": sys.executable, "args": ["server.py"]},
                "hotReload": {"strategy": strategy},
                "pipeline": {"concurrency": CALLERS},
            }
            (devtools / "host.config.jsonc").write_text(json.dumps(config), "utf-8")
        self.edit("0")

    def edit(self, revision: str) -> None:
        self.source.write_text(self._code.replace('REVISION = "0"', f'REVISION = "{revision}"'), "utf-8")

    def proxy(self) -> Pipes:
        proxy = Pipes([*PROXY, "--wait-calls"], environment(), self.folder)
        proxy.shake_hands()
        expect(proxy.ask("tools/call", CALL), "0")
        return proxy


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reloads", description=__doc__)
    parser.add_argument("--edits", type=int, default=EDITS)
    parser.add_argument("--quick", action="store_true", help="5 edits each")
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    edits = 5 if options.quick else max(1, options.edits)
    rows = []
    for name, code, addin in (
        ("a plain server", PLAIN, False),
        ("an add-in of the Host", ADDIN, True),
        ("a server of the official SDK", SDK, False),
    ):
        reloads = _restarts(Case(f"{name}, restart", code, addin=addin), edits)
        swaps = None if addin else _swaps(Case(f"{name}, swap", code, strategy="swap"), edits)
        own = None if addin else [_own_start(Case(name, code)) for _ in range(edits)]
        rows.append((name, own, reloads, swaps))
    from benchmarks.peers import reloaders  # which has its servers from here

    beside = reloaders.measure(edits)
    report = "\n".join([render(rows, edits), *reloaders.render(beside), ""])
    print(report)
    for sentence in reloaders.missed(beside):
        print(f"MISS: {sentence}")
    if options.save:
        kept = [
            {
                "what": name,
                "ownStart": own,
                "restart": reloads,
                "swap": swaps and swaps[0],
                "calls": _summed(swaps),
            }
            for name, own, reloads, swaps in rows
        ]
        save("reload", edits, [*kept, *reloaders.rows(beside)], report)
    return 1 if any(name in reloaders.BARS for _, name in beside.reasons) else 0


def _summed(swaps: tuple[list[float], list[float]] | None) -> dict[str, float] | None:
    """What is kept of the hundreds of thousands of calls during the swaps."""
    return swaps and {"count": len(swaps[1]), "longestMs": max(swaps[1])}


def environment() -> dict[str, str]:
    return clean_environment(UNO_DEVSERVER_TRUST="1")


def expect(answer: dict[str, Any], revision: str) -> None:
    if _text(answer) != revision:
        raise SystemExit(f"wrong answer, not from revision {revision}: {answer}")


def _text(answer: dict[str, Any]) -> object:
    result = answer.get("result", {})
    content = result.get("content", [])
    return None if result.get("isError") or not content else content[0].get("text")


def _own_start(case: Case) -> float:
    """Milliseconds until the server itself, without us, has answered its first request."""
    server = Pipes([sys.executable, str(case.source)], environment(), case.folder)
    server.shake_hands()
    milliseconds = (time.perf_counter() - server.started) * 1000
    server.quit()
    return milliseconds


def _restarts(case: Case, edits: int) -> list[float]:
    """Milliseconds from each edit until the new code has answered an agent that does as it is told."""
    proxy = Pipes(PROXY, environment(), case.folder)
    try:
        proxy.shake_hands()
        _until(lambda: _text(proxy.ask("tools/call", CALL)) == "0")
        taken = []
        for number in range(1, edits + 1):
            case.edit(str(number))
            edited = time.perf_counter()
            told = proxy.ask("tools/call", CALL)
            state = told["result"].get("_meta", {}).get(META, {}).get("state")
            if state != "restarting":
                raise SystemExit(f"the agent was not told of the restart: {told}")
            proxy.ask("tools/call", {"name": "mcpStatus", "arguments": {}})
            expect(proxy.ask("tools/call", CALL), str(number))
            taken.append((time.perf_counter() - edited) * 1000)
        return taken
    finally:
        proxy.quit()


def _swaps(case: Case, edits: int) -> tuple[list[float], list[float]]:
    """Milliseconds from each edit until the new code answers a call made after it, and those of every call."""
    proxy = case.proxy()
    taken: list[float] = []
    calls: list[float] = []
    try:
        sent: dict[int, float] = {}
        for number in range(1, edits + 1):
            case.edit(str(number))
            edited = time.perf_counter()
            while len(taken) < number or time.perf_counter() - edited < taken[-1] / 1000 + CALM_SECONDS:
                while len(sent) < CALLERS:
                    _send(proxy, sent)
                began, answer = _answered(proxy, sent)
                calls.append((time.perf_counter() - began) * 1000)
                text = _text(answer)
                served = len(taken) == number and began > edited + taken[-1] / 1000  # nobody has the old code any more
                if text != str(number) and (served or text != str(number - 1)):
                    raise SystemExit(f"a call failed: {answer}")
                if len(taken) < number and text == str(number):
                    taken.append((time.perf_counter() - edited) * 1000)
                if time.perf_counter() - edited > LIMIT_SECONDS:
                    raise SystemExit(f"edit {number} is not served within {LIMIT_SECONDS:g} s")
        while sent:
            began, answer = _answered(proxy, sent)
            calls.append((time.perf_counter() - began) * 1000)
            expect(answer, str(edits))
        return taken, calls
    finally:
        proxy.quit()


def _send(proxy: Pipes, sent: dict[int, float]) -> None:
    request_id = proxy.next_id()
    sent[request_id] = time.perf_counter()
    proxy.send(request(request_id, "tools/call", CALL))


def _answered(proxy: Pipes, sent: dict[int, float]) -> tuple[float, dict[str, Any]]:
    while True:
        message: dict[str, Any] = json.loads(proxy.line())
        if "method" in message:
            continue
        if message.get("id") not in sent:
            raise SystemExit(f"an answer that nobody waits for: {message}")
        return sent.pop(message["id"]), message


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + LIMIT_SECONDS
    while not condition():
        if time.perf_counter() > deadline:
            raise SystemExit(f"the server does not answer within {LIMIT_SECONDS:g} s")
        time.sleep(0.01)


Row = tuple[str, list[float] | None, list[float], tuple[list[float], list[float]] | None]


def render(rows: list[Row], edits: int) -> str:
    lines = [
        conditions(edits).replace("interleaved runs of whole processes", "edits"),
        "",
        "| ms | its own start | edit → new code answers: restart | swap | longest call of a swap | calls |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, own, reloads, swaps in rows:
        start = f"{median(own):.0f}" if own else ""
        swap = [f"{median(swaps[0]):.0f}", f"{max(swaps[1]):.0f}", f"{len(swaps[1]):,}"] if swaps else ["", "", ""]
        lines.append(f"| {name} | {start} | {median(reloads):.0f} | {' | '.join(swap)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
