"""HTTP/1.1 and WebSocket over asyncio, around the parsers of httptools and websockets; knows no JSON-RPC.

Hand-written: importing uvicorn and starlette takes as long as the whole Host needs until its first answer.
"""
