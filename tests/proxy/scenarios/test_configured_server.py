"""A workspace whose config names its MCP server: who may start it, and what an edited config leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.machine import Machine
from support.odd_servers import odd_server
from support.proxies import Proxies, ProxyClient
from support.reloading import SHORT_PAUSES, PythonServer, hot, text_of

CONFIG = ".devtools/host.config.jsonc"
OF_HOSTS = "uno_app_select_solution"
OF_ADDIN = "write_note"  # which the Host of the workbench has


@pytest.fixture
def asked(machine: Machine) -> Iterator[Proxies]:
    """The proxies of a user who is asked."""
    with Proxies(machine) as proxies:
        yield proxies


def server(name: str, **config: Any) -> str:
    program, *arguments = odd_server(name=name)
    return json.dumps({"mcpServer": {"command": program, "args": arguments}, **config})


def save(machine: Machine, content: str) -> Path:
    return write(machine.workspace / CONFIG, content)


def name_of(report: dict[str, Any]) -> str | None:
    upstream = report["proxy"]["upstream"]
    name: str | None = upstream["name"] if upstream else None
    return name


def wait_served(client: ProxyClient, name: str) -> dict[str, Any]:
    report = client.wait_health(
        lambda report: report["proxy"]["state"] == "Connected" and name_of(report) == name, f"served by {name}"
    )
    return dict(report)


def codes(report: dict[str, Any]) -> list[str]:
    return [issue["code"] for issue in report["issues"]]


def test_the_configs_server_is_behind_the_proxy_and_tools_of_hosts_are_not(proxies: Proxies, machine: Machine) -> None:
    save(machine, server("mine", hotReload={"mcpServerName": "my server"}))

    client = proxies.connected()

    report = client.health()
    assert (name_of(report), report["proxy"]["upstream"]["kind"]) == ("my server", "command")
    assert report["status"] == "Healthy"
    assert client.call("echo", text="x") == "x"
    offered = client.tools()
    assert OF_HOSTS not in offered
    assert "The server 'my server' is connected" in client.stderr
    client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "with a catalogue on disk")
    client.close_stdin()
    assert client.ends()
    again = proxies.start()
    again.initialize()
    assert again.tools() == offered, "known from the catalogue"


def test_a_server_that_nobody_has_named_is_called_as_it_calls_itself_also_when_it_is_reloaded(
    proxies: Proxies, machine: Machine
) -> None:
    edited = PythonServer(machine)
    (edited.root / "pyproject.toml").unlink()
    client = hot(proxies)
    assert "The server 'talker' is connected" in client.stderr
    assert "mcpStatus" in client.tools()
    assert len(client.heard("notifications/tools/list_changed")) == 1, "of its tools and ours at once"

    edited.say("two")

    assert text_of(client.call_result("answer")).startswith("The code of the server 'talker' has changed")


def test_mcp_status_is_listed_from_the_start_also_where_the_server_does_not_start(
    proxies: Proxies, machine: Machine
) -> None:
    edited = PythonServer(machine)
    write(edited.source, "raise SystemExit(3)\n")
    client = proxies.start()
    client.initialize()

    assert "mcpStatus" in client.tools()
    client.wait_state("Degraded")
    assert "mcpStatus" in client.tools()


def test_its_catalogue_is_made_on_request(machine: Machine) -> None:
    save(machine, server("mine"))

    made = machine.run("mcp", "start", "--force-generate-tool-cache", env={"UNO_DEVSERVER_TRUST": "1"})
    refused = machine.run("mcp", "start", "--force-generate-tool-cache")

    assert made.exit_code == 0
    assert refused.exit_code == 1
    assert "the user has not agreed to it" in refused.stderr


def test_nothing_runs_until_the_user_agrees_and_then_it_goes_on_by_itself(asked: Proxies, machine: Machine) -> None:
    save(machine, server("mine"))
    client = asked.start()
    client.initialize()
    report = client.wait_state("Degraded")
    assert "WorkspaceNotTrusted" in codes(report)
    assert client.call_result("echo", text="x")["isError"] is True

    machine.run("trust")

    report = wait_served(client, "mine")
    assert (codes(report), report["proxy"]["trusted"]) == ([], True)


def test_an_edited_config_lets_run_what_runs_until_the_user_agrees_to_it(asked: Proxies, machine: Machine) -> None:
    save(machine, server("first"))
    machine.run("trust")
    client = asked.start()
    client.initialize()
    process = wait_served(client, "first")["proxy"]["upstream"]["processId"]

    save(machine, server("second"))

    report = client.wait_health(lambda report: "WorkspaceNotTrusted" in codes(report), "aware of the change")
    issue = next(issue for issue in report["issues"] if issue["code"] == "WorkspaceNotTrusted")
    assert (issue["severity"], name_of(report)) == ("Warning", "first")
    assert "its config was changed since the user agreed to it; what runs stays" in issue["message"]
    assert client.call("echo", text="still here") == "still here"
    said = client.heard("notifications/message")
    (warned,) = [message["data"] for message in said if message["level"] == "warning"]
    assert warned.startswith("New code is not loaded: its config was changed since the user agreed to it. What")
    assert "What runs stays until the user runs 'uno-devserver trust' in the workspace" in warned

    machine.run("trust")

    report = wait_served(client, "second")
    assert (codes(report), report["proxy"]["upstream"]["processId"] != process) == ([], True)
    assert client.call("echo", text="and back") == "and back"


def test_an_agreement_to_a_config_that_names_the_same_server_restarts_nothing(asked: Proxies, machine: Machine) -> None:
    save(machine, server("mine"))
    machine.run("trust")
    client = asked.start()
    client.initialize()
    process = wait_served(client, "mine")["proxy"]["upstream"]["processId"]
    save(machine, server("mine", proxy={"waitCalls": True}))
    client.wait_health(lambda report: "WorkspaceNotTrusted" in codes(report), "aware of the change")

    machine.run("trust")

    report = client.wait_health(lambda report: report["proxy"]["trusted"] is True, "aware of the agreement")
    assert (report["proxy"]["upstream"]["processId"], report["proxy"]["generation"]) == (process, 1)
    assert report["proxy"]["waitCalls"] is True


def test_who_takes_the_agreement_back_stops_the_reloading_and_the_client_is_told(
    asked: Proxies, machine: Machine
) -> None:
    edited = PythonServer(machine)
    machine.run("trust")
    client = asked.start()
    client.initialize()
    client.wait_health(lambda report: report["proxy"]["hotReload"], "watching the code")
    edited.write_config(proxy={"waitCalls": True})
    client.wait_health(lambda report: report["proxy"]["hotReload"] is None, "not watching for now")
    machine.run("trust")
    client.wait_health(lambda report: report["proxy"]["hotReload"], "watching the code again")

    machine.run("trust", "--revoke")

    client.wait_health(lambda report: report["proxy"]["hotReload"] is None, "not watching any more")
    edited.say("two")
    assert client.call("answer") == "one"
    said = [message["data"] for message in client.heard("notifications/message") if message["level"] == "warning"]
    assert said[-1].startswith("New code is not loaded: the user has not agreed to it.")


def test_a_removed_config_stops_the_server_where_nothing_else_makes_a_workspace(
    proxies: Proxies, machine: Machine
) -> None:
    path = save(machine, server("mine"))
    client = proxies.connected()
    save(machine, server("mine", proxy={"waitCalls": True}))
    client.wait_health(lambda report: report["proxy"]["waitCalls"], "on the watch")

    path.unlink()

    report = client.wait_state("Degraded")
    assert "NoSolutionFound" in codes(report)
    save(machine, server("mine"))
    wait_served(client, "mine")


def test_a_server_that_ends_after_the_config_was_edited_is_not_started_again(asked: Proxies, machine: Machine) -> None:
    save(machine, server("mine"))
    machine.run("trust")
    client = asked.start()
    client.initialize()
    wait_served(client, "mine")
    save(machine, server("other"))
    client.wait_health(lambda report: "WorkspaceNotTrusted" in codes(report), "aware of the change")

    client.call_result("last")

    report = client.wait_state("Degraded")
    assert next(issue for issue in report["issues"] if issue["code"] == "WorkspaceNotTrusted")["severity"] == "Fatal"
    machine.run("trust")
    wait_served(client, "other")


def test_new_code_is_loaded_also_while_the_config_cannot_be_read(asked: Proxies, machine: Machine) -> None:
    edited = PythonServer(machine, proxy={"waitCalls": True})
    machine.run("trust")
    client = asked.start()
    client.initialize()
    client.wait_health(lambda report: report["proxy"]["hotReload"], "watching the code")

    save(machine, '{"mcpServer": {"comm')

    report = client.wait_health(lambda report: "ConfigInvalid" in codes(report), "aware of the mistake")
    (issue,) = report["issues"]
    assert (issue["severity"], "what was read before counts" in issue["remediation"]) == ("Warning", True)
    assert (report["proxy"]["trusted"], report["proxy"]["waitCalls"]) == (True, True)
    edited.say("two")
    assert client.call("answer") == "two"
    edited.write_config(proxy={})
    client.wait_health(lambda report: codes(report) == ["WorkspaceNotTrusted"], "aware of what is readable again")


@pytest.mark.parametrize("broken", ['{"mcpServer": {"comm', '{"mcpServers": {}}'])
def test_where_nobody_knows_what_the_config_names_nothing_is_started_until_it_is_mended(
    proxies: Proxies, machine: Machine, broken: str
) -> None:
    path = save(machine, broken)
    client = proxies.start(prefix=SHORT_PAUSES)
    client.initialize()

    report = client.wait_state("Degraded")

    issue = next(issue for issue in report["issues"] if issue["code"] == "ConfigInvalid")
    assert issue["severity"] == "Fatal"
    assert issue["message"].startswith(f"{path}:1:")
    assert report["proxy"]["upstream"] is None
    path.write_text(server("mine"))
    wait_served(client, "mine")


def test_a_config_that_begins_to_name_a_server_replaces_the_host_and_one_that_stops_brings_it_back(
    proxies: Proxies, bench: Any, machine: Machine
) -> None:
    path = save(machine, "{}")
    client = proxies.connected()
    assert client.health()["proxy"]["upstream"]["kind"] == "bundled"
    assert OF_ADDIN in client.tools()

    path.write_text(server("mine"))

    wait_served(client, "mine")
    assert OF_ADDIN not in client.tools()
    path.write_text("{}")
    client.wait_health(
        lambda report: report["proxy"]["state"] == "Connected" and report["proxy"]["upstream"]["kind"] == "bundled",
        "served by a Host",
    )
    assert OF_ADDIN in client.tools()


def test_a_call_under_way_finishes_before_the_config_brings_another_server(proxies: Proxies, machine: Machine) -> None:
    edited = PythonServer(machine)
    client = proxies.connected()
    held = client.begin("tools/call", {"name": "hold", "arguments": {"until": str(edited.gate("hold"))}})
    edited.journal.wait("call")

    edited.write_config(mcpServer={**edited.command, "env": {"ANOTHER": "1"}})
    client.wait(lambda: any("another server" in said["data"] for said in client.heard("notifications/message")), "news")
    edited.open("hold")

    assert client.answer(held)["result"]["content"][0]["text"] == "one"
    edited.journal.wait("start", 2)


def test_a_typed_command_counts_more_than_the_configs(proxies: Proxies, machine: Machine) -> None:
    save(machine, server("mine"))

    client = proxies.connected("--", *odd_server(name="typed"))

    assert name_of(client.health()) == "typed"


def test_others_can_ask_a_proxy_whose_server_could_not_even_be_looked_for(proxies: Proxies, machine: Machine) -> None:
    save(machine, json.dumps({"mcpServerRoot": "../nope"}))

    client = proxies.start()
    client.initialize()

    report = client.wait_health(lambda report: report["proxy"]["controlChannel"], "one that can be asked")
    assert report["proxy"]["state"] == "Degraded"
    assert "cannot ask for new code" not in client.stderr
