"""A world: a user's machine in a folder, a server of one kind on it, and clients that call it through proxies.

What a fault leaves broken is mended later: by its time, or with everything else at the end of a round.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos.clients import Client, Tally
from chaos.disk import Disk
from chaos.plan import WORLDS
from chaos.upstreams.tools import FOLDER_VARIABLE
from support.hosts import is_running
from support.inspectors import ADDRESS, InspectorClient
from support.machine import Machine

TESTS = Path(__file__).parents[1]
REPOSITORY = TESTS.parent
CONFIG = ".devtools/host.config.jsonc"


class World:
    """`with Restart(...) as world`; at its end nothing of it runs any more, whatever went wrong."""

    clients_wanted = 2
    server_words = ""  # in the command line of its server
    prefixes: tuple[str, ...] = ("",)  # of the tools of each server

    def __init__(self, name: str, seed: int, *, may_mount: bool) -> None:
        self.name = name
        self.root = Path(tempfile.mkdtemp(prefix="uc"))  # short: sockets lie below it
        self.machine = Machine(self.root)
        self.chaos = self.root / "chaos"
        (self.chaos / "orders").mkdir(parents=True)
        self._mark = f"XDG_DATA_HOME={self.machine.data}\0".encode()
        self.tally = Tally()
        self.clients: list[Client] = []
        self.started = 0  # clients, in all
        self.disk = Disk(self.machine.data, may_mount)
        self._seed = seed
        self._mends: list[tuple[float, Callable[[], None]]] = []
        self._orders = 0
        self.machine.environment |= {
            "UNO_DEVSERVER_TRUST": "1",
            FOLDER_VARIABLE: str(self.chaos),
            "CHAOS_TESTS": str(TESTS),
        }
        self._command, more = program()
        self.machine.environment |= more
        self.lay_out()
        self.config_content = self.config.read_bytes() if self.config.exists() else None  # the user's own
        self.laid_out = self.workspace_files()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            self.signal(pid, signal.SIGKILL)
        self.disk.release()
        shutil.rmtree(self.root, ignore_errors=True)

    def lay_out(self) -> None:
        """Make what is in the workspace, and start the programs of others."""

    @property
    def arguments(self) -> list[str]:
        return ["--mcp-app"]

    @property
    def has_pages(self) -> bool:
        return "watch the page" in WORLDS[self.name]

    # --- clients

    def start_client(self) -> Client:
        number = self.started
        self.started += 1
        log = self.root / f"proxy-{number}.log"
        client = Client(
            f"{self.name}-{number}",
            [*self._command, *self.arguments, *(["--inspector", "0"] if self.has_pages else []), "-fl", str(log)],
            self.machine.workspace,
            self.machine.variables(),
            self.tally,
            modern=number % 2 == 1,
            seed=self._seed + number,
            prefixes=self.prefixes,
        )
        self.clients.append(client)
        return client

    def replace(self, client: Client) -> None:
        """Start another client in the place of one that has ended."""
        self.clients.remove(client)
        self.start_client()

    def help_user(self, health: Mapping[str, Any]) -> None:
        """What a user does who reads the health report of a proxy that does not work."""

    def page(self, client: Client) -> InspectorClient | None:
        """The page of a client's proxy; None if it has none, or its status file cannot be read at the moment."""
        if client.page is None and client.process.proxy is not None:
            path = self.machine.state / "proxies" / f"{client.process.proxy}.json"
            try:
                status = json.loads(path.read_text("utf-8"))
                if address := ADDRESS.fullmatch(str(status["inspector"])):
                    client.page = InspectorClient(int(address[1]), status["inspectorToken"])
            except (OSError, ValueError, LookupError, TypeError):
                pass  # it is not open yet, or was spoiled
        return client.page

    def tokens(self) -> list[str]:
        """Those that may be in no file but that of the sign-in."""
        return []

    # --- mending

    def later(self, seconds: float, mend: Callable[[], None]) -> None:
        self._mends.append((time.monotonic() + seconds, mend))

    def mend(self, *, everything: bool = False) -> None:
        """Make the repairs that are due."""
        now = time.monotonic()
        due = [each for each in self._mends if everything or each[0] <= now]
        self._mends = [each for each in self._mends if each not in due]
        for _, mend in sorted(due, key=lambda each: each[0]):
            mend()

    # --- its server

    def order(self, what: str) -> None:
        """Order the next server that answers to do this."""
        self._orders += 1
        (self.chaos / "orders" / f"{what}.{self._orders}").touch()

    def withdraw_orders(self) -> None:
        for order in (self.chaos / "orders").iterdir():
            order.unlink(missing_ok=True)

    def servers(self) -> list[int]:
        return [pid for pid in self.processes() if self.server_words in command_line(pid)]

    def processes(self) -> list[int]:
        """The processes whose environment names the folder of this world."""
        others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
        return [pid for pid in others if self._mark in environment(pid) and is_running(pid)]

    def foreign_processes(self) -> list[str]:
        """Processes that proxies started, and that did not end with them."""
        return [f"{pid}: {command_line(pid).replace(chr(0), ' ')}" for pid in self.processes()]

    def signal(self, pid: int, number: int) -> None:
        """If it is still one of this world's: process ids come again."""
        if self._mark in environment(pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it was quicker

    def ledger(self) -> list[dict[str, Any]]:
        path = self.chaos / "ledger"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    # --- its files

    @property
    def vendor(self) -> Path:
        return self.machine.data / "Uno Platform"

    def state_files(self) -> list[Path]:
        return sorted(path for path in self.machine.state.rglob("*") if path.is_file() and path.suffix != ".log")

    def workspace_files(self) -> set[str]:
        """What lies in the workspace, but for what its own programs make."""
        workspace = self.machine.workspace
        paths = {str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()}
        return {path for path in paths if "__pycache__" not in path and "/build/" not in path}

    def edit(self, revision: str) -> None:
        raise NotImplementedError

    def break_source(self) -> None:
        raise NotImplementedError

    def break_start(self) -> None:
        raise NotImplementedError

    @property
    def source(self) -> Path:
        raise NotImplementedError

    @property
    def revision(self) -> str:
        """Of the code, as its answers name it."""
        return ""

    @property
    def config(self) -> Path:
        return self.machine.workspace / CONFIG


def program() -> tuple[list[str], dict[str, str]]:
    """How the program of this checkout is started, and the variables that it needs: none, where it is installed."""
    installed = subprocess.run(
        [sys.executable, "-I", "-c", "import uno_devserver; print(uno_devserver.__file__)"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    source = REPOSITORY / "src"
    if installed.startswith(f"{source}{os.sep}"):
        return [str(Path(sys.executable).parent / "uno-devserver")], {}
    return [sys.executable, "-P", "-m", "uno_devserver"], {"PYTHONPATH": str(source)}


def replace_text(path: Path, text: str) -> None:
    """As editors do: a new file takes the place of the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf-8")
    new.replace(path)


def command_line(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline").decode("utf-8", "replace")


def environment(pid: int) -> bytes:
    return _read(f"/proc/{pid}/environ")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # gone, or another user's
        return b""
