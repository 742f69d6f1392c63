"""The official TypeScript client of MCP, driven from here.

with TypeScriptClient(command, args, cwd, environment) as client:
    client.call("greet", name="you")        # the whole result
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from support.npm import NODE, installed

END_SECONDS = 20  # it closes its server first


class TypeScriptClient:
    """`tools` are the names of those that the server listed when it was connected."""

    def __init__(self, command: str, args: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        home = Path(__file__).parent
        script = (home / "client.mjs").read_text("utf-8")
        # A module on the command line finds its packages from the current folder.
        words = [str(NODE), "--input-type=module", "--eval", script]
        self._process = subprocess.Popen(
            words, cwd=installed(home), env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.tools: list[str] = self._ask({"command": command, "args": list(args), "cwd": str(cwd), "env": dict(env)})

    def __enter__(self) -> TypeScriptClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_SECONDS)
        self._process.stdout.close()

    def call(self, tool: str, **arguments: Any) -> Any:
        return self._ask({"name": tool, "arguments": arguments})

    def _ask(self, question: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the client ended with {self._process.wait(END_SECONDS)}"
        return json.loads(line)
