"""Where the demo happens: a temporary folder that is home, state, package cache and workspaces at once.

Nothing of the user's own is read or written. When the stage is closed, no process that was started here runs any more,
and the folder is gone; that takes a bounded time, and an interrupt only makes it come sooner.
"""

from __future__ import annotations

import os
import shutil
import signal
import site
import tempfile
import time

from ...instances.registry import creation_time, running_servers
from ...issues import UserError
from ...setup.entry_command import own_command
from ...system.dotnet_formats import from_time
from ...system.folders import folders
from ...system.processes import is_alive, stop_process
from ...system.run import run
from ..interrupts import Interrupts
from .client import DemoClient, DemoFailed, expect
from .files import APP, FILES, PACKAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

COMMAND_SECONDS = 20.0  # a command takes some 50 ms; the rest is for machines that are busy
COMMAND_BYTES = 64 * 1024
STOP_SECONDS = 2.0
GONE_SECONDS = 5.0  # a killed process goes at once, except while the kernel waits for a disk
POLL_SECONDS = 0.001
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no other: it ends a process without asking it
_OURS = "UNO_DEVSERVER_"  # what the user has set for real sessions is not meant for this one


class Sandbox:
    def __init__(self) -> None:
        self._interrupts = Interrupts()
        self._agents: list[DemoClient] = []
        self._left: list[str] = []
        self.root = ""

    def __enter__(self) -> Sandbox:
        self._interrupts.hold()  # from here on nothing is born that is not remembered
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
        for agent in self._agents:
            agent.end()
        for server in running_servers(self._registry):
            created = creation_time(server)
            if created is not None:
                pid = server.process_id
                stopped = stop_process(pid, created, grace_seconds=STOP_SECONDS, kill_seconds=STOP_SECONDS)
                self._left += [stopped.problem] if stopped.problem else []
        self._left += [f"process {agent.pid} still runs" for agent in self._agents if agent.is_running]
        shutil.rmtree(self.root, ignore_errors=True)
        self._left += [f"'{self.root}' is still there"] if os.path.exists(self.root) else []

    @property
    def left(self) -> str:
        """What could not be ended or removed, as a sentence's end; nothing, as a rule."""
        return " and ".join(self._left)

    def path(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))

    def run(self, *arguments: str, folder: str = APP) -> tuple[str, float]:
        """Run the program to its end; what it printed on standard output, and how many milliseconds it took."""
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

    def agent(self, *arguments: str) -> DemoClient:
        """An AI client that has just started the proxy; it is ended with the stage at the latest."""
        self.check()
        agent = DemoClient([*own_command(), *arguments], self.path(APP), self._environ, self._interrupted)
        self._agents.append(agent)
        return agent

    def signed_in(self) -> dict[int, float]:
        """The Hosts that run, and when each signed in, in seconds since 1970."""
        return {server.process_id: from_time(server.started) or 0.0 for server in running_servers(self._registry)}

    def kill(self, pid: int) -> None:
        """End a process without a warning."""
        os.kill(pid, KILL)
        self.see_gone(pid)

    def see_gone(self, pid: int) -> float:
        """Wait for the end of a process; how many milliseconds that took."""
        began = time.monotonic()
        while is_alive(pid):
            self.check()
            if time.monotonic() > began + GONE_SECONDS:
                raise DemoFailed(f"process {pid} to end", f"it still runs {GONE_SECONDS:g} s later")
            time.sleep(POLL_SECONDS)
        return (time.monotonic() - began) * 1000

    def check(self) -> None:
        if self._interrupted():
            raise KeyboardInterrupt

    def _interrupted(self) -> bool:
        return self._interrupts.received is not None


def _environ(root: str) -> dict[str, str]:
    """This process's, with all folders of the user's replaced."""
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
        # `pip install --user` puts this program below the home that they do not see.
        "PYTHONUSERBASE": site.getuserbase(),
    }
