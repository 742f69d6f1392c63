"""The registration of MCP servers with AI clients: status, install, uninstall, restore and doctor."""
