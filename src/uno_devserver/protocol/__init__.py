"""How MCP is spoken: messages, eras, Streamable HTTP. No policy, no product."""
