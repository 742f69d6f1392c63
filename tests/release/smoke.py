"""What users do first, one check each; they build on each other in the order of the lists below."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from release.machine import ReleaseMachine
from support.bundled import BOTH, ask
from support.inspectors import inspector_of
from support.proxies import NEWEST_HANDSHAKE

Check = Callable[[ReleaseMachine], None]

PAGE_FILES = ("/assets/app.js", "/assets/style.css", "/assets/favicon.svg")
HELLO = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "release", "version": "1"}}
TODOS = {"TODO": 4, "FIXME": 2, "HACK": 1}


def version(machine: ReleaseMachine) -> None:
    assert machine.run("--version").strip() == machine.version


def second_name(machine: ReleaseMachine) -> None:
    program = Path(machine.program[0]).with_name("uno.devserver")
    assert machine.run("--version", program=[str(program)]).strip() == machine.version


def module_of_package(machine: ReleaseMachine) -> None:
    assert machine.run("--version", program=[*_python(machine), "-m", "uno_devserver"]).strip() == machine.version


def type_marker(machine: ReleaseMachine) -> None:
    code = "import importlib.resources as r; print((r.files('uno_devserver') / 'py.typed').is_file())"
    assert machine.run("-c", code, program=_python(machine)).strip() == "True"


def alone(machine: ReleaseMachine) -> None:
    """Nothing of the tools that develop it: whatever is imported comes with the wheel."""
    code = "import importlib.util as u; print([n for n in ('mcp', 'pytest', 'hypothesis', 'uv') if u.find_spec(n)])"
    assert machine.run("-c", code, program=_python(machine)).strip() == "[]"


def discovery(machine: ReleaseMachine) -> None:
    found = machine.json("disco")
    assert [Path(path).name for path in found["workspaceAddIns"]] == ["todos.py"], found


def host(machine: ReleaseMachine) -> None:
    machine.run("trust")
    started = machine.json("start")
    try:
        (listed,) = machine.json("list")["servers"]
        assert listed["port"] == started["port"], (listed, started)
        told = _over_http(started["port"], "initialize", HELLO)
        assert told["serverInfo"]["version"] == machine.version, told
        assert _counted(_over_http(started["port"], "tools/call", {"name": "count_todos", "arguments": {}})) == TODOS
        assert machine.json("health")["devServerVersion"] == machine.version
    finally:
        machine.run("stop")
    assert machine.json("list")["servers"] == []


def proxy(machine: ReleaseMachine) -> None:
    machine.run("trust")
    client = machine.client("--mcp-app", "--wait-calls")
    try:
        told = client.initialize()
        assert told["serverInfo"]["version"] == machine.version, told
        assert "uno_health" in client.tools()
        client.wait_connected()
        assert "count_todos" in client.tools()
        assert _counted(client.call_result("count_todos")) == TODOS
    finally:
        client.close_stdin()
        ended = client.ends()
    assert ended, "the proxy did not end with its input"
    client.check()


def page(machine: ReleaseMachine) -> None:
    """What the browser loads was packed."""
    client = machine.client("mcp", "start", "--inspector", "0")
    try:
        client.initialize()
        inspector = inspector_of(client)
        for path in ("/", *PAGE_FILES):
            reply = inspector.ask("GET", path)
            assert (reply.status, bool(reply.body)) == (200, True), (path, reply)
    finally:
        client.close_stdin()
        client.ends()


def registration(machine: ReleaseMachine) -> None:
    told = machine.json("mcp", "install", "cursor", "--dry-run")
    assert {one["action"] for one in told["operations"]} == {"created"}, told
    assert not (machine.workspace / ".cursor").exists()


def completion(machine: ReleaseMachine) -> None:
    assert "complete -F" in machine.run("completion", "bash")


def demo(machine: ReleaseMachine) -> None:
    assert machine.json("demo")["ok"] is True


ENVIRONMENT = (
    version,
    second_name,
    module_of_package,
    type_marker,
    alone,
    discovery,
    host,
    proxy,
    page,
    registration,
    completion,
    demo,
)
FROM_RUNNER = (version, discovery, proxy, demo)


def _python(machine: ReleaseMachine) -> list[str]:
    """Of the environment; the commands of uv and pipx are links into theirs. Not of the folder that it is called in."""
    return [str(Path(machine.program[0]).resolve().with_name("python")), "-P"]


def _over_http(port: int, method: str, params: dict[str, Any]) -> Any:
    """In a session of its own."""

    def post(body: dict[str, Any], **more: str) -> Any:
        headers = {"Content-Type": "application/json", "Accept": BOTH, **more}
        return ask(port, "POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, **body}).encode(), headers)

    reply = post({"method": "initialize", "params": HELLO})
    if method != "initialize":
        reply = post({"method": method, "params": params}, **{"Mcp-Session-Id": reply.headers["mcp-session-id"]})
    assert "result" in reply.json, reply
    return reply.json["result"]


def _counted(result: Any) -> Any:
    assert not result.get("isError"), result
    return result["structuredContent"]
