"""The commands `mcp …`: the proxy, and its registration in AI clients."""
