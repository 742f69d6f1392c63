"""That a client connects to a server, where its list of servers does not tell: what it says to others instead."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECONDS = 60.0
OUR_TOOL = "uno_health"  # the proxy always has it


def connects_in_app_server(workspace: Path, environ: Mapping[str, str]) -> bool:
    """Codex: editors talk to its app server, which knows the tools of every server that it has connected to."""
    messages = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "mcpServerStatus/list", "params": {}},
    ]
    with subprocess.Popen(
        ["codex", "app-server"],
        cwd=workspace,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        too_long = threading.Timer(SECONDS, process.kill)
        too_long.start()
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = next(
            (said for line in process.stdout if (said := json.loads(line)).get("id") == 1), {}
        )
        process.stdin.close()
        process.wait(SECONDS)
        too_long.cancel()
    servers = {server["name"]: server for server in answer.get("result", {}).get("data", ())}
    return OUR_TOOL in servers.get("UnoApp", {}).get("tools", {})


def offers_tools_to_its_model(workspace: Path, environ: Mapping[str, str]) -> bool:
    """Copilot: a model of our own, on the loopback, hears which tools there are."""
    with _Model(("127.0.0.1", 0), _Completions) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        offline = {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{model.server_port}/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "stand-in",
        }
        subprocess.run(
            ["copilot", "-p", "hi", "--allow-all-tools"],
            cwd=workspace,
            env={**environ, **offline},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        model.shutdown()
        return f"UnoApp-{OUR_TOOL}" in model.tools


class _Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tools: set[str] = set()  # those that it was offered


class _Completions(BaseHTTPRequestHandler):
    """Whatever it is asked, it says hi."""

    server: _Model

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tools.update(tool["function"]["name"] for tool in asked.get("tools", ()) if "function" in tool)
        events = [self._chunk({"role": "assistant", "content": "hi"}, None), self._chunk({}, "stop")]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def _chunk(self, delta: Mapping[str, str], finish: str | None) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        kind = "chat.completion.chunk"
        return {"id": "1", "object": kind, "created": 1, "model": "stand-in", "choices": [choice], "usage": usage}

    def log_message(self, *_: object) -> None:
        pass
