"""Small real MCP servers on stdin and stdout, with odd behaviour that a proxy must endure. Plain Python, no SDK.

    command = odd_server(era="modern", tools=1000, garbage=True)    # the words of a command line
    notes = Notes(tmp_path / "notes")                               # what a server leaves there:
    command = odd_server(notes=notes)                               # its starts, and the lines that it received

MANNERS lists what the process itself can do, TOOLS what each call of a tool does: a test says what happens, and when.
Waiting is done for files that the test creates (`until`), so that no test has to sleep. Beside the tools there are the
resource `odd://note`, the template `odd://note/{name}`, the prompt `greet`, completions, `resources/subscribe` and
`logging/setLevel`; every method that begins with `odd/` is answered with what came. Requests of the server to its
client are numbered 1, 2, 3 …, as those of its client may be, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

MANNERS = {
    "era": "handshake, modern or both (which is the default): a server of both stays in the era of its first request",
    "notes": "a folder (or Notes) that takes its process ids, the lines that it received, and its children's ids",
    "name": "how it calls itself; 'odd' else",
    "version": "the protocol version that initialize is answered with, whatever was asked for",
    "tools": "how many tools it lists: 0 for none, more for tool-1, tool-2 … which say their names",
    "garbage": "prints lines that are no messages before it begins",
    "until": "a file: it begins to read when that exists",
    "dies": "the exit code it ends with before it reads anything; negative: the signal",
    "dies_times": "it does so at its first so many starts only (needs notes)",
    "shy": "ends when the first message is not initialize, as servers made with some SDKs do",
    "closes": "closes its stdout at the start, and lives",
    "refuses": "the code of the error that it answers every request with",
    "never_reads": "does not read its input",
    "ignores_sigterm": "does",
    "stays": "does not end when its input does",
    "grandchild": "starts a process that holds stdout and stderr; it ignores SIGTERM where the server does",
    "flood": "prints so many KB on stderr before it begins",
}

TOOLS = {
    "echo": "says `text`; marked as read-only",
    "count": "how many times it was called in this process; not idempotent",
    "facts": "pid, cwd, era, and what the client said of itself, as JSON",
    "hold": "answers when the file `until` exists, or never; not any more when it was cancelled",
    "late": "answers when the file `until` exists, even if it was cancelled",
    "twice": "answers two times",
    "garbage": "prints lines that are no messages, and answers",
    "die": "ends at once, with exit code `code` or by signal `signal`; last words on stderr",
    "last": "answers, and ends with exit code 0",
    "close": "closes stdout, and lives",
    "deaf": "answers, and reads no more input",
    "shut": "answers, closes stdin, and lives",
    "big": "answers with `bytes` characters",
    "fail": "a result that is marked as an error",
    "error": "an error with `code`, `message`, `data`",
    "remove": "takes the tools `names` off the list, and says that the list changed",
    "offer": "puts the tools `names` on the list, and says that the list changed",
    "say": "sends the notification `method` with `params`, and answers",
    "touch": "says that the resource `uri` was updated, to those who subscribed to it",
    "progress": "reports `steps` steps to the token of the request, and answers",
    "ask": "asks the client `method` with `params`, and says its answer as JSON",
    "spawn": "starts a process that holds stdout and stderr (`apart`: in a session of its own), and says its id",
    "print": "prints `lines` on stderr, and answers",
}
READ_ONLY = ("echo", "facts", "big")

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
WATCH_SECONDS = 0.005  # between two looks for a file
LOCKED_BYTE = 1 << 30  # of the notes, on Windows: one that nobody reads
GARBAGE = b'hello from a library\n\n\xff\xfe\x00 binary\n[1, 2]\n"text"\n{"jsonrpc": "2.0", "id"\n{"id": 1}\nnull\n'


def odd_server(**manners: object) -> tuple[str, ...]:
    """The command line of a server with these manners; True and a value turn one on."""
    words = []
    for name, value in manners.items():
        assert name in MANNERS, f"there is no manner '{name}'"
        if value is not False and value is not None:
            words.append(f"--{name}" if value is True else f"--{name}={value}")
    return (sys.executable, "-IS", __file__, *words)


class Notes:
    """The folder in which servers record their events."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def starts(self) -> list[int]:
        """The ids of the processes that were started, in order."""
        return [int(line) for line in self._lines("starts")]

    @property
    def children(self) -> list[int]:
        """The ids of the processes that they started themselves."""
        return [int(line) for line in self._lines("children")]

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages that came, in order."""
        return [json.loads(line) for line in self._lines("received")]

    def methods(self) -> list[str | None]:
        """The methods of the messages that came; None for answers."""
        return [message.get("method") for message in self.received]

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return [line for line in path.read_text("utf-8").split("\n") if line] if path.exists() else []


class Died(Exception):
    """Raised by a tool whose call gets no answer."""


class Refused(Exception):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Request:
    def __init__(self, message: dict[str, Any]) -> None:
        self.id = message["id"]
        self.params = message.get("params") or {}
        self.meta = self.params.get("_meta") or {}
        self.arguments: dict[str, Any] = self.params.get("arguments") or {}
        self.cancelled = threading.Event()


class Server:
    def __init__(self, manners: dict[str, str]) -> None:
        self._manners = manners
        self._notes = manners.get("notes")
        self._eras = {"both": ("handshake", "modern")}.get(era := manners.get("era", "both"), (era,))
        self._era = ""
        self._client: dict[str, Any] = {}
        self._initialized = False
        self._writing = threading.Lock()
        self._running: dict[Any, Request] = {}
        self._subscriptions: dict[Any, dict[str, Any]] = {}
        self._watched: set[str] = set()
        self._asked = 0
        self._answers: dict[int, tuple[threading.Event, list[dict[str, Any]]]] = {}
        self._counted = 0
        self._reads = True
        number = manners.get("tools")
        self._tools = list(TOOLS) if number is None else [f"tool-{1 + index}" for index in range(int(number))]

    # the process

    def run(self) -> None:
        self._note("starts", os.getpid())
        manners = self._manners
        if "ignores_sigterm" in manners:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "flood" in manners:
            for number in range(int(manners["flood"]) * 16):
                os.write(2, f"flood {number:<57}\n".encode())
        if "grandchild" in manners:
            self._spawn()
        if "dies" in manners and self._starts() <= int(manners.get("dies_times", sys.maxsize)):
            os.write(2, b"Traceback: the server cannot begin\n")
            _die(int(manners["dies"]))
        if "closes" in manners:
            _close_stdout()
        if "garbage" in manners:
            os.write(1, GARBAGE)
        if "until" in manners:
            _wait_for(manners["until"])
        if "never_reads" not in manners:
            self._read()
        if "never_reads" in manners or "stays" in manners or not self._reads:
            _stay()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            if self._notes:
                _append(os.path.join(self._notes, "received"), line)
            message = json.loads(line)
            if "shy" in self._manners and not self._era and message.get("method") != "initialize":
                os.write(2, b"Error: expected initialize\n")
                _die(1)
            self._take(message)
            if not self._reads:
                return

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            waiting = self._answers.pop(message["id"], None)
            if waiting is not None:
                waiting[1].append(message)
                waiting[0].set()
        elif "id" not in message:
            self._notified(method, message.get("params") or {})
        else:
            request = self._running[message["id"]] = Request(message)
            if method == "tools/call" and request.params.get("name") not in ("deaf", "shut", "count"):
                threading.Thread(target=self._answer, args=(method, request), daemon=True).start()
            else:
                self._answer(method, request)

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/initialized":
            self._initialized = True
        elif method == "notifications/cancelled":
            self._subscriptions.pop(params.get("requestId"), None)
            if request := self._running.get(params.get("requestId")):
                request.cancelled.set()

    def _answer(self, method: str, request: Request) -> None:
        try:
            result = self._result(method, request)
        except Refused as refused:
            self._write({"id": request.id, "error": refused.error})
        except Died:
            pass
        else:
            if self._era == "modern":
                about = {f"{META}serverInfo": self._info()}
                result = {"resultType": "complete", **result, "_meta": about | result.get("_meta", {})}
            self._write({"id": request.id, "result": result})
        self._running.pop(request.id, None)

    def _write(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        with self._writing:
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(1, rest) :]
                except OSError:
                    return  # the reader is gone

    def _note(self, name: str, value: object) -> None:
        if self._notes:
            _append(os.path.join(self._notes, name), f"{value}\n".encode())

    def _starts(self) -> int:
        return len(Notes(Path(self._notes)).starts) if self._notes else 0

    def _spawn(self, *, apart: bool = False) -> int:
        command = [sys.executable, "-ISc", "import threading; threading.Event().wait()"]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=apart)
        self._note("children", child.pid)
        return child.pid

    # the protocol

    def _result(self, method: str, request: Request) -> dict[str, Any]:
        if "refuses" in self._manners:
            raise Refused(int(self._manners["refuses"]), "The server refuses everything.")
        self._check_era(method, request)
        if method.startswith("odd/"):
            return {"method": method, "params": request.params, "fieldOfTheFuture": {"ä": 1}}
        if method in ("ping", "logging/setLevel"):
            return {}
        answers: dict[str, Callable[[Request], dict[str, Any]]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "tools/list": lambda _: {"tools": [_tool(name) for name in self._tools]},
            "tools/call": self._call,
            "resources/list": lambda _: {"resources": [{"uri": "odd://note", "name": "note"}]},
            "resources/templates/list": lambda _: {
                "resourceTemplates": [{"uriTemplate": "odd://note/{name}", "name": "named"}]
            },
            "resources/read": lambda request: {"contents": [{"uri": request.params["uri"], "text": "noted"}]},
            "prompts/list": lambda _: {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
            "prompts/get": lambda _: {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello!"}}]},
            "completion/complete": lambda _: {"completion": {"values": ["Ada", "Alan"]}},
        }
        if method not in answers:
            raise Refused(-32601, f"Method not found: {method}")
        return answers[method](request)

    def _check_era(self, method: str, request: Request) -> None:
        wanted = "modern" if f"{META}protocolVersion" in request.meta else "handshake"
        if method == "server/discover" and "modern" not in self._eras:
            raise Refused(-32601, f"Method not found: {method}")
        if wanted not in self._eras:
            raise Refused(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": None})
        if self._era not in ("", wanted):
            raise Refused(-32602, f"This conversation is {self._era}.")
        self._era = wanted
        if wanted == "modern" and f"{META}clientCapabilities" not in request.meta:
            raise Refused(-32602, "The client's capabilities are missing.")
        if wanted == "handshake" and not self._initialized and method not in ("initialize", "ping"):
            raise Refused(-32600, "The conversation has not begun.")

    def _initialize(self, request: Request) -> dict[str, Any]:
        self._client = {"info": request.params["clientInfo"], "capabilities": request.params["capabilities"]}
        version = self._manners.get("version") or request.params["protocolVersion"]
        about = {"serverInfo": self._info(), "instructions": "Be odd."}
        return {"protocolVersion": version, "capabilities": _capabilities(), **about}

    def _discover(self, _: Request) -> dict[str, Any]:
        cache = {"ttlMs": 0, "cacheScope": "private"}
        return {"supportedVersions": [MODERN], "capabilities": _capabilities(), "instructions": "Be odd.", **cache}

    def _listen(self, request: Request) -> dict[str, Any]:
        wish = self._subscriptions[request.id] = request.params["notifications"]
        meta = {f"{META}subscriptionId": request.id}
        self._write(
            {"method": "notifications/subscriptions/acknowledged", "params": {"notifications": wish, "_meta": meta}}
        )
        raise Died  # it stays open

    def _subscribe(self, request: Request) -> dict[str, Any]:
        self._watched.add(request.params["uri"])
        return {}

    def _unsubscribe(self, request: Request) -> dict[str, Any]:
        self._watched.discard(request.params["uri"])
        return {}

    def _info(self) -> dict[str, str]:
        return {"name": self._manners.get("name", "odd"), "version": "1.0"}

    def _changed(self) -> None:
        self._tell("toolsListChanged", "notifications/tools/list_changed")

    def _tell(self, kind: str, method: str, uri: str | None = None) -> None:
        params: dict[str, Any] = {} if uri is None else {"uri": uri}
        if self._era == "handshake" and (uri is None or uri in self._watched):
            self._write({"method": method, "params": params})
        for number, wish in self._subscriptions.items():
            if wish.get(kind) is True or (uri is not None and uri in wish.get(kind, ())):
                self._write({"method": method, "params": {**params, "_meta": {f"{META}subscriptionId": number}}})

    # the tools

    def _call(self, request: Request) -> dict[str, Any]:
        name = request.params.get("name")
        if name not in self._tools:
            raise Refused(-32602, f"Unknown tool: {name}")
        tool: Callable[[Request], object] | None = getattr(self, f"_tool_{name}", None)
        said = tool(request) if tool else name
        return said if isinstance(said, dict) else _text(said)

    def _tool_echo(self, request: Request) -> object:
        return request.arguments.get("text", "")

    def _tool_count(self, _: Request) -> object:
        self._counted += 1
        return self._counted

    def _tool_facts(self, request: Request) -> object:
        client = self._client or {
            "info": request.meta.get(f"{META}clientInfo"),
            "capabilities": request.meta.get(f"{META}clientCapabilities"),
        }
        return json.dumps({"pid": os.getpid(), "cwd": os.getcwd(), "era": self._era, **client})

    def _tool_hold(self, request: Request) -> object:
        if not _wait_for(request.arguments.get("until"), request.cancelled):
            raise Died
        return "held"

    def _tool_late(self, request: Request) -> object:
        _wait_for(request.arguments["until"])
        return "late"

    def _tool_twice(self, request: Request) -> object:
        self._write({"id": request.id, "result": {"resultType": "complete", **_text("first")}})
        return "second"

    def _tool_garbage(self, _: Request) -> object:
        with self._writing:
            os.write(1, GARBAGE)
        return "garbage"

    def _tool_die(self, request: Request) -> object:
        os.write(2, b"the server dies of a call\n")
        _die(-request.arguments["signal"] if "signal" in request.arguments else request.arguments.get("code", 1))

    def _tool_last(self, request: Request) -> object:
        self._write({"id": request.id, "result": {"resultType": "complete", **_text("last")}})
        _die(0)

    def _tool_close(self, _: Request) -> object:
        _close_stdout()
        raise Died

    def _tool_deaf(self, _: Request) -> object:
        self._reads = False
        return "deaf"

    def _tool_shut(self, request: Request) -> object:
        self._write({"id": request.id, "result": {"resultType": "complete", **_text("shut")}})
        os.close(0)
        self._reads = False
        raise Died

    def _tool_big(self, request: Request) -> object:
        return "x" * request.arguments["bytes"]

    def _tool_fail(self, _: Request) -> object:
        return {**_text("it failed"), "isError": True}

    def _tool_error(self, request: Request) -> object:
        given = request.arguments
        raise Refused(given.get("code", -32603), given.get("message", "no"), given.get("data"))

    def _tool_remove(self, request: Request) -> object:
        self._tools = [name for name in self._tools if name not in request.arguments["names"]]
        self._changed()
        return "removed"

    def _tool_offer(self, request: Request) -> object:
        self._tools += request.arguments["names"]
        self._changed()
        return "offered"

    def _tool_say(self, request: Request) -> object:
        self._write({"method": request.arguments["method"], "params": request.arguments.get("params", {})})
        return "said"

    def _tool_touch(self, request: Request) -> object:
        self._tell("resourceSubscriptions", "notifications/resources/updated", request.arguments["uri"])
        return "touched"

    def _tool_progress(self, request: Request) -> object:
        steps = request.arguments.get("steps", 3)
        token = request.meta.get("progressToken")
        for step in range(steps if token is not None else 0):
            self._write(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1 + step, "total": steps},
                }
            )
        return "done"

    def _tool_ask(self, request: Request) -> object:
        question = {"method": request.arguments["method"], "params": request.arguments.get("params", {})}
        if self._era == "modern":
            answers = request.params.get("inputResponses")
            if answers is None:
                return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "odd-state"}
            if request.params.get("requestState") != "odd-state":
                raise Refused(-32602, "The requestState is not the one that was given.")
            return json.dumps({"result": answers["q"]})
        arrived, answer = threading.Event(), list[dict[str, Any]]()
        with self._writing:
            self._asked += 1
            number = self._asked
        self._answers[number] = (arrived, answer)
        self._write({"id": number, **question})
        arrived.wait()
        return json.dumps({key: answer[0][key] for key in ("result", "error") if key in answer[0]})

    def _tool_spawn(self, request: Request) -> object:
        return self._spawn(apart=request.arguments.get("apart", False))

    def _tool_print(self, request: Request) -> object:
        os.write(2, "".join(f"{line}\n" for line in request.arguments["lines"]).encode())
        return "printed"


def _capabilities() -> dict[str, Any]:
    lists = {"listChanged": True}
    return {
        "tools": lists,
        "prompts": lists,
        "resources": {"subscribe": True, **lists},
        "logging": {},
        "completions": {},
        "experimental": {"odd": {}},
    }


def _tool(name: str) -> dict[str, Any]:
    tool = {"name": name, "description": TOOLS.get(name, name), "inputSchema": {"type": "object"}}
    return tool | ({"annotations": {"readOnlyHint": True}} if name in READ_ONLY else {})


def _text(said: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(said)}]}


def _wait_for(path: str | None, cancelled: threading.Event | None = None) -> bool:
    """Wait for a file; False if the call was cancelled before."""
    while path is None or not os.path.exists(path):
        if cancelled is not None and cancelled.is_set():
            return False
        time.sleep(WATCH_SECONDS)
    return True


def _close_stdout() -> None:
    empty = os.open(os.devnull, os.O_WRONLY)
    os.dup2(empty, 1)  # writing still succeeds, and is lost


def _die(code: int) -> NoReturn:
    if code >= 0:
        os._exit(code)
    os.kill(os.getpid(), -code)
    _stay()


def _append(path: str, data: bytes) -> None:
    """One write, so that servers beside each other can note into one file."""
    with open(path, "ab") as stream:
        if sys.platform == "win32":  # to append is to look for the end there, and then to write
            import msvcrt

            stream.seek(LOCKED_BYTE)
            while True:
                try:
                    msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    time.sleep(WATCH_SECONDS)
        stream.write(data)  # closing it ends the lock


def _stay() -> NoReturn:
    while True:
        threading.Event().wait()  # signal.pause() is only POSIX's


def _manners(words: Iterable[str]) -> dict[str, str]:
    given = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    assert given.keys() <= MANNERS.keys(), given
    return given


if __name__ == "__main__":
    Server(_manners(sys.argv[1:])).run()
