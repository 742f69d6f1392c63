"""The worlds of a soak: proxies that live as long as the run, while everything behind them comes and goes.

Each has a machine in a folder of its own, so that nothing that one of them leaves is taken for another's. Every answer
is looked at: it must come, it must be the only one, and it must say what its request asked for.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from chaos.relay import Relay
from chaos.upstreams.tools import FOLDER_VARIABLE, READING
from soak.tally import Loops, Tally
from support.bundled import BOTH, Reply, ask
from support.files import write
from support.inspectors import HELLO, Listening, inspector_of
from support.machine import Machine
from support.odd_servers import odd_server
from support.ports import lasting_port
from support.proxies import MODERN, PATIENCE, Message, Proxies, ProxyClient
from support.reloading import META, SUPPORT, BuiltServer, EditedServer, PythonServer, hot, text_of
from support.sign_ins import login
from support.waiting import wait_for

UPSTREAMS = Path(__file__).parents[1] / "chaos" / "upstreams"
WORKBENCH = Path(__file__).parents[1] / "proxy" / "scenarios" / "workbench.py"
SOURCE = Path(__file__).parents[2] / "src"
LONG = 3 * PATIENCE  # for a build, a start and a call, while other programs want the machine, too
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class World(ABC):
    """One proxy, its client, and what is done to them."""

    name: str

    def __init__(self, folder: Path, tally: Tally, seed: int) -> None:
        folder.mkdir()
        self.machine = Machine(folder)
        # The program of this checkout, whichever one is installed in the environment.
        self.machine.environment |= {"UNO_DEVSERVER_TRUST": "1", "PYTHONPATH": str(SOURCE)}
        self.tally = tally
        self.random = random.Random(f"{seed} {self.name}")
        self.proxies = Proxies(self.machine)
        self._numbers = itertools.count(1)

    def begin(self) -> None:
        """Start the proxy, and wait until it serves."""
        self.client = self._started()

    @abstractmethod
    def _started(self) -> ProxyClient:
        """Lay the workspace out, and start its proxy."""

    @abstractmethod
    def live(self, calls: Loops, changes: Loops) -> None:
        """Begin what happens in it; changes are seen by calls, so these go on until the last change was."""

    def host(self) -> int | None:
        """The process behind the proxy, if it lives as long as the run."""
        return None

    def close(self) -> None:  # noqa: B027  # most worlds have none
        """End the programs of others that it has started."""

    def between(self, seconds: float) -> float:
        """About this many seconds, by the seed."""
        return self.random.uniform(0.75 * seconds, 1.25 * seconds)

    def ask(self, method: str, params: Message, seconds: float = LONG) -> Message:
        """The result, of which nothing is kept: a second answer is reported as one to no pending request."""
        request = self.client.begin(method, params, f"soak-{next(self._numbers)}")
        answer = self.client.answer(request, seconds)
        self.client.forget(request)
        self.tally.add("requests")
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> Message:
        self.tally.add("calls")
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def echo(self) -> None:
        said = f"{self.name} {next(self._numbers)}"
        result = self.call("echo", text=said)
        assert not result.get("isError"), result
        assert text_of(result) == said, result

    def list_tools(self) -> float:
        """A client that looks at the lists now and then; what it was told meanwhile is not kept."""
        assert any(tool["name"] for tool in self.ask("tools/list", {})["tools"])
        self.ask("ping", {})
        self.client.notifications.clear()
        return 5.0


class ReloadWorld(World):
    """A configured server whose code is edited, sometimes into what does not build; callers who do as they are told."""

    strategy = "restart"
    broken_share = 0.2  # of the edits

    def _started(self) -> ProxyClient:
        # The server notes what happens to it; an hour of that is of no use here.
        journal = self.machine.root / "gates" / "journal"
        journal.parent.mkdir()
        journal.symlink_to(os.devnull)
        self._edit = 1
        self._seen = 1  # the newest edit that has answered
        self._refused = threading.Event()  # a call was answered with a build that fails
        hot_reload = {"enabled": True, "strategy": self.strategy}
        self._server = self._edited(hotReload=hot_reload)
        return hot(self.proxies)

    def _edited(self, **config: Any) -> EditedServer:
        return BuiltServer(self.machine, "edit 1", **config)

    def live(self, calls: Loops, changes: Loops) -> None:
        for number in (1, 2):
            calls.start(f"caller {number} of {self.name}", self._call)
        changes.start(f"the editor of {self.name}", self._edit_code)
        calls.start(f"the lists of {self.name}", self.list_tools)

    def _call(self) -> float:
        before = self._seen
        result = self.call("answer")
        told = (result.get("_meta") or {}).get(META) or {}
        if result.get("isError"):
            self._told(told, result)
        else:
            number = int(result["content"][0]["text"].removeprefix("edit "))
            assert before <= number <= self._edit, f"edit {number} answers, after {before} and before {self._edit}"
            self._seen = max(number, self._seen)
        return 0.05

    def _told(self, told: Message, result: Message) -> None:
        """It was not run, and the answer says what to do."""
        assert told.get("run") is False, result
        self.tally.add(f"told {told['state']}")
        if told["state"] == "buildFailed":
            self._refused.set()
        else:
            assert told["state"] == "restarting", result
            ready = self.ask("tools/call", {"name": "mcpStatus", "arguments": {}})
            assert not ready.get("isError"), ready

    def _edit_code(self) -> float:
        if self.random.random() < self.broken_share:
            self._refused.clear()
            self._say("build fails")
            assert self._refused.wait(LONG), "no call reported the build that fails"
            self.tally.add("broken builds")
        edit = self._say()
        wait_for(lambda: self._seen >= edit, f"{self.name}: an answer of edit {edit}", LONG)
        self.tally.add("edits")
        return self.between(20)

    def _say(self, *habits: str) -> int:
        self._edit += 1
        self._server.say(f"edit {self._edit}", *habits)
        return self._edit


class RestartWorld(ReloadWorld):
    name = "reload by restart"


class SwapWorld(ReloadWorld):
    name = "reload by swap"
    strategy = "swap"


class SiblingServer(PythonServer):
    """Python, with a project beside it that it uses: that one is edited."""

    @property
    def source(self) -> Path:
        return self.machine.workspace / "sibling" / "src" / "sibling" / "words.py"

    def _lay_out(self) -> None:
        super()._lay_out()
        sibling = self.machine.workspace / "sibling"
        write(sibling / "pyproject.toml", '[project]\nname = "sibling"\nversion = "1"\n')
        write(sibling / "src" / "sibling" / "__init__.py", "")
        own = '[project]\nname = "talker"\nversion = "1"\ndependencies = ["sibling @ file:../sibling"]\n'
        write(self.root / "pyproject.toml", own)
        folders = [str(SUPPORT), str(sibling / "src")]
        lines = (
            "import sys",
            f"sys.path[:0] = {folders!r}",
            "from reload_server import serve",
            "from sibling.words import ANSWER",
            f"serve(ANSWER, {str(self.journal)!r}, [])",
        )
        write(self.root / "src" / "talker" / "main.py", "\n".join(lines) + "\n")

    def code(self, answer: str, *habits: str) -> str:
        assert not habits
        return f"ANSWER = {answer!r}\n"


class SeveralWorld(ReloadWorld):
    """Three servers behind one proxy: one whose sibling is edited, one that is killed and has a standby, and one at a
    URL, over the older transport, on a way that is cut.
    """

    name = "several servers"
    broken_share = 0.0

    def _edited(self, **config: Any) -> EditedServer:
        self._port = lasting_port()
        self._relay = Relay(self._port)
        self._far = start_program(self.machine, "over_http.py", str(self._port))
        program, *arguments = odd_server(name="spare")
        spare = {"command": program, "args": arguments, "standby": True, "prefix": True}
        far = {"url": f"http://127.0.0.1:{self._relay.port}/sse", "prefix": True}
        return SiblingServer(self.machine, "edit 1", servers={"spare": spare, "far": far}, **config)

    def live(self, calls: Loops, changes: Loops) -> None:
        super().live(calls, changes)
        calls.start(f"the caller of the others of {self.name}", self._call_others)
        changes.start("the killer of servers with a standby", self._kill)
        changes.start("the way to the server at a URL", self._cut)

    def close(self) -> None:
        self._relay.close()
        end_program(self._far)

    def _call_others(self) -> float:
        said = f"{self.name} {next(self._numbers)}"
        for tool, arguments, answer in (
            ("spare_echo", {"text": said}, said),
            (f"far_{READING}", {"key": said}, f"done {said}"),
        ):
            result = self.call(tool, **arguments)
            if result.get("isError"):
                self.tally.add("outcome unknown")  # it was just killed, or cut off
            else:
                assert text_of(result) == answer, result
        return 0.2

    def _server_of(self, name: str) -> Message:
        found: Message = next(each for each in self.client.health()["servers"] if each["name"] == name)
        return found

    def _kill(self) -> float:
        before = self._server_of("spare")["upstream"]["processId"]
        os.kill(before, signal.SIGKILL)

        def replaced() -> bool:
            spare = self._server_of("spare")
            upstream = spare["upstream"] or {}
            return spare["state"] == "Connected" and upstream.get("processId") not in (None, before)

        wait_for(replaced, f"{self.name}: another server after a kill", LONG)
        self.tally.add("kills")
        return self.between(30)

    def _cut(self) -> float:
        self._relay.cut()
        self._relay.restore()
        wait_for(lambda: self._server_of("far")["state"] == "Connected", f"{self.name}: the way is whole again", LONG)
        said = f"after a cut {next(self._numbers)}"
        wait_for(
            lambda: not self.call(f"far_{READING}", key=said).get("isError"), f"{self.name}: a call after a cut", LONG
        )
        self.tally.add("cuts")
        return self.between(20)


class SignedInWorld(World):
    """A server at a URL that wants a sign-in; its tokens expire, and the sign-in server is away now and then."""

    name = "signed in"

    def _started(self) -> ProxyClient:
        port, self._sign_in_port = lasting_port(), lasting_port()
        self._url = f"http://127.0.0.1:{port}/mcp"
        issuer = f"http://127.0.0.1:{self._sign_in_port}"
        self._far = start_program(self.machine, "over_http.py", str(port), self._url, issuer)
        self._authorization = start_program(self.machine, "authorization.py", str(self._sign_in_port))
        wait_for(lambda: answers(f"{issuer}/.well-known/oauth-authorization-server"), "the sign-in server", LONG)
        result = login(self.machine, self._url)
        assert "file" in result, result
        self._good = threading.Event()  # a call was answered
        return self.proxies.connected("--upstream-url", self._url)

    def live(self, calls: Loops, changes: Loops) -> None:
        for number in (1, 2):
            calls.start(f"caller {number} of {self.name}", self._call)
        changes.start("the end of tokens", self._expire)
        calls.start(f"the lists of {self.name}", self.list_tools)

    def close(self) -> None:
        end_program(self._far)
        end_program(self._authorization)

    def _call(self) -> float:
        said = f"{self.name} {next(self._numbers)}"
        result = self.call(READING, key=said)
        if result.get("isError"):
            self.tally.add("refused")  # while the sign-in server was away
        else:
            assert text_of(result) == f"done {said}", result
            self._good.set()
        return 0.05

    def _expire(self) -> float:
        """Every third time the sign-in server is away when the tokens expire."""
        is_away = self.random.random() < 0.33
        urlopen(f"http://127.0.0.1:{self._sign_in_port}/expire", timeout=LONG).close()
        if is_away:
            end_program(self._authorization)
            self._good.wait(self.random.uniform(1.0, 5.0))
            self._authorization = start_program(self.machine, "authorization.py", str(self._sign_in_port))
        self._good.clear()
        assert self._good.wait(LONG), "no call was answered after the tokens had expired"
        self.tally.add("expired tokens")
        return self.between(20)


class KilledWorld(World):
    """A Host that is killed again and again; what may be called again is, and everything else is told of truthfully."""

    name = "Host killed"

    def _started(self) -> ProxyClient:
        lay_out_addin(self.machine)
        return self.proxies.connected("--wait-calls")

    def live(self, calls: Loops, changes: Loops) -> None:
        for number in (1, 2):
            calls.start(f"caller {number} of {self.name}", self._call)
        changes.start("the killer", self._kill)
        calls.start(f"the lists of {self.name}", self.list_tools)

    def _call(self) -> float:
        for _ in range(4):
            self.echo()
        counted = self.call("count")
        if counted.get("isError"):
            self.tally.add("outcome unknown")  # the Host was killed while it ran, and it may not be called again
        else:
            assert int(text_of(counted)) >= 1, counted
        return 0.2

    def _kill(self) -> float:
        report = self.client.wait_connected(seconds=LONG)["proxy"]
        os.kill(report["upstream"]["processId"], signal.SIGKILL)
        self.client.wait_connected(report["generation"] + 1, LONG)
        self.tally.add("kills")
        return self.between(30)


class HttpWorld(World):
    """Clients over HTTP, in both eras, that come and go, well-behaved or not; and a page that is opened and closed."""

    name = "HTTP and inspector"
    SESSIONS = 520  # more than are kept: from then on one must go for each that comes

    def _started(self) -> ProxyClient:
        lay_out_addin(self.machine)
        client = self.proxies.connected("--http", "0", "--inspector", "0")
        address = client.wait_health(lambda report: report["proxy"]["httpEndpoint"], "served")["proxy"]["httpEndpoint"]
        self._port = int(address.rpartition(":")[2].partition("/")[0])
        self._page = inspector_of(client)
        self._opened = 0
        return client

    def host(self) -> int:
        pid: int = self.client.wait_connected()["proxy"]["upstream"]["processId"]
        return pid

    def live(self, calls: Loops, changes: Loops) -> None:
        self._fill_pools()
        calls.start(f"the caller of {self.name}", self._call)
        calls.start("sessions", self._visit)
        calls.start("modern clients", self._ask_modern)
        calls.start("streams that are dropped", self._drop)
        calls.start("the page", self._look)
        calls.start(f"the lists of {self.name}", self.list_tools)

    def _fill_pools(self) -> None:
        """A Host takes the threads that it may have for an add-in as they are needed, and keeps them."""
        requests = [
            self.client.begin("tools/call", {"name": "echo", "arguments": {"text": "many"}}, f"fill-{number}")
            for number in range(200)
        ]
        for request in requests:
            self.client.answer(request, LONG)
            self.client.forget(request)

    def _call(self) -> float:
        self.echo()
        return 0.05

    def _visit(self) -> float:
        """A session: some calls, its stream for notifications; every other one says goodbye."""
        opened = self._post("initialize", HELLO)
        session = opened.headers["mcp-session-id"]
        self._post("notifications/initialized", {}, session, request=False)
        self._opened += 1
        self.tally.add("sessions")
        if self._opened < self.SESSIONS:
            self._echo_over_http(session)  # so that the Host has one for it, too
            return 0.0
        with Listening(self._port, "/mcp", {"Mcp-Session-Id": session}) as stream:
            stream.wait("200 OK")
            for _ in range(3):
                self._echo_over_http(session)
        self.tally.add("streams dropped")
        if self._opened % 2:
            gone = ask(self._port, "DELETE", "/mcp", headers={"Mcp-Session-Id": session})
            assert gone.status in (200, 204), gone
        return 0.3

    def _ask_modern(self) -> float:
        self._echo_over_http()
        return 0.1

    def _drop(self) -> float:
        """A call that reports its progress, on a stream that its client does not read to the end."""
        token = f"t{next(self._numbers)}"
        params = {"name": "progress", "arguments": {"steps": 5}, "_meta": {**ENVELOPE, "progressToken": token}}
        body = json.dumps({"jsonrpc": "2.0", "id": token, "method": "tools/call", "params": params}).encode()
        headers = _headers("tools/call", "progress", "") | {"Content-Length": str(len(body))}
        with Listening(self._port, "/mcp", headers, "POST", body) as stream:
            stream.wait("200 OK")
        self.tally.add("streams dropped")
        return 0.5

    def _look(self) -> float:
        """Open the page's events, call something that it then shows, and close it."""
        with self._page.listen("/events") as events:
            events.wait("snapshot")
            for _ in range(self.random.randint(1, 10)):
                said = f"page {next(self._numbers)}"
                self.tally.add("calls")
                assert self._page.call("echo", text=said) == said
            events.wait("echo")
        self.tally.add("pages")
        return self.between(2)

    def _echo_over_http(self, session: str = "") -> None:
        said = f"HTTP {next(self._numbers)}"
        self.tally.add("calls")
        reply = self._post("tools/call", {"name": "echo", "arguments": {"text": said}}, session).json
        assert text_of(reply["result"]) == said, reply

    def _post(self, method: str, params: Message, session: str = "", *, request: bool = True) -> Reply:
        number = next(self._numbers)
        message: Message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if request else {})
        if not session and method != "initialize":
            message["params"] = {**params, "_meta": ENVELOPE}
        reply = ask(
            self._port, "POST", "/mcp", json.dumps(message).encode(), _headers(method, params.get("name", ""), session)
        )
        assert reply.status == (200 if request else 202), reply
        if request:
            self.tally.add("requests")
            assert reply.json["id"] == number, reply
        return reply


def _headers(method: str, name: str, session: str) -> dict[str, str]:
    """In the modern era where there is no session, unless it asks for one."""
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if session:
        headers["Mcp-Session-Id"] = session
    elif method != "initialize":
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": name}
    return headers


def start_program(machine: Machine, name: str, *words: str) -> subprocess.Popen[bytes]:
    """A server of the chaos worlds, which has a ledger beside the machine's folders."""
    folder = machine.root / "ledger"
    (folder / "orders").mkdir(parents=True, exist_ok=True)
    line = [sys.executable, "-S", str(UPSTREAMS / name), *words]
    # Not with the machine's variables: what has these must end with its proxies.
    return subprocess.Popen(line, env={FOLDER_VARIABLE: str(folder)}, stdin=subprocess.DEVNULL)


def end_program(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(LONG)


def answers(url: str) -> bool:
    try:
        urlopen(url, timeout=LONG).close()
    except OSError:
        return False
    return True


def lay_out_addin(machine: Machine) -> None:
    addins = machine.workspace / ".devtools" / "addins"
    addins.mkdir(parents=True)
    shutil.copyfile(WORKBENCH, addins / "workbench.py")


WORLDS: tuple[type[World], ...] = (RestartWorld, SwapWorld, KilledWorld, HttpWorld, SeveralWorld, SignedInWorld)
