"""A server that stands by: it takes over when the serving one crashes, has its code, and is not heard before."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from support.hosts import is_running
from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.reloading import EditedServer, PythonServer, hot, text_of
from support.waiting import wait_for


@pytest.fixture
def server(machine: Machine) -> EditedServer:
    return standing_by(machine)


def standing_by(machine: Machine, **config: Any) -> EditedServer:
    server = PythonServer(machine, proxy={"waitCalls": True}, **config)
    server.write_config(mcpServer={**server.command, "standby": True})
    return server


def wait_standby(client: ProxyClient, *former: int) -> int:
    """Wait until a process other than these stands by, and return it."""

    def stands(report: dict[str, Any]) -> bool:
        return (report["proxy"]["upstream"] or {}).get("standby") not in (None, *former)

    found: int = client.wait_health(stands, "a standby")["proxy"]["upstream"]["standby"]
    return found


def serving(client: ProxyClient) -> int:
    process: int = client.health()["proxy"]["upstream"]["processId"]
    return process


def test_a_killed_server_is_replaced_by_the_one_that_stands_by_and_the_next_one_stands_by_then(
    proxies: Proxies, server: EditedServer
) -> None:
    client = hot(proxies)
    assert client.call("answer") == "one"
    first, second = serving(client), wait_standby(client)
    starts = server.journal.starts

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: serving(client) == second, "the standby serves")

    assert client.health()["proxy"]["upstream"]["standby"] != second
    assert client.call("answer") == "one"
    third = wait_standby(client, second)
    assert third not in (first, second)
    assert server.journal.starts == starts + 1, "nothing but the next standby was started"
    assert client.health()["proxy"]["restarts"] == 1

    client.close_stdin()
    assert client.ends()
    assert not any(map(is_running, (second, third)))


def test_after_an_edit_the_one_that_stands_by_has_the_new_code_too(proxies: Proxies, server: EditedServer) -> None:
    client = hot(proxies)
    first = wait_standby(client)
    server.say("two")

    assert client.call("answer") == "two"
    second = wait_standby(client, first)
    assert not is_running(first)
    before = serving(client)
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: serving(client) != before, "another server serves")

    assert (serving(client), client.call("answer")) == (second, "two")


def test_code_that_was_edited_since_is_started_before_the_next_call_although_old_code_stood_by(
    proxies: Proxies, server: EditedServer
) -> None:
    client = hot(proxies)
    second, first = wait_standby(client), serving(client)

    server.say("two")
    os.kill(first, signal.SIGKILL)

    assert client.call("answer") == "two"
    assert serving(client) not in (first, second)


def test_a_server_that_cannot_run_twice_serves_on_and_is_started_again_after_a_crash(
    proxies: Proxies, server: EditedServer
) -> None:
    server.say("one", "alone")
    client = hot(proxies)
    wait_for(lambda: "no second server stands by" in client.stderr, "the failed standby is told")
    first = serving(client)

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: serving(client) != first, "the crash is noticed")  # a call that was sent before is lost with it

    assert client.call("answer") == "one"
    assert serving(client) != first


def test_what_a_standby_tells_does_not_reach_clients_until_it_serves(proxies: Proxies, server: EditedServer) -> None:
    server.say("one", "tells")
    client = hot(proxies)
    second, first = wait_standby(client), serving(client)
    client.call("answer")

    told = [each["data"] for each in client.heard("notifications/message")]
    assert (f"pid {first}" in told, f"pid {second}" in told) == (True, False)

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: serving(client) == second, "the standby serves")
    assert text_of(client.call_result("answer")).startswith("one")
    client.hear("notifications/message", matching=lambda told: told["data"] == f"pid {second}")


def test_config_tells_that_a_server_at_a_url_cannot_have_a_standby(proxies: Proxies, machine: Machine) -> None:
    server = PythonServer(machine)
    server.write_config(mcpServer={**server.command, "url": "http://localhost:9/mcp", "standby": True})

    told = machine.run("config")

    assert "a server that listens at a URL cannot run twice" in told.stdout + told.stderr


def test_a_standby_cannot_ask_the_user(proxies: Proxies, server: EditedServer) -> None:
    server.say("one", "asks")
    client = proxies.start()
    client.initialize(modern=False, capabilities={"elicitation": {}})
    wait_standby(client)

    server.journal.wait("refused", 2)  # the client of the test refuses the first server's question
    refusals = [event["why"] for event in server.journal.events("refused")]

    assert ["only stands by" in why for why in refusals] == [False, True]
