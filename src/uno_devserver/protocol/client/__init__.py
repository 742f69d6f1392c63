"""The client's end of MCP: connections to servers of both eras, over HTTP and over pipes."""
