"""The server's end of MCP."""
