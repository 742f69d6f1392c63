"""A proxy as a process, with a small engine of the test instead of the real one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 15.0  # for what takes milliseconds on an idle machine

# Answers what it is asked, until it is told to end; `odd` makes it do something else.
PROGRAM = """
import asyncio, os, sys, time
from uno_devserver.issues import UserError
from uno_devserver.proxy import main
from uno_devserver.proxy.front import outlet
from uno_devserver.proxy.main import serve
from uno_devserver.proxy.front.json_lines import answer_line
from uno_devserver.proxy.options import Options

odd = os.environ.get("ODD_ENGINE")

def run(options, state, inbox, write, timeline):
    if odd == "fails":
        raise RuntimeError("no engine today")
    if odd == "prints":
        print("a stray line")
        os.system("echo a child; cat")
    if odd == "returns":
        return UserError("Odd", "It returned.", "Nothing.", 3)
    if odd == "sleeps":
        time.sleep(1000)
    if odd == "floods":
        while True:
            write(b'"' + b"x" * 100_000 + b'"')
    return asyncio.run(work(inbox, write))

async def work(inbox, write):
    over = asyncio.get_running_loop().create_future()

    def take(message):
        kind, value = message
        if kind == "end":
            over.set_result(0)
        elif kind == "message" and "method" in value and "id" in value:
            if odd == "breaks":
                over.set_exception(RuntimeError("broken"))
            elif value["params"].get("name") == "block":
                time.sleep(1000)
            elif value["params"].get("name") != "slow":
                write(answer_line(value["id"], {"echo": value["params"]}))

    inbox.open(asyncio.get_running_loop(), take)
    result = await over
    if odd == "hangs":
        time.sleep(1000)
    return result

if odd == "floods":
    main.IDLE_MS = 50
    main.Outlet = lambda handle: outlet.Outlet(handle, 1_000_000, 2_000_000)
if os.environ.get("AS_ON_WINDOWS"):
    main.POLLS = outlet.POLLS = False

options = {name: f"--{name}" in sys.argv for name in ("only_catalogue", "wait_tools", "force_fallback")}
failure = serve(Options(os.getcwd(), **options), run)
sys.exit(failure.exit_code if failure else 0)
"""


def command(*options: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *options]


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


class FrontProcess:
    """Ends with the block, whatever happens in it."""

    def __init__(
        self,
        cwd: Path,
        *options: str,
        prefix: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        self.process = subprocess.Popen(
            [*prefix, *command(*options)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        )

    def __enter__(self) -> FrontProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def send(self, *messages: object) -> None:
        assert self.process.stdin
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self) -> Any:
        """The next line."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "nothing was heard"
        line = self.process.stdout.readline()
        assert line, self.errors()
        return json.loads(line)

    def ask(self, method: str, params: object = None, request_id: int | str = 1) -> Any:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        answer = self.heard()
        assert answer["id"] == request_id
        return answer.get("result", answer.get("error"))

    def close(self) -> float:
        """Close its input, and wait; how long it took."""
        assert self.process.stdin
        began = time.monotonic()
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        return time.monotonic() - began

    def errors(self) -> str:
        assert self.process.stderr
        printed: bytes = self.process.stderr.read()
        return printed.decode()
