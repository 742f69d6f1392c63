"""The temporary folder in which the demo runs: home, state, package cache and workspaces.

No file of the user is read or written. When the sandbox is closed, all processes that were started in it are ended, and
the folder is removed, within a bounded time.
"""

from __future__ import annotations

import os
import shutil
import signal
import site
import tempfile
import time

from ...instances.registry import running_servers
from ...issues import UserError
from ...setup.entry_command import own_command
from ...system.dotnet_formats import from_time
from ...system.folders import folders
from ...system.processes import is_alive, process_started, stop_process
from ...system.run import run
from ..interrupts import Interrupts
from .client import DemoClient, DemoFailed, expect
from .files import APP, FILES, PACKAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

COMMAND_SECONDS = 20.0  # a command takes about 50 ms; the rest is for busy machines
COMMAND_BYTES = 64 * 1024
STOP_SECONDS = 2.0
GONE_SECONDS = 5.0  # a killed process ends at once, except while the kernel waits for a disk
POLL_SECONDS = 0.001
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows SIGTERM kills
_OURS = "UNO_DEVSERVER_"  # prefix of variables that are removed: the user's settings are for real sessions


class Sandbox:
    def __init__(self) -> None:
        self._interrupts = Interrupts()
        self._clients: list[DemoClient] = []
        self._left: list[str] = []
        self.root = ""

    def __enter__(self) -> Sandbox:
        self._interrupts.hold()  # a signal must not interrupt between the start of a process and its registration below
        try:
            self.root = os.path.realpath(tempfile.mkdtemp(prefix="uno-demo-"))
            self._environ = _environ(self.root)
            self._registry = folders(self._environ).registry
            os.mkdir(self._environ["TMPDIR"])
            for name, text in FILES.items():
                path = self.path(name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8", newline="\n") as file:
                    file.write(text)
        except OSError as error:
            shutil.rmtree(self.root, ignore_errors=True)
            message = f"The files of the demo could not be written: {error}."
            raise UserError("NoTemporaryFolder", message, "Set TMPDIR to a folder with some space.") from error
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.end()
        for pid in self._processes():
            started = process_started(pid)
            if started is not None:
                stopped = stop_process(pid, started, grace_seconds=STOP_SECONDS, kill_seconds=STOP_SECONDS)
                self._left += [stopped.problem] if stopped.problem else []
        self._left += [f"process {client.pid} still runs" for client in self._clients if client.is_running]
        shutil.rmtree(self.root, ignore_errors=True)
        self._left += [f"'{self.root}' is still there"] if os.path.exists(self.root) else []

    def _processes(self) -> Iterator[int]:
        """The processes of this sandbox, known by their home folder: a starting Host is not in the registry yet."""
        import psutil

        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == self._environ["HOME"]:
                    yield process.pid
            except (psutil.Error, OSError):  # the latter on Windows, of one that is just ending
                continue  # the process has ended, or belongs to another user

    @property
    def left(self) -> str:
        """The end of a sentence: what could not be ended or removed; empty if everything was."""
        return " and ".join(self._left)

    def path(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))

    def run(self, *arguments: str, folder: str = APP) -> tuple[str, float]:
        """Run this program to its end; returns its standard output and the milliseconds that it took."""
        began = time.perf_counter()
        outcome = run(
            [*own_command(), *arguments],
            cwd=self.path(folder),
            environ=self._environ,
            seconds=COMMAND_SECONDS,
            keep_bytes=COMMAND_BYTES,
            go_on=lambda: not self._interrupted(),
        )
        milliseconds = (time.perf_counter() - began) * 1000
        self.check()
        output = outcome.output.decode(errors="replace").strip()
        said = f"it {outcome.problem or f'ended with {outcome.exit_code}'}" + (f" and said: {output}" if output else "")
        expect(outcome.succeeded, f"'uno-devserver {' '.join(arguments)}' to succeed", said)
        return output, milliseconds

    def client(self, *arguments: str) -> DemoClient:
        """An AI client that has just started the proxy."""
        self.check()
        client = DemoClient([*own_command(), *arguments], self.path(APP), self._environ, self._interrupted)
        self._clients.append(client)
        return client

    def registered(self) -> dict[int, float]:
        """The running Hosts, and when each was registered, in seconds since 1970."""
        return {server.process_id: from_time(server.started) or 0.0 for server in running_servers(self._registry)}

    def kill(self, pid: int) -> None:
        os.kill(pid, KILL)
        self.wait_for_end(pid)

    def wait_for_end(self, pid: int) -> float:
        """Wait for the end of a process; returns the milliseconds that it took."""
        began = time.monotonic()
        while is_alive(pid):
            self.check()
            if time.monotonic() > began + GONE_SECONDS:
                raise DemoFailed(f"process {pid} to end", f"it still runs {GONE_SECONDS:g} s later")
            time.sleep(POLL_SECONDS)
        return (time.monotonic() - began) * 1000

    def check(self) -> None:
        """Raise KeyboardInterrupt if the demo was interrupted."""
        if self._interrupted():
            raise KeyboardInterrupt

    def _interrupted(self) -> bool:
        return self._interrupts.received is not None


def _environ(root: str) -> dict[str, str]:
    """The environment of this process, with all folders of the user replaced."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    home, state, temp = (os.path.join(root, name) for name in ("home", "state", "temp"))
    return {
        **own,
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": state,
        "LOCALAPPDATA": state,
        "XDG_DATA_HOME": state,
        "XDG_CONFIG_HOME": state,
        "XDG_CACHE_HOME": state,
        "TMPDIR": temp,
        "TEMP": temp,
        "TMP": temp,
        "NUGET_PACKAGES": os.path.join(root, PACKAGES),
        # `pip install --user` puts this program below the user's home.
        "PYTHONUSERBASE": site.getuserbase(),
    }
