"""Workspaces whose MCP server is edited while it serves.

    server = BuiltServer(machine)          # package.json, tsconfig.json, a build; or PythonServer, which has no build
    client = hot(proxies)
    server.say("two")                      # one edit of its code
    renew(client, "two")                   # as an agent is told to: call, mcpStatus, call

Servers, builds, clients and package managers note what they do in one journal with one clock, so a test can say what
happened how often, and in which order.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from support.dotnet import write_program
from support.files import write
from support.hosts import is_running
from support.machine import Machine
from support.proxies import PATIENCE, Message, Proxies, ProxyClient
from uno_devserver.system.file_sharing import repeated

SUPPORT = Path(__file__).parent
META = "uno-devserver/hotReload"
CONFIG = ".devtools/host.config.jsonc"
MANAGERS = {
    "npm": "package-lock.json",
    "pnpm": "pnpm-lock.yaml",
    "yarn": "yarn.lock",
    "bun": "bun.lock",
}

_SERVER = """\
import sys

sys.path.insert(0, {support!r})
from reload_server import serve

serve({answer!r}, {journal!r}, {habits!r})
"""

_BUILT_SERVER = """\
import json, sys

sys.path.insert(0, {support!r})
from reload_server import serve

with open("build/answer.json", encoding="utf-8") as stream:
    built = json.load(stream)
serve(built["answer"], {journal!r}, built["habits"])
"""

# What `src/` says goes into `out`, unless a comment in it says what becomes of the build.
_BUILD = """\
import json, os, re, sys

sys.path.insert(0, {support!r})
from reload_server import note, wait_for

source = open("src/answer.ts", encoding="utf-8").read()
answer, habits = re.search('answer = "(.*)"', source)[1], re.findall("// (.*)", source)
note({journal!r}, {name!r} + " begins", answer=answer, path=os.environ.get("PATH"))
if "build floods" in habits:
    for number in range(20000):
        print(f"src/answer.ts({{number}},1): error TS2322: Type 'string' is not assignable to type 'number'.")
if "build waits" in habits:
    wait_for({gate!r})
if "build fails" in habits:
    print("src/answer.ts(1,14): error TS2322: the first line", flush=True)
    print("something on stderr, too", file=sys.stderr, flush=True)
    print("Found 1 error: the last line", flush=True)
    note({journal!r}, {name!r} + " fails", answer=answer)
    sys.exit(2)
os.makedirs("build", exist_ok=True)
with open("build/answer.json", "w", encoding="utf-8") as stream:
    json.dump({{"answer": answer, "habits": habits}}, stream)
note({journal!r}, {name!r} + " ends", answer=answer)
"""

# A package manager as far as we know it: `<manager> run <script>` runs the script of package.json by a shell.
_MANAGER = """\
#!{python} -IS
import json, subprocess, sys

sys.path.insert(0, {support!r})
from reload_server import note

note({journal!r}, "manager", name={name!r}, words=sys.argv[1:])
script = json.load(open("package.json", encoding="utf-8"))["scripts"][sys.argv[-1]]
sys.exit(subprocess.run(script, shell=True).returncode)
"""

_CLIENT = """\
import json, os, sys, threading

sys.path.insert(0, {support!r})
from reload_server import note

with open({built!r}, encoding="utf-8") as stream:
    note({journal!r}, "client start", answer=json.load(stream)["answer"], cwd=os.getcwd())
print("the client is ready", flush=True)
threading.Event().wait()
"""


class Journal:
    """The events that servers, builds and clients noted."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def events(self, *names: str) -> list[dict[str, Any]]:
        """All, or those of these names, in the order of their times."""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        noted = sorted((json.loads(line) for line in lines), key=lambda event: event["at"])
        return [event for event in noted if not names or event["event"] in names]

    def count(self, name: str) -> int:
        return len(self.events(name))

    @property
    def story(self) -> list[str]:
        """The events as words, with what they were about."""
        return [f"{event['event']} {event.get('answer') or event.get('name')}" for event in self.events()]

    def wait(self, name: str, count: int = 1, seconds: float = PATIENCE) -> dict[str, Any]:
        """The event of that name and number."""
        deadline = time.monotonic() + seconds
        while self.count(name) < count:
            assert time.monotonic() < deadline, f"'{name}' did not happen {count} times: {self.story}"
            time.sleep(0.002)
        return self.events(name)[count - 1]

    @property
    def running(self) -> list[str]:
        """The answers of the servers that run."""
        return [event["answer"] for event in self.events("start") if is_running(event["pid"])]

    @property
    def builds(self) -> int:
        return self.count("build begins")

    @property
    def starts(self) -> int:
        return self.count("start")


class EditedServer:
    """An MCP server in the folder `server` of a workspace, that the config names."""

    def __init__(self, machine: Machine, answer: str = "one", **config: Any) -> None:
        self.machine = machine
        self.root = machine.workspace / "server"
        self.gates = machine.root / "gates"
        self.journal = Journal(self.gates / "journal")
        self.config: dict[str, Any] = {"mcpServerRoot": "../server", "mcpServer": self.command, **config}
        self.write_config()
        self._lay_out()
        self.say(answer)

    @property
    def source(self) -> Path:
        raise NotImplementedError

    @property
    def command(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def argv(self) -> list[str]:
        return [self.command["command"], *self.command["args"]]

    def _lay_out(self) -> None:
        raise NotImplementedError

    def code(self, answer: str, *habits: str) -> str:
        """The code that answers so."""
        raise NotImplementedError

    def say(self, answer: str, *habits: str) -> None:
        """Edit the code as editors do: a new file takes the place of the old one."""
        self.source.parent.mkdir(parents=True, exist_ok=True)
        new = self.source.with_name(f".{self.source.name}.new")
        new.write_text(self.code(answer, *habits), "utf-8")
        # On Windows a file that somebody reads at that moment cannot be replaced: editors try again there, too.
        repeated(lambda: new.replace(self.source), str(self.source), PATIENCE)

    def write_config(self, **changes: Any) -> None:
        self.config |= changes
        write(self.machine.workspace / CONFIG, "// how the server of the tests is run\n" + json.dumps(self.config))

    def gate(self, name: str) -> Path:
        """The path of a file that a process waits for."""
        return self.gates / name

    def open(self, name: str) -> None:
        self.gate(name).touch()


class PythonServer(EditedServer):
    """Python: what is edited is what runs."""

    @property
    def source(self) -> Path:
        return self.root / "src" / "talker" / "main.py"

    @property
    def command(self) -> dict[str, Any]:
        return {"command": sys.executable, "args": ["-IS", "src/talker/main.py"]}

    def _lay_out(self) -> None:
        write(self.root / "pyproject.toml", '[project]\nname = "talker"\nversion = "1"\n')
        write(self.root / "src" / "talker" / "__init__.py", "")

    def code(self, answer: str, *habits: str) -> str:
        return _SERVER.format(support=str(SUPPORT), answer=answer, journal=str(self.journal), habits=list(habits))


class BuiltServer(EditedServer):
    """A package with a build: what runs is what was built. It was built once before."""

    def __init__(self, machine: Machine, answer: str = "one", *, manager: str = "npm", **config: Any) -> None:
        self._manager = manager
        super().__init__(machine, answer, **config)
        write(self.root / "build" / "answer.json", json.dumps({"answer": answer, "habits": []}))

    @property
    def source(self) -> Path:
        return self.root / "src" / "answer.ts"

    @property
    def command(self) -> dict[str, Any]:
        return {"command": sys.executable, "args": ["-IS", "server.py"]}

    def _lay_out(self) -> None:
        lay_out_package(self.machine, self.root, self.journal, script="build", gate=self.gate("build"))
        (self.root / MANAGERS[self._manager]).write_text("{}", "utf-8")
        for name in MANAGERS:
            install_manager(self.machine, name, self.journal)
        write(self.root / "server.py", _BUILT_SERVER.format(support=str(SUPPORT), journal=str(self.journal)))

    def code(self, answer: str, *habits: str) -> str:
        return _typescript(answer, *habits)


class Extension:
    """The companion extension of a workspace, and the process that uses it."""

    def __init__(self, server: EditedServer) -> None:
        self.root = server.machine.workspace / "extension"
        self.journal = server.journal
        lay_out_package(server.machine, self.root, self.journal, script="compile", gate=server.gate("compile"))
        (self.root / MANAGERS["npm"]).write_text("{}", "utf-8")
        install_manager(server.machine, "npm", self.journal)
        built = self.root / "build" / "answer.json"
        write(built, json.dumps({"answer": "first", "habits": []}))
        values = {"support": str(SUPPORT), "built": str(built), "journal": str(self.journal)}
        write(server.machine.workspace / "window" / "client.py", _CLIENT.format(**values))
        self.say("first")
        server.write_config(
            extensionPath="../extension",
            clientWorkspace="../window",
            client={"command": sys.executable, "args": ["-IS", "client.py"], "readyPattern": "is ready$"},
        )

    def say(self, answer: str, *habits: str) -> None:
        write(self.root / "src" / "answer.ts", _typescript(answer, *habits))


def lay_out_package(machine: Machine, root: Path, journal: Journal, *, script: str, gate: Path) -> None:
    """A package that looks like one in TypeScript; its compiler is a script of the test."""
    scripts = {script: f"{sys.executable} -IS tools/compiler.py"}
    write(root / "package.json", json.dumps({"name": root.name, "version": "1.0.0", "scripts": scripts}))
    write(root / "tsconfig.json", '{"include": ["src/**/*.ts"], "exclude": ["src/**/*.test.ts"]}')
    values = {"support": str(SUPPORT), "journal": str(journal), "name": script, "gate": str(gate)}
    write(root / "tools" / "compiler.py", _BUILD.format(**values))


def install_manager(machine: Machine, name: str, journal: Journal) -> None:
    program = _MANAGER.format(python=sys.executable, support=str(SUPPORT), journal=str(journal), name=name)
    write_program(machine.tools / name, program)


def _typescript(answer: str, *habits: str) -> str:
    return f'export const answer = "{answer}";\n' + "".join(f"// {habit}\n" for habit in habits)


# --- what agents do ---------------------------------------------------------------------------------------------------


def hot(proxies: Proxies, *options: str, **how: Any) -> ProxyClient:
    """A proxy with a client, a server, and hot reload that is on."""
    client = proxies.connected(*options, **how)
    client.wait_health(lambda report: report["proxy"]["hotReload"], "one that tells of hot reload")
    return client


def state_of(result: Message) -> str | None:
    """What the result says of a hot reload, for programs."""
    about: Message = (result.get("_meta") or {}).get(META) or {}
    return about.get("state")


def was_run(result: Message) -> bool:
    return bool(result["_meta"][META]["run"])


def text_of(result: Message) -> str:
    return "\n".join(item["text"] for item in result["content"])


def renew(client: ProxyClient, answer: str, tool: str = "answer") -> None:
    """Call and be told to wait, wait, then call and get the new answer."""
    told = client.call_result(tool)
    assert state_of(told) == "restarting", told
    wait_ready(client)
    assert client.call(tool) == answer


def wait_ready(client: ProxyClient) -> Message:
    ready = client.call_result("mcpStatus")
    assert not ready.get("isError"), ready
    return ready


def changed_proxy(module: str, policy: str, **limits: object) -> list[str]:
    """A prefix for `Proxies.start`: the program with other limits, where waiting for the real ones takes too long."""
    program = f"""
import sys
from uno_devserver.{module} import {policy}

limits = {limits!r}
assert limits.keys() <= {policy}._defaults.keys()
{policy}._defaults.update(limits)
for value in list(vars(sys.modules[{policy}.__module__]).values()):
    if isinstance(value, {policy}):
        value.__dict__.update(limits)
del sys.argv[0]
from uno_devserver.__main__ import main
sys.exit(main())
"""
    return [sys.executable, "-P", "-c", program]


# A proxy that starts a failing server again without long pauses, for tests of what follows a pause.
SHORT_PAUSES = changed_proxy(
    "proxy.upstream.lifecycle",
    "UpstreamLimits",
    backoff_seconds=(0.0, 0.05, 0.1),
    retry_seconds=0.5,
    find_again_seconds=0.5,
)
