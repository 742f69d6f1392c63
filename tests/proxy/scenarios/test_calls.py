"""Calls: before there is a server, of the proxy's own tools, at once, cancelled, and to names that both have."""

from __future__ import annotations

import json
from pathlib import Path

import psutil

from support.files import write
from support.odd_servers import Notes, odd_server
from support.proxies import ERAS, Proxies
from support.waiting import wait_for

from .conftest import Workbench

# --- before the server is ready -------------------------------------------------------------------------------------


def test_a_held_call_can_be_cancelled(proxies: Proxies, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    notes = Notes(tmp_path / "notes")
    client = proxies.start("--wait-calls", "--", *odd_server(until=gate, notes=notes))
    client.initialize()
    held = client.begin("tools/call", {"name": "count", "arguments": {}, "_meta": {"progressToken": 1}})
    client.hear("notifications/progress")

    client.notify("notifications/cancelled", {"requestId": held})
    gate.touch()

    client.wait_connected()
    assert client.call("count") == "1", "the cancelled call never reached the server"
    assert not client.has_answer(held)


def test_the_configuration_of_the_workspace_can_ask_for_held_calls(proxies: Proxies, bench: Workbench) -> None:
    write(bench.machine.workspace / ".devtools" / "host.config.jsonc", '{ "proxy": { "waitCalls": true } } // yes')
    bench.close_gate()
    client = proxies.start()
    client.initialize()
    client.wait_health(lambda report: report["proxy"]["waitCalls"], "holding calls")

    held = client.begin("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    assert client.result("ping") == {}
    bench.open_gate()

    assert client.answer(held)["result"]["content"][0]["text"] == "hi"


# --- our own tools --------------------------------------------------------------------------------------------------


def test_discover_tools_waits_for_the_server_and_lists_its_tools(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    client = proxies.start()
    client.initialize()
    asked = client.begin("tools/call", {"name": "uno_discover_tools", "arguments": {}})
    assert client.result("ping") == {}

    bench.open_gate()

    listed = json.loads(client.answer(asked)["result"]["content"][0]["text"])
    echo = next(tool for tool in listed if tool["name"] == "echo")
    assert echo["description"] == "Say it again."
    assert echo["inputSchema"]["required"] == ["text"]


@ERAS
def test_execute_tool_calls_by_name(proxies: Proxies, bench: Workbench, modern: bool) -> None:
    client = proxies.connected(modern=modern)

    assert client.call("uno_execute_tool", toolName="echo", arguments={"text": "via execute"}) == "via execute"


def test_execute_tool_tells_what_is_wrong_in_its_result(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "toolName"),
        ({"toolName": 3}, "toolName"),
        ({"toolName": "nope"}, "nope"),
        ({"toolName": "echo"}, "text"),
    ]

    for arguments, said in cases:
        result = client.call_result("uno_execute_tool", **arguments)

        assert result["isError"] is True, arguments
        assert said in result["content"][0]["text"]


def test_an_unknown_tool_or_method_is_an_error_of_the_protocol(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()

    error = client.error("tools/call", {"name": "no_such_tool", "arguments": {}})

    assert error["code"] == -32602
    assert "no_such_tool" in error["message"]
    assert client.error("no/such")["code"] == -32601


def test_where_both_have_a_tool_ours_is_only_the_health(proxies: Proxies) -> None:
    """The upstream's tool wins, but `uno_health` has to tell the truth whatever is behind."""
    client = proxies.connected("--", *odd_server())
    client.call("offer", names=["uno_health", "uno_discover_tools"])
    client.wait_health(
        lambda _: any(tool["description"] == "uno_discover_tools" for tool in client.result("tools/list")["tools"]),
        "with the tools that were offered",
    )

    assert client.call("uno_discover_tools") == "uno_discover_tools", "the server says the name of an unknown tool"
    assert json.loads(client.call("uno_health"))["connectionState"] == "Connected"
    assert len(client.tools()) == len(set(client.tools()))


# --- many at once, and cancelled ------------------------------------------------------------------------------------


@ERAS
def test_a_slow_call_does_not_hold_up_a_quick_one(
    proxies: Proxies, bench: Workbench, tmp_path: Path, modern: bool
) -> None:
    client = proxies.connected(modern=modern)
    begun, until = tmp_path / "begun", tmp_path / "until"
    slow = client.begin("tools/call", {"name": "hold", "arguments": {"begun": str(begun), "until": str(until)}})
    wait_for(lambda: begun.exists() and begun.read_text())

    assert client.call("echo", text="quick") == "quick"
    assert not client.has_answer(slow)
    until.touch()
    assert client.answer(slow)["result"]["content"][0]["text"] == "held"


@ERAS
def test_calls_leave_nothing_behind_in_memory(proxies: Proxies, bench: Workbench, modern: bool) -> None:
    client = proxies.connected(modern=modern)
    call = {"name": "echo", "arguments": {"text": "x" * 2000}}

    def grown_after(rounds: int) -> int:
        before = psutil.Process(client.process.pid).memory_info().rss
        for _ in range(rounds):
            for request in [client.begin("tools/call", call) for _ in range(50)]:
                assert "result" in client.answer(request)
                client.forget(request)
        return psutil.Process(client.process.pid).memory_info().rss - before

    grown_after(10)
    assert grown_after(40) < 40 * 50 * 1500


def test_a_call_with_a_number_that_no_float_holds_is_answered_whatever_becomes_of_the_server(proxies: Proxies) -> None:
    client = proxies.connected("--", *odd_server())
    call = (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{"n":1e400}}}\n'
    )
    client.expect(901, 902, 903)

    client.send_bytes(call % (901, b"echo", b'{"text":"on","n":1e400}'))
    assert client.answer(901)["result"]["content"][0]["text"] == "on"
    client.send_bytes(call % (902, b"hold", b'{"n":1e400}') + call % (903, b"die", b'{"code":3,"n":-1e400}'))

    for number in (902, 903):
        assert "outcome is unknown" in client.answer(number)["result"]["content"][0]["text"]


@ERAS
def test_a_cancelled_call_is_cancelled_at_the_server_and_not_answered(
    proxies: Proxies, tmp_path: Path, modern: bool
) -> None:
    notes = Notes(tmp_path / "notes")
    client = proxies.connected("--", *odd_server(notes=notes, era="modern" if modern else "handshake"), modern=modern)
    call = client.begin("tools/call", {"name": "hold", "arguments": {}})
    wait_for(lambda: notes.methods().count("tools/call"))
    sent = next(message["id"] for message in notes.received if message.get("method") == "tools/call")

    client.notify("notifications/cancelled", {"requestId": call, "reason": "no longer needed"})

    wait_for(lambda: "notifications/cancelled" in notes.methods())
    told = next(message for message in notes.received if message.get("method") == "notifications/cancelled")
    assert told["params"]["requestId"] == sent, "the server knows it by the number that we gave it"
    assert client.call("echo", text="on") == "on"
    assert not client.has_answer(call)
