"""All HTTP requests recorded with the .NET Host, sent to ours as a process: the same answers, or a listed other one."""

from __future__ import annotations

import json
import re
import socket
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from support.assemblies import assembly
from support.bundled import PATIENCE, BundledHost, write_addin
from support.golden import GOLDEN

# What we do differently on purpose: our status, and why.
DIFFERENT: dict[str, tuple[int, str]] = {
    "GET /mcp/sse": (404, "the transport of 2024-11-05 is not served"),
    "null id": (400, "a JSON-RPC error instead of an empty 500"),
    "batch array": (400, "a JSON-RPC error instead of an empty 500"),
    "bad JSON": (400, "a JSON-RPC error instead of an empty 500"),
    "empty body": (400, "a JSON-RPC error instead of an empty 500"),
    "JSON without jsonrpc": (400, "a JSON-RPC error instead of an empty 500"),
    "no content type": (415, "the status that says what is wrong"),
    "initialize without clientInfo": (200, "nothing needs the name of the client"),
    "Accept json only": (200, "it gets JSON"),
    "Accept sse only": (200, "it gets a stream"),
    "no Accept": (200, "it gets JSON"),
    "GET /mcp second GET in the same session": (200, "a client that lost its connection can listen again"),
    "DELETE without session": (400, "nothing was ended"),
    "DELETE unknown session": (404, "nothing was ended"),
    "DELETE session again": (404, "nothing was ended"),
    "server/discover 2026-07-28 (stateless probe)": (200, "the modern era is spoken"),
    "tools/list 2026-07-28 without initialize": (200, "the modern era is spoken"),
    "GET /applaunch/asm existing assembly, plain path": (200, "a path is taken as it is, too"),
    "prompts/list": (200, "add-ins may offer prompts, so that there is a list, also of none"),
    'tools/call sample_echo {"text": "a", "extra": 1}': (200, "an argument that the tool does not have is an error"),
    "POST /devserver/idechannel/a%2Fb": (400, "a channel's id is a plain name"),
    **dict.fromkeys(
        (
            "OPTIONS / preflight",
            "initialize with evil Origin",
            "initialize with evil Host",
            "initialize with evil Host and Origin",
            "POST /devserver/idechannel cross-site Origin",
            "HTTP/1.0 GET /",
            "Host evil.example GET /mcp",
        ),
        (403, "web sites are refused everywhere, and requests that do not name this machine"),
    ),
}
UNKNOWN_RESOURCE = {-32603: -32002}  # theirs means an internal error, ours is the one of MCP
# Without a request: seen from another machine, and what a stream received (tests of the server, and of changes).
NOT_SENT = {"non-loopback interface of this machine", "what the open GET /mcp stream received"}

MVID = "9c99979b-6ea1-4610-8914-0ee6ad08f09a"
ADDIN = """
from uno_devserver.host.addins import AddIn, ToolError, ToolResult, text as plain


def register(addin: AddIn) -> None:
    @addin.tool(read_only=True)
    def sample_echo(text: str) -> str:
        return text

    @addin.tool()
    def sample_add(a: int, b: int = 1) -> ToolResult:
        return ToolResult([plain(str(a + b))], structured={"result": a + b})

    @addin.tool()
    async def sample_slow() -> str:
        return "slow"

    @addin.tool()
    def sample_fail() -> str:
        raise RuntimeError("sample failure")

    @addin.tool()
    def sample_fail_mcp() -> str:
        raise ToolError("sample mcp failure")

    @addin.tool()
    def sample_register(name: str) -> str:
        addin.tool(name=name)(lambda: name)
        return "added"
"""


class Answer(NamedTuple):
    status: int
    session: str
    body: str

    @property
    def message(self) -> Any:
        """The JSON-RPC message in the body, or None."""
        data = next((line[6:] for line in self.body.splitlines() if line.startswith("data: ")), self.body)
        return json.loads(data) if '"jsonrpc"' in data else None


def test_the_recorded_requests_are_answered_in_the_same_way_or_better(tmp_path: Path) -> None:
    records = json.loads((GOLDEN / "host" / "http" / "with-addin.json").read_text("utf-8"))
    places = lay_out(tmp_path)
    sessions: dict[str, str] = {}
    streams: list[socket.socket] = []
    unlike = []

    with BundledHost(tmp_path, "--addins", str(write_addin(tmp_path, "sample.py", ADDIN))) as host:
        host.health()
        for record in records:
            if record["name"] in NOT_SENT:
                continue
            theirs = recorded_answer(record)
            ours = ask(host.port, request_of(record, host.port, places, sessions), streams)
            if theirs.session and ours.session:
                sessions[theirs.session] = ours.session
            status, _ = DIFFERENT.get(record["name"], (theirs.status, ""))
            same = ours.status == theirs.status and (theirs.status != 200 or told(theirs) == told(ours))
            if same is (record["name"] in DIFFERENT) or ours.status != status:
                unlike.append((record["name"], told(theirs), told(ours)))
        for stream in streams:
            stream.close()

    assert unlike == []
    names = [record["name"] for record in records]
    assert NOT_SENT.union(DIFFERENT) <= set(names)
    assert (len(names), len(streams)) == (113, 2)


def lay_out(root: Path) -> dict[str, str]:
    """The folders that the requests name, with the assemblies in them."""
    places = {"CACHE": str(root / "cache"), "ADDINS": str(root / "addins")}
    for name, content in (
        ("cache/sample.addin/1.0.0/tools/devserver/Sample.AddIn.dll", assembly(mvid=MVID)),
        ("addins/NotDotNet/NotDotNet.dll", b"not dotnet"),
    ):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(content)
    return places


def request_of(record: dict[str, Any], port: int, places: dict[str, str], sessions: dict[str, str]) -> bytes:
    text: str = record["request"].replace("localhost:5621", f"localhost:{port}")
    for placeholder, place in places.items():
        text = text.replace(f"{{{placeholder}}}", place).replace(f"{{{placeholder} as %2F...}}", quote(place, safe=""))
    return re.sub("(?<=Mcp-Session-Id: )[^\r]+", lambda found: sessions.get(found[0], found[0]), text).encode()


def ask(port: int, request: bytes, streams: list[socket.socket]) -> Answer:
    """Send a request over a connection of its own; an open stream is left open, and its body is not read."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
    connection.sendall(request)
    response = HTTPResponse(connection, method=request.split()[0].decode("latin-1"))
    response.begin()
    session = response.headers.get("mcp-session-id", "")
    if request.startswith(b"GET /mcp") and response.status == 200:
        streams.append(connection)
        return Answer(200, session, "")
    with connection:
        return Answer(response.status, session, response.read().decode())


def recorded_answer(record: dict[str, Any]) -> Answer:
    session = re.search("(?i)mcp-session-id: ([^\r\n]+)", record["responseHead"])
    return Answer(int(record["responseHead"].split()[1]), session[1] if session else "", record["responseBody"])


def told(answer: Answer) -> Any:
    """What must agree: a body as it is; of a message what it says, but not in which words."""
    message = answer.message
    if message is None:
        return answer.status, answer.body
    result, error = message.get("result", {}), message.get("error", {})
    failed = result.get("isError", False)
    health = "ideChannelConnected" in str(result)
    return answer.status, {
        "id": message["id"],
        "outcome": "result" if "result" in message else "error",
        "code": UNKNOWN_RESOURCE.get(error.get("code"), error.get("code")),
        "version": result.get("protocolVersion"),
        "failed": failed,
        "returned": [] if failed or health else [content["text"] for content in result.get("content", ())],
        "structured": None if health else result.get("structuredContent"),
        "tools": sorted(tool["name"] for tool in result.get("tools", ())),
        "resources": [resource["uri"] for resource in result.get("resources", ())],
        "contents": [(content["uri"].lower(), content["mimeType"]) for content in result.get("contents", ())],
    }
