"""Messages as the lines that a client writes, for tests that care for the bytes or for what is in one write."""

from __future__ import annotations

import json

from support.proxies import MODERN, Message

# What every request of a modern client has in its `_meta`.
ENVELOPE: Message = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request_line(number: int | str, method: str, params: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def notification_line(method: str, params: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


def call_line(number: int | str, text: str, *, tool: str = "say", meta: Message | None = None) -> bytes:
    """A call with the argument `text`."""
    params = {"name": tool, "arguments": {"text": text}} | ({"_meta": meta} if meta else {})
    return request_line(number, "tools/call", params)


def text_of(answer: Message) -> str:
    """The text of the result that an answer has."""
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])
