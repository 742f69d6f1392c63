"""A server of the official SDK over HTTP that wants a token."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.files import write

PROGRAM = Path(__file__).parents[1] / "protocol" / "client" / "official_server.py"
PATIENCE = 60.0
TOKEN = "right-token-1234"


class GuardedServer:
    """A server of the official SDK that wants a token."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.file = folder / "guard.tokens"
        self.allow(TOKEN)
        words = [sys.executable, str(PROGRAM), "stateless", f"guard={self.file}", *arguments]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/{'sse' if 'sse' in arguments else 'mcp'}"

    def allow(self, *tokens: str, otherwise: int = 401) -> None:
        write(self.file, " ".join((str(otherwise), *tokens)))

    def asked(self) -> int:
        file = self.file.with_suffix(".asked")
        return len(file.read_text().splitlines()) if file.exists() else 0

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()
