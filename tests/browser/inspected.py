"""A workspace of a user who trusts it, an agent that is connected to it over stdio, and the inspector's address.

    with Inspected(folder) as inspected:
        inspected.agent.call("greet", name="you")
        browser.goto(inspected.new_url())

Nothing of it is left when the block ends, and nothing of the user's own folders is touched.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from support.inspectors import inspector_of
from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.waiting import wait_for

GALLERY = Path(__file__).with_name("gallery.py")


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
        self.program = inspector_of(agent)
        assert port in (0, self.port), f"asked for port {port}, got {self.port}"

    def end_proxy(self) -> None:
        self.agent.close_stdin()
        assert self.agent.exit_code() == 0

    @property
    def agent(self) -> ProxyClient:
        return self._agents[-1]

    @property
    def address(self) -> str:
        """Where programs ask: `http://localhost:<port>`. A page has a name of its own before `localhost`."""
        return f"http://localhost:{self.port}"

    @property
    def port(self) -> int:
        return self.program.port

    @property
    def token(self) -> str:
        return self.program.token

    def new_url(self) -> str:
        """What `inspect` opens the browser with; it can be used once."""
        return self.program.new_url()

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

    def wait_call(self, tool: str) -> None:
        """Wait until a tool runs."""
        wait_for(lambda: any(call["tool"] == tool for call in self.calls()), f"a call of {tool}")

    def gate(self) -> Path:
        """A file that is not there yet, for `hold`."""
        return Path(tempfile.mkdtemp(dir=self.machine.root)) / "gate"
