"""Helpers that several test files use: a machine in a folder, stand-ins for dotnet and Hosts, workspaces, packages."""
