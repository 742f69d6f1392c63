"""HTTP/1.1 and WebSocket over asyncio: the parsers are httptools and websockets, the sockets are ours."""
