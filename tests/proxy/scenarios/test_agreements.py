"""What the user has agreed to keeps running when code is added to which they have not, and only that runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.files import write
from support.hosts import is_running
from support.machine import Machine
from support.proxies import Proxies, ProxyClient
from support.reloading import PythonServer, hot, state_of, text_of, wait_ready

ADDIN = """\
from uno_devserver.host.addins import AddIn


def register(addin: AddIn) -> None:
    open({loaded!r}, "a").close()

    @addin.tool
    def {tool}() -> str:
        return {answer!r}
"""
WAITS = "the add-in second.py has been added since the user agreed to it"


@pytest.fixture
def asked(machine: Machine) -> Iterator[Proxies]:
    """The proxies of a user who is asked."""
    with Proxies(machine) as proxies:
        yield proxies


class Greeters:
    """A workspace without .NET, to whose add-in the user has agreed."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.add("greet")
        machine.run("trust")

    def file(self, tool: str) -> Path:
        return self.machine.workspace / ".devtools" / "addins" / f"{tool}.py"

    def mark(self, tool: str) -> Path:
        """Exists once the add-in was loaded."""
        return self.machine.root / f"loaded-{tool}"

    def add(self, tool: str, answer: str = "one") -> None:
        write(self.file(tool), ADDIN.format(tool=tool, answer=answer, loaded=str(self.mark(tool))))


def host_of(client: ProxyClient) -> object:
    return client.health()["hostProcessId"]


def not_trusted(report: dict[str, Any]) -> list[str]:
    return [issue["message"] for issue in report["issues"] if issue["code"] == "WorkspaceNotTrusted"]


def serves(client: ProxyClient, tool: str, answer: str) -> None:
    """Wait until a tool answers so. The proxy loads what was agreed to by itself, or at a call if that comes before."""
    client.wait(lambda: client.call_result(tool)["content"][0]["text"] == answer, f"one whose {tool} says {answer}")


@pytest.mark.parametrize("by_user", [False, True], ids=["by the proxy", "by the user"])
def test_a_new_addin_waits_for_the_agreement_and_the_agreed_ones_serve(asked: Proxies, *, by_user: bool) -> None:
    # given a Host that serves what the user has agreed to
    workspace = Greeters(asked.machine)
    if by_user:
        workspace.machine.run("start")
    try:
        client = hot(asked)
        assert client.call("greet") == "one"
        process = host_of(client)

        # when an add-in is added, and an agreed one is edited
        workspace.add("second")
        told = client.call_result("greet")
        workspace.add("greet", "two")
        later = client.call_result("greet")
        status = client.call_result("mcpRestart")

        # then the Host goes on with the code that it has loaded, and says once what waits
        for result in (told, later):
            assert result["content"][0]["text"] == "one"
            assert (state_of(result), text_of(result).count(WAITS)) == ("notAgreed", 1)
            assert text_of(result).count("uno-devserver trust") == 1
        assert "It was not restarted" in text_of(status)
        assert WAITS in text_of(status)
        report = client.wait_health(not_trusted, "aware of the add-in")
        [issue] = not_trusted(report)
        assert WAITS in issue
        assert (report["hostProcessId"], report["status"]) == (process, "Degraded")
        assert not workspace.mark("second").exists()
        by_command = workspace.machine.run("health", "--json").json
        assert (by_command["status"], "HostNotStarted" in str(by_command["issues"])) == ("Degraded", False)

        # and after the agreement all of it is loaded
        workspace.machine.run("trust")
        serves(client, "greet", "two")
        assert client.call("second") == "one"
        client.wait_health(lambda report: not report["issues"], "well")
    finally:
        workspace.machine.run("stop")


def test_when_the_new_addin_is_taken_back_nothing_more_is_said(asked: Proxies) -> None:
    workspace = Greeters(asked.machine)
    client = hot(asked)
    process = host_of(client)
    workspace.add("second")
    assert state_of(client.call_result("greet")) == "notAgreed"

    workspace.file("second").unlink()

    told = client.call_result("greet")
    assert (text_of(told), state_of(told)) == ("one", None)
    status = text_of(client.call_result("mcpStatus"))
    assert "ready" in status
    assert "off" not in status
    assert host_of(client) == process


def test_all_sessions_of_a_host_keep_it_while_an_addin_waits(asked: Proxies) -> None:
    workspace = Greeters(asked.machine)
    owner, guest = hot(asked), hot(asked)
    process = host_of(owner)

    workspace.add("second")
    results = [client.call_result("greet") for client in (guest, owner)]

    assert [state_of(result) for result in results] == ["notAgreed", "notAgreed"]
    assert all(WAITS in text_of(result) for result in results)
    assert host_of(guest) == process
    workspace.machine.run("trust")
    serves(guest, "second", "one")
    serves(owner, "second", "one")


def test_a_restart_that_waits_for_a_call_does_not_start_what_comes_meanwhile(asked: Proxies) -> None:
    workspace = Greeters(asked.machine)
    begun, until = workspace.machine.root / "begun", workspace.machine.root / "until"
    held = ADDIN.format(tool="hold", answer="held", loaded=str(workspace.mark("hold")))
    held = held.replace("        return", f"        wait({str(begun)!r}, {str(until)!r})\n        return")
    waiting = "import os, time\n\ndef wait(begun, until):\n    open(begun, 'a').close()\n"
    waiting += "    while not os.path.exists(until):\n        time.sleep(0.01)\n\n"
    write(workspace.file("hold"), waiting + held)
    workspace.machine.run("trust")
    client = hot(asked)
    process = host_of(client)
    running = client.begin("tools/call", {"name": "hold", "arguments": {}})
    client.wait(begun.exists, "a call that runs")

    workspace.add("greet", "two")
    assert state_of(client.call_result("greet")) == "restarting"
    workspace.add("second")
    until.touch()

    assert text_of(client.answer(running)["result"]).startswith("held")
    wait_ready(client)
    assert host_of(client) == process
    old = client.call_result("greet")
    assert (old["content"][0]["text"], state_of(old)) == ("one", "notAgreed")
    workspace.machine.run("trust")
    serves(client, "greet", "two")
    assert client.call("second") == "one"


def add_setting(server: PythonServer) -> None:
    server.write_config(hotReload={"concurrency": 2})


def name_another(server: PythonServer) -> None:
    server.write_config(mcpServer={"command": sys.executable, "args": ["-c", "open('intruder', 'w')"]})


def add_package(server: PythonServer) -> None:
    write(server.root / "package.json", '{"name": "other", "scripts": {"build": "touch intruder"}}')


@pytest.mark.parametrize("strategy", ["restart", "swap"])
@pytest.mark.parametrize("change", [add_setting, name_another, add_package])
def test_a_configured_server_goes_on_until_the_user_agrees_to_what_has_changed(
    asked: Proxies, strategy: str, change: Callable[[PythonServer], None]
) -> None:
    server = PythonServer(asked.machine, hotReload={"strategy": strategy})
    server.machine.run("trust")
    client = hot(asked)
    process = client.health()["proxy"]["upstream"]["processId"]

    change(server)
    server.say("two")
    old = client.call_result("answer")

    assert (old["content"][0]["text"], state_of(old)) == ("one", "notAgreed")
    status = text_of(client.call_result("mcpRestart"))
    assert "It was not restarted" in status
    assert client.health()["proxy"]["upstream"]["processId"] == process
    assert is_running(process)
    assert not list(server.machine.root.rglob("intruder"))


def test_a_global_json_that_appears_lets_the_host_run_until_the_user_agrees(asked: Proxies) -> None:
    workspace = Greeters(asked.machine)
    client = hot(asked)
    process = host_of(client)

    write(workspace.machine.workspace / "global.json", '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}')

    report = client.wait_health(not_trusted, "aware of the build")
    assert "the build of its projects has been added" in not_trusted(report)[0]
    assert client.call_result("greet")["content"][0]["text"] == "one"
    assert host_of(client) == process
    workspace.machine.run("trust")
    client.wait_health(lambda report: report["hostProcessId"] not in (process, None), "restarted for the workspace")
    serves(client, "greet", "one")


@pytest.mark.parametrize("by_user", [False, True], ids=["by the proxy", "by the user"])
@pytest.mark.parametrize("known", [False, True], ids=["at once", "later"])
def test_an_addin_that_came_after_the_host_is_loaded_when_the_user_agrees(
    asked: Proxies, *, by_user: bool, known: bool
) -> None:
    # given a Host without add-ins
    machine = asked.machine
    (machine.workspace / ".devtools" / "addins").mkdir(parents=True)
    if by_user:
        machine.run("start")
    try:
        client = asked.connected()
        process = host_of(client)

        # when one is written, and the user agrees to it
        if known:
            write(machine.workspace / ".devtools" / "addins" / "greet.py", "")
            client.wait_health(not_trusted, "aware of the add-in")
        Greeters(machine)

        # then the proxy has the Host load it before the client asks for anything, and nobody is told to do anything
        report = client.wait_health(lambda report: report["toolCount"] == 1, "with its tool")
        assert report["hostProcessId"] != process
        assert client.heard("notifications/tools/list_changed")
        assert "greet" in client.tools()
        assert client.call("greet") == "one"
        client.wait_health(lambda report: not report["issues"], "well")
        assert machine.run("health").exit_code == 0
    finally:
        machine.run("stop")


def test_a_proxy_has_the_users_host_load_the_addin_that_it_lacks(asked: Proxies) -> None:
    machine = asked.machine
    (machine.workspace / ".devtools" / "addins").mkdir(parents=True)
    machine.run("start")
    try:
        Greeters(machine)
        client = asked.connected()
        client.wait_health(lambda report: report["toolCount"] == 1, "with its tool")
        assert client.call("greet") == "one"
    finally:
        machine.run("stop")


def test_without_hot_reload_an_agent_is_told_of_the_addin_that_the_users_host_lacks(asked: Proxies) -> None:
    machine = asked.machine
    write(machine.workspace / ".devtools" / "host.config.jsonc", '{"hotReload": {"enabled": false}}')
    machine.run("start")
    try:
        Greeters(machine)
        report = asked.connected().wait_health(lambda report: "AddInNotLoaded" in str(report["issues"]), "aware of it")
        [issue] = report["issues"]
        [by_command] = machine.run("health", "--json").json["issues"]
        assert (issue["code"], issue["remediation"]) == ("AddInNotLoaded", "Run 'uno-devserver start --restart'.")
        assert issue == by_command
    finally:
        machine.run("stop")


ENTRY = {"command": sys.executable, "args": ["-IS", "src/talker/main.py"], "root": "../server"}
MAIN = {"mcpServerRoot": "../server", "mcpServer": {**ENTRY, "root": None}}
CONFIGS = {
    "the server of the config": (None, MAIN, "answer"),
    "further servers": (None, {"servers": {"first": ENTRY}}, "answer"),
    "an edited config": (MAIN, {**MAIN, "pipeline": {"concurrency": 2}}, "answer"),
    "one more further server": (
        {"servers": {"first": ENTRY}},
        {"servers": {"first": ENTRY, "more": ENTRY}},
        "more_answer",
    ),
}


@pytest.mark.parametrize(("agreed", "config", "tool"), CONFIGS.values(), ids=CONFIGS)
def test_the_call_after_trust_has_returned_finds_the_agreement(
    asked: Proxies, agreed: dict[str, Any] | None, config: dict[str, Any], tool: str
) -> None:
    PythonServer(asked.machine)
    file = asked.machine.workspace / ".devtools" / "host.config.jsonc"
    if agreed:
        write(file, json.dumps(agreed))
        asked.machine.run("trust")
    else:
        write(file, json.dumps(config))
    client = asked.start("--wait-calls")
    client.initialize()
    if agreed:
        assert client.call("answer") == "one"
        write(file, json.dumps(config))
    client.wait_health(not_trusted, "aware of what waits")

    asked.machine.run("trust")

    assert not_trusted(client.health()) == []
    assert client.call_result(tool)["content"][0]["text"] == "one"
