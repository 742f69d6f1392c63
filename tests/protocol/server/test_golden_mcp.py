"""The recorded conversation of the .NET Host's MCP endpoint, held with ours: the same, or better and listed here."""

from __future__ import annotations

import json
from typing import Any

from support.golden import GOLDEN
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError
from uno_devserver.protocol.service import Call, Result

from ..conversations import Client, Connection, Reply, ScriptedService, endpoint_of, text

# What we do differently on purpose: our status, and why.
DIFFERENT: dict[str, tuple[int, str]] = {
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
}
# The front door of the whole server refuses these, not the endpoint.
ELSEWHERE = ("GET /mcp/sse", "OPTIONS / preflight")


async def test_the_recorded_conversation_goes_the_same_way_or_better() -> None:
    client = Client(endpoint_of(_sample_service()))
    sessions: dict[str, str] = {}
    unlike = []
    seen = set()
    connections = []
    for record in json.loads((GOLDEN / "host" / "http" / "with-addin.json").read_text("utf-8")):
        method, path, headers, body = _request(record.get("request", ""))
        if not path.lower().startswith("/mcp") or record["name"] in ELSEWHERE:
            continue
        if "mcp-session-id" in headers:
            headers["mcp-session-id"] = sessions.get(headers["mcp-session-id"], headers["mcp-session-id"])
        client.headers = headers
        answer = await client.exchange(method, body)
        if isinstance(answer, Connection):
            connections.append(answer)
        status, recorded = _response(record)
        if "mcp-session-id" in recorded and isinstance(answer, Reply):
            sessions[recorded["mcp-session-id"]] = answer.headers.get(
                "mcp-session-id", headers.get("mcp-session-id", "")
            )
        expected, _ = DIFFERENT.get(record["name"], (status, ""))
        seen.add(record["name"])
        if answer.status != expected:
            unlike.append((record["name"], expected, answer.status))
        elif isinstance(answer, Reply) and record["name"] not in DIFFERENT and status == 200:
            unlike += [(record["name"], *pair) for pair in _unlike(record["responseBody"], answer)]
    for connection in connections:
        await connection.lose()

    assert unlike == []
    assert seen.issuperset(DIFFERENT)
    assert len(seen) > 60


def _sample_service() -> ScriptedService:
    async def tool(call: Call) -> Result:
        return text("ok")

    async def read(call: Call) -> Result:
        if call.params["uri"].lower() != "uno://health":
            raise RpcError(RESOURCE_NOT_FOUND, "Unknown resource")
        return {"contents": []}

    async def some(call: Call) -> Result:
        return {}

    async def unknown_tool(call: Call) -> Result:
        raise RpcError(INVALID_PARAMS, "Unknown tool")

    names = ("uno_health", "sample_echo", "sample_add", "sample_fail", "sample_fail_mcp", "sample_register")
    service = ScriptedService(**dict.fromkeys(names, tool))
    service.methods |= {"resources/read": read, "resources/list": some, "resources/templates/list": some}
    service.methods["tools/call"] = unknown_tool
    return service


def _unlike(recorded: str, answer: Reply) -> list[tuple[Any, Any]]:
    """Ids must agree, and whether it is a result; the .NET Host's code for unknown resources means something else."""
    data = next((line[6:] for line in recorded.splitlines() if line.startswith("data: ")), None)
    if data is None:
        return []
    theirs, ours = json.loads(data), answer.json
    pairs = [(theirs["id"], ours["id"]), ("result" in theirs, "result" in ours)]
    if "error" in theirs and theirs["error"]["code"] != -32603:
        pairs.append((theirs["error"]["code"], ours["error"]["code"]))
    if "protocolVersion" in theirs.get("result", {}):
        pairs.append((theirs["result"]["protocolVersion"], ours["result"]["protocolVersion"]))
    return [pair for pair in pairs if pair[0] != pair[1]]


def _request(raw: str) -> tuple[str, str, dict[str, str], bytes]:
    head, _, body = raw.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    method, path = (*first.split(" "), "", "")[:2]
    return method, path, _headers(lines), body.encode()


def _response(record: dict[str, Any]) -> tuple[int, dict[str, str]]:
    first, *lines = record["responseHead"].split("\r\n")
    return int(first.split(" ")[1]), _headers(lines)


def _headers(lines: list[str]) -> dict[str, str]:
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
