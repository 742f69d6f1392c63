"""What an agent is told is true: of restarts that it asks for, of code that cannot run, and of renamed tools."""

from __future__ import annotations

import json

import psutil

from support.proxies import Proxies
from support.reloading import SHORT_PAUSES, PythonServer, hot, renew, state_of, text_of, wait_ready


def test_a_restart_that_the_agent_asks_for_needs_no_edit_and_says_that_memory_was_lost(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    assert client.call("answer") == "one"

    told = client.call_result("mcpRestart")

    assert state_of(told) == "ready"
    assert "It was restarted; what the old process had in memory is gone." in text_of(told)
    assert server.journal.starts == 2
    assert client.call_result("answer")["content"] == [{"type": "text", "text": "one"}], "it is said once"


GONE = "was restarted; what the old process had in memory is gone."


def test_memory_lost_by_a_crash_or_a_failed_start_is_told_once(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies, prefix=SHORT_PAUSES)
    first = client.call_result("answer")
    pid = int(client.health()["proxy"]["upstream"]["processId"])

    psutil.Process(pid).kill()
    client.wait_connected(generation=2)
    crashed, later = client.call_result("answer"), client.call_result("answer")
    server.say("two", "dies")
    client.call_result("answer")
    client.wait_health(lambda report: report["proxy"]["state"] == "Degraded", "without a server")
    server.say("three")
    told = [text_of(client.call_result("mcpStatus")), text_of(client.call_result("answer"))]

    assert GONE not in text_of(first)
    assert GONE in text_of(crashed)
    assert text_of(later) == "one"
    assert [GONE in text for text in told] == [True, False], told


def test_a_python_server_with_a_syntax_error_is_not_started(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    assert client.call("answer") == "one"
    server.source.write_text("def broken(:\n", "utf-8")

    failed, later = client.call_result("answer"), client.call_result("answer")
    status = client.call_result("mcpStatus")

    assert (state_of(failed), state_of(later)) == ("buildFailed", "buildFailed")
    assert "SyntaxError" in text_of(failed)
    assert later["content"][0]["text"] == "one"
    assert "But what answers may be older than its present code" in text_of(status)
    assert server.journal.starts == 1
    server.say("two")
    renew(client, "two")


def test_a_call_of_a_tool_that_was_renamed_gets_its_new_name(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, "one", hotReload={"strategy": "restart"})
    server.say("one", "tool:fetch_user")
    client = hot(proxies)
    assert "fetch_user" in client.tools()
    server.say("two", "tool:fetch_users")
    client.call_result("answer")

    ready = text_of(wait_ready(client))
    reply = client.answer(client.begin("tools/call", {"name": "fetch_user", "arguments": {}}))

    assert "'fetch_user' is probably 'fetch_users' now" in ready
    assert "'fetch_users' is probably its new name" in json.dumps(reply)
