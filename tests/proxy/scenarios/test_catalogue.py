"""Tools before there is a server: the lists that were last seen, on disk, and what becomes of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from support.files import write
from support.machine import Machine
from support.odd_servers import Notes, odd_server
from support.proxies import ERAS, Proxies, ProxyClient
from support.waiting import wait_for

from .conftest import Workbench

LIST_CHANGED = "notifications/tools/list_changed"


def seen_once(proxies: Proxies, *options: str) -> None:
    """A session that has learnt what there is, and has ended."""
    client = proxies.connected(*options)
    until_kept(client)
    client.close_stdin()
    client.exit_code()


def until_kept(client: ProxyClient) -> None:
    client.wait_health(lambda report: report["proxy"]["catalogueAgeSeconds"] is not None, "with a catalogue on disk")


def listening(client: ProxyClient) -> None:
    """A modern client is told of changes if it asks for it."""
    client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "changes")
    client.hear("notifications/subscriptions/acknowledged")


# --- the second launch ----------------------------------------------------------------------------------------------


@ERAS
def test_at_the_second_launch_the_tools_are_there_before_the_host(
    proxies: Proxies, bench: Workbench, modern: bool
) -> None:
    seen_once(proxies)
    bench.close_gate()
    client = proxies.start()
    client.initialize(modern=modern)

    tools = client.tools()
    prompts = client.result("prompts/list")["prompts"]
    resources = client.result("resources/list")["resources"]

    assert {"uno_health", "echo", "count", "uno_execute_tool"} <= set(tools)
    assert [prompt["name"] for prompt in prompts] == ["greet"]
    assert "bench://note" in [resource["uri"] for resource in resources]
    assert client.health()["proxy"]["listsFresh"] is False
    bench.open_gate()
    client.wait_connected()
    assert client.tools() == tools
    assert client.heard(LIST_CHANGED) == [], "nothing has changed"
    assert client.call("echo", text="hi") == "hi"


@ERAS
def test_when_reality_differs_from_the_catalogue_the_client_is_told(
    proxies: Proxies, bench: Workbench, modern: bool
) -> None:
    seen_once(proxies)
    bench.write_addin("more.py", "def register(addin):\n    addin.tool(name='extra')(lambda: 'extra')\n")
    bench.close_gate()
    client = proxies.start()
    client.initialize(modern=modern)
    if modern:
        listening(client)
    assert "extra" not in client.tools()

    bench.open_gate()

    client.hear(LIST_CHANGED)
    assert "extra" in client.tools()


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_workspace_that_was_named_has_one_and_the_folder_of_the_start_does_not(
    proxies: Proxies, bench: Workbench, machine: Machine
) -> None:
    empty, other = machine.root / "empty", machine.root / "other"
    empty.mkdir()
    shutil.copytree(machine.workspace, other)
    (other / ".devtools" / "addins" / "gate").touch()

    def started() -> ProxyClient:
        client = proxies.start(cwd=empty)
        client.initialize()
        client.wait_health(lambda report: report["proxy"]["fallback"], "in fallback mode")
        assert "echo" not in client.tools()
        return client

    def name(client: ProxyClient, folder: Path) -> int | str:
        arguments = {"workspaceDirectory": str(folder)}
        return client.begin("tools/call", {"name": "uno_app_initialize", "arguments": arguments})

    first = started()
    first.answer(name(first, machine.workspace))
    until_kept(first)
    first.close_stdin()
    first.exit_code()
    bench.close_gate()
    second = started()

    served = name(second, machine.workspace)
    second.wait_health(lambda report: report["toolCount"] > 5, "aware of the tools that it had")
    heard = len(second.heard(LIST_CHANGED))
    assert "echo" in second.tools()
    assert heard
    bench.open_gate()
    second.answer(served)
    name(second, other)
    second.wait_health(lambda report: report["toolCount"] == 0, "without the tools of another workspace")

    assert "echo" not in second.tools()
    assert len(second.heard(LIST_CHANGED)) > heard


# --- options --------------------------------------------------------------------------------------------------------


def test_with_mcp_wait_tools_list_the_first_list_is_complete(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    client = proxies.start("--mcp-wait-tools-list")
    client.initialize()
    listing = client.begin("tools/list")
    assert client.health()["connectionState"], "it answers everything else meanwhile"
    assert not client.has_answer(listing)

    bench.open_gate()

    tools = client.answer(listing)["result"]["tools"]
    assert {"echo", "uno_health"} <= {tool["name"] for tool in tools}


def test_force_generate_tool_cache_primes_the_catalogue_and_ends(
    proxies: Proxies, bench: Workbench, machine: Machine
) -> None:
    result = machine.run("mcp", "start", "--force-generate-tool-cache")

    [file] = (machine.state / "catalogue").iterdir()
    assert result.exit_code == 0
    assert re.fullmatch(rf"Saved \d\d tools in {re.escape(str(file))}\.\n", result.stdout)
    wait_for(lambda: not proxies.processes())
    bench.close_gate()
    assert "echo" in proxies.start().tools()


def test_force_generate_tool_cache_fails_where_there_is_nothing_to_ask(proxies: Proxies, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")

    result = proxies.machine.run("mcp", "start", "--force-generate-tool-cache", "--", *odd_server(dies=3, notes=notes))

    assert result.exit_code == 1
    assert result.stderr.strip()
    assert notes.starts


def test_force_generate_tool_cache_tells_programs_what_it_kept(proxies: Proxies, machine: Machine) -> None:
    command = ("mcp", "start", "--force-generate-tool-cache", "--json", "--")

    kept = machine.run(*command, *odd_server(tools=7)).json
    failed = machine.run(*command, "nowhere-to-be-found")

    [file] = (machine.state / "catalogue").iterdir()
    assert kept == {"tools": 7, "file": str(file)}
    assert (failed.exit_code, failed.json["error"]["code"]) == (1, "NoCatalogue")
    assert "nowhere-to-be-found" in failed.json["error"]["message"]


def test_a_catalogue_that_is_not_made_promises_nothing_for_afterwards(machine: Machine, bench: Workbench) -> None:
    """Nobody has agreed to the workspace's code; and no proxy stays that could go on."""
    refused = machine.run("mcp", "start", "--force-generate-tool-cache", "--json").json["error"]

    assert refused["nextStep"] == (
        "Only the user may agree, by running 'uno-devserver trust' in the workspace. Then run this again."
    )


def test_a_catalogue_that_cannot_be_written_is_no_success(proxies: Proxies, machine: Machine) -> None:
    write(machine.state / "catalogue", "a file where the folder should be")

    result = machine.run("mcp", "start", "--force-generate-tool-cache", "--", *odd_server())

    assert result.exit_code == 1
    assert "its tools were not saved" in result.stderr
