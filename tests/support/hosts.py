"""A stand-in for the .NET Host of the Uno packages, which behaves or misbehaves as a test says.

The stand-in `dotnet` runs it in its own process, as the real one does. It signs in and listens as the Host does, and
remembers how it was called. Every one that is left is ended by `end_all`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.dotnet import FakeDotNet
from support.ports import lasting_port
from support.waiting import wait_for
from uno_devserver.instances.registry import entry_name
from uno_devserver.system.folders import folders

# How long anything may take that happens at once on an idle machine.

_SCRIPT = r"""
import json, os, signal, socket, sys, time

root = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(root, "host.json"), encoding="utf-8") as stream:
    manners = json.load(stream)
given = sys.argv[2:]
flags = {key.lstrip("-").lower(): value for key, value in zip(given, given[1:]) if key.startswith("--")}
port = int(flags["httpport"])


def remember(**facts):
    with open(os.path.join(root, "hosts.jsonl"), "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"pid": os.getpid(), **facts}) + "\n")


remember(
    argv=sys.argv[1:],
    cwd=os.getcwd(),
    roll_forward=os.environ.get("DOTNET_ROLL_FORWARD"),
    **({} if os.name == "nt" else {
        "stdin": os.path.realpath("/proc/self/fd/0"),
        "stdout": os.path.realpath("/proc/self/fd/1"),
        "session": os.getsid(0),
    }),
)
if not manners["dies"]:  # in its beginning, as where `dotnet` cannot run it
    print("stand-in host", *given, flush=True)
if manners["ignores_sigterm"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    def leave(*_):
        if os.path.exists(entry):
            os.unlink(entry)
        os._exit(manners["exit_code"])
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
addins = [path for path in flags.get("addins", "an add-in that MSBuild names").split(";") if path]
if manners["dies"] or (manners["dies_of_addins"] and addins):
    print(manners["last_words"], file=sys.stderr, flush=True)
    os._exit(manners["exit_code"])

data = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
folder = os.path.join(data, "Uno Platform", "DevServers")
entry = os.path.join(folder, f"devserver-{os.getpid()}.json")
while manners["signs_in_after"] and not os.path.exists(manners["signs_in_after"]):
    time.sleep(0.005)
if manners["signs_in"]:
    os.makedirs(folder, exist_ok=True)
    if os.name == "nt":
        names = socket.gethostname().upper()[:15], os.getlogin()
    else:
        import getpass, platform
        names = platform.node().partition(".")[0], getpass.getuser()
    with open(entry + ".new", "w", encoding="utf-8") as stream:
        json.dump({
            "ProcessId": os.getpid(),
            "ParentProcessId": int(flags.get("ppid", 0)),
            "SolutionPath": flags.get("solution"),
            "StartTime": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".0000000Z",
            "Port": port,
            "MachineName": names[0],
            "UserName": names[1],
            "IdeChannelId": flags.get("idechannel"),
        }, stream, indent=2)
    os.replace(entry + ".new", entry)


def whole_request(connection):
    # Closing a connection with something unread in it would reset it, and take the answer away.
    data = b""
    while b"\r\n\r\n" not in data and (chunk := connection.recv(65536)):
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < int((lengths or [0])[0]) and (chunk := connection.recv(65536)):
        body += chunk
    return (head + b"\r\n\r\n" + body).decode("latin-1")


while manners["waits_for"] and not os.path.exists(manners["waits_for"]):
    time.sleep(0.005)
while not manners["listens"]:
    time.sleep(1)
address = manners["address"]
listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    listener.bind((address, 0 if manners["takes_another_port"] else port))
    listener.listen()
except OSError as error:
    print(f"Failed to bind to address: {error}", file=sys.stderr, flush=True)
    os._exit(134)
while True:
    connection, _ = listener.accept()
    if not manners["answers"]:
        held = globals().setdefault("held", [])
        held.append(connection)
        continue
    try:
        request = whole_request(connection)
        remember(request=request)
        status = manners["rebind_status"] if request.startswith("POST /devserver/idechannel/") else manners["status"]
        connection.sendall(f"HTTP/1.1 {status} Said So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    except OSError:
        pass
    connection.close()
"""


@dataclass(frozen=True)
class Manners:
    """What the stand-in does; the defaults are those of a Host in good health."""

    signs_in: bool = True
    signs_in_after: str = ""  # a file that has to appear before it signs in
    listens: bool = True
    answers: bool = True  # or accepts connections and stays silent
    status: int = 406  # of GET /mcp without an Accept header; a Host without MCP says 404
    rebind_status: int = 200
    address: str = "127.0.0.1"
    takes_another_port: bool = False
    waits_for: str = ""  # a file that has to appear before it listens
    dies: bool = False
    dies_of_addins: bool = False
    ignores_sigterm: bool = False
    exit_code: int = 0
    last_words: str = "Unhandled exception: the stand-in was told to die"


class StandInHosts:
    """All the Hosts that a stand-in dotnet ran."""

    def __init__(self, dotnet: FakeDotNet) -> None:
        self.root = dotnet.root
        (self.root / "host.py").write_text(_SCRIPT, "utf-8")
        self.behave(Manners())

    def behave(self, manners: Manners) -> None:
        """Set how Hosts that are launched from now on behave."""
        (self.root / "host.json").write_text(json.dumps(vars(manners)), "utf-8")

    def launches(self) -> list[dict[str, Any]]:
        """How each was called: argv (from the Host's path on), cwd, environment, process."""
        return [fact for fact in self._facts() if "argv" in fact]

    def requests(self) -> list[str]:
        """The request lines that they received over HTTP."""
        return [fact["request"].split("\r\n")[0] for fact in self._facts() if "request" in fact]

    def end_all(self) -> None:
        for fact in self.launches():
            end(fact["pid"], str(self.root))

    def _facts(self) -> list[dict[str, Any]]:
        path = self.root / "hosts.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


class Rival:
    """A Host that another program launches while ours starts: it has registered first, and does not listen yet."""

    def __init__(self, solution: Path, hosts: StandInHosts, environ: Mapping[str, str]) -> None:
        self.port = lasting_port()
        self._go = hosts.root / "go-theirs"
        hosts.behave(Manners(waits_for=str(self._go)))
        # The script itself: on Windows, the stand-in for `dotnet` is a launcher, and its child would register.
        line = [sys.executable, str(hosts.root / "host.py"), "Host.dll", "--httpPort", str(self.port), "--addins", ";"]
        line += ["--solution", str(solution)]
        self.process = subprocess.Popen(line, cwd=solution.parent, env=environ, stdout=subprocess.DEVNULL)
        self.entry = Path(folders(environ).registry) / entry_name(self.process.pid)
        wait_for(self.entry.is_file, "its registration")

    def listen(self) -> None:
        self._go.touch()


def is_running(pid: int) -> bool:
    """Whether a process runs; False for a zombie, too."""
    if sys.platform == "win32":
        return psutil.pid_exists(pid)
    try:
        state = Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter where it goes while it is read
        return False
    return state not in "ZX"


def end(pid: int, mark: str) -> None:
    """Kill a process of a test, if it is still the one whose command line has the mark."""
    try:
        process = psutil.Process(pid)
        if mark in " ".join(process.cmdline()):
            process.kill()
    except (psutil.Error, OSError):
        pass
