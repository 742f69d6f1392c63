"""The server's end of MCP: answers clients of both eras on behalf of a `Service`."""
