"""Whatever is sent, there is an answer, and it makes sense."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from uno_devserver.protocol.http.messages import Answer, Request, Response, Streaming
from uno_devserver.protocol.service import Call, Result
from uno_devserver.protocol.versions import HANDSHAKE_VERSIONS, MODERN_VERSIONS

from ..conversations import Client, Connection, ScriptedService, endpoint_of, text

STATUSES = {200, 202, 400, 404, 405, 406, 415}
METHODS = (
    "initialize", "ping", "tools/list", "tools/call", "logging/setLevel", "resources/subscribe", "resources/read",
    "server/discover", "subscriptions/listen", "notifications/initialized", "notifications/cancelled", "no/such",
)  # fmt: skip

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
meta: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "io.modelcontextprotocol/protocolVersion": st.sampled_from(MODERN_VERSIONS) | values,
        "io.modelcontextprotocol/clientCapabilities": st.just({"elicitation": {}}) | values,
        "io.modelcontextprotocol/clientInfo": values,
        "io.modelcontextprotocol/logLevel": st.just("debug") | values,
        "progressToken": values,
    },
)
params = values | st.fixed_dictionaries(
    {},
    optional={
        "_meta": meta | values,
        "name": st.sampled_from(["speak", "ask", "none"]) | values,
        "uri": values,
        "level": st.just("info") | values,
        "notifications": st.just({"toolsListChanged": True}) | values,
        "requestState": values,
        "inputResponses": values,
        "requestId": values,
        "protocolVersion": st.sampled_from(HANDSHAKE_VERSIONS) | values,
        "capabilities": values,
        "clientInfo": values,
    },
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | values},
    optional={"id": st.integers() | st.text(max_size=5) | values, "method": st.sampled_from(METHODS) | values,
              "params": params, "result": values, "error": values},
)  # fmt: skip
bodies = (messages | st.lists(messages, max_size=3) | values).map(
    lambda value: json.dumps(value).encode()
) | st.binary()
header_values = st.text(st.characters(max_codepoint=255), max_size=12)
headers = st.fixed_dictionaries(
    {
        "accept": st.sampled_from(["application/json, text/event-stream", "*/*", "application/json"]) | header_values,
        "content-type": st.just("application/json") | header_values,
    },
    optional={
        "mcp-protocol-version": st.sampled_from(HANDSHAKE_VERSIONS + MODERN_VERSIONS) | header_values,
        "mcp-method": st.sampled_from(METHODS) | header_values,
        "mcp-name": st.sampled_from(["speak", "ask", "=?base64?c3BlYWs=?="]) | header_values,
        "last-event-id": st.sampled_from(["s-0", "1-0", "1-1"]) | header_values,
        "mcp-session-id": st.just("{session}") | header_values,
    },
)
methods = st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT"])


async def _speak(call: Call) -> Result:
    call.notify("notifications/progress", {"progress": 1})
    return text("spoken")


async def _ask(call: Call) -> Result:
    return await call.ask("elicitation/create", {})


@settings(max_examples=60)
@given(st.lists(st.tuples(methods, headers, bodies), max_size=4), st.sampled_from(HANDSHAKE_VERSIONS))
def test_every_request_gets_a_sane_answer(requests: list[tuple[str, dict[str, str], bytes]], version: str) -> None:
    asyncio.run(_converse(requests, version))


async def _converse(requests: list[tuple[str, dict[str, str], bytes]], version: str) -> None:
    client = Client(
        endpoint_of(ScriptedService(speak=_speak, ask=_ask), question_seconds=0.001, plain_answer_seconds=0.001)
    )
    await client.initialize(version, elicitation={})
    session = client.headers["mcp-session-id"]
    connections = []
    for method, sent, body in requests:
        filled = {name: value.replace("{session}", session) for name, value in sent.items()}
        answer = await client.endpoint.handle(Request(method, "/mcp", "", filled, body))
        if isinstance(answer, Streaming):
            connections.append(Connection(answer))
        _check(answer)
    await client.endpoint.close()
    for connection in connections:
        await connection.end()


def _check(answer: Answer) -> None:
    if isinstance(answer, Streaming):
        assert answer.status == 200
        return
    assert isinstance(answer, Response)
    assert answer.status in STATUSES
    if answer.body:
        said: Any = json.loads(answer.body)
        for message in said if isinstance(said, list) else [said]:
            assert message["jsonrpc"] == "2.0"
            assert ("error" in message) != ("result" in message)
            assert answer.status == 200 or "error" in message
    else:
        assert answer.status in (200, 202, 405)
