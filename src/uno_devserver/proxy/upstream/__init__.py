"""What answers behind the proxy: a Host that it starts or finds, any command that speaks MCP, or a URL."""
