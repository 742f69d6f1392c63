"""The steps of the demo. Each step proves what its title says, or raises DemoFailed."""

from __future__ import annotations

import difflib
import json
import os
import time
from http.client import HTTPConnection, HTTPException

from ...system.files import read_bytes, read_text
from ...system.values import Value
from .client import DemoFailed, expect
from .files import ADD_IN, CLIENT_CONFIG, COUNTS, COUNTS_AFTER_EDIT, EDIT, FILES, TOOL, UNO, UNO_ADD_INS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import DemoClient, Received
    from .command import DemoOutput
    from .sandbox import Sandbox

GET_SECONDS = 10.0  # a request takes a few milliseconds; the rest is for busy machines
LIST_CHANGED = "notifications/tools/list_changed"
LINES = FILES[ADD_IN].count("\n")
MAX_LISTS = 10  # requests for the list of tools, which changes once or twice


class Step(Value):
    name: str  # for programs
    title: str  # for people
    act: Callable[[], float]  # returns the milliseconds to report


class Demo:
    def __init__(self, sandbox: Sandbox, output: DemoOutput) -> None:
        self._sandbox = sandbox
        self._output = output
        self.client: DemoClient | None = None  # the client of the current step
        self._host = 0  # the process id of the Host that answered last
        self.steps = (
            Step("discovery", "Discovery: what does this Uno workspace run?", self._discover),
            Step("tools-before-host", "An AI client starts. It has tools before there is a server.", self._begin),
            Step("first-call", "Behind it the server, the Host, has started. The first real call.", self._use),
            Step("second-start", "The client quits and starts again. It has all tools at once.", self._again),
            Step("healing", "kill -9 of the Host. The session heals.", self._heal),
            Step("hot-reload", "An edit of the add-in. The next call runs the new code.", self._edit),
            Step("inspector", "The inspector: all of this, on a page in your browser.", self._inspect),
            Step(
                "registration", "One command registers this program with an AI client, one removes it.", self._register
            ),
        )

    def _discover(self) -> float:
        output, milliseconds = self._sandbox.run("disco", "--addins-only", folder=UNO)
        names = tuple(path.replace("\\", "/").rpartition("/")[2] for path in output.split(";"))
        expect(names == UNO_ADD_INS, f"the add-ins {' and '.join(UNO_ADD_INS)}", f"disco printed '{output}'")
        self._output.measured("$ uno-devserver disco --addins-only", milliseconds)
        self._output.proof(
            f"{' and '.join(names)}, found in the NuGet cache. MSBuild takes up to 30 s to say the same."
        )
        return milliseconds

    def _begin(self) -> float:
        _, milliseconds = self._sandbox.run("trust")
        self._output.measured("$ uno-devserver trust", milliseconds)
        self._output.proof(f"You agree that this workspace's add-in, {LINES} lines of Python, may run.")
        tools, milliseconds = self._start()
        expect("uno_health" in tools and TOOL not in tools, "the proxy's own tools", f"there were {tools}")
        self._output.proof(f"{len(tools)} tools of the proxy itself. No Host was registered when they came.")
        return milliseconds

    def _use(self) -> float:
        client = self._present()
        for _ in range(MAX_LISTS):
            changed = client.notified(LIST_CHANGED)
            tools = client.tools()
            if TOOL in tools:
                break
        expect(TOOL in tools, f"the Host's tool {TOOL}", f"the tools are {tools}")
        self._output.measured(
            f"< tools/list_changed: {len(tools)} tools, this long after the launch", _since_launch(client, changed)
        )
        milliseconds = self._call(COUNTS)
        self._output.proof(f"Host {self._host} answered. The proxy started it, and forwards the calls.")
        return milliseconds

    def _again(self) -> float:
        milliseconds = self._present().quit()
        milliseconds += self._sandbox.wait_for_end(self._host)
        self._output.measured("The client quits. Proxy and Host are gone", milliseconds)
        tools, milliseconds = self._start("--wait-calls", "--inspector", "0")
        expect(TOOL in tools, f"{TOOL} among the tools at once", f"there were {tools}")
        self._output.proof(f"All {len(tools)} tools, from the catalogue on disk, again before any Host.")
        self._call(COUNTS)
        self._output.proof("This call has waited for the Host.")
        return milliseconds

    def _heal(self) -> float:
        client, killed = self._present(), self._host
        self._sandbox.kill(killed)
        self._output.done(f"$ kill -9 {killed}")
        milliseconds = self._call(COUNTS)
        expect(client.is_running and self._host != killed, "another Host", f"process {self._host} answered")
        self._output.proof(f"Host {self._host} answers now. Same session, same proxy (process {client.pid}).")
        return milliseconds

    def _edit(self) -> float:
        path, before = self._sandbox.path(ADD_IN), self._host
        os.utime(path)
        self._output.done("$ touch todos.py")
        self._call(COUNTS)
        expect(self._host == before, f"Host {before} to go on after a touch", f"process {self._host} answered")
        self._output.proof("Still the same Host: content counts, time stamps do not.")
        old, new = EDIT
        text = read_text(path)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text.replace(old, new))
        self._output.difference([f"-{old}", f"+{new}"])
        milliseconds = self._call(COUNTS_AFTER_EDIT)
        expect(self._host != before, "another Host after the edit", f"process {before} answered again")
        self._output.proof(f"Host {self._host} has the new code. The client did nothing for it.")
        return milliseconds

    def _inspect(self) -> float:
        output, spent = self._sandbox.run("inspect", "--json")
        page = json.loads(output)
        self._output.measured("$ uno-devserver inspect --json", spent)
        address = f"http://localhost:{page['port']}"
        health, milliseconds = self._get(page["port"], "/health", 200, page["token"])
        status = json.loads(health).get("status")
        expect(status == "Healthy", "a healthy proxy", f"it said {status}")
        self._output.measured(f"> GET {address}/health: 200, {status}", milliseconds)
        _, spent = self._get(page["port"], "/health", 401)
        self._output.measured("> The same without the token: 401", spent)
        html, spent = self._get(page["port"], "/", 200)
        expect(b"<html" in html, "a page", f"that was {html[:200].decode(errors='replace')}")
        self._output.measured(f"> GET {address}/: the page", spent)
        self._output.proof("It shows health, calls, tools to try, the log, reloads and other servers.")
        return milliseconds

    def _register(self) -> float:
        path = self._sandbox.path(CLIENT_CONFIG)
        original = read_bytes(path)
        _, milliseconds = self._sandbox.run("mcp", "install", "cursor")
        difference = _difference(original.decode(), read_text(path))
        added = [line for line in difference if line.startswith("+")]
        kept = not any(line.startswith("-") for line in difference)
        expect('"UnoApp"' in "".join(added) and kept, "UnoApp added, and all else kept", f"this changed: {difference}")
        self._output.measured("$ uno-devserver mcp install cursor", milliseconds)
        self._output.difference(difference)
        _, back = self._sandbox.run("mcp", "uninstall", "cursor")
        expect(read_bytes(path) == original, "Cursor's file as it was", f"it holds {read_text(path)}")
        self._output.measured("$ uno-devserver mcp uninstall cursor", back)
        self._output.proof("Now the file is what it was, byte for byte, comments and all.")
        return milliseconds

    def _start(self, *options: str) -> tuple[list[str], float]:
        """Start the proxy as a client does; returns its first tools, which must arrive before a Host is registered."""
        command = ("--mcp-app", *options)
        self._output.done(f"$ uno-devserver {' '.join(command)}")
        self.client = self._sandbox.client(*command)
        tools, answer = self.client.initialize()
        early = [pid for pid, since in self._sandbox.registered().items() if since <= answer.at]
        expect(not early, "tools before any Host was running", f"Host {early} was registered before")
        milliseconds = _since_launch(self.client, answer)
        self._output.measured("> initialize, tools/list", milliseconds)
        return tools, milliseconds

    def _call(self, expected: dict[str, int]) -> float:
        answer, milliseconds = self._present().call(TOOL)
        counts, self._host = answer.get("counts"), answer.get("process", 0)
        expect(counts == expected, f"{expected} from {TOOL}", f"it said {answer}")
        self._output.measured(f"> {TOOL}: {json.dumps(counts)}", milliseconds)
        return milliseconds

    def _get(self, port: int, path: str, wanted: int, token: str = "") -> tuple[bytes, float]:
        """The inspector's answer, which must have the `wanted` status, and the milliseconds that it took."""
        self._sandbox.check()
        began = time.perf_counter()
        connection = HTTPConnection("localhost", port, timeout=GET_SECONDS)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            body, status = answer.read(), answer.status
        except (OSError, HTTPException) as error:
            raise DemoFailed(f"{wanted} from the inspector", f"it could not be asked: {error!r}") from error
        finally:
            connection.close()
        expect(status == wanted, f"{wanted} from {path}", f"that was {status}: {body[:500].decode(errors='replace')}")
        return body, (time.perf_counter() - began) * 1000

    def _present(self) -> DemoClient:
        assert self.client is not None
        return self.client


def _since_launch(client: DemoClient, received: Received) -> float:
    return (received.clock - client.launched) * 1000


def _difference(before: str, after: str) -> list[str]:
    """The lines that differ, with one line of context."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
