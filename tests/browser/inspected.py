"""A workspace of a user who trusts it, an agent that is connected to it over stdio, and the inspector's address.

    with Inspected(folder) as inspected:
        inspected.agent.call("greet", name="you")
        browser.goto(inspected.url)

Nothing of it is left when the block ends, and nothing of the user's own folders is touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.waiting import wait_for

GALLERY = Path(__file__).with_name("gallery.py")
SAID = re.compile(r"\bInspector: (http://localhost:\d+/\?token=\S+)")
OPEN_SECONDS = 10  # it opens behind the first start, or a second after the proxy's


class Inspected:
    def __init__(self, root: Path) -> None:
        self.machine = Machine(root)
        self.machine.workspace = self.machine.home / "paint-shop"  # a name that stands nowhere else on the page
        self.machine.data = self.machine.home / ".local" / "share"
        self.machine.environment["UNO_DEVSERVER_TRUST"] = "1"
        self.proxies = Proxies(self.machine)
        self.addin = self.machine.workspace / ".devtools" / "addins" / GALLERY.name
        self.addin.parent.mkdir(parents=True)
        shutil.copyfile(GALLERY, self.addin)
        self._agents: list[ProxyClient] = []

    def __enter__(self) -> Inspected:
        self.proxies.__enter__()
        try:
            self.start()
        except BaseException as error:
            self.proxies.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxies.__exit__(kind, error, trace)

    # --- the proxy

    def start(self, port: int = 0) -> None:
        """A proxy of this workspace, with an agent; its inspector on this port, 0: on any."""
        agent = self.proxies.connected("--inspector", str(port))
        self._agents.append(agent)
        said = wait_for(lambda: SAID.search(agent.stderr), "the address of the inspector on stderr", OPEN_SECONDS)
        self.url: str = said[1]
        assert port in (0, self.port), f"asked for port {port}, got {self.url}"

    def end_proxy(self) -> None:
        self.agent.close_stdin()
        assert self.agent.exit_code() == 0

    @property
    def agent(self) -> ProxyClient:
        return self._agents[-1]

    @property
    def address(self) -> str:
        """The origin: `http://localhost:<port>`."""
        return f"http://localhost:{self.port}"

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port
        return port

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    # --- what is behind it

    def kill_host(self) -> None:
        os.kill(self.agent.health()["proxy"]["upstream"]["processId"], signal.SIGKILL)

    def add_tool(self, name: str) -> None:
        """Edit the add-in as editors do, so that it has one tool more."""
        tool = f"\n    @addin.tool\n    def {name}() -> str:\n        return '{name} was here'\n"
        head, mark, rest = self.addin.read_text("utf-8").partition("def _register_rest(addin: AddIn) -> None:\n")
        new = self.addin.with_name(".new")
        new.write_text(head + mark + tool + rest, "utf-8")
        new.replace(self.addin)

    def calls(self) -> list[dict[str, Any]]:
        """What the tools noted, in order."""
        path = self.machine.home / "calls"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def gate(self) -> Path:
        """A file that is not there yet, for `hold`."""
        return Path(tempfile.mkdtemp(dir=self.machine.root)) / "gate"
