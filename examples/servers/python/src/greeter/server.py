"""The tools, made with the official SDK."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

from .greeting import greeting

server = MCPServer("greeter-py", version="1.0.0")


@server.tool()
def greet(name: str) -> str:
    """Greets somebody by name."""
    return greeting(name)


@server.tool()
def count_words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


def main() -> None:
    server.run()
