"""An MCP server on stdin and stdout that writes exactly the bytes that a test chose, and keeps exactly those that came.

    server = ScriptedServer(tmp_path / "server")
    server.script("read", b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"size":1.0}}\\n')
    client = proxies.connected("--", *server.command())
    assert b'"arguments":{"size":1.0}' in server.call("read")

It speaks both eras and knows nothing but tools. A tool without a script says its argument `text`. Tools can be closed:
then their calls are received, and answered when the tool is opened. Everything is a file, so that it outlives a kill.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODERN = "2026-07-28"
WATCH_SECONDS = 0.005  # between two looks for a file
LONGEST_LINE = 64 * 1024 * 1024  # that the proxy reads of a server
READ_ONLY = {"readOnlyHint": True}

# In scripts: the id of the request, its progress token, its argument `text`, as JSON; and more than a line may have.
ID, TOKEN, TEXT, LONG = b"@ID@", b"@TOKEN@", b"@TEXT@", b"@LONG@"


class ScriptedServer:
    """The folder by which a test speaks with its servers."""

    def __init__(self, folder: Path, *tools: str, read_only: tuple[str, ...] = ()) -> None:
        """`tools` and those that are `read_only` are listed; `say` always is."""
        (folder / "scripts").mkdir(parents=True)
        (folder / "closed").mkdir()
        self.folder = folder
        listed = [_tool(name) for name in ("say", *tools)]
        listed += [_tool(name) | {"annotations": READ_ONLY} for name in read_only]
        (folder / "tools").write_text(json.dumps(listed), "utf-8")

    def command(self, *, delay: float = 0.0, opening: bytes = b"") -> tuple[str, ...]:
        """`delay`: the seconds that it takes to begin. `opening`: what it writes in front of its first message."""
        return (sys.executable, "-IS", __file__, str(self.folder), str(delay), opening.hex())

    def script(self, tool: str, script: bytes) -> None:
        """What it writes when this tool is called."""
        (self.folder / "scripts" / tool).write_bytes(script)

    def close(self, tool: str) -> None:
        (self.folder / "closed" / tool).touch()

    def open(self, tool: str) -> None:
        (self.folder / "closed" / tool).unlink()

    @property
    def starts(self) -> list[int]:
        """The ids of the processes that were started, in order."""
        return [int(line) for line in self._read("starts").split()]

    @property
    def lines(self) -> list[bytes]:
        """What it received: the lines that have ended."""
        return self._read("received").split(b"\n")[:-1]

    def received(self, method: str) -> list[dict[str, Any]]:
        messages = [json.loads(line) for line in self.lines]
        return [message for message in messages if message.get("method") == method]

    def calls(self, tool: str) -> list[bytes]:
        """The lines of all calls of that tool."""
        return [line for line in self.lines if _called(line) == tool]

    def call(self, tool: str) -> bytes:
        """The line of the only call of that tool."""
        (line,) = self.calls(tool)
        return line

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        return path.read_bytes() if path.exists() else b""


def text_result(text: bytes = TEXT) -> bytes:
    """A script that answers with that text, which is JSON, in either era."""
    content = b'{"resultType":"complete","content":[{"type":"text","text":%s}]}' % text
    return b'{"jsonrpc":"2.0","id":@ID@,"result":%s}\n' % content


def _called(line: bytes) -> str | None:
    message = json.loads(line)
    name: str | None = message["params"]["name"] if message.get("method") == "tools/call" else None
    return name


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "inputSchema": {"type": "object"}}


# --- the process ------------------------------------------------------------------------------------------------------


def serve(folder: str, delay: float, opening: bytes) -> None:
    keep(folder, "starts", b"%d\n" % os.getpid())
    time.sleep(delay)
    writing = threading.Lock()
    first = [opening]

    def write(data: bytes) -> None:
        with writing:
            rest = memoryview((first.pop() if first else b"") + data)
            while rest:
                rest = rest[os.write(1, rest) :]

    for line in sys.stdin.buffer:
        keep(folder, "received", line)
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        name = message["params"]["name"] if message["method"] == "tools/call" else ""
        if name and os.path.exists(os.path.join(folder, "closed", name)):
            threading.Thread(target=_answer_when_open, args=(folder, name, message, write), daemon=True).start()
        else:
            write(answer_to(folder, message))
    os._exit(0)  # whatever its threads wait for


def _answer_when_open(folder: str, name: str, message: dict[str, Any], write: Any) -> None:
    while os.path.exists(os.path.join(folder, "closed", name)):
        time.sleep(WATCH_SECONDS)
    write(answer_to(folder, message))


def answer_to(folder: str, message: dict[str, Any]) -> bytes:
    params = message.get("params") or {}
    script = _script(folder, message["method"], params)
    script = script.replace(ID, json.dumps(message["id"]).encode())
    script = script.replace(TOKEN, json.dumps((params.get("_meta") or {}).get("progressToken")).encode())
    script = script.replace(TEXT, json.dumps((params.get("arguments") or {}).get("text", "")).encode())
    return script.replace(LONG, b"x" * LONGEST_LINE) if LONG in script else script


def _script(folder: str, method: str, params: dict[str, Any]) -> bytes:
    if method == "tools/call":
        path = os.path.join(folder, "scripts", params["name"])
        if not os.path.exists(path):
            return text_result()
        with open(path, "rb") as stream:
            return stream.read()
    with open(os.path.join(folder, "tools"), encoding="utf-8") as stream:
        tools = json.load(stream)
    about: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
    results: dict[str, dict[str, Any]] = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), **about},
        "server/discover": {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private", **about},
        "tools/list": {"tools": tools, "ttlMs": 0, "cacheScope": "private"},
        "ping": {},
    }
    if method not in results:
        error = json.dumps({"code": -32601, "message": f"Method not found: {method}"}).encode()
        return b'{"jsonrpc":"2.0","id":@ID@,"error":%s}\n' % error
    result = json.dumps({"resultType": "complete", **results[method]}).encode()
    return b'{"jsonrpc":"2.0","id":@ID@,"result":%s}\n' % result


def keep(folder: str, name: str, data: bytes) -> None:
    """One write, so that a kill leaves whole lines."""
    file = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, data)
    os.close(file)


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]), bytes.fromhex(sys.argv[3]))
