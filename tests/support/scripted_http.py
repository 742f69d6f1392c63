"""A scripted server over Streamable HTTP: the same folder, the same scripts, in a thread of the test.

    with served(server) as url:
        client = proxies.connected("--upstream-url", url)

What a script says goes out as one JSON body or, with `events`, as the data of one event per line, on a stream that
stays open like that of a server which takes its answer for given.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.scripted_servers import ScriptedServer, answer_to, keep

STREAM_SECONDS = 20.0  # that a stream stays open at most; tests end it before
POLL_SECONDS = 0.01  # between two looks whether the test is over


@contextmanager
def served(server: ScriptedServer, *, events: bool = False, delay: float = 0.0) -> Iterator[str]:
    """The URL. `events`: calls of tools are answered in streams; `delay`: the seconds that its first answer takes."""
    over = threading.Event()
    folder = str(server.folder)
    begun = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body go out together
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            keep(folder, "received", body + b"\n")
            message = json.loads(body)
            if not begun.is_set():
                time.sleep(delay)
                begun.set()
            if "id" not in message:
                self._reply(202, b"", "application/json")
            elif events and message["method"] == "tools/call":
                self._stream(answer_to(folder, message))
            else:
                self._reply(200, answer_to(folder, message), "application/json")

        def _reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, script: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for line in script.splitlines():
                self.wfile.write(b"data: %s\n\n" % line)
            self.wfile.flush()
            over.wait(STREAM_SECONDS)

        def do_GET(self) -> None:
            self.send_error(405)

        def do_DELETE(self) -> None:
            self.send_error(405)

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                pass  # the proxy has had enough of a line that is too long

        def log_message(self, *args: object) -> None:
            """Write no log."""

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1000  # a thousand calls come at once

    with Listener(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.server_port}/mcp"
        finally:
            over.set()
            listener.shutdown()
