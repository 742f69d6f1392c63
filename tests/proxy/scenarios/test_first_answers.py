"""The first moments of a session: answers before there is any server, in every version of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.files import write
from support.golden import GOLDEN
from support.odd_servers import odd_server
from support.proxies import MODERN, Proxies
from uno_devserver import __version__

from .conftest import Workbench

OWN_TOOLS = ["uno_health", "mcpStatus", "mcpRestart", "uno_discover_tools", "uno_execute_tool"]
UNO = '{"msbuild-sdks": {"Uno.Sdk": "6.5.31"}}'


def record(name: str) -> list[dict[str, Any]]:
    """The messages that the .NET proxy sent in a recorded session."""
    log = json.loads((GOLDEN / "host" / "mcp-app" / f"{name}.json").read_text("utf-8"))["log"]
    return [json.loads(entry["line"]) for entry in log if entry.get("dir") == "<" and "line" in entry]


# --- hello ----------------------------------------------------------------------------------------------------------


def test_initialize_agrees_on_the_version_that_the_net_proxy_agrees_on_each_time(proxies: Proxies) -> None:
    client = proxies.start()

    for version in ("2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "garbage"):
        recorded, result = record(f"initialize-{version}")[0]["result"], client.initialize(version)

        assert result["protocolVersion"] == recorded["protocolVersion"], version
        assert result["serverInfo"]["name"] == recorded["serverInfo"]["name"] == "uno-devserver"
        assert result["serverInfo"]["version"] == __version__
        assert result["capabilities"].keys() >= {*recorded["capabilities"], "logging"}
        lists = [result["capabilities"][name]["listChanged"] for name in ("tools", "resources", "prompts")]
        assert lists == [True] * 3
        assert "uno_health" in result["instructions"], "where a model begins"


def test_a_client_that_probes_as_claude_code_does_is_modern_from_then_on(proxies: Proxies, bench: Workbench) -> None:
    client = proxies.start()
    client.modern = True

    probe = client.request("server/discover", request_id="server-discover-probe-1")["result"]

    assert MODERN in probe["supportedVersions"]
    assert (probe["resultType"], probe["cacheScope"]) == ("complete", "private")
    assert probe["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "uno-devserver"
    tools = client.result("tools/list")
    assert tools["resultType"] == "complete"
    assert isinstance(tools["ttlMs"], int)
    assert client.error("ping")["code"] == -32601, "it was removed in this era"


def test_a_client_that_gives_up_on_its_probe_may_still_initialize(proxies: Proxies, bench: Workbench) -> None:
    """Recorded of the .NET proxy, too: a modern request, then a handshake on the same connection."""
    client = proxies.start()
    client.modern = True
    client.result("server/discover")

    assert client.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
    assert set(client.tools()) >= set(OWN_TOOLS)
    assert "resultType" not in client.result("tools/list")


@pytest.mark.parametrize("command", [("--mcp-app",), ("mcp", "serve"), ("mcp", "start")])
def test_there_are_three_ways_to_say_it(proxies: Proxies, command: tuple[str, ...]) -> None:
    assert proxies.start(command=command).initialize()["serverInfo"]["name"] == "uno-devserver"


# --- lists before there is a server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
def test_our_own_tools_are_there_at_once_although_the_server_is_not(
    proxies: Proxies, bench: Workbench, modern: bool
) -> None:
    bench.close_gate()
    client = proxies.start()
    client.initialize(modern=modern)

    assert client.tools() == OWN_TOOLS


def test_our_own_tools_have_the_schemas_and_annotations_of_the_net_proxy(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    write(bench.machine.workspace / "global.json", UNO)
    recorded = {tool["name"]: tool for tool in record("session-main")[1]["result"]["tools"]}
    client = proxies.start()
    client.initialize()

    tools = client.result("tools/list")["tools"]

    shared = [tool for tool in tools if not tool["name"].startswith("mcp")]  # that proxy does not have these
    assert [tool["name"] for tool in shared] == list(recorded)
    for tool in shared:
        assert _shape(tool["inputSchema"]) == _shape(recorded[tool["name"]]["inputSchema"])
        assert tool["annotations"].items() >= recorded[tool["name"]]["annotations"].items()
        assert len(tool["description"]) > 40


def _shape(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the sentences in it."""
    properties = {name: one["type"] for name, one in schema.get("properties", {}).items()}
    return {"type": schema["type"], "required": sorted(schema.get("required", [])), "properties": properties}


def test_health_is_a_resource_too_whatever_the_case_of_its_address(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    client = proxies.start()
    client.initialize()

    [listed] = client.result("resources/list")["resources"]
    [content] = client.result("resources/read", {"uri": "UNO://Health"})["contents"]

    assert (listed["uri"], listed["mimeType"]) == ("uno://health", "application/json")
    assert content["mimeType"] == "application/json"
    assert json.loads(content["text"])["connectionState"]
    assert client.result("prompts/list") == {"prompts": []}


@pytest.mark.parametrize("connected", [False, True], ids=["first answer", "connected"])
def test_the_health_of_a_server_that_has_nothing_to_do_with_uno_is_one_brief_form(
    proxies: Proxies, connected: bool
) -> None:
    client = proxies.start("--", *odd_server())
    if connected:
        client.wait_connected()

    result = client.call_result("uno_health")
    [content] = client.result("resources/read", {"uri": "uno://health"})["contents"]

    told = json.loads(result["content"][0]["text"])
    assert list(told)[:5] == ["status", "connectionState", "server", "toolCount", "issues"]
    assert list(json.loads(content["text"])) == list(told) or not connected, "the state may have changed"
    assert result.get("structuredContent", told) == told
    for text in (result["content"][0]["text"], content["text"]):
        assert len(text.encode()) <= 2000
        assert not {"unoSdkVersion", "discovery", "candidateSolutions", "addIns"} & set(json.loads(text))
    assert client.health()["proxy"], "the argument details gives everything"


def test_the_first_health_has_the_members_of_the_record_in_their_order(proxies: Proxies, bench: Workbench) -> None:
    bench.close_gate()
    write(bench.machine.workspace / "global.json", UNO)
    recorded = next(
        json.loads(message["result"]["content"][0]["text"])
        for message in record("session-main")
        if "connectionState" in json.dumps(message)
    )
    client = proxies.start()

    report = json.loads(client.call("uno_health"))

    assert list(report)[: len(recorded)] == list(recorded)
    assert report["proxy"]["generation"] == 0


# --- ids and other oddities on the line -----------------------------------------------------------------------------


def test_after_lines_that_make_no_sense_the_session_goes_on(proxies: Proxies) -> None:
    client = proxies.start()
    client.initialize()

    for line in (
        b"this is not json",
        b"[]",
        b"\xff\xfe\x00",
        b"{",
        b'"text"',
        b'{"jsonrpc":"2.0","id":"nobody","result":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/unknown"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}',
        b"[" * 100_000,
        b"",
    ):
        client.send_bytes(line + b"\n")

        assert client.result("ping") == {}, line[:80]


def test_of_the_names_of_clients_the_last_are_kept_and_only_their_beginning(proxies: Proxies) -> None:
    client = proxies.start("--", *odd_server())
    for number in range(30):
        info = {"name": f"{number} " + "x" * 100_000, "version": "1"}
        client.result("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
    client.wait_connected()

    names = client.health()["proxy"]["clients"]

    assert [int(name.split()[0]) for name in names] == list(range(10, 30))
    assert {len(name) for name in names} == {100}
