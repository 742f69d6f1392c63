"""The control channel: proxies that share a server ask the authority of the one that owns it."""
