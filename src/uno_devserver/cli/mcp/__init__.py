"""The commands `mcp …`: the proxy, and registration in AI clients."""
