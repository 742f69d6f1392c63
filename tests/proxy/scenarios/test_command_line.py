"""The command line beside running proxies: it tells the same as they do, and what becomes of a Host that they keep."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from support.machine import Machine, Result
from support.odd_servers import odd_server
from support.proxies import PATIENCE, Message, Proxies

from .conftest import Workbench


def health(machine: Machine, accept: Callable[[Result], object], *options: str) -> Result:
    """`uno-devserver health`, when the proxies have written down what is expected of them."""
    deadline = time.monotonic() + PATIENCE
    while not accept(result := machine.run("health", *options)):
        assert time.monotonic() < deadline, result.stdout
    return result


def codes(report: Message) -> list[str]:
    return [issue["code"] for issue in report["issues"]]


# --- health -----------------------------------------------------------------------------------------------------------


def test_with_a_server_of_the_users_own_connected_health_is_healthy(proxies: Proxies, machine: Machine) -> None:
    client = proxies.connected("--", *odd_server())

    told = health(machine, lambda result: result.exit_code == 0)

    assert told.stdout.splitlines()[:2] == ["Status: Healthy", "Connection: Connected"]
    said = told.stdout.replace("Uno Platform/uno.devserver", "")  # the folder of its log
    assert not [word for word in ("Uno", "dotnet", "Issues:", "Solution:", "Resolution:", "<none>") if word in said]
    assert "Server: odd 1.0" in told.stdout.splitlines()
    report, own = machine.run("health", "--json").json, client.health()
    for name in ("status", "hostProcessId", "upstreamConnected", "toolCount", "hostKind", "issues"):
        assert report[name] == own[name], name


def test_health_knows_the_server_that_has_just_answered_a_call(proxies: Proxies, machine: Machine) -> None:
    client = proxies.start("--", *odd_server())
    client.initialize()

    for again in (False, True):
        if again:
            client.call_result("die", code=7)
        answered_by = json.loads(client.call("facts"))["pid"]
        told = machine.run("health", "--json")

        assert (told.exit_code, told.json["hostProcessId"], told.issue_codes) == (0, answered_by, [])
        assert told.json["proxies"][0]["listsFresh"] is True


def test_for_a_workspace_that_nobody_trusts_health_says_so_and_counts_the_tools_of_the_catalogue(
    machine: Machine, bench: Workbench
) -> None:
    with Proxies(machine) as proxies:
        before = proxies.connected(env={"UNO_DEVSERVER_TRUST": "1"})
        before.close_stdin()
        before.exit_code()
        client = proxies.start()
        client.initialize()
        own = client.wait_state("Degraded")

        told = health(machine, lambda result: "WorkspaceNotTrusted" in result.stdout)

        assert "uno-devserver start" not in told.stdout
        assert "uno-devserver trust" in told.stdout
        assert own["toolCount"] > 0
        assert f"Tools: {own['toolCount']}" in told.stdout.splitlines()
        assert f"  Tools: {own['toolCount']}, from a catalogue" in told.stdout


def test_while_the_proxy_starts_its_server_again_health_says_that_it_crashed(
    proxies: Proxies, machine: Machine, tmp_path: Path
) -> None:
    may_begin = tmp_path / "may-begin"
    may_begin.touch()
    client = proxies.connected("--", *odd_server(until=may_begin))
    may_begin.unlink()

    client.call_result("die", code=7)
    told = health(machine, lambda result: "HostCrashed" in result.issue_codes, "--json")
    may_begin.touch()

    assert (told.exit_code, told.json["status"], told.issue_codes) == (1, "Degraded", ["HostCrashed"])
    assert "exit code 7" in told.issue("HostCrashed")["message"]
    client.wait_connected(generation=2)
    assert health(machine, lambda result: result.exit_code == 0)


def test_where_a_host_runs_health_tells_what_only_a_proxy_knows_too(proxies: Proxies, bench: Workbench) -> None:
    host = proxies.connected().health()["hostProcessId"]
    other = proxies.start("--", *odd_server(refuses=-32000))
    other.initialize()
    other.wait_state("Degraded")

    told = health(bench.machine, lambda result: result.issue_codes == ["UpstreamError"], "--json")

    assert (told.json["hostProcessId"], told.json["upstreamConnected"]) == (host, True)
    assert other.issue_codes() == ["UpstreamError"]


def test_of_an_add_in_that_a_proxy_loads_when_it_is_mended_both_say_so(proxies: Proxies, bench: Workbench) -> None:
    bench.write_addin("broken.py", "def")
    client = proxies.connected()
    report = client.wait_health(lambda report: codes(report) == ["AddInLoadFailed"], "aware of the add-in")

    told = health(bench.machine, lambda result: "AddInLoadFailed" in result.issue_codes, "--json")

    [issue] = report["issues"]
    assert told.issue("AddInLoadFailed")["remediation"] == issue["remediation"]


def test_health_says_where_a_proxy_serves_http_too(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected("--http", "0")
    address = client.wait_health(lambda report: report["proxy"]["httpEndpoint"], "served")["proxy"]["httpEndpoint"]

    told = health(bench.machine, lambda result: "HTTP:" in result.stdout)

    assert re.fullmatch(r"http://localhost:\d+/mcp", address)
    assert f"  HTTP: {address}" in told.stdout.splitlines()
    assert address in client.stderr


def test_a_port_for_http_that_is_taken_is_told_by_both(proxies: Proxies, bench: Workbench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        client = proxies.connected("--http", str(port))

        own = client.wait_health(lambda report: codes(report) == ["HttpNotServed"], "aware of the port")
        told = health(bench.machine, lambda result: result.issue_codes == ["HttpNotServed"], "--json")

    assert str(port) in told.issue("HttpNotServed")["message"]
    assert own["status"] == told.json["status"] == "Degraded"


# --- stop, and start again --------------------------------------------------------------------------------------------


def written_down(machine: Machine) -> None:
    """Until the proxy has told the disk that it is connected."""
    health(machine, lambda result: [proxy["state"] for proxy in result.json["proxies"]] == ["Connected"], "--json")


def test_stop_tells_people_and_programs_which_proxy_starts_the_host_again(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    written_down(bench.machine)
    own = client.wait_health(lambda report: report["startedAt"], "with the time of the start")
    assert bench.machine.run("health", "--json").json["startedAt"] == own["startedAt"], "both say since when it runs"

    told = bench.machine.run("stop").stdout
    client.wait_connected(generation=2)
    written_down(bench.machine)
    [result] = bench.machine.run("stop", "--json").json["results"]

    assert told.splitlines()[-2] == "Successfully stopped 1 DevServer(s)"
    assert f"The proxy (of test-client, process {client.pid}) starts it again at once" in told
    assert "with the add-ins as they are now" in told
    assert result["startedAgainBy"] == [{"processId": client.pid, "clients": ["test-client"]}]
    client.wait_connected(generation=3)


def test_the_host_of_a_proxy_is_not_restarted_by_start_but_by_stop(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.connected()
    written_down(bench.machine)
    bench.write_addin("more.py", "def register(addin):\n    addin.tool(name='more')(lambda: 'edited')\n")

    refused = bench.machine.run("start", "--restart", "--json").json["error"]
    assert refused["code"] == "ServerOwned"
    assert refused["nextStep"].startswith("Run 'uno-devserver stop'.")
    assert f"process {client.pid}" in refused["nextStep"]
    bench.machine.run("stop")

    client.wait_connected(generation=2)
    assert client.call("more") == "edited"
