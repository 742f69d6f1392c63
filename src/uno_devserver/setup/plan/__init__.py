"""Plans the changes of a client's files: install, uninstall and restore."""
