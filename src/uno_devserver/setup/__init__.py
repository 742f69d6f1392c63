"""Registration of the MCP servers with AI clients: what is there, what to write, and how to take it out again."""
