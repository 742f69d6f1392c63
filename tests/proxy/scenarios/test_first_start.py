"""The first start of a session: calls wait for a server on its way, and the first list has what can be called."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from support.files import write
from support.machine import WINDOWS, Machine
from support.odd_servers import Notes, odd_server
from support.proxies import ERAS, NEWEST_HANDSHAKE, Message, Proxies, ProxyClient
from support.reloading import PythonServer, changed_proxy
from support.rpc_lines import ENVELOPE, text_of
from support.scripted_http import served
from support.scripted_servers import ScriptedServer
from support.workspace import WorkspaceBuilder

from .conftest import Workbench

WHEN = pytest.mark.parametrize("at_once", [False, True], ids=["after the hello", "in one write with the hello"])

SLOW_SECONDS = 0.4  # a server's start; with it, and a machine that is four times as slow, a call waits less than it may
GRACE_SECONDS = 2.0  # that a call waits for a server, unless it is told to wait for longer
EARLY_SECONDS = 0.1  # by which clocks may differ
LATE_SECONDS = 4.0  # that a busy machine may take to say so

# Calls wait two seconds for a start, which takes longer than that on Wine.
UNHURRIED = changed_proxy("proxy.calls.upstream_link", "CallLimits", grace_seconds=20.0) if WINDOWS else ()
HELLO = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "test-client", "version": "1"}}


def saying(text: str, tool: str = "say") -> tuple[str, Message]:
    return "tools/call", {"name": tool, "arguments": {"text": text}}


def begin(client: ProxyClient, *requests: tuple[str, Message], modern: bool = False, at_once: bool = True) -> list[str]:
    """Say hello and ask all this, in one write or behind the answer to the hello; the ids."""
    client.modern = modern
    hello: list[tuple[str, Message]] = [("server/discover", {}) if modern else ("initialize", HELLO)]
    if not at_once:
        client.initialize(modern=modern)
        hello = []
    lines = []
    for number, (method, params) in enumerate([*hello, *requests]):
        params = {**params, **({"_meta": ENVELOPE} if modern else {})}
        lines.append({"jsonrpc": "2.0", "id": f"first {number}", "method": method, "params": params})
    if hello and not modern:
        lines.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    ids = [f"first {number}" for number in range(len(hello) + len(requests))]
    client.expect(*ids)
    client.send_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return ids[len(hello) :]


# --- calls ------------------------------------------------------------------------------------------------------------


@WHEN
@ERAS
def test_the_first_call_waits_for_a_server_that_starts_slowly(
    proxies: Proxies, tmp_path: Path, modern: bool, at_once: bool
) -> None:
    server = ScriptedServer(tmp_path / "server")
    client = proxies.start("--", *server.command(delay=SLOW_SECONDS), prefix=UNHURRIED)

    first, second = begin(client, saying("one"), saying("two"), modern=modern, at_once=at_once)

    assert (text_of(client.answer(first)), text_of(client.answer(second))) == ("one", "two")
    texts = [json.loads(line)["params"]["arguments"]["text"] for line in server.calls("say")]
    assert texts == ["one", "two"], "once each, in order"


@WHEN
def test_the_first_call_waits_for_the_host_of_the_workspace(proxies: Proxies, bench: Workbench, at_once: bool) -> None:
    client = proxies.start(prefix=UNHURRIED)

    (call,) = begin(client, saying("hi", "echo"), at_once=at_once)

    assert text_of(client.answer(call)) == "hi"


def test_the_first_call_waits_for_the_server_that_the_config_names(proxies: Proxies, machine: Machine) -> None:
    PythonServer(machine)
    client = proxies.start(prefix=UNHURRIED)

    (call,) = begin(client, ("tools/call", {"name": "answer", "arguments": {}}))

    assert text_of(client.answer(call)) == "one"


def test_the_first_call_waits_for_a_server_at_an_address(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server")
    with served(server, delay=SLOW_SECONDS) as url:
        client = proxies.start("--upstream-url", url, prefix=UNHURRIED)

        (call,) = begin(client, saying("there"))

        assert text_of(client.answer(call)) == "there"


def test_other_requests_for_the_server_wait_as_calls_do(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server")
    client = proxies.start("--", *server.command(delay=SLOW_SECONDS))

    by_name = {"toolName": "say", "arguments": {"text": "by name"}}
    prompt, executed = begin(
        client,
        ("prompts/get", {"name": "none"}),
        ("tools/call", {"name": "uno_execute_tool", "arguments": by_name}),
    )

    assert client.answer(prompt)["error"]["message"] == "Method not found: prompts/get", "the server's own answer"
    assert text_of(client.answer(executed)) == "by name"


def test_health_and_lists_do_not_wait_behind_a_call_that_does(proxies: Proxies, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    client = proxies.start("--", *odd_server(until=gate))
    call, listed, health = begin(
        client, saying("hi", "echo"), ("tools/list", {}), ("tools/call", {"name": "uno_health", "arguments": {}})
    )

    assert client.answer(listed)["result"]["tools"]
    assert json.loads(text_of(client.answer(health)))["connectionState"] != "Connected"
    assert not client.has_answer(call)
    gate.touch()
    assert text_of(client.answer(call)) == "hi"


def test_calls_are_told_after_two_seconds_that_the_server_is_still_starting(
    proxies: Proxies, machine: Machine, tmp_path: Path
) -> None:
    """One server that was typed, and one that a config names and whose code is reloaded; in both eras."""
    gate, elsewhere = tmp_path / "gate", tmp_path / "elsewhere"
    elsewhere.mkdir()
    command, *arguments = odd_server(until=gate)
    named = {"mcpServer": {"command": command, "args": arguments}}
    write(machine.workspace / ".devtools" / "host.config.jsonc", json.dumps(named))
    clients = [proxies.start(), proxies.start("--", command, *arguments, cwd=elsewhere)]
    for client, modern in zip(clients, (False, True), strict=True):
        client.initialize(modern=modern)
    began = time.monotonic()
    echo = {"name": "echo", "arguments": {"text": "hi"}}
    by_name = {"name": "uno_execute_tool", "arguments": {"toolName": "echo", "arguments": {"text": "hi"}}}

    calls = [(client, client.begin("tools/call", call)) for client in clients for call in (echo, echo, by_name)]

    for client, call in calls:
        result = client.answer(call)["result"]
        waited = time.monotonic() - began
        assert result["isError"] is True
        assert "starting" in result["content"][0]["text"]
        assert "uno_health" in result["content"][0]["text"]
        assert GRACE_SECONDS - EARLY_SECONDS < waited < GRACE_SECONDS + LATE_SECONDS, "all at the same time"
    gate.touch()
    for client in clients:
        client.wait_connected()
        assert client.call("echo", text="hi") == "hi"


@ERAS
def test_with_wait_calls_the_first_call_waits_for_longer_and_the_client_sees_progress(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    gate, limits = tmp_path / "gate", {"grace_seconds": 0.2, "progress_seconds": 0.1}
    prefix = changed_proxy("proxy.calls.upstream_link", "CallLimits", **limits)
    client = proxies.start("--wait-calls", "--", *odd_server(until=gate), prefix=prefix)
    client.initialize(modern=modern)
    began = time.monotonic()
    meta = {"progressToken": "waiting"}

    call = client.begin("tools/call", {"name": "echo", "arguments": {"text": "hi"}, "_meta": meta})

    reports = 0
    while time.monotonic() - began < 0.5:
        assert client.hear("notifications/progress", after=reports)["progressToken"] == "waiting"
        reports += 1
    assert not client.has_answer(call)
    gate.touch()
    assert text_of(client.answer(call)) == "hi"


def test_a_call_that_waits_and_is_cancelled_never_reaches_the_server(proxies: Proxies, tmp_path: Path) -> None:
    gate, notes = tmp_path / "gate", Notes(tmp_path / "notes")
    client = proxies.start("--", *odd_server(until=gate, notes=notes))
    kept, taken_back = begin(client, saying("kept", "echo"), saying("taken back", "echo"))

    client.notify("notifications/cancelled", {"requestId": taken_back})
    assert client.result("ping") == {}
    gate.touch()

    assert text_of(client.answer(kept)) == "kept"
    assert client.call("echo", text="on") == "on"
    assert not client.has_answer(taken_back)
    calls = [message["params"] for message in notes.received if message.get("method") == "tools/call"]
    assert [params["arguments"]["text"] for params in calls] == ["kept", "on"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [(("nowhere-to-be-found",), "nowhere-to-be-found"), (odd_server(dies=3), "the server cannot begin")],
    ids=["there is no such program", "it ends at once"],
)
def test_the_first_call_is_told_why_the_server_does_not_start(
    proxies: Proxies, command: tuple[str, ...], reason: str
) -> None:
    client = proxies.start("--", *command)

    (call,) = begin(client, saying("hi"))

    result = client.answer(call)["result"]
    assert result["isError"] is True
    assert reason in result["content"][0]["text"]


# --- the first list ---------------------------------------------------------------------------------------------------

INITIALIZE = "uno_app_initialize"
SET_ROOTS = "uno_app_set_roots"
SELECT = "uno_app_select_solution"
STATUS = "mcpStatus"


def first_tools(client: ProxyClient, modern: bool = False) -> list[str]:
    """What the very first list names: it is asked for in the same write as the hello."""
    (listed,) = begin(client, ("tools/list", {}), modern=modern)
    return names(client.answer(listed)["result"])


def names(result: Message) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


@pytest.mark.parametrize("options", [(), ("--force-roots-fallback",)], ids=["empty folder", "--force-roots-fallback"])
@ERAS
def test_where_there_is_no_workspace_the_first_list_has_the_tool_that_names_one(
    proxies: Proxies, machine: Machine, modern: bool, options: tuple[str, ...]
) -> None:
    client = proxies.start(*options)

    tools = first_tools(client, modern)

    assert INITIALIZE in tools
    assert SELECT in tools, "the workspace is not known yet"
    assert SET_ROOTS not in tools


@pytest.mark.parametrize(("modern", "agreed"), [(False, "by the environment"), (True, "by 'trust'")])
def test_where_code_is_reloaded_the_first_list_has_mcp_status(machine: Machine, modern: bool, agreed: str) -> None:
    PythonServer(machine)
    if agreed == "by 'trust'":
        machine.run("trust")
    else:
        machine.environment["UNO_DEVSERVER_TRUST"] = "1"
    with Proxies(machine) as proxies:
        client = proxies.start()

        assert STATUS in first_tools(client, modern)

        client.wait_connected()
        assert STATUS in client.tools()


@pytest.mark.parametrize("solutions", [("A.slnx",), ("A.slnx", "B.slnx")], ids=["one", "two"])
def test_where_there_are_solutions_one_can_be_selected(
    proxies: Proxies, workspace: WorkspaceBuilder, solutions: tuple[str, ...]
) -> None:
    workspace.global_json({"Uno.Sdk": "6.5.31"})
    for name in solutions:
        workspace.solution(name, [])
    client = proxies.start()

    first = first_tools(client)

    client.wait_health(lambda report: report["resolutionKind"], "one that knows its workspace")
    assert [SELECT in tools for tools in (first, client.tools())] == [True, True]


def test_a_server_that_the_user_names_has_no_solutions_to_select(proxies: Proxies, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path / "server")
    with served(server) as url:
        for options in (("--", *server.command()), ("--upstream-url", url)):
            client = proxies.start(*options)
            first = first_tools(client)
            client.wait_connected()

            assert not {SELECT, INITIALIZE, SET_ROOTS, STATUS} & {*first, *client.tools()}
