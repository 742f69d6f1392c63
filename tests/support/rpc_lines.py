"""Messages as the lines that a client writes, for tests that care for the bytes or for what is in one write."""

from __future__ import annotations

from support.proxies import MODERN, Message

# What every request of a modern client has in its `_meta`.
ENVELOPE: Message = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def text_of(answer: Message) -> str:
    """The text of the result that an answer has."""
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])
