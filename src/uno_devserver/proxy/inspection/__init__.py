"""The inspector page of a proxy: its events, and the HTTP listeners that serve it and MCP."""
