"""A proxy as a process, with a small engine of the test in place of the real one, and no upstream."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # for what takes milliseconds on an idle machine

# Answers what it is asked, until it is told to end; ODD_ENGINE makes it do something else.
PROGRAM = """
import os, sys, time, types
from uno_devserver.issues import UserError
from uno_devserver.proxy import main
from uno_devserver.proxy.front import input, output
from uno_devserver.proxy.front.json_lines import answer_line
from uno_devserver.proxy.options import ProxyOptions

odd = os.environ.get("ODD_ENGINE")

class FirstStart:
    def __init__(self, options, timeline):
        if odd == "fails":
            raise RuntimeError("no engine today")
        if odd == "prints":
            print("a stray line")
            os.system("echo a child; cat")
        if odd == "sleeps":
            time.sleep(1000)

class Relay:
    def take(self, line):
        return line

    def flush(self):
        pass

class Engine:
    def __init__(self, options, state, write, output, first):
        import asyncio

        if odd == "cannot be made":
            raise RuntimeError("broken")
        self.relay, self.write, self.over = Relay(), write, asyncio.Event()
        self.failure = None

    async def make_catalogue(self):
        return UserError("Odd", "It returned.", "Nothing.", 3)

    async def run(self):
        import asyncio

        while odd == "floods":
            self.write(b'"' + b"x" * 100_000 + b'"')
            await asyncio.sleep(0)
        await self.over.wait()
        if self.failure:
            raise self.failure

    def stop(self):
        if odd == "hangs":
            time.sleep(1000)
        self.over.set()

    async def close(self):
        pass

    def client_met(self, client):
        pass

    def list_read(self):
        pass

    def take(self, message):
        if not hasattr(message, "method") or not hasattr(message, "id"):
            return
        name = message.params.get("name")
        if odd == "breaks":
            self.failure = RuntimeError("broken")
            self.over.set()
        elif name == "block":
            time.sleep(1000)
        elif name != "slow":
            self.write(answer_line(message.id, {"echo": message.params}))

for name, content in (("first_start", FirstStart), ("engine", Engine)):
    module = sys.modules[f"uno_devserver.proxy.{name}"] = types.ModuleType(name)
    setattr(module, content.__name__, content)
if odd == "floods":
    main.IDLE_MS = 50
    main.ClientOutput = lambda handle, lost: output.ClientOutput(handle, 1_000_000, 2_000_000, lost=lost)
if os.environ.get("AS_ON_WINDOWS"):
    input._can_be_watched, output.POLLS = lambda handle: False, False
    main.tells_closed = lambda: False

options = {name: f"--{name}" in sys.argv for name in ("only_catalogue", "wait_tools", "force_fallback")}
failure = main.serve(ProxyOptions(os.getcwd(), **options))
sys.exit(failure.exit_code if failure else 0)
"""


def command(*options: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *options]


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
        self._unheard = bytearray()
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
        end = self._unheard.find(b"\n")
        while end < 0:
            if sys.platform != "win32":  # where pipes cannot be waited for; the time limit of the test is left
                ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
                assert ready, "nothing was heard"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            assert data, self.errors()
            seen = len(self._unheard)
            self._unheard += data
            end = self._unheard.find(b"\n", seen)
        line = bytes(self._unheard[:end])
        del self._unheard[: end + 1]
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
