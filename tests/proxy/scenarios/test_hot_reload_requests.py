"""Who else has new code noticed than calls of a running server: the first calls of a session, lists, and mcpStatus."""

from __future__ import annotations

import pytest

from support.proxies import Proxies
from support.reloading import BuiltServer, PythonServer, hot, state_of, text_of

STRATEGIES = pytest.mark.parametrize("strategy", ["restart", "swap"])


@STRATEGIES
def test_a_call_that_waits_for_the_first_start_has_the_code_of_now(proxies: Proxies, strategy: str) -> None:
    server = BuiltServer(proxies.machine, hotReload={"strategy": strategy})
    first = hot(proxies)
    assert first.call("answer") == "one"
    first.close_stdin()
    first.exit_code()
    server.say("two")

    second = proxies.start("--wait-calls")
    second.initialize()

    assert second.call("answer") == "two"
    assert server.journal.builds == 1


@STRATEGIES
def test_a_list_has_new_code_built_and_started_and_is_announced(proxies: Proxies, strategy: str) -> None:
    server = BuiltServer(proxies.machine, hotReload={"strategy": strategy})
    client = hot(proxies)
    assert client.call("answer") == "one"
    before = len(client.heard("notifications/tools/list_changed"))
    server.say("two", "tool:more")

    assert "more" not in client.tools(), "it waits for nothing"
    client.hear("notifications/tools/list_changed", after=before)

    assert "more" in client.tools()
    assert client.call("answer") == "two"


@STRATEGIES
def test_discover_waits_for_new_code_and_lists_its_tools(proxies: Proxies, strategy: str) -> None:
    server = BuiltServer(proxies.machine, hotReload={"strategy": strategy})
    client = hot(proxies)
    server.say("two", "tool:more")

    assert '"more"' in text_of(client.call_result("uno_discover_tools"))
    assert client.call("answer") == "two"


def test_discover_says_why_new_code_did_not_start(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "dies")

    found = client.call_result("uno_discover_tools")

    assert found["isError"] is True
    assert "two cannot begin" in text_of(found)


def test_mcp_status_alone_builds_and_starts_a_server_that_was_never_built(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    (server.root / "build" / "answer.json").unlink()
    client = proxies.start()
    client.initialize()

    ready = client.call_result("mcpStatus")

    assert state_of(ready) == "ready", text_of(ready)
    assert client.call("answer") == "one"
    assert server.journal.builds == 1


def test_mcp_status_says_what_the_build_of_a_server_that_does_not_run_complains_of(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    (server.root / "build" / "answer.json").unlink()
    server.say("two", "build fails")
    client = proxies.start()
    client.initialize()

    status = client.call_result("mcpStatus")

    assert state_of(status) == "failed"
    assert "TS2322: the first line" in text_of(status)
    assert "old code" not in text_of(status)
    server.say("three")
    assert state_of(client.call_result("mcpStatus")) == "ready"
    assert client.call("answer") == "three"


def test_mcp_status_does_not_deny_that_what_answers_is_not_the_newest_code(proxies: Proxies) -> None:
    server = BuiltServer(proxies.machine)
    client = hot(proxies)
    server.say("two", "build fails")
    assert state_of(client.call_result("answer")) == "buildFailed"

    status = client.call_result("mcpStatus")

    assert status["_meta"]["uno-devserver/hotReload"] == {"state": "ready", "run": True, "also": ["buildFailed"]}
    assert "TS2322: the first line" in text_of(status)
