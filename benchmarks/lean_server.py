"""A lean MCP server with one tool, for the relay's benchmark. It speaks both eras and needs only the standard library.

Run as a file: `lean_server.py` serves on pipes; `lean_server.py --http` prints its port, and serves Streamable HTTP
until its standard input is closed; `lean_server.py --http <port>` serves it there until it is ended. Everything that
one read brings is answered with one write, so that the server is never the slowest part of what is measured.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds, and the launch of this server is measured
    from typing import Any

READ_BYTES = 1 << 16  # what a pipe holds; more would make each read map and unmap memory
BACKLOG = 1024  # a relay may open a connection for each call in flight
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
METHOD_NOT_FOUND = -32601

INFO = {"name": "lean", "version": "1"}
CAPABILITIES: dict[str, object] = {"tools": {}}
TOOL = {
    "name": "double",
    "description": "Twice the number.",
    "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    "annotations": {"readOnlyHint": True},
}
COMPLETE = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
CACHEABLE = {**COMPLETE, "ttlMs": 0, "cacheScope": "private"}

CALLED = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%d"}]}}'
CALLED_MODERN = b'{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"%d"}]}}'
FOUND = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NOT_ALLOWED = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n"


def main() -> None:
    if "--http" in sys.argv[1:]:
        serve_http(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    else:
        serve_pipes()


def answer(message: bytes) -> bytes | None:
    """The answer to one message; None for a notification."""
    request = json.loads(message)
    if "id" not in request:
        return None
    params = request.get("params", {})
    modern = VERSION_KEY in params.get("_meta", ())
    request_id = json.dumps(request["id"]).encode()
    if request["method"] == "tools/call":
        return (CALLED_MODERN if modern else CALLED) % (request_id, 2 * params["arguments"]["number"])
    result = _result(request["method"], modern)
    if result is None:
        error = {"code": METHOD_NOT_FOUND, "message": f"There is no method '{request['method']}' here."}
        return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (request_id, json.dumps(error).encode())
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (request_id, json.dumps(result).encode())


def _result(method: str, modern: bool) -> dict[str, object] | None:
    """The result of a method other than `tools/call`; None where the era does not have it."""
    if method == "tools/list":
        return {"tools": [TOOL], **(CACHEABLE if modern else {})}
    if modern and method == "server/discover":
        return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, **CACHEABLE}
    if not modern and method == "initialize":
        return {"protocolVersion": HANDSHAKE, "capabilities": CAPABILITIES, "serverInfo": INFO}
    if not modern and method == "ping":
        return {}
    return None


def serve_pipes() -> None:
    rest = b""
    while got := os.read(0, READ_BYTES):
        *lines, rest = (rest + got).split(b"\n")
        answers = [answered for line in lines if (answered := answer(line)) is not None]
        if answers:
            _write(b"\n".join(answers) + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


# HTTP: one thread, non-blocking sockets, connections that are kept.


def serve_http(port: int) -> None:
    import selectors
    import socket

    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    listener.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    if not port:
        selector.register(0, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    buffers: dict[Any, bytes] = {}
    while True:
        for key, _ in selector.select():
            ready: Any = key.fileobj
            if ready == 0:
                return
            if ready is listener:
                connection = listener.accept()[0]
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
                buffers[connection] = b""
            elif not _serve(ready, buffers):
                selector.unregister(ready)
                ready.close()
                del buffers[ready]


def _serve(connection: Any, buffers: dict[Any, bytes]) -> bool:
    """Answer the requests that are complete; False when the client has closed the connection."""
    try:
        got = connection.recv(READ_BYTES)
    except ConnectionError:
        return False
    if not got:
        return False
    data, replies = buffers[connection] + got, []
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = _content_length(head) if end else 0
        if not end or len(rest) < length:
            break
        replies.append(_reply(head, rest[:length]))
        data = rest[length:]
    buffers[connection] = data
    if replies:
        connection.send(b"".join(replies))  # a few hundred bytes, for which a socket's buffer always has room
    return True


def _content_length(head: bytes) -> int:
    _, found, value = head.lower().partition(b"\r\ncontent-length:")
    return int(value.partition(b"\r\n")[0]) if found else 0


def _reply(head: bytes, body: bytes) -> bytes:
    if not head.startswith(b"POST "):
        return NOT_ALLOWED
    answered = answer(body)
    return ACCEPTED if answered is None else FOUND % (len(answered), answered)


if __name__ == "__main__":
    main()
