"""A small MCP server over HTTP whose answer is a part of its code.

    write(path, http_server(port, "one"))      # python <path>: at /mcp, the tool `answer` says "one"

Its other tools: `variable` says what the environment has under `name`, `die` ends the process.
"""

from __future__ import annotations

_SERVER = """\
import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [{{"name": name, "inputSchema": {{"type": "object"}}}} for name in ("answer", "variable", "die")]


def result(method, params):
    if method == "initialize":
        info = {{"name": "talker", "version": "1"}}
        return {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": info}}
    if method == "tools/list":
        return {{"tools": TOOLS}}
    if method == "ping":
        return {{}}
    if method != "tools/call":
        return None
    if params["name"] == "die":
        os._exit(3)
    said = os.environ.get(params["arguments"].get("name", ""), "-") if params["name"] == "variable" else {answer!r}
    return {{"content": [{{"type": "text", "text": said}}]}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/mcp" or "id" not in message:
            self.reply(404 if self.path != "/mcp" else 202)
            return
        found = result(message["method"], message.get("params") or {{}})
        outcome = {{"error": {{"code": -32601, "message": "no"}}}} if found is None else {{"result": found}}
        self.reply(200, json.dumps({{"jsonrpc": "2.0", "id": message["id"], **outcome}}).encode())

    def do_GET(self):
        self.reply(405)

    do_DELETE = do_GET

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""


def http_server(port: int, answer: str = "one") -> str:
    return _SERVER.format(port=port, answer=answer)
