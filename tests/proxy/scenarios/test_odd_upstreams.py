"""Servers with bad manners behind the proxy: no crash, no hang, no lost request, no second answer."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.files import write
from support.odd_servers import odd_server
from support.proxies import Proxies
from support.reloading import changed_proxy
from support.scripted_servers import ScriptedServer
from support.waiting import wait_for
from uno_devserver.system.ports import free_port


def test_a_server_that_prints_instead_of_answering_is_told_while_it_is_waited_for(proxies: Proxies) -> None:
    story = "import time; print('hello I am not MCP', flush=True); time.sleep(1000)"
    client = proxies.start("--", sys.executable, "-c", story)
    client.initialize()
    told = "it has printed 'hello I am not MCP' on its standard output, which is not an MCP message"

    client.begin("tools/call", {"name": "uno_discover_tools", "arguments": {}, "_meta": {"progressToken": 7}})
    report = client.wait_health(lambda report: told in json.dumps(report["issues"]), "that of a server that only talks")

    assert "[stdout] hello I am not MCP\n" in Path(report["logFile"]).read_text("utf-8")
    assert client.hear("notifications/progress", after=1)["progressToken"] == 7
    assert told in client.call_result("anything")["content"][0]["text"]


def test_mcp_status_is_answered_where_nothing_is_reloaded(proxies: Proxies) -> None:
    client = proxies.connected("--", *odd_server())
    report = client.wait_health(lambda report: report["proxy"]["hotReloadOff"], "aware that nothing is reloaded")

    assert "mcpStatus" not in client.tools()
    assert client.call("mcpStatus").startswith(
        f"The MCP server is ready. Hot reload is off, because {report['proxy']['hotReloadOff']}."
    )


def test_an_echo_is_refused_and_asks_the_client_nothing(proxies: Proxies) -> None:
    cat = str(shutil.which("cat"))
    client = proxies.start("--", cat)
    client.initialize(capabilities={"roots": {}})

    report = client.wait_state("Degraded")

    [issue] = [issue for issue in report["issues"] if issue["severity"] == "Fatal"]
    assert issue["code"] == "UpstreamError"
    assert issue["message"] == "The server 'cat' cannot be used over MCP: it sends back what it is sent."
    assert client.asked == []
    client.wait_health(lambda _: proxies.processes() == [client.pid], "that of a proxy that runs alone")
    assert client.health()["proxy"]["upstream"]["processId"] is None


def test_a_server_that_never_reads_does_not_make_the_proxy_hang(proxies: Proxies) -> None:
    prefix = changed_proxy("proxy.calls.upstream_link", "CallLimits", grace_seconds=0.2)
    client = proxies.start("--", *odd_server(never_reads=True), prefix=prefix)
    client.initialize()

    for _ in range(3):
        assert client.call_result("echo", text="x" * 1_000_000)["isError"] is True
        assert client.result("ping") == {}
    client.close_stdin()
    assert client.exit_code(3) == 0


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
def test_a_server_of_an_older_version_serves_a_newer_client(proxies: Proxies, version: str) -> None:
    client = proxies.connected("--", *odd_server(era="handshake", version=version))

    assert client.call("echo", text="on") == "on"
    assert client.health()["proxy"]["upstream"]["protocolVersion"] == version


def test_a_server_does_not_inherit_our_input(proxies: Proxies, tmp_path: Path) -> None:
    """The child of the .NET proxy once did, and took every other message of the client."""
    gate = write(tmp_path / "gate", "")
    client = proxies.connected("--", *odd_server(until=gate, stays=True))

    answers = [client.call("echo", text=str(number)) for number in range(50)]

    assert answers == [str(number) for number in range(50)]


def test_the_log_goes_to_a_file_if_asked_for(proxies: Proxies, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "proxy-{Date}.log"
    client = proxies.connected("-fl", str(log), "-l", "Debug", "--", *odd_server())

    client.close_stdin()
    client.exit_code()

    [file] = log.parent.iterdir()
    assert "Connection state: Connecting -> Connected" in file.read_text("utf-8")


def test_a_key_in_the_url_of_a_server_is_for_nobody_but_that_server(proxies: Proxies) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp/path-secret-7f3a?key=query-secret"
    client = proxies.start("--upstream-url", url, "--log-level", "Trace")
    client.initialize()

    report = client.wait_state("Degraded")

    assert f"http://127.0.0.1:{port}/… cannot be reached" in json.dumps(report, ensure_ascii=False)
    for told in (report, client.call_result("echo"), client.notifications, client.stderr):
        assert "secret" not in json.dumps(told)


def test_a_key_among_the_arguments_of_a_command_is_seen_nowhere(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server")
    log_file = tmp_path / "proxy.log"
    arguments = ("--token", "SECRET1", "--api-key=SECRET2", "https://me:SECRET3@host/?k=SECRET4")

    client = proxies.connected("--log-level", "Trace", "-fl", str(log_file), "--", *server.command(), *arguments)
    wait_for(lambda: list(proxies.machine.state.rglob("catalogue/*.json")), "the catalogue")
    told = [client.health(), client.notifications, client.stderr, log_file.read_text("utf-8")]
    told += [proxies.machine.run(*command).stdout for command in (("health", "--json"), ("list", "--json"))]
    files = [path for path in proxies.machine.state.rglob("*") if path.is_file()]

    assert "--token … --api-key=… https://host/?k=…" in log_file.read_text("utf-8")
    assert "SECRET" not in json.dumps(told)
    assert [path for path in files if b"SECRET" in path.read_bytes()] == []


def test_nor_does_anybody_see_the_key_while_that_server_is_connected(proxies: Proxies, tmp_path: Path) -> None:
    log_file = tmp_path / "proxy.log"
    with _hosted("/mcp/path-secret-7f3a?key=query-secret") as url:
        client = proxies.connected("--upstream-url", url, "--log-level", "Trace", "-fl", str(log_file))
        client.wait_health(lambda _: "greet" in client.tools(), "with the server's tools")
        commands = [
            proxies.machine.run(*command) for command in (("health", "--json"), ("list", "--json"), ("health",))
        ]
        report = client.health()

    assert report["proxy"]["upstream"]["endpoint"] == url.partition("/mcp")[0] + "/…"
    files = [path for path in (log_file, *proxies.machine.state.rglob("*")) if path.is_file()]
    assert any("catalogue" in str(path) and b"greet" in path.read_bytes() for path in files)
    for told in (json.dumps(report), client.stderr, *(command.stdout + command.stderr for command in commands)):
        assert "secret" not in told
    for path in files:
        assert "secret" not in path.name
        assert b"secret" not in path.read_bytes(), path


@contextmanager
def _hosted(target: str) -> Iterator[str]:
    """A server with one tool that is there for whoever has the key, and for nobody else."""
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hosted", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = results.get(message["method"]) if self.path == target else None
            answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
            self.send_response(200 if "id" in message else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{target}"
        finally:
            server.shutdown()
