"""The worlds: a server of each kind that a proxy can have behind it, and how it is edited, broken and mended."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from chaos.relay import Relay
from chaos.upstreams.tools import read_sign_ins
from chaos.world import TESTS, World, command_line, replace_text
from support.files import write
from support.ports import lasting_port
from support.reloading import BuiltServer, lay_out_package
from support.sign_ins import login
from support.waiting import wait_for

UPSTREAMS = Path(__file__).parent / "upstreams"

_SERVER = """\
import json, sys

sys.path.insert(0, {tests!r})
built = []
for folder in (".", "../sibling"):
    with open(folder + "/build/answer.json", encoding="utf-8") as stream:
        built.append(json.load(stream))
if "dies" in built[0]["habits"]:
    sys.exit("it was told not to start")
from chaos.upstreams.over_stdio import serve

serve("+".join(each["answer"] for each in built))
"""
_SPARE = """\
import sys

sys.path.insert(0, {tests!r})
from chaos.upstreams.over_stdio import serve

serve()
"""
UNAUTHORIZED = "UpstreamUnauthorized"
SIGN_IN_AGAIN = 10.0  # until what was signed in to is believed to be refused again: proxies look every two seconds
PATIENCE = 5.0
ANSWER = re.compile('answer = "(.*)"')


class ChaosServer(BuiltServer):
    """A package with a build, whose server is ours, and a package beside it that it uses."""

    def _lay_out(self) -> None:
        super()._lay_out()
        write(self.root / "server.py", _SERVER.format(tests=str(TESTS)))
        lay_out_package(self.machine, self.sibling, self.journal, script="build", gate=self.gate("sibling"))
        self._add(self.root, dependencies={"sibling": "*"})
        self._add(self.sibling, main="build/index.js")
        write(self.sibling / "build" / "index.js", "")
        write(self.sibling / "build" / "answer.json", json.dumps({"answer": "one", "habits": []}))
        self.say_in_sibling("one")
        (self.root / "node_modules").mkdir()
        (self.root / "node_modules" / "sibling").symlink_to(self.sibling)

    @property
    def sibling(self) -> Path:
        return self.machine.workspace / "sibling"

    def say_in_sibling(self, answer: str, *habits: str) -> None:
        replace_text(self.sibling / "src" / "answer.ts", self.code(answer, *habits))

    def _add(self, package: Path, **members: object) -> None:
        manifest = package / "package.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text("utf-8")), **members}), "utf-8")


class ConfiguredWorld(World):
    """A server that the workspace's config names, with a build; each proxy has its own."""

    server_words = "-IS\0server.py"

    def lay_out(self) -> None:
        self._revision = "one"
        strategy = "swap" if self.name == "swap" else "restart"
        self.server = ChaosServer(
            self.machine,
            hotReload={"strategy": strategy, "mcpStatusTimeout": 5000},
            pipeline={"concurrency": 4},
            **self.settings(),
        )

    def settings(self) -> dict[str, Any]:
        return {}

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

    @property
    def revision(self) -> str:
        sources = (self.source, self.server.sibling / "src" / "answer.ts")
        return "+".join(found[1] for path in sources if (found := ANSWER.search(path.read_text("utf-8"))))


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
    def revision(self) -> str:
        found = re.search('REVISION = "(.*)"', self.source.read_text("utf-8"))
        return found[1] if found else ""

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


class FarWorld(World):
    """Has a server at a URL that another program runs, behind a relay."""

    def lay_out(self) -> None:
        self._port = lasting_port()
        self.relay = Relay(self._port)
        self.far = self._serve()
        super().lay_out()

    def __exit__(self, *problem: object) -> None:
        self.relay.close()
        self.far.kill()
        self.far.wait()
        super().__exit__(*problem)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.relay.port}/mcp"

    def restart_far(self) -> None:
        if self.far.poll() is not None:
            self.far = self._serve()

    def kill_far(self) -> None:
        self.far.kill()
        self.far.wait()

    def sign_in_server(self) -> list[str]:
        """The words that tell the server how its clients sign in; none if they need not."""
        return []

    def _serve(self) -> subprocess.Popen[bytes]:
        return self.start_program("over_http.py", str(self._port), *self.sign_in_server())

    def start_program(self, *words: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-S", str(UPSTREAMS / words[0]), *words[1:]]
        return subprocess.Popen(line, env=self.machine.variables(), stdin=subprocess.DEVNULL, start_new_session=True)

    def others(self) -> list[int]:
        """The processes of other programs, which stay."""
        return [self.far.pid]

    def foreign_processes(self) -> list[str]:
        return [each for each in super().foreign_processes() if int(each.partition(":")[0]) not in self.others()]


class HttpWorld(FarWorld):
    server_words = "over_http.py"

    @property
    def arguments(self) -> list[str]:
        return ["mcp", "start", "--upstream-url", self.url]


class SeveralWorld(FarWorld, ConfiguredWorld):
    """Three servers behind each proxy: one with a build, one with a standby, and one over the older transport."""

    prefixes = ("", "spare_", "far_")

    def settings(self) -> dict[str, Any]:
        write(self.machine.workspace / "spare" / "server.py", _SPARE.format(tests=str(TESTS)))
        spare = {"command": sys.executable, "args": ["-IS", "server.py"], "cwd": "../spare", "standby": True}
        far = {"url": self.url.replace("/mcp", "/sse")}
        return {"servers": {"spare": {**spare, "prefix": True}, "far": {**far, "prefix": True}}}

    def servers(self) -> list[int]:
        return [*super().servers(), self.far.pid]

    def leave_out(self, name: str) -> None:
        config = {**self.server.config, "servers": dict(self.server.config["servers"])}
        config["servers"][name] = {**config["servers"][name], "enabled": False}
        replace_text(self.config, json.dumps(config))


class SignedInWorld(HttpWorld):
    """The server at a URL wants a sign-in, which all clients share; the authorization server is another program."""

    clients_wanted = 3

    def lay_out(self) -> None:
        self._sign_in_port = lasting_port()
        self.authorization = self._start_authorization()
        super().lay_out()
        self._signed_in_at = 0.0
        for port in (self._port, self._sign_in_port):
            wait_for(partial(listens, port), f"a server at port {port}")
        login(self.machine, self.url)
        self._signed_in_at = time.monotonic()
        self.sign_ins = 1

    def __exit__(self, *problem: object) -> None:
        self.authorization.kill()
        self.authorization.wait()
        super().__exit__(*problem)

    def sign_in_server(self) -> list[str]:
        return [self.url, f"http://127.0.0.1:{self._sign_in_port}"]

    def others(self) -> list[int]:
        return [*super().others(), self.authorization.pid]

    def restart_authorization(self) -> None:
        if self.authorization.poll() is not None:
            self.authorization = self._start_authorization()

    def ask_authorization(self, what: str) -> None:
        """Have all tokens expire, or all sign-ins end, unless it is just broken."""
        with suppress(OSError):
            urlopen(f"http://127.0.0.1:{self._sign_in_port}/{what}", timeout=PATIENCE).close()

    def help_user(self, health: Mapping[str, Any]) -> None:
        """Sign in, if that is what the user reads in the health report."""
        codes = [issue.get("code") for issue in health.get("issues", ())]
        if UNAUTHORIZED in codes and time.monotonic() - self._signed_in_at > SIGN_IN_AGAIN:
            self._signed_in_at = time.monotonic()
            with suppress(AssertionError):  # a server has not started again yet
                login(self.machine, self.url)
                self.sign_ins += 1

    def tokens(self) -> list[str]:
        state = read_sign_ins(str(self.chaos))
        return [*state["access"], *state["refresh"].values(), *state["used"]]

    def _start_authorization(self) -> subprocess.Popen[bytes]:
        return self.start_program("authorization.py", str(self._sign_in_port))


def listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


WORLDS: dict[str, type[World]] = {
    "restart": ConfiguredWorld,
    "swap": ConfiguredWorld,
    "shared": SharedWorld,
    "http": HttpWorld,
    "several": SeveralWorld,
    "signed-in": SignedInWorld,
}
