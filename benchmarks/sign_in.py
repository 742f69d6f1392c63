"""How long does it take to the first call of a server that needs a sign-in, beside mcp-remote?

From the start of the first process to the answer of a tool, with a real authorization server and a real MCP server: at
first without a token, then with one. The user is a program that fills in the pages at once, so what is measured is
everything but the user. Ours is `login`, then the proxy; mcp-remote does both in one process. Exit code 1: a wrong
answer.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.conversations import LIMIT_SECONDS, Pipes
from benchmarks.figures import clean_environment, save, start_rows, start_table
from benchmarks.peers.installed import NODE, Command, node_programs, node_version
from benchmarks.proxy import PROGRAM
from benchmarks.workspaces import WORK
from support.sign_ins import AuthorizationServer, browse

FOLDER = WORK / "sign-in"
ROUNDS = 9
CALL = {"name": "greet", "arguments": {"name": "you"}}

BARE = "bare interpreter"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sign_in", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--save", action="store_true", help="keep the samples, and put the figures into the documents")
    options = parser.parse_args()
    rounds = max(1, options.rounds)
    mcp_remote = [NODE, str(node_programs() / "mcp-remote")]
    theirs = f"mcp-remote {node_version('mcp-remote')}"
    names = [f"{who}, {how}" for who in ("uno-devserver", theirs) for how in ("without a token", "with a token")]
    samples: dict[str, list[float]] = {name: [] for name in (BARE, *names)}
    with AuthorizationServer() as authorization:
        url = authorization.protected_server()
        start = [PROGRAM, "mcp", "start", "--wait-calls", "--upstream-url", url]
        remote = [*mcp_remote, url, "--allow-http", "--transport", "http-only"]
        for number in range(rounds + 1):  # the first one warms the disk cache and does not count
            shutil.rmtree(FOLDER, ignore_errors=True)
            FOLDER.mkdir(parents=True)
            environ = clean_environment(XDG_DATA_HOME=str(FOLDER), MCP_REMOTE_CONFIG_DIR=str(FOLDER / "mcp-remote"))
            took = [
                _bare(),
                _login([PROGRAM, "login", "--no-open", url], environ) + _called(start, environ),
                _called(start, environ),
                _called(remote, environ, signs_in=True),
                _called(remote, environ),
            ]
            if number:
                for name, seconds in zip(samples, took, strict=True):
                    samples[name].append(seconds * 1000)
    report = "\n".join(start_table(samples, {}, BARE, rounds)) + "\n"
    print(report)
    if options.save:
        save("sign-in", rounds, start_rows(samples, {}, BARE), report)
    return 0


def _bare() -> float:
    begun = perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=clean_environment())
    return perf_counter() - begun


def _login(command: Command, environ: dict[str, str]) -> float:
    begun = perf_counter()
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    browse(_pages(process).get(timeout=LIMIT_SECONDS))
    if process.wait(LIMIT_SECONDS):
        raise SystemExit("the sign-in failed")
    return perf_counter() - begun


def _called(command: Command, environ: dict[str, str], *, signs_in: bool = False) -> float:
    """From the start of the process to the answer of the first call."""
    session = Pipes(command, environ, FOLDER, subprocess.PIPE)
    pages = _pages(session.process)
    user = threading.Thread(target=lambda: browse(pages.get(timeout=LIMIT_SECONDS)), daemon=True)
    if signs_in:
        user.start()
    session.shake_hands()
    answer = session.ask("tools/call", CALL)
    seconds = perf_counter() - session.started
    if "Hello, you!" not in str(answer.get("result")):
        raise SystemExit(f"wrong answer: {answer}")
    session.process.kill()
    session.quit()
    return seconds


def _pages(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Queue[str]:
    """The addresses that a program prints for its user on standard error."""
    found: Queue[str] = Queue()

    def read() -> None:
        assert process.stderr is not None
        with process.stderr as stream:
            for line in stream:
                text = line if isinstance(line, str) else line.decode("utf-8", "replace")
                if text.startswith("http") and "code_challenge" in text:
                    found.put(text.strip())

    threading.Thread(target=read, daemon=True).start()
    return found


if __name__ == "__main__":
    sys.exit(main())
