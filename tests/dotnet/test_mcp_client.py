"""An MCP client on .NET's HttpClient: bodies in chunks, `Expect: 100-continue`, one connection for all requests."""

from __future__ import annotations

import json
from typing import Any

from dotnet.sdk import Client
from support.bundled import BundledHost
from support.machine import Machine

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "Größe ✓", "version": "1"}}


def test_a_session_of_an_http_client_works_as_a_whole(net_machine: Machine, client: Client) -> None:
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "uno_health", "arguments": {}}},
    ]

    with BundledHost(net_machine.root, "--addins", ";") as host:
        lines = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)
        opened, noted, called = client.lines("mcp", str(host.port), given=lines)

    assert (opened["status"], noted["status"], called["status"]) == (200, 202, 200)
    assert _answer(opened)["result"]["protocolVersion"] == "2025-06-18"
    assert json.loads(_answer(called)["result"]["content"][0]["text"])["status"] == "Healthy"


def _answer(reply: dict[str, Any]) -> Any:
    if reply["type"] == "application/json":
        return json.loads(reply["body"])
    assert reply["type"] == "text/event-stream"
    [data] = [line[5:] for line in reply["body"].splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data)
