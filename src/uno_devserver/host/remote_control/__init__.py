"""The `/rc` WebSocket: how a running app speaks with its Host."""
