"""Registers MCP servers with AI clients: status, install, uninstall, restore and doctor."""
