"""An MCP server that greets."""
