"""The control channel, on which proxies that share a server reach the authority of the proxy that owns it."""
