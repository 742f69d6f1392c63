"""A small MCP server on stdin and stdout whose answer is a part of its code; light, so that its start costs little.

    serve("one", "/tmp/journal")        # the tool `answer` says "one"

It speaks both eras. What happens to it is a line of the journal, with the time of the machine's one clock. Habits that
an edit may give it: it `dies` at its start, or if it is not `alone`, is `silent`, `tells` its process id in a log
message with each list and call, `asks` the user when its tools are listed, `waits` with its start for the file `start`
beside the journal, and has with `tool:<name>` one tool more.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
WATCH_SECONDS = 0.002  # between two looks for a file
LOCKED_BYTE = 1 << 30  # of the journal, on Windows: one that nobody reads
TOOLS = ("answer", "hold")


def serve(answer: str, journal: str, habits: Sequence[str] = ()) -> None:
    Server(answer, journal, habits).run()


def note(journal: str, event: str, **facts: object) -> None:
    """One write, so that many processes can note into one file."""
    line = json.dumps({"event": event, "at": time.monotonic(), "pid": os.getpid(), **facts})
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    _lock(file)
    os.write(file, line.encode() + b"\n")
    os.close(file)  # and with it the lock


def _lock(file: int) -> None:
    """Let no other process append at the same time: on Windows that is to look for the end, and then to write."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, LOCKED_BYTE, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
                break
            except OSError:
                time.sleep(WATCH_SECONDS)


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(WATCH_SECONDS)


class Server:
    def __init__(self, answer: str, journal: str, habits: Sequence[str]) -> None:
        self._answer = answer
        self._journal = journal
        self._habits = habits
        self._tools = [*TOOLS, *(habit.partition(":")[2] for habit in habits if habit.startswith("tool:"))]
        self._writing = threading.Lock()

    def run(self) -> None:
        note(self._journal, "start", answer=self._answer, cwd=os.getcwd(), beside=_living(self._journal))
        if "alone" in self._habits and _living(self._journal, but=os.getpid()):
            raise RuntimeError("another one runs")
        if "dies" in self._habits:
            raise RuntimeError(f"{self._answer} cannot begin")
        if "waits" in self._habits:
            wait_for(os.path.join(os.path.dirname(self._journal), "start"))
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "error" in message:
                note(self._journal, "refused", why=message["error"]["message"])
            if "silent" in self._habits or "id" not in message or "method" not in message:
                continue
            if message["method"] == "tools/call":  # they may wait, and others may overtake them
                threading.Thread(target=self._reply, args=(message,), daemon=True).start()
            else:
                self._reply(message)
        os._exit(0)  # whatever its threads wait for

    def _reply(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        result = self._result(message["method"], params)
        if result is None:
            self._write({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
            return
        if "asks" in self._habits and message["method"] == "tools/list":
            self._write({"id": "question", "method": "elicitation/create", "params": {"message": "Who are you?"}})
        if "tells" in self._habits and message["method"] in ("tools/list", "tools/call"):
            told = {"level": "warning", "data": f"pid {os.getpid()}"}
            self._write({"method": "notifications/message", "params": told})
        if f"{META}protocolVersion" in (params.get("_meta") or {}):
            result = {"resultType": "complete", **result, "_meta": {f"{META}serverInfo": _info()}}
        self._write({"id": message["id"], "result": result})

    def _write(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._writing:
            os.write(1, line)

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        capabilities = {"tools": {"listChanged": True}}
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": _info(),
            }
        if method == "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self._tools]}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": self._call(params["name"], params.get("arguments") or {})}]}
        return {} if method == "ping" else None

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        mark = arguments.get("mark")
        note(self._journal, "call", tool=name, mark=mark, answer=self._answer)
        if name == "hold":
            wait_for(arguments["until"])
            note(self._journal, "held", mark=mark, answer=self._answer)
        return self._answer


def _living(journal: str, but: int = 0) -> list[str]:
    """The answers of servers that were started earlier, and still run."""
    if not os.path.exists(journal):
        return []
    with open(journal, encoding="utf-8") as stream:
        started = [event for event in map(json.loads, stream) if event["event"] == "start"]
    return [event["answer"] for event in started if event["pid"] != but and _runs(event["pid"])]


def _runs(pid: int) -> bool:
    if sys.platform == "win32":
        import _winapi

        synchronize = 0x100000
        try:
            process = _winapi.OpenProcess(synchronize, False, pid)
        except OSError:
            return False
        try:
            return _winapi.WaitForSingleObject(process, 0) == _winapi.WAIT_TIMEOUT
        finally:
            _winapi.CloseHandle(process)
    return os.path.exists(f"/proc/{pid}")


def _info() -> dict[str, str]:
    return {"name": "talker", "version": "1"}
