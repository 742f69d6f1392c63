"""Calls: before there is a server, of the proxy's own tools, at once, cancelled, and to names that both have."""

from __future__ import annotations

import psutil

from support.files import write
from support.proxies import ERAS, Proxies

from .conftest import Workbench

# --- before the server is ready -------------------------------------------------------------------------------------


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


@ERAS
def test_execute_tool_calls_by_name(proxies: Proxies, bench: Workbench, modern: bool) -> None:
    client = proxies.connected(modern=modern)

    assert client.call("uno_execute_tool", toolName="echo", arguments={"text": "via execute"}) == "via execute"


# --- many at once, and cancelled ------------------------------------------------------------------------------------


@ERAS
def test_calls_leave_nothing_behind_in_memory(proxies: Proxies, bench: Workbench, modern: bool) -> None:
    client = proxies.connected(modern=modern)
    call = {"name": "echo", "arguments": {"text": "x" * 2000}}

    def grown_after(rounds: int) -> int:
        before = psutil.Process(client.pid).memory_info().rss
        for _ in range(rounds):
            for request in [client.begin("tools/call", call) for _ in range(50)]:
                assert "result" in client.answer(request)
                client.forget(request)
        return psutil.Process(client.pid).memory_info().rss - before

    grown_after(10)
    assert grown_after(40) < 40 * 50 * 1500
