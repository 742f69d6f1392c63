"""The Host over MCP: its own health, its lists, and the truth about its add-ins."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from support.addins import AddInFolder, health_of, text_of
from uno_devserver.host.addins.manager import AddInManager
from uno_devserver.host.addins.testing import Client
from uno_devserver.host.mcp_service import HostService
from uno_devserver.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from uno_devserver.protocol.peer_info import ServerInfo

GOOD = "def register(addin):\n    addin.tool(name='good')(lambda: 'good')\n"


async def test_the_health_is_a_tool_and_a_resource(addins: AddInFolder) -> None:
    path = addins.write("good.py", GOOD)
    async with addins.serve(path) as client:
        called = await client.call("uno_health")
        read = await client.request("resources/read", {"uri": "uno://health"})
        shouted = await client.request("resources/read", {"uri": "UNO://HEALTH"})
        listed = (await client.request("resources/list"))["resources"][0]
        tool = (await client.tools())["uno_health"]

    expected = {
        "status": "Healthy",
        "hostVersion": "1",
        "addIns": [
            {
                "name": "good",
                "version": None,
                "assemblyPath": path,
                "loaded": True,
                "error": None,
                "detail": None,
                "failures": 0,
            }
        ],
        "ideChannelConnected": False,
        "discoveryError": None,
        "loading": False,
        "problems": [],
        "running": [],
    }
    assert called["structuredContent"] == json.loads(text_of(called)) == expected
    (contents,) = read["contents"]
    assert (contents["uri"], contents["mimeType"]) == ("uno://health", "application/json")
    assert json.loads(contents["text"]) == json.loads(shouted["contents"][0]["text"]) == expected
    assert (listed["uri"], listed["name"], listed["mimeType"]) == (
        "uno://health",
        "Uno DevServer Health",
        "application/json",
    )
    assert tool["inputSchema"] == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    "broken",
    [
        "raise ValueError",
        "def register(addin):\n    raise ValueError",
        "def register(addin):\n    @addin.on_start\n    def begin(): raise ValueError",
        "def register(addin):\n    addin.tool(name='good')(lambda: 'again')",
        None,
    ],
)
async def test_any_failed_add_in_degrades_the_host(addins: AddInFolder, broken: str | None) -> None:
    bad = str(addins.folder / "missing.dll") if broken is None else addins.write("bad.py", broken)
    async with addins.serve(addins.write("good.py", GOOD), bad) as client:
        health = await health_of(client)
        said = await client.call("good")

    assert health["status"] == "Degraded"
    assert [addin["error"] is None for addin in health["addIns"]] == [True, False]
    assert text_of(said) == "good"


async def test_the_health_needs_no_arguments_and_takes_none(addins: AddInFolder) -> None:
    async with addins.serve() as client:
        without = await client.request("tools/call", {"name": "uno_health"})
        refused = await client.call("uno_health", verbose=True)

    assert "isError" not in without
    assert refused["isError"]
    assert text_of(refused) == "uno_health takes no arguments."


async def test_the_health_answers_before_anything_is_loaded(addins: AddInFolder) -> None:
    client = Client(workspace=str(addins.folder))

    health = await health_of(client)

    assert (health["status"], health["loading"]) == ("Healthy", True)


@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("tools/list", {"cursor": "2"}, INVALID_PARAMS, "The cursor is unknown: every list here is one page."),
        ("tools/call", {}, INVALID_PARAMS, "'name' is missing, or not text."),
        ("tools/call", {"name": 7}, INVALID_PARAMS, "'name' is missing, or not text."),
        ("resources/read", {}, INVALID_PARAMS, "'uri' is missing, or not text."),
        ("prompts/get", {}, INVALID_PARAMS, "'name' is missing, or not text."),
        ("completion/complete", {}, INVALID_PARAMS, "completion/complete needs 'ref' and 'argument'."),
        ("tasks/list", {}, METHOD_NOT_FOUND, "Method 'tasks/list' is not available."),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(
    addins: AddInFolder, method: str, params: dict[str, Any], code: int, message: str
) -> None:
    async with addins.serve() as client:
        with pytest.raises(RpcError) as raised:
            await client.request(method, params)

    assert (raised.value.code, raised.value.message) == (code, message)


async def test_lists_without_add_ins_hold_what_the_host_has(addins: AddInFolder) -> None:
    async with addins.serve() as client:
        assert list(await client.tools()) == ["uno_health"]
        assert (await client.request("resources/templates/list")) == {"resourceTemplates": []}
        assert (await client.request("prompts/list")) == {"prompts": []}


def test_what_the_host_can_do_is_known_before_any_add_in_is() -> None:
    service = HostService(AddInManager(workspace="/"), ServerInfo("Uno Server", "1.2.3"), dict)

    assert service.info.name == "Uno Server"
    assert set(service.capabilities()) == {"tools", "resources", "prompts", "completions", "logging"}
    assert service.capabilities()["tools"] == {"listChanged": True}


def test_initialize_brings_none_of_the_machinery_of_add_ins() -> None:
    program = """
import sys
import uno_devserver.host.mcp_service, uno_devserver.host.health
from uno_devserver.host.addins.manager import AddInManager
AddInManager(workspace=".").load([])
print(sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("uno_devserver.host.addins.")))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (result.stdout, result.stderr) == ("['manager']\n", "")
