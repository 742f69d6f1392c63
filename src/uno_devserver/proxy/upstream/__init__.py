"""The upstream of a proxy: a Host that it starts or finds, a command that speaks MCP, or a URL; and its keeper."""
