"""HTTP/1.1 and WebSocket over asyncio, with the parsers of httptools and websockets. Knows no JSON-RPC."""
