"""New code beside the old: calls go on while it is edited, and what a restart costs."""

from __future__ import annotations

from typing import Any

import pytest

from support.proxies import Proxies, ProxyClient
from support.reloading import (
    BuiltServer,
    EditedServer,
    PythonServer,
    edit_and_restart,
    edit_under_load,
    hot,
    renew,
    state_of,
    text_of,
    wait_ready,
)
from support.waiting import wait_for

SWAP: dict[str, Any] = {"hotReload": {"strategy": "swap"}, "pipeline": {"concurrency": 16}}
EDITS = 6  # enough to see it; the benchmark makes twenty


def test_no_call_fails_and_none_is_answered_twice_while_the_code_is_swapped(
    proxies: Proxies, capsys: pytest.CaptureFixture[str]
) -> None:
    server = PythonServer(proxies.machine, **SWAP)
    client = hot(proxies)

    load = edit_under_load(client, server, callers=16, edits=EDITS)

    with capsys.disabled():
        print(f"\nswap under load: {load}")
    assert load.failed == []
    assert load.repeated == []
    assert load.unserved == []
    assert {f"edit {number}" for number in range(EDITS)} <= load.answers
    assert load.starts == EDITS, "one start for each edit"
    assert client.problems == []
    wait_for(lambda: server.journal.running == [f"edit {EDITS - 1}"], "the end of all old servers")


def test_from_an_edit_to_its_answer_a_restart_takes_little_more_than_the_server_itself(
    proxies: Proxies, capsys: pytest.CaptureFixture[str]
) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies)

    restarts = edit_and_restart(client, server, edits=3)

    with capsys.disabled():
        print(f"\n{restarts}")
    assert len(restarts.edit_seconds) == 3


@pytest.mark.parametrize("kind", [BuiltServer, PythonServer])
def test_one_changed_byte_under_eight_calls_is_one_build_and_one_swap(
    proxies: Proxies, kind: type[EditedServer]
) -> None:
    server = kind(proxies.machine, **SWAP)
    client = hot(proxies)
    server.say("onf")

    calls = [client.begin("tools/call", {"name": "answer", "arguments": {"mark": n}}) for n in range(8)]
    results = [client.answer(call)["result"] for call in calls]

    assert [result["content"][0]["text"] for result in results] == ["onf"] * 8
    assert not [result for result in results if result.get("isError")]
    assert server.journal.starts == 2
    assert server.journal.builds == (1 if kind is BuiltServer else 0)


def test_a_call_that_runs_ends_on_the_old_server_while_others_have_the_new_one(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, **SWAP)
    client = hot(proxies)
    until = str(server.gate("hold"))
    running = client.begin("tools/call", {"name": "hold", "arguments": {"until": until}})
    server.journal.wait("call")
    server.say("two")

    assert client.call("answer") == "two"
    assert server.journal.running == ["one", "two"], "somebody still needs the old one"
    server.open("hold")

    assert text_of(client.answer(running)["result"]) == "one"
    wait_for(lambda: server.journal.running == ["two"], "the end of the old server")
    assert client.call("answer") == "two"


def test_held_calls_report_progress(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine, **SWAP)
    client = hot(proxies)
    server.say("two", "waits")

    params = {"name": "answer", "arguments": {}, "_meta": {"progressToken": "mine"}}
    held = client.begin("tools/call", params)
    told = client.hear("notifications/progress")

    assert told["progressToken"] == "mine"
    assert not client.has_answer(held)
    server.open("start")
    assert text_of(client.answer(held)["result"]).startswith("two")


@pytest.mark.parametrize("strategy", ["restart", "swap"])
def test_the_lists_are_announced_only_where_they_differ(proxies: Proxies, strategy: str) -> None:
    server = PythonServer(proxies.machine, hotReload={"strategy": strategy})
    client = hot(proxies)
    before = len(client.heard("notifications/tools/list_changed"))

    server.say("two")
    _have(client, strategy, "two")
    assert len(client.heard("notifications/tools/list_changed")) == before, "the same tools"

    server.say("three", "tool:more")
    _have(client, strategy, "three")
    client.hear("notifications/tools/list_changed", after=before)
    assert "more" in client.tools()
    assert client.call("more") == "three"


def test_calls_wait_for_a_restart_where_the_proxy_was_told_so(proxies: Proxies) -> None:
    server = PythonServer(proxies.machine)
    client = hot(proxies, "--wait-calls")
    server.say("two", "waits")
    first = client.begin("tools/call", {"name": "answer"})
    server.journal.wait("start", 2)

    meanwhile = client.begin("tools/call", {"name": "answer"})
    client.result("ping")
    assert not client.has_answer(meanwhile)
    server.open("start")

    assert text_of(client.answer(meanwhile)["result"]).startswith("two")
    assert client.answer(first)["result"] is not None
    wait_ready(client)
    assert server.journal.starts == 2


def _have(client: ProxyClient, strategy: str, answer: str) -> None:
    if strategy == "restart":
        renew(client, answer)
    else:
        result = client.call_result("answer")
        assert state_of(result) in (None, "swapped")
        assert text_of(result).startswith(answer)
