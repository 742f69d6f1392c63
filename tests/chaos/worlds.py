"""The worlds: a server of each kind that a proxy can have behind it, and how it is edited, broken and mended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from chaos.relay import Relay
from chaos.world import TESTS, World, command_line, replace_text
from support.files import write
from support.ports import lasting_port
from support.reloading import BuiltServer

UPSTREAMS = Path(__file__).parent / "upstreams"

_SERVER = """\
import json, sys

sys.path.insert(0, {tests!r})
with open("build/answer.json", encoding="utf-8") as stream:
    if "dies" in json.load(stream)["habits"]:
        sys.exit("it was told not to start")
from chaos.upstreams.over_stdio import serve

serve()
"""


class ChaosServer(BuiltServer):
    """A package with a build, whose server is ours."""

    def _lay_out(self) -> None:
        super()._lay_out()
        write(self.root / "server.py", _SERVER.format(tests=str(TESTS)))


class ConfiguredWorld(World):
    """A server that the workspace's config names, with a build; each proxy has its own."""

    server_words = "-IS\0server.py"

    def lay_out(self) -> None:
        self._revision = "one"
        self.server = ChaosServer(
            self.machine,
            hotReload={"strategy": self.name, "mcpStatusTimeout": 5000},
            pipeline={"concurrency": 4},
        )

    def edit(self, revision: str) -> None:
        self._revision = revision
        self.server.say(revision)

    def break_source(self) -> None:
        self.server.say(f"broken {self._revision}", "build fails")

    def break_start(self) -> None:
        self.server.say(f"dead {self._revision}", "dies")

    @property
    def source(self) -> Path:
        return self.server.source


class SharedWorld(World):
    """A Host with an add-in, which one proxy owns and the others adopt."""

    clients_wanted = 3
    server_words = "uno_devserver.host"

    def lay_out(self) -> None:
        self.edit("one")

    @property
    def source(self) -> Path:
        return self.machine.workspace / ".devtools" / "addins" / "chaotic.py"

    def edit(self, revision: str) -> None:
        text = (UPSTREAMS / "addin.py").read_text("utf-8").replace('REVISION = "0"', f'REVISION = "{revision}"')
        replace_text(self.source, text)

    def break_source(self) -> None:
        replace_text(self.source, "def register(addin:\n")

    def break_start(self) -> None:
        replace_text(self.source, "def register(addin):\n    raise RuntimeError('it was told not to start')\n")

    @property
    def registry(self) -> list[Path]:
        folder = self.vendor / "DevServers"
        return sorted(path for path in folder.iterdir() if path.is_file()) if folder.exists() else []

    def ports(self) -> dict[int, int]:
        """Of the Hosts that run, by their process ids."""
        ports = {}
        for pid in self.servers():
            words = command_line(pid).split("\0")
            if "--httpPort" in words:
                ports[pid] = int(words[words.index("--httpPort") + 1])
        return ports


class HttpWorld(World):
    """A server at a URL that another program runs, behind a relay."""

    server_words = "over_http.py"

    def lay_out(self) -> None:
        self._port = lasting_port()
        self.relay = Relay(self._port)
        self.server = self._serve()

    def __exit__(self, *problem: object) -> None:
        self.relay.close()
        self.server.kill()
        self.server.wait()
        super().__exit__(*problem)

    @property
    def arguments(self) -> list[str]:
        return ["mcp", "start", "--upstream-url", f"http://127.0.0.1:{self.relay.port}/mcp"]

    def restart_server(self) -> None:
        if self.server.poll() is not None:
            self.server = self._serve()

    def _serve(self) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-S", str(UPSTREAMS / "over_http.py"), str(self._port)]
        return subprocess.Popen(line, env=self.machine.variables(), stdin=subprocess.DEVNULL, start_new_session=True)

    def foreign_processes(self) -> list[str]:
        return [each for each in super().foreign_processes() if not each.startswith(f"{self.server.pid}:")]

    def kill_server(self) -> None:
        self.server.kill()
        self.server.wait()


WORLDS: dict[str, type[World]] = {
    "restart": ConfiguredWorld,
    "swap": ConfiguredWorld,
    "shared": SharedWorld,
    "http": HttpWorld,
}
